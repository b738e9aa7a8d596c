"""FileLock: a lock that several processes share, which the system releases when its holder ends, however it ends."""

from __future__ import annotations

import os
import time
from pathlib import Path

from normalmesh.runtime.temporary_files import remove_at_end, remove_now, steps

#: Seconds between two attempts to take a lock that another process holds.
INTERVAL = 0.05
#: Position of the byte that is locked on Windows, where others cannot read what is locked.
FAR = 1 << 30


class FileLock:
    """A lock on a file, for one holder in all processes of a machine, and of those that share a disk if that can.

    Parameters
    ----------
    path
        The file. It is created if it is missing.
    temporary
        Whether the holder removes it in the end.
    """

    def __init__(self, path: Path, temporary: bool = False) -> None:
        self.path, self._temporary = path, temporary
        self._file: int | None = None

    def take(self, seconds: float = 0.0) -> bool:
        """Take the lock within so many seconds, and return whether that was possible.

        Raises
        ------
        OSError
            The file cannot be made, or its disk knows no locks.
        """
        with steps:  # no file is made once the process is about to end
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
            if self._temporary:
                remove_at_end(self.path)
        try:
            ends = time.monotonic() + seconds
            while not (taken := _lock(self._file)) and time.monotonic() < ends:
                time.sleep(INTERVAL)
        except BaseException:
            self.release()
            raise
        if not taken:
            self.release()
        return taken

    def release(self) -> None:
        """Release the lock, if it is held. Who waits for a temporary one gets it, although its name is gone."""
        if self._file is None:
            return
        if self._temporary:
            remove_now(self.path)
        os.close(self._file)
        self._file = None


def _lock(file: int) -> bool:
    """Lock an open file, and return whether no other process has done so."""
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(file, FAR, os.SEEK_SET)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]  # on Windows only
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
