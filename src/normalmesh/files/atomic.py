"""Writing files so that a failure leaves what was there before: all of the new files appear, or none of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

from normalmesh.errors import NormalMeshError, path_text
from normalmesh.files.clashes import InputFiles, reject_clashes, reject_inputs
from normalmesh.runtime.temporary_files import new_file, observers, steps, temporary_path

#: Contents of files by their paths.
Files: TypeAlias = dict[str | PathLike[str], bytes | memoryview]


def write_atomically(contents: Mapping[str | PathLike[str], bytes | memoryview]) -> None:
    """Write each content to its path; all files are replaced, in the order given, or all stay as they were.

    Every content goes to a temporary file beside its target, and onto the disk, before the first target is replaced.
    If anything fails, or the user interrupts, the temporary files are removed and targets already replaced are put
    back. Put the file that refers to the others last: whoever sees it, sees the others.

    A new file gets the permissions of the umask, a replaced one keeps its own. Links are followed.

    Raises
    ------
    NormalMeshError
        The folder is missing or not writable, the target is a folder or write-protected, the disk is full, …
    """
    for path in contents:
        check_target(path)
    reject_inputs(contents)
    with ExitStack() as stack:
        writes = []
        for path, content in contents.items():
            target = Path(os.path.realpath(path))
            new, old = (stack.enter_context(temporary_path(target.parent)) for _ in range(2))
            writes.append(_Write(path, target, new, old))
            with _readable_errors(path):
                _write_beside(target, new, content)
        for path, target, _, old in writes[:-1]:  # once the last one is replaced, nothing can fail
            with _readable_errors(path), steps:
                if target.exists():
                    shutil.copy2(target, old)
        with steps:
            _replace_all(writes)
            for path in contents:
                _notify(path)


class _Write(NamedTuple):
    """A file on its way: the path as given, the file it stands for, and temporary files for its new and old content."""

    path: str | PathLike[str]
    target: Path
    new: Path
    old: Path


def _write_beside(target: Path, new: Path, content: bytes | memoryview) -> None:
    write_new(new, content)
    with steps:
        if target.exists():
            shutil.copymode(target, new)


def _replace_all(writes: list[_Write]) -> None:
    """Move all new files to their targets, or put the old ones back."""
    try:
        for path, target, new, _ in writes:
            with _readable_errors(path):
                os.replace(new, target)
    except BaseException:
        if writes[-1].new.exists():  # an interrupt may also come when all are replaced
            for _, target, new, old in writes:
                if not new.exists() and old.exists():
                    os.replace(old, target)
                elif not new.exists():
                    target.unlink(missing_ok=True)
        raise


@contextmanager
def file_written_aside(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a file for a content too large for memory; it takes the place of ``path`` when the block ends well."""
    check_target(path)
    reject_inputs([path])
    target = Path(os.path.realpath(path))
    with temporary_path(target.parent) as new, _readable_errors(path):
        with new_file(new) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with steps:
            if target.exists():
                shutil.copymode(target, new)
            os.replace(new, target)
            _notify(path)


@contextmanager
def folder_written_aside(path: str | PathLike[str]) -> Iterator[Path]:
    """Yield an empty folder to fill; it takes the place of ``path`` as a whole when the block ends well.

    A folder that is there already is removed: the caller has checked that it may be. Write files in the new folder by
    :func:`write_new`.
    """
    target = Path(os.path.realpath(path))
    with ExitStack() as stack:
        new, old = (stack.enter_context(temporary_path(target.parent)) for _ in range(2))
        stack.enter_context(_readable_errors(path))
        with steps:
            new.mkdir()
        yield new
        with steps:
            _replace_folder(new, target, old)
            _notify(path)


def write_new(path: Path, content: bytes | memoryview) -> None:
    """Write a file where none is, onto the disk."""
    with new_file(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _replace_folder(new: Path, target: Path, old: Path) -> None:
    """Move a new folder to its target and what was there aside, or put that back."""
    if target.exists():
        os.replace(target, old)
    try:
        os.replace(new, target)
    except BaseException:
        if old.exists() and not target.exists():
            os.replace(old, target)
        raise


def _notify(path: str | PathLike[str]) -> None:
    for observer in observers:
        observer(path)


def check_target(path: str | PathLike[str]) -> None:
    """Raise a :class:`NormalMeshError` if a file cannot be written to ``path``: ask before long work."""
    with _readable_errors(path):
        target = Path(os.path.realpath(path))
        folder = target.parent
        obstacles = {
            "it is a link that leads nowhere but back": target.is_symlink(),
            "it is a folder": target.is_dir(),
            f"the folder {path_text(folder)} does not exist": not folder.is_dir(),
            "it is not an ordinary file": target.exists() and not target.is_file(),
            "the file is write-protected": target.exists() and not os.access(target, os.W_OK),
            f"no permission to write into the folder {path_text(folder)}": not os.access(folder, os.W_OK | os.X_OK),
        }
    for obstacle, found in obstacles.items():
        if found:
            raise NormalMeshError(f"cannot write {path_text(path)}: {obstacle}")


def check_targets(targets: Iterable[str | PathLike[str]], inputs: Iterable[str | PathLike[str] | None] = ()) -> None:
    """Check several files by :func:`check_target`; none may be another one of them, or one that is read."""
    paths = list(targets)
    for target in paths:
        check_target(target)
    reject_clashes(paths, InputFiles(inputs))


@contextmanager
def _readable_errors(path: str | PathLike[str]) -> Iterator[None]:
    """Turn an OSError into an error for the user that names the path and the reason."""
    try:
        yield
    except NormalMeshError:
        raise
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise NormalMeshError(f"cannot write {path_text(path)}: {reason}") from error
