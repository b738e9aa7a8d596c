"""The arrays of a surface: checks of what is given or written into them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_array
from normalmesh.array_types import Float, Int32
from normalmesh.errors import NormalMeshError, repr_for_error, shape_text
from normalmesh.normals.camera import MAX_COORDINATE


def check_units(units: str) -> None:
    """Raise an error unless ``units`` is the name of a unit."""
    if not isinstance(units, str) or not units or not units.isprintable():
        raise NormalMeshError(f"units must be the name of a unit, such as 'mm', not {repr_for_error(units)}")


def copied_positions(given: ArrayLike, width: int, name: str) -> Float:
    """Copy an array as float64 (N, width), or raise an error."""
    array = checked_array(given, name, "finite numbers")
    check_positions(array, width, name)
    return np.array(array, np.float64, order="C")


def check_positions(array: NDArray[Any], width: int, name: str, largest: float = MAX_COORDINATE) -> None:
    """Raise an error unless an array holds finite numbers (N, width)."""
    if array.ndim != 2 or array.shape[1] != width:
        raise NormalMeshError(f"{name} must have the shape (N, {width}), not {shape_text(array.shape)}")
    if not np.all(np.abs(array) <= largest):
        raise NormalMeshError(f"{name} must be finite numbers, at most {largest:.0e}")


def copied_faces(given: ArrayLike, vertex_count: int, name: str = "faces", least: int = 1) -> Int32:
    """Copy faces as int32 (M, 3), or raise an error."""
    array = checked_array(given, name, "integers", "iu")
    check_faces(array, vertex_count, name, least)
    return np.array(array, np.int32, order="C")


def check_faces(array: NDArray[Any], vertex_count: int, name: str = "faces", least: int = 1) -> None:
    """Raise an error unless an array (M, 3) holds numbers of vertices in ``least`` rows or more."""
    if array.ndim != 2 or array.shape[1] != 3 or len(array) < least:
        wanted = ", at least one" * least
        raise NormalMeshError(f"{name} must have the shape (M, 3){wanted}, not {shape_text(array.shape)}")
    if len(array) and (array.min() < 0 or array.max() >= vertex_count):
        raise NormalMeshError(
            f"{name} name vertices {array.min()} to {array.max()}, but there are {vertex_count} vertices"
        )


def copied_per_vertex(given: ArrayLike, dtype: type, vertex_count: int, name: str) -> NDArray[Any]:
    """Copy one number for each vertex, or raise an error."""
    array = checked_array(given, name)
    if array.shape != (vertex_count,) or not np.can_cast(array.dtype, dtype, "same_kind"):
        raise NormalMeshError(
            f"{name} must be one number for each of the {vertex_count} vertices, "
            f"not {array.dtype} {shape_text(array.shape)}"
        )
    return np.array(array, dtype)


def check_components(array: NDArray[Any]) -> None:
    """Raise an error unless an array (N,) of at least one number holds numbers of at most N components."""
    if array.min() < 0 or array.max() >= len(array):
        raise NormalMeshError(
            f"components must be numbers from 0 to {len(array) - 1}, at most one for each vertex, "
            f"not {array.min()} to {array.max()}"
        )
