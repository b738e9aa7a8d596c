"""What normalmesh raises and warns with."""

import math
import numbers
import reprlib
from collections.abc import Iterable


class NormalMeshError(ValueError):
    """An input that cannot be used. The message says what was given, what was expected and what to do."""


class NormalMeshWarning(UserWarning):
    """The input was usable, but something about it was repaired or looks wrong."""


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as people write it: 512×640."""
    return "×".join(map(str, shape)) or "a single number"


def shown(value: object) -> str:
    """A value as an error shows it: short, and on one line."""
    if hasattr(value, "dtype") and (shape := getattr(value, "shape", ())):
        return f"an array of {value.dtype}, {shape_text(shape)}"
    try:
        text = reprlib.repr(value)
    except ValueError:  # a number of more digits than Python prints
        text = type(value).__name__
    return " ".join(text.split())


def whole_number(value: object, least: int, name: str, most: float = math.inf) -> int:
    """The value of an argument that counts something, or an error that names it."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not least <= int(value) <= most:
        bounds = f"of at least {least}" if most == math.inf else f"from {least} to {most}"
        raise NormalMeshError(f"{name} must be a whole number {bounds}, not {shown(value)}")
    return int(value)


def finite_number(value: object, name: str, what: str = "a finite number") -> float:
    """The value of an argument that is a real number, or an error that names it and says what it should be."""
    number = math.nan
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
    if not math.isfinite(number):
        raise NormalMeshError(f"{name} must be {what}, not {shown(value)}")
    return number


def positive_number(value: object, name: str, what: str = "a positive number") -> float:
    """The value of an argument that measures something, or an error that names it and says what it should be."""
    number = finite_number(value, name, what)
    if number <= 0:
        raise NormalMeshError(f"{name} must be {what}, not {shown(value)}")
    return number


def one_of(value: str, names: Iterable[str], name: str) -> str:
    """The value of an argument that is one of some names, or an error that lists them."""
    known = tuple(names)
    if not isinstance(value, str) or value not in known:
        raise NormalMeshError(f"{name} must be one of {', '.join(known)}, not {shown(value)}")
    return value
