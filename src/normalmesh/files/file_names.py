"""File names inside text. A name may contain line breaks, and bytes that are not valid text."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path


def on_one_line(path: str | PathLike[str]) -> str:
    """Return a path for a message, with line breaks and other control characters escaped."""
    return "".join(
        letter if letter.isprintable() or "\ud800" <= letter <= "\udfff" else repr(letter)[1:-1]
        for letter in fspath(path)
    )


def plain_stem(path: Path) -> str:
    """Return the stem of a file name, with characters that a line of an OBJ file cannot hold escaped as ``%XX``.

    Different files keep different names.
    """
    return "".join(
        letter if letter.isprintable() and letter not in '%#"\\' else f"%{ord(letter):02X}" for letter in path.stem
    )
