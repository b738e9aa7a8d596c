"""Writing files so that a failure leaves what was there before: all of the new files appear, or none of them."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from normalmesh.errors import NormalMeshError
from normalmesh.files.names import on_one_line
from normalmesh.runtime.temporary_files import hidden_stem, new_file, observers, removed_at_the_end, steps


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
    writes = [_Write.to(path) for path in contents]
    with removed_at_the_end(*(path for write in writes for path in (write.temporary, write.backup))):
        for write, content in zip(writes, contents.values(), strict=True):
            with _readable_errors(write.path):
                write.fill_temporary(content)
        for write in writes[:-1]:
            with _readable_errors(write.path):
                write.keep_backup()
        _replace_targets(writes)


def check_target(path: str | PathLike[str]) -> None:
    """Raise a :class:`NormalMeshError` if a file cannot be written to ``path``: ask before long work."""
    with _readable_errors(path):
        target = Path(os.path.realpath(path))
        if target.is_symlink():
            raise NormalMeshError(f"cannot write {on_one_line(path)}: it is a link that leads nowhere but back")
        if target.is_dir():
            raise NormalMeshError(f"cannot write {on_one_line(path)}: it is a folder")
        if not target.parent.is_dir():
            raise NormalMeshError(
                f"cannot write {on_one_line(path)}: the folder {on_one_line(target.parent)} does not exist"
            )
        if target.exists() and not target.is_file():
            raise NormalMeshError(f"cannot write {on_one_line(path)}: it is not an ordinary file")
        if target.exists() and not os.access(target, os.W_OK):
            raise NormalMeshError(f"cannot write {on_one_line(path)}: the file is write-protected")
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise NormalMeshError(
                f"cannot write {on_one_line(path)}: no permission to write into the folder {on_one_line(target.parent)}"
            )


def check_targets(targets: Iterable[str | PathLike[str]], inputs: Iterable[str | PathLike[str] | None] = ()) -> None:
    """:func:`check_target` for several files; none may be another one of them, or one that is read."""
    taken = {os.path.realpath(path): "is read" for path in inputs if path is not None and os.path.isfile(path)}
    for target in targets:
        check_target(target)
        place = os.path.realpath(target)
        if place in taken:
            raise NormalMeshError(f"cannot write {on_one_line(target)}: this file {taken[place]}, too; rename one")
        taken[place] = "is written"


@dataclass(frozen=True)
class _Write:
    """One file on its way: the path as given, the file it stands for, and two hidden neighbours of that file."""

    path: str | PathLike[str]
    target: Path
    temporary: Path
    backup: Path

    @classmethod
    def to(cls, path: str | PathLike[str]) -> _Write:
        target = Path(os.path.realpath(path))
        hidden = hidden_stem()
        return cls(path, target, target.with_name(f"{hidden}.tmp"), target.with_name(f"{hidden}.old"))

    def fill_temporary(self, content: bytes | memoryview) -> None:
        with new_file(self.temporary) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with steps:
            if self.target.exists():
                os.chmod(self.temporary, stat.S_IMODE(self.target.stat().st_mode))

    def keep_backup(self) -> None:
        if not self.target.exists():
            return
        with steps:
            try:
                os.link(self.target, self.backup)
            except OSError:  # a file system without hard links
                shutil.copy2(self.target, self.backup)

    def undo(self) -> None:
        """Put the old file back, or none where there was none, if the new one has taken its place."""
        if self.temporary.exists():
            return
        if self.backup.exists():
            os.replace(self.backup, self.target)
        else:
            self.target.unlink(missing_ok=True)


def _replace_targets(writes: Sequence[_Write]) -> None:
    """Move all temporary files to their targets, or none. The last one has no backup: once it is moved, all is done."""
    with steps:
        try:
            for write in writes:
                with _readable_errors(write.path):
                    os.replace(write.temporary, write.target)
        except BaseException:
            if writes[-1].temporary.exists():
                for write in writes[:-1]:
                    write.undo()
            raise
        for tell in observers:
            for write in writes:
                tell(write.path)


@contextmanager
def _readable_errors(path: str | PathLike[str]) -> Iterator[None]:
    """Turn an OSError into an error for the user that names the path and the reason."""
    try:
        yield
    except NormalMeshError:
        raise
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        raise NormalMeshError(
            f"cannot write {on_one_line(path)}: {getattr(error, 'strerror', None) or error}"
        ) from error
