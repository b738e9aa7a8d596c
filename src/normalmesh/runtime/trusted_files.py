"""Reading files that only the user or the administrator can have written.

A compiled kernel is machine code, and loading it executes code: a file that another user could have put into a shared
folder must not be read. What is checked is the open file and the open folder, which nobody can exchange afterwards.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

#: Permission of others to write.
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH
#: Neither follow a link, nor wait for the other end of a pipe. Not all systems have all of these.
_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))


def check_folder(folder: Path) -> None:
    """Raise :class:`OSError` if a user other than this one or root could have put files into a folder."""
    if not _is_safe(os.stat(folder)):
        raise PermissionError(0, "other users can write to it", str(folder))


def read_trusted(path: Path, size: int = -1) -> bytes | None:
    """Return the first bytes of a file, by default all; None if it is missing or another user could have written it."""
    with suppress(OSError), os.fdopen(_opened(path), "rb") as file:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and _is_safe(status):
            return file.read(size)
    return None


def _opened(path: Path) -> int:
    """Open a file in a folder that is safe, and return its descriptor."""
    if os.open not in os.supports_dir_fd:
        return os.open(path, _FLAGS)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not _is_safe(os.fstat(folder)):
            raise PermissionError(0, "other users can write to it", str(path.parent))
        return os.open(path.name, _FLAGS, dir_fd=folder)
    finally:
        os.close(folder)


def _is_safe(status: os.stat_result) -> bool:
    """Return whether only this user and root can have written to a file or folder; Windows keeps folders apart."""
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & _WRITABLE
