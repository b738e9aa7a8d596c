"""File names inside text files. A name may contain line breaks, and bytes that are not valid text."""

from __future__ import annotations

from pathlib import Path


def plain_stem(path: Path) -> str:
    """Return the stem of a file name, with characters that a line of an OBJ file cannot hold escaped as ``%XX``.

    Different files keep different names.
    """
    return "".join(
        letter if letter.isprintable() and letter not in '%#"\\' else f"%{ord(letter):02X}" for letter in path.stem
    )
