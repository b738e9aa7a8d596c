"""Temporary files that are gone at the end, however the process ends, unless it is killed."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from threading import RLock
from typing import BinaryIO

#: Held while a temporary file is made, and while files take the place of others. Whoever holds it and never lets go, as
#: at the end of the process, can be sure that all of that has happened, or none, and that nothing new appears.
steps = RLock()
#: Told the path of each file that is written atomically, as it was given.
observers: list[Callable[[str | PathLike[str]], object]] = []
_files: set[Path] = set()


@contextmanager
def removed_at_the_end(*paths: Path) -> Iterator[None]:
    """Remove files, those that are there, when what is inside has ended, or at the end of the process."""
    _files.update(paths)
    try:
        yield
    finally:
        _remove(paths)


def remove_temporary_files() -> None:
    """Remove those of all writes under way."""
    _remove(tuple(_files))


def hidden_stem() -> str:
    """A name, without suffix, that no file has."""
    return f".normalmesh-{os.urandom(8).hex()}"


def new_file(path: Path) -> BinaryIO:
    """A file that was not there, open for writing; as one of the :data:`steps`."""
    with steps:
        return open(path, "xb")


def replaced_by(path: Path, content: bytes) -> None:
    """Give a file new content, all at once; after a loss of power it may be gone."""
    temporary = path.with_name(f"{hidden_stem()}.tmp")
    with removed_at_the_end(temporary):
        with new_file(temporary) as file:
            file.write(content)
        with steps:
            os.replace(temporary, path)


@contextmanager
def temporary_file(suffix: str) -> Iterator[Path]:
    """An empty file in the system's folder for such files."""
    import tempfile

    with steps:
        handle, name = tempfile.mkstemp(suffix, "normalmesh-")
        _files.add(Path(name))
    os.close(handle)
    with removed_at_the_end(Path(name)):
        yield Path(name)


def _remove(paths: tuple[Path, ...]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
        _files.discard(path)


def _forked() -> None:
    """The files are those of the parent."""
    _files.clear()
    steps.release()


# An interrupt may come while files are being removed.
atexit.register(remove_temporary_files)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=steps.acquire, after_in_parent=steps.release, after_in_child=_forked)
