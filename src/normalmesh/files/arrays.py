"""Reading arrays from NumPy and Matlab files. Nothing is ever unpickled: a file must not run code."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.errors import path_text, shape_text, warn_caller
from normalmesh.files.formats import file_format, reading, unknown_format, unusable
from normalmesh.files.matlab import list_variables, read_variable
from normalmesh.files.size_limits import check_image_size
from normalmesh.normals.gradients import normals_of_gradients

#: Common names of arrays of normals, in order of preference; case does not matter.
NORMALS_NAMES = ("normals", "normal", "normal_gt", "normals_gt", "normal_map", "normalmap", "n")

#: Common names of arrays of depths.
DEPTH_NAMES = ("depth", "depth_gt", "depths", "depth_map", "height", "heights", "z", "d")

#: Common names of the slopes ∂z/∂x and ∂z/∂y of heights, which a file may hold instead of normals.
SLOPE_NAMES = (("p", "q"), ("zx", "zy"), ("gx", "gy"), ("dzdx", "dzdy"))

#: Arrays of an NPZ file that hold a camera: its matrix, whose pixel centres are integers, or the side of a pixel.
CAMERA_MATRIX, PIXEL_SIZE = "camera_matrix", "pixel_size"

#: Maximum size in bytes of the header of an array; that of plain numbers has about a hundred.
MAX_HEADER_SIZE = 10_000

Shapes = dict[str, tuple[int, ...]]


def read_npy(path: Path) -> NDArray[Any]:
    """Return the array of an NPY file, memory-mapped."""
    with reading(path, "NPY"):
        with path.open("rb") as file:
            shape, _, _ = npy_header(file)
        _check_array_size(path, shape, np.dtype(np.void))
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def read_normals(path: Path, file_format: str, variable: str | None) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return the normals (H, W, 3 or 4) of an NPZ or MAT file (version 5 to 7), and its mask (H, W) or None."""
    with reading(path, file_format):
        shapes, load = _opened(path, file_format)
        pair = _slope_names(shapes) if variable is None else None
        arrays = [load(name) for name in pair or [_chosen_name(path, shapes, variable, _NORMALS)]]
        mask = next((other for other in shapes if is_mask_name(other)), None)
        if mask is not None and not shapes[mask]:
            warn_caller(
                f"{path_text(path)}: its variable {mask} is no array of numbers and was ignored; save it as one, or "
                "give a mask"
            )
            mask = None
        if pair and any(array.dtype.kind != "f" for array in arrays):
            raise unusable(path, f"slopes must be floats, not {' and '.join(str(array.dtype) for array in arrays)}")
        return normals_of_gradients(arrays[0], arrays[1]) if pair else arrays[0], None if mask is None else load(mask)


def read_array_size(path: Path, file_format: str) -> tuple[int, int]:
    """Return rows and columns of the normals of an NPZ or MAT file, from their header."""
    with reading(path, file_format):
        shapes, _ = _opened(path, file_format)
        pair = _slope_names(shapes)
        rows, columns = shapes[pair[0] if pair else _chosen_name(path, shapes, None, _NORMALS)][:2]
        _check_array_size(path, (rows, columns), np.dtype(np.void))
    return rows, columns


def read_depth_array(path: Path, file_format: str, variable: str | None) -> NDArray[Any]:
    """Return the depths (H, W) of an NPZ or MAT file."""
    with reading(path, file_format):
        shapes, load = _opened(path, file_format)
        return load(_chosen_name(path, shapes, variable, _DEPTHS))


def _opened(path: Path, file_format: str) -> tuple[Shapes, Callable[[str], NDArray[Any]]]:
    """Return the shapes of all arrays of a file by name, and what reads one of them."""
    if file_format == "NPZ":
        return _npz_shapes(path), partial(_npz_array, path)
    variables = list_variables(path)

    def load(name: str) -> NDArray[Any]:
        _check_array_size(path, variables[name].shape, variables[name].dtype)
        return read_variable(path, variables[name])

    return {name: variable.shape for name, variable in variables.items()}, load


def read_npz_arrays(path: Path, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Return those arrays of an NPZ file that have one of several names."""
    if (found := file_format(path)) != "NPZ":
        raise unknown_format(path, found, "an NPZ file")
    with reading(path, "NPZ"):
        shapes = _npz_shapes(path)
        return {name: _npz_array(path, name) for name in names if name in shapes}


def _npz_array(path: Path, name: str) -> NDArray[Any]:
    with zipfile.ZipFile(path) as archive:
        with archive.open(f"{name}.npy") as file:
            _check_array_size(path, *npy_header(file)[:2])
        with archive.open(f"{name}.npy") as file:
            return np.lib.format.read_array(file, allow_pickle=False)


def _npz_shapes(path: Path) -> Shapes:
    """Return the shapes of all arrays, from their headers."""
    shapes = {}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.namelist():
            if entry.endswith(".npy"):
                with archive.open(entry) as file:
                    shapes[entry.removesuffix(".npy")] = npy_header(file)[0]
    return shapes


def npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[np.generic], bool]:
    """Return shape, type and whether columns come first, of the array that starts at the position of an open file."""
    version = np.lib.format.read_magic(file)
    length = file.read(2 if version == (1, 0) else 4)
    size = int.from_bytes(length, "little")
    if size > MAX_HEADER_SIZE:
        raise ValueError(f"its header claims {size} bytes")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    try:
        shape, fortran, dtype = read(io.BytesIO(length + file.read(size)))
    except (MemoryError, RecursionError) as error:  # of Python's parser
        raise ValueError("its header is no header") from error
    if min(shape, default=0) < 0:
        raise ValueError(f"its header claims {shape_text(shape)}")
    return shape, dtype, fortran


def _check_array_size(path: Path, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
    rows, columns, *channels = (*shape, 1, 1)[: max(len(shape), 2)]
    check_image_size(path, rows, columns, math.prod(channels) * dtype.itemsize)


@dataclass(frozen=True)
class _Sought:
    """Criteria for the choice of an array: names in order of preference, and a shape."""

    what: str
    names: tuple[str, ...]
    shape: str
    fits: Callable[[tuple[int, ...]], bool]


_NORMALS = _Sought("normals", NORMALS_NAMES, "(rows, columns, 3)", lambda shape: len(shape) == 3 and shape[2] in (3, 4))
_DEPTHS = _Sought("depths", DEPTH_NAMES, "(rows, columns)", lambda shape: len(shape) == 2)


def chosen_normals(path: Path, shapes: Shapes, variable: str | None) -> str:
    """Return the name of the array of normals among those of a file, or raise an error that lists them."""
    return _chosen_name(path, shapes, variable, _NORMALS)


def _slope_names(shapes: Shapes) -> tuple[str, str] | None:
    """Return the names of two arrays of slopes of a file, if nothing in it has the shape of normals."""
    if any(_NORMALS.fits(shape) for shape in shapes.values()):
        return None
    named = {name.lower(): name for name, shape in shapes.items() if _DEPTHS.fits(shape)}
    for first, second in SLOPE_NAMES:
        if first in named and second in named and shapes[named[first]] == shapes[named[second]]:
            return named[first], named[second]
    return None


def is_mask_name(name: str) -> bool:
    return name.lower() == "mask"


def _shape_text(shape: tuple[int, ...]) -> str:
    return shape_text(shape) if shape else "no array of numbers"


def _chosen_name(path: Path, shapes: Shapes, variable: str | None, sought: _Sought) -> str:
    """Return the name of the variable asked for, else one with a known name, else the only one that fits."""
    listed = ", ".join(f"{name} ({_shape_text(shape)})" for name, shape in shapes.items()) or "none"
    if variable is not None:
        if variable not in shapes:
            raise unusable(path, f"there is no variable {variable!r}; the file holds: {listed}")
        if not sought.fits(shapes[variable]):
            raise unusable(
                path, f"variable {variable!r} must have the shape {sought.shape}, not {_shape_text(shapes[variable])}"
            )
        return variable
    candidates = [name for name, shape in shapes.items() if sought.fits(shape) and not is_mask_name(name)]
    named = sorted((sought.names.index(name.lower()), name) for name in candidates if name.lower() in sought.names)
    if named:
        return named[0][1]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise unusable(
            path, f"several arrays could be the {sought.what}: {', '.join(candidates)}; name one as variable=…"
        )
    besides = " besides the mask" if any(map(is_mask_name, shapes)) else ""
    heights = sought is _NORMALS and any(
        _DEPTHS.fits(shape) for name, shape in shapes.items() if not is_mask_name(name)
    )
    hint = "; from_heights makes a map of heights" if heights else ""
    raise unusable(path, f"no array{besides} has the shape {sought.shape}; the file holds: {listed}{hint}")
