"""Test the work folder: what it is for, who uses it, and what processes that were killed leave."""

import errno
import os
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from normalmesh import NormalMeshError, NormalMeshWarning
from normalmesh.engine.description import code_description, description_of
from normalmesh.engine.work_folder import ABANDONED, WorkFolder, holds_results, remove_work

ABOUT = {"input": "huge.tif", "tiles": 4096, "prior": None}


def bytes_of(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def test_results_stay(tmp_path):
    with WorkFolder(tmp_path / "work", ABOUT) as folder:
        made = folder.save("decimate", (3, 4), {"x": np.arange(3)})
        assert made == folder.result("decimate", (3, 4))
        assert folder.size > 24
    with WorkFolder(tmp_path / "work", ABOUT) as folder:
        again = folder.save("decimate", (3, 4), {"x": np.zeros(3)})
        np.testing.assert_array_equal(again.load()["x"], np.arange(3))
        assert not folder.result("decimate", (4, 3)).exists
        folder.remove_stage("decimate")
        assert not made.exists


def test_another_input_or_other_options_are_refused(tmp_path):
    with WorkFolder(tmp_path, ABOUT):
        pass
    with pytest.raises(NormalMeshError, match=r"tiles was 4096, now 2048.*another folder, or remove it"):
        WorkFolder(tmp_path, {**ABOUT, "tiles": 2048}).__enter__()
    with pytest.raises(NormalMeshError, match=r"further was None, now 1"):
        WorkFolder(tmp_path, {**ABOUT, "further": 1}).__enter__()
    with WorkFolder(tmp_path, ABOUT):
        pass


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_a_damaged_description_is_refused(tmp_path, content):
    (tmp_path / "folder.json").write_text(content)
    with pytest.raises(NormalMeshError, match=r"folder\.json is damaged"):
        WorkFolder(tmp_path, ABOUT).__enter__()


def test_a_folder_of_other_files_is_neither_used_nor_removed(tmp_path):
    (tmp_path / "photo.png").touch()
    with pytest.raises(NormalMeshError, match="not empty: give another one"):
        WorkFolder(tmp_path, ABOUT).__enter__()
    remove_work(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["photo.png"]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "missing" / "work", tmp_path / "file", tmp_path / "file" / "work"):
        with pytest.raises(NormalMeshError, match="cannot work in"):
            WorkFolder(path, ABOUT).__enter__()


#: Uses a folder until it is killed.
HOLDER = """
import sys, time
from pathlib import Path
from normalmesh.engine.work_folder import WorkFolder
with WorkFolder(Path(sys.argv[1]), {}):
    print("holds", flush=True)
    time.sleep(60)
"""


def test_one_process_at_a_time_until_it_is_killed(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "holds\n"
        with pytest.raises(NormalMeshError, match=rf"process {holder.pid} on .* uses the folder"):
            WorkFolder(tmp_path, {}).__enter__()
    finally:
        holder.kill()
        holder.communicate()
    with WorkFolder(tmp_path, {}), pytest.raises(NormalMeshError, match="another process"):
        WorkFolder(tmp_path, {}).__enter__()
    with WorkFolder(tmp_path, {}):
        pass


def test_a_disk_without_locks(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("normalmesh.runtime.file_lock._lock", refused)
    with pytest.warns(NormalMeshWarning, match="knows no locks"), WorkFolder(tmp_path, ABOUT) as folder:
        assert folder.save("stage", 0, {"x": np.arange(3)}).exists


def test_only_abandoned_files_are_removed(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (tmp_path / "stage").mkdir()
    (tmp_path / "lock").touch()
    host = socket.gethostname()
    # Windows does not tell whether a process has ended without harming it.
    names = {
        f"{host}.{ended.pid}": int(os.name == "nt"),
        f"{host}.{os.getpid()}": 1,
        "a.far.host.1": 1,
        "b.far.host.1": 0,
    }
    for name in names:
        path = tmp_path / "stage" / f".normalmesh-0123456789abcdef.{name}.part"
        path.touch()
        if name.startswith("b."):
            os.utime(path, (0, time.time() - ABANDONED - 60))
    with WorkFolder(tmp_path, {}):
        left = {path.name.split(".", 2)[2].removesuffix(".part") for path in (tmp_path / "stage").iterdir()}
    assert left == {name for name, stays in names.items() if stays}


def test_removal(tmp_path):
    with WorkFolder(tmp_path / "work", ABOUT) as folder:
        assert not holds_results(folder.path)
        folder.save("decimate", "all", {"x": np.arange(3)})
        assert holds_results(folder.path)
    remove_work(folder.path)
    assert not folder.path.exists()
    remove_work(folder.path)


#: Saves results one by one, and ends in the middle of one of them.
KILLED = """
import os, sys
import numpy as np
from pathlib import Path
from normalmesh.engine import array_file
from normalmesh.engine.work_folder import WorkFolder

end = int(sys.argv[2])
with WorkFolder(Path(sys.argv[1]), {"seed": 1}) as folder:
    for number in range(6):
        if number == end:
            array_file.os.fsync = lambda _: os._exit(9)
        folder.save("stage", number, {"x": np.random.default_rng(number).normal(size=100)})
"""


def test_a_resumed_run_gives_the_same_bytes(tmp_path):
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    for path, ends in ((whole, [9]), (resumed, [0, 3, 9])):
        for end in ends:
            killed = subprocess.run([sys.executable, "-c", KILLED, path, str(end)], check=False)
            assert killed.returncode == (9 if end < 6 else 0)
    assert bytes_of(whole) == bytes_of(resumed)
    assert len(bytes_of(whole)) == 7


def test_descriptions():
    from normalmesh import Perspective

    first = description_of(
        "a", {"x": np.arange(3), "camera": Perspective(9, 9, 4, 4), "y": [1, None], "z": [[1.5], "b"]}
    )
    assert first["a.camera"] == "Perspective"
    assert first["a.camera.fx"] == 9.0
    assert (first["a.y.1"], first["a.z.0.0"], first["a.z.1"]) == (None, 1.5, "b")
    long = [description_of("n", list(range(number)))["n"] for number in (50, 51)]
    assert long[0].startswith("50 items, hash ")
    assert long[0] != long[1]
    other = description_of("a", {"x": np.array([0, 1, 3])})
    assert str(first["a.x"]).startswith("int64 3, hash ")
    assert first["a.x"] != other["a.x"]
    assert description_of("n", np.float32(2)) == {"n": 2.0}
    assert "0.1" in code_description()
