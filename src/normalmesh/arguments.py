"""Checks of arguments: each returns the value in the type that the package relies on, or names it in an error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from numbers import Integral, Real
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.array_types import Bool, Float
from normalmesh.errors import NormalMeshError, repr_for_error, shape_text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

#: Number of pixels that no memory can hold.
MAX_PIXELS = 2**40

#: Options of reading a map, which other functions do not take.
READING_OPTIONS = ("mask", "camera", "convention", "alpha")

T = TypeVar("T")
D = TypeVar("D", bound="DataclassInstance")


def checked_bool(value: object, name: str) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool | np.bool_):
        raise NormalMeshError(f"{name} must be True or False, not {repr_for_error(value)}")
    return bool(value)


def checked_int(value: object, minimum: int, name: str, maximum: float = math.inf) -> int:
    """Return an integer between two bounds."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not minimum <= int(value) <= maximum:
        bounds = f"of at least {minimum}" if maximum == math.inf else f"from {minimum} to {maximum}"
        raise NormalMeshError(f"{name} must be a whole number {bounds}, not {repr_for_error(value)}")
    return int(value)


def checked_finite(value: object, name: str, expected: str = "a finite number") -> float:
    """Return a finite real number; ``expected`` describes it in the error."""
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
    if not math.isfinite(number):
        raise NormalMeshError(f"{name} must be {expected}, not {repr_for_error(value)}")
    return number


def checked_positive(value: object, name: str, expected: str = "a positive number") -> float:
    """Return a positive real number; ``expected`` describes it in the error."""
    number = checked_finite(value, name, expected)
    if number <= 0:
        raise NormalMeshError(f"{name} must be {expected}, not {repr_for_error(value)}")
    return number


def checked_choice(value: object, choices: Iterable[str], name: str) -> str:
    """Return one of several names."""
    known = tuple(choices)
    if not isinstance(value, str) or value not in known:
        raise NormalMeshError(f"{name} must be one of {', '.join(known)}, not {repr_for_error(value)}")
    return value


def checked_instance(value: object, kind: type[T], name: str) -> T:
    """Return an object of a class of this package."""
    if not isinstance(value, kind):
        raise NormalMeshError(f"{name} must be a normalmesh.{kind.__name__}, not {type(value).__name__}")
    return value


def checked_array(
    values: ArrayLike, name: str, expected: str = "an array of numbers", kinds: str | None = "fiu"
) -> NDArray[Any]:
    """Return an array whose dtype is of one of several kinds (``dtype.kind``), or of any kind for None.

    Tensors may be on a device, and part of a graph. Masked floats become NaN. Other masked values cannot be
    represented and are an error.
    """
    values = without_tensor(values)
    try:
        array = np.asarray(np.ma.filled(values, np.nan) if _has_masked_floats(values) else values)
    except (TypeError, ValueError, OverflowError) as error:
        raise NormalMeshError(f"{name} must be {expected}, not {repr_for_error(values)}") from error
    masked = np.ma.is_masked(values) and array.dtype.kind != "f"
    if masked or (kinds is not None and array.dtype.kind not in kinds):
        given = f"{'masked ' * masked}{array.dtype} {shape_text(array.shape)}" if array.ndim else repr_for_error(values)
        raise NormalMeshError(f"{name} must be {expected}, not {given}")
    return array


def without_tensor(given: Any) -> Any:
    """Return the values of a tensor of PyTorch as an array, wherever it is; anything else as it is."""
    if not (hasattr(given, "detach") and hasattr(given, "cpu")):
        return given
    tensor = given.detach().cpu()
    # NumPy has no bfloat16.
    return tensor.float().numpy() if str(getattr(tensor, "dtype", "")) == "torch.bfloat16" else tensor.numpy()


def _has_masked_floats(values: object) -> bool:
    return isinstance(values, np.ma.MaskedArray) and values.dtype.kind == "f"


def checked_vectors(values: ArrayLike, width: int, name: str) -> Float:
    """Return float64 vectors of shape (..., width)."""
    array = checked_array(values, name)
    if array.ndim == 0 or array.shape[-1] != width:
        raise NormalMeshError(f"{name} must have the shape (..., {width}), not {shape_text(array.shape)}")
    return np.asarray(array, np.float64)


def checked_nonzero(mask: ArrayLike, name: str = "mask") -> Bool:
    """Return the nonzero elements of a mask of booleans or finite numbers."""
    expected = "boolean or finite numbers (nonzero = foreground)"
    array = checked_array(mask, name, expected, "bfiu")
    if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
        raise NormalMeshError(f"{name} must be {expected}, not NaN or infinite")
    # Kernels are compiled for C-contiguous arrays; those read from MATLAB files are in Fortran order.
    return np.ascontiguousarray(array != 0)


def checked_image_shape(shape: object, name: str = "shape") -> tuple[int, int]:
    """Return the rows and columns of an image."""
    sides: tuple[object, ...] = ()
    if isinstance(shape, tuple | list) or (isinstance(shape, np.ndarray) and shape.ndim == 1):
        sides = tuple(shape)
    lengths = [int(side) for side in sides if isinstance(side, Integral) and int(side) > 0]
    if len(sides) != 2 or len(lengths) != 2:
        raise NormalMeshError(f"{name} must be the rows and columns of an image, not {repr_for_error(shape)}")
    rows, columns = lengths
    if rows * columns > MAX_PIXELS:
        raise NormalMeshError(f"{name} has more pixels than any memory holds: {repr_for_error((rows, columns))}")
    return rows, columns


def checked_path(given: object, name: str = "path") -> Path:
    """Return the path of a file."""
    if not isinstance(given, str | PathLike) or not isinstance(text := fspath(given), str):
        raise NormalMeshError(f"{name} must be the path of a file, not {repr_for_error(given)}")
    if "\0" in text:
        raise NormalMeshError(f"{name} must be the path of a file, without null characters, not {repr_for_error(text)}")
    return Path(text)


def replaced_options(options: D, given: object, name: str) -> D:
    """Return options (a frozen dataclass) with fields replaced from a mapping, or ``given`` if it is such options."""
    if given is None:
        return options
    if isinstance(given, type(options)):
        return given
    if not isinstance(given, Mapping):
        raise NormalMeshError(f"{name} must be a dictionary of options, not {repr_for_error(given)}")
    known = [field.name for field in fields(options)]
    if unknown := [option for option in given if option not in known]:
        is_reading = unknown[0] in READING_OPTIONS
        hint = "; give it to read_normal_map, and the map that it returns here" if is_reading else ""
        raise NormalMeshError(f"{name}: {repr_for_error(unknown[0])} is no option; there are {', '.join(known)}{hint}")
    return replace(options, **given)
