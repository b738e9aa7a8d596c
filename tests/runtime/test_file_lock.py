"""Test locks that processes share: one holder at a time, and none after it has ended."""

import subprocess
import sys
import threading
import time

import pytest

from normalmesh.runtime.file_lock import FileLock

#: Holds a lock until it is killed.
HOLDER = """
import sys, time
from pathlib import Path
from normalmesh.runtime.file_lock import FileLock
assert FileLock(Path(sys.argv[1])).take()
print("holds", flush=True)
time.sleep(60)
"""


def test_one_holder_in_this_process(tmp_path):
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.take()
    assert not second.take()
    first.release()
    first.release()
    assert second.take()
    assert (tmp_path / "lock").exists()


def test_the_lock_of_a_process_that_was_killed_is_free(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path / "lock"], stdout=subprocess.PIPE, text=True)
    lock = FileLock(tmp_path / "lock")
    try:
        assert holder.stdout.readline() == "holds\n"
        assert not lock.take(0.1)
    finally:
        holder.kill()
        holder.communicate()
    assert lock.take(10)


def test_who_waits_gets_a_temporary_lock_whose_file_is_gone(tmp_path):
    first, second = (FileLock(tmp_path / "lock", temporary=True) for _ in range(2))
    assert first.take()
    taken = []
    waiter = threading.Thread(target=lambda: taken.append(second.take(10)))
    waiter.start()
    time.sleep(0.1)
    first.release()
    waiter.join()
    assert taken == [True]
    second.release()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        FileLock(tmp_path / "missing" / "lock").take()
