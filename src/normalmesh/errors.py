"""What normalmesh raises and warns with."""

import math
import numbers
from collections.abc import Iterable


class NormalMeshError(ValueError):
    """An input that cannot be used. The message says what was given, what was expected and what to do."""


class NormalMeshWarning(UserWarning):
    """The input was usable, but something about it was repaired or looks wrong."""


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as people write it: 512×640."""
    return "×".join(map(str, shape)) or "a single number"


def whole_number(value: object, least: int, name: str) -> int:
    """The value of an argument that counts something, or an error that names it."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise NormalMeshError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return int(value)


def positive_number(value: object, name: str) -> float:
    """The value of an argument that measures something, or an error that names it."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not (0 < float(value) < math.inf):
        raise NormalMeshError(f"{name} must be a positive number, not {value!r}")
    return float(value)


def one_of(value: str, names: Iterable[str], name: str) -> str:
    """The value of an argument that is one of some names, or an error that lists them."""
    if value not in (known := tuple(names)):
        raise NormalMeshError(f"{name} must be one of {', '.join(known)}, not {value!r}")
    return value
