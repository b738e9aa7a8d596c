"""Errors and warnings of normalmesh, and how their messages show values."""

import reprlib
import sys
import unicodedata
import warnings
from os import PathLike, fspath

#: Categories of characters that a terminal may obey instead of showing: control and format characters, line breaks.
#: Bytes of a file name that are not UTF-8 are surrogates.
OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}
#: Characters of these categories that names of some languages need: joiners, and bytes above the control characters.
HARMLESS = {"\u200c", "\u200d", *map(chr, range(0xDCA0, 0xDD00))}


class NormalMeshError(ValueError):
    """Raised for input that cannot be used. The message says what was given, what was expected and what to do."""


class NormalMeshWarning(UserWarning):
    """Issued for input that is usable, but was repaired or looks wrong."""


class ShortfallWarning(NormalMeshWarning):
    """Issued for a surface that lacks something that was asked for."""


def warn_caller(text: str, category: type[Warning] = NormalMeshWarning) -> None:
    """Warn of a place outside this package: the line that called it."""
    frame, depth = sys._getframe(1), 2
    # Blocks of this package are entered through contextlib.
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("normalmesh.", "contextlib")):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(text, category, stacklevel=depth)


def shape_text(shape: tuple[int, ...]) -> str:
    """Return a shape as text, such as ``512×640``."""
    return "×".join(map(str, shape)) or "a single number"


def repr_for_error(value: object) -> str:
    """Return a short representation of a value on one line, for error messages."""
    if hasattr(value, "dtype") and (shape := getattr(value, "shape", ())):
        return f"an array of {value.dtype}, {shape_text(shape)}"
    try:
        text = reprlib.repr(value)
    except ValueError:  # an integer with more digits than Python converts to text
        text = type(value).__name__
    return " ".join(text.split())


def count_text(number: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: 1 hole, 3 holes."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def path_text(path: str | PathLike[str]) -> str:
    """Return a path for a message: as it is, or quoted with escapes if it holds what a terminal would obey."""
    text = fspath(path)
    return text if all(map(_is_shown, text)) else repr(text)


def escaped(text: str) -> str:
    """Return a text, of one line or several, in which what a terminal would obey is escaped."""
    return "".join(letter if _is_shown(letter) or letter == "\n" else repr(letter)[1:-1] for letter in text)


def _is_shown(letter: str) -> bool:
    return unicodedata.category(letter) not in OBEYED or letter in HARMLESS
