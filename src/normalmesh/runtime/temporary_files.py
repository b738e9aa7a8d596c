"""Temporary files that are gone at the end, however the process ends, unless it is killed."""

from __future__ import annotations

import atexit
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from threading import RLock
from typing import BinaryIO

#: Held while a temporary file is made, and while files take the place of others. A thread that ends the process takes
#: it for good: then each of these steps has happened as a whole or not at all, and no further one begins.
steps = RLock()
#: Called with the path, as it was given, of each file that has been written atomically.
observers: list[Callable[[str | PathLike[str]], object]] = []
_paths: set[Path] = set()


@contextmanager
def removed_at_end(path: Path) -> Iterator[Path]:
    """Remove the file or folder at a path afterwards, or at the end of the process."""
    _paths.add(path)
    try:
        yield path
    finally:
        _remove(path)
        _paths.discard(path)


@contextmanager
def temporary_path(folder: Path, suffix: str = ".tmp") -> Iterator[Path]:
    """Yield a hidden path where nothing is yet; what is there afterwards is removed."""
    with removed_at_end(folder / f".normalmesh-{os.urandom(8).hex()}{suffix}") as path:
        yield path


def new_file(path: Path, mode: int = 0o666) -> BinaryIO:
    """Make a file where none is, with at most these permissions, and open it for writing."""
    with steps:
        return open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))


def remove_temporary_files() -> None:
    """Remove the temporary files of everything that is under way."""
    for path in tuple(_paths):
        _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):  # Windows keeps files that are open
            path.unlink()


def replace_content(path: Path, content: bytes, mode: int = 0o666, synchronised: bool = False) -> None:
    """Give a file new content, all at once. Unless it is synchronised, it may be gone after a power failure."""
    with temporary_path(path.parent) as temporary:
        with new_file(temporary, mode) as file:
            file.write(content)
            if synchronised:
                file.flush()
                os.fsync(file.fileno())
        with steps:
            os.replace(temporary, path)


def _after_fork() -> None:
    """Leave temporary files to the parent process."""
    _paths.clear()
    steps.release()


# Where an interrupt came while files were being removed, they are removed here.
atexit.register(remove_temporary_files)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=steps.acquire, after_in_parent=steps.release, after_in_child=_after_fork)
