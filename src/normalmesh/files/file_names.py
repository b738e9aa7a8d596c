"""Names of files inside texts: a name may hold line breaks, and bytes that are no text at all."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path


def on_one_line(path: str | PathLike[str]) -> str:
    """A path for a message, with line breaks and other control characters written out."""
    return "".join(
        letter if letter.isprintable() or "\ud800" <= letter <= "\udfff" else repr(letter)[1:-1]
        for letter in fspath(path)
    )


def plain_stem(path: Path) -> str:
    """The name of a file without folder and suffix, with ``%`` and a number for what the lines of an OBJ cannot hold.

    Different files keep different names.
    """
    return "".join(
        letter if letter.isprintable() and letter not in '%#"\\' else f"%{ord(letter):02X}" for letter in path.stem
    )
