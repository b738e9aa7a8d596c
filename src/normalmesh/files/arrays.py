"""Arrays from NumPy and Matlab files. Nothing is ever unpickled: a file from elsewhere must not run code."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from normalmesh.errors import shape_text
from normalmesh.files.formats import reading, unusable

#: Names that normals go by, in order of preference; compared without regard to case.
NORMALS_NAMES = ("normals", "normal", "normal_gt", "normals_gt", "normal_map", "normalmap", "n")

Shapes = dict[str, tuple[int, ...]]


def read_npy(path: Path) -> NDArray[np.generic]:
    """The array of an NPY file, mapped rather than read."""
    with reading(path, "NPY"):
        return np.load(path, mmap_mode="r", allow_pickle=False)


def read_npz(path: Path, variable: str | None) -> tuple[NDArray[np.generic], NDArray[np.generic] | None]:
    """Normals (H, W, 3 or 4) and, where there is one, the mask (H, W) of an NPZ file."""
    with reading(path, "NPZ"):
        shapes = _npz_shapes(path)
        with np.load(path, allow_pickle=False) as arrays:
            return _normals_and_mask(path, shapes, variable, arrays.__getitem__)


def read_mat(path: Path, variable: str | None) -> tuple[NDArray[np.generic], NDArray[np.generic] | None]:
    """Normals (H, W, 3 or 4) and, where there is one, the mask (H, W) of a MAT file of version 5 to 7."""
    from scipy.io import loadmat, whosmat

    with reading(path, "MAT"):
        shapes = {name: shape for name, shape, kind in whosmat(path) if kind not in ("cell", "struct", "object")}
        return _normals_and_mask(
            path, shapes, variable, lambda name: np.asarray(loadmat(path, variable_names=[name])[name])
        )


def _npz_shapes(path: Path) -> Shapes:
    """The shapes of all arrays, from their headers."""
    shapes = {}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.namelist():
            if not entry.endswith(".npy"):
                continue
            with archive.open(entry) as file:
                version = np.lib.format.read_magic(file)
                header = (
                    np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                )
                shapes[entry.removesuffix(".npy")] = header(file)[0]
    return shapes


def _normals_and_mask(
    path: Path, shapes: Shapes, variable: str | None, load: Callable[[str], NDArray[np.generic]]
) -> tuple[NDArray[np.generic], NDArray[np.generic] | None]:
    name = _normals_name(path, shapes, variable)
    masks = [other for other, shape in shapes.items() if other.lower() == "mask" and shape == shapes[name][:2]]
    return load(name), (load(masks[0]) if masks else None)


def _normals_name(path: Path, shapes: Shapes, variable: str | None) -> str:
    """Which variable holds the normals: the one asked for, one with a telling name, or the only one that can."""
    listed = ", ".join(f"{name} ({shape_text(shape)})" for name, shape in shapes.items()) or "none"
    candidates = [name for name, shape in shapes.items() if len(shape) == 3 and shape[2] in (3, 4)]
    if variable is not None:
        if variable not in shapes:
            raise unusable(path, f"there is no variable {variable!r}; the file holds: {listed}")
        if variable not in candidates:
            raise unusable(
                path,
                f"variable {variable!r} must have the shape (rows, columns, 3), not {shape_text(shapes[variable])}",
            )
        return variable
    named = sorted((NORMALS_NAMES.index(name.lower()), name) for name in candidates if name.lower() in NORMALS_NAMES)
    if named:
        return named[0][1]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise unusable(path, f"several arrays could be the normals: {', '.join(candidates)}; name one as variable=…")
    raise unusable(path, f"no array has the shape (rows, columns, 3); the file holds: {listed}")
