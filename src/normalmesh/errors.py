"""Errors and warnings of normalmesh, and how their messages show values."""

import reprlib


class NormalMeshError(ValueError):
    """Raised for input that cannot be used. The message says what was given, what was expected and what to do."""


class NormalMeshWarning(UserWarning):
    """Issued for input that is usable, but was repaired or looks wrong."""


class ShortfallWarning(NormalMeshWarning):
    """Issued for a surface that lacks something that was asked for."""


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
