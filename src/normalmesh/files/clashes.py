"""Files that are read, none of which may be overwritten, and files that would be written twice."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike

from normalmesh.errors import NormalMeshError, path_text

AnyPath = str | PathLike[str]


def place_of(path: AnyPath) -> str:
    """Return a text that is the same for all paths to one place, with links followed.

    Some file systems ignore case, and how accents are composed: what differs only in that counts as one place.
    """
    try:
        place = os.path.realpath(path)
    except ValueError:  # a null byte, with which no file is found
        place = os.fspath(path)
    return unicodedata.normalize("NFC", place).casefold()


class InputFiles:
    """A set of files that are read. A path is in it if it leads to one of them, by any name or link."""

    def __init__(self, paths: Iterable[AnyPath | None] = ()) -> None:
        self._known: set[object] = set()
        for path in paths:
            if path is not None:
                self.add(path)

    def add(self, path: AnyPath) -> None:
        """Add a file, which need not exist: another command, or the same one, may write it before it is read."""
        self._known.add(_identity(path) or place_of(path))

    def __contains__(self, path: AnyPath) -> bool:
        return not self._known.isdisjoint({_identity(path), place_of(path)})


def reject_clashes(targets: Iterable[AnyPath], inputs: InputFiles) -> None:
    """Raise a :class:`NormalMeshError` if a file to be written is an input, or would be written twice."""
    written: set[str] = set()
    for target in targets:
        place = place_of(target)
        if target in inputs or place in written:
            use = "read" if target in inputs else "written"
            raise NormalMeshError(f"cannot write {path_text(target)}: this file is {use}, too; rename one")
        written.add(place)


def _identity(path: AnyPath) -> tuple[int, int] | None:
    """Return device and number of a file, which hard links and names in another case share; None if there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


_inputs: ContextVar[InputFiles | None] = ContextVar("inputs", default=None)


@contextmanager
def inputs_protected() -> Iterator[None]:
    """Refuse, within this context, to overwrite any file that has been read in it.

    The names of some inputs are known only once others are read, such as the textures of a mesh.
    """
    before = _inputs.set(InputFiles())
    try:
        yield
    finally:
        _inputs.reset(before)


def note_input(path: AnyPath) -> None:
    """Remember that a file is read."""
    inputs = _inputs.get()
    if inputs is not None:
        inputs.add(path)


def reject_inputs(targets: Iterable[AnyPath]) -> None:
    """Raise a :class:`NormalMeshError` if a file to be written has been read, see :func:`inputs_protected`."""
    inputs = _inputs.get()
    if inputs is not None:
        reject_clashes(targets, inputs)
