"""Arguments: what callers give, in the types that the rest relies on, or an error that names the argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, signature
from numbers import Integral
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.errors import NormalMeshError, shape_text, shown

#: Pixels of an image beyond which no array can be had.
MOST_PIXELS = 2**40

T = TypeVar("T")


def instance_of(value: object, kind: type[T], name: str) -> T:
    """The value of an argument that is an object of this project."""
    if not isinstance(value, kind):
        raise NormalMeshError(f"{name} must be a normalmesh.{kind.__name__}, not {type(value).__name__}")
    return value


def array_of(values: ArrayLike, name: str, what: str = "an array of numbers", kinds: str | None = "fiu") -> NDArray:
    """The values as they are, in an array whose type is of one of some kinds (as NumPy abbreviates them), or of any.

    Masked floats are NaN; other masked values have no number.
    """
    try:
        array = np.asarray(np.ma.filled(values, np.nan) if _has_masked_floats(values) else values)
    except (TypeError, ValueError, OverflowError) as error:
        raise NormalMeshError(f"{name} must be {what}, not {shown(values)}") from error
    masked = np.ma.is_masked(values) and array.dtype.kind != "f"
    if masked or (kinds is not None and array.dtype.kind not in kinds):
        given = f"{'masked ' * masked}{array.dtype} {shape_text(array.shape)}"
        raise NormalMeshError(f"{name} must be {what}, not {given}")
    return array


def _has_masked_floats(values: object) -> bool:
    return isinstance(values, np.ma.MaskedArray) and values.dtype.kind == "f"


def vectors_of(values: ArrayLike, width: int, name: str) -> NDArray[np.float64]:
    """Float64 vectors (..., width)."""
    array = array_of(values, name)
    if array.ndim == 0 or array.shape[-1] != width:
        raise NormalMeshError(f"{name} must have the shape (..., {width}), not {shape_text(array.shape)}")
    return np.asarray(array, np.float64)


def nonzero_of(mask: ArrayLike, name: str = "mask") -> NDArray[np.bool_]:
    """Where a mask of booleans or finite numbers is not zero."""
    what = "boolean or finite numbers (nonzero = foreground)"
    array = array_of(mask, name, what, "bfiu")
    if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
        raise NormalMeshError(f"{name} must be {what}, not NaN or infinite")
    return np.ascontiguousarray(array != 0)  # Matlab's arrays are not, and kernels are compiled for one layout


def image_shape(shape: object, name: str = "shape") -> tuple[int, int]:
    """Rows and columns of an image."""
    sides: tuple[object, ...] = ()
    if isinstance(shape, tuple | list) or (isinstance(shape, np.ndarray) and shape.ndim == 1):
        sides = tuple(shape)
    lengths = [int(side) for side in sides if isinstance(side, Integral) and int(side) > 0]
    if len(sides) != 2 or len(lengths) != 2:
        raise NormalMeshError(f"{name} must be the rows and columns of an image, not {shown(shape)}")
    rows, columns = lengths
    if rows * columns > MOST_PIXELS:
        raise NormalMeshError(f"{name} has more pixels than any memory holds: {shown((rows, columns))}")
    return rows, columns


def path_of(given: object, name: str = "path") -> Path:
    """The path of a file."""
    if not isinstance(given, str | PathLike) or not isinstance(text := fspath(given), str):
        raise NormalMeshError(f"{name} must be the path of a file, not {shown(given)}")
    if "\0" in text:
        raise NormalMeshError(f"{name} must be the path of a file, without null characters, not {shown(text)}")
    return Path(text)


def yes_or_no(value: object, name: str) -> bool:
    """The value of a switch."""
    if not isinstance(value, bool | np.bool_):
        raise NormalMeshError(f"{name} must be True or False, not {shown(value)}")
    return bool(value)


def options_of(
    function: Callable[..., object], given: object, name: str, without: Iterable[str] = ()
) -> dict[str, Any]:
    """Keyword options of a function, all of them known; or an error that lists those that there are."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise NormalMeshError(f"{name} must be a dictionary of options, not {shown(given)}")
    every = signature(function).parameters.values()
    known = [each.name for each in every if each.kind is Parameter.KEYWORD_ONLY and each.name not in set(without)]
    if unknown := [option for option in given if option not in known]:
        raise NormalMeshError(
            f"{name}: {shown(unknown[0])} is no option of {function.__name__} here; there are {', '.join(known)}"
        )
    return dict(given)
