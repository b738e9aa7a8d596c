"""Writing normal maps to files that :func:`read_normal_map` reads."""

from __future__ import annotations

import io
from os import PathLike

import numpy as np

from normalmesh.arguments import checked_path
from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError, path_text, warn_caller
from normalmesh.files.arrays import CAMERA_MATRIX, PIXEL_SIZE
from normalmesh.files.atomic import Files, check_targets, write_atomically
from normalmesh.files.encoding import NORMALS_SUFFIXES, checked_bits, checked_suffix, encode_normals
from normalmesh.normals.camera import Camera
from normalmesh.normals.conventions import Convention
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.orthographic import Orthographic

#: Suffixes of normal maps that can be written.
MAP_SUFFIXES = (*NORMALS_SUFFIXES, ".npz")


def save_normal_map(
    normal_map: NormalMap,
    path: str | PathLike[str],
    convention: str | Convention = "opengl",
    bits: int | None = None,
    matrix: str | PathLike[str] | None = None,
) -> None:
    """Write a map, see :meth:`NormalMap.save`."""
    target, matrix_file = checked_path(path), None if matrix is None else checked_path(matrix, "matrix")
    suffix = checked_suffix(target, MAP_SUFFIXES, "normals")
    targets = [target] if matrix_file is None else [matrix_file, target]
    check_targets(targets)
    channels = Convention.parse(convention).from_project(normal_map.normals)
    contents: Files = {}
    if matrix_file is not None:
        contents[matrix_file] = matrix_text(normal_map.camera)
    if suffix == ".npz":
        checked_bits(target, bits, (32,))
        arrays = {"normals": channels.astype(np.float32), "mask": normal_map.mask, **_camera_arrays(normal_map.camera)}
        np.savez_compressed(file := io.BytesIO(), **arrays)  # type: ignore[arg-type]
        contents[target] = file.getvalue()
    else:
        contents[target] = encode_normals(target, channels, normal_map.mask, bits)
    write_atomically(contents)
    held = matrix_file is not None or (suffix == ".npz" and _camera_arrays(normal_map.camera))
    if not held and normal_map.camera != Orthographic():
        warn_caller(
            f"{path_text(target)} does not hold the camera ({normal_map.camera.describe()}): give it again when the "
            "file is read, or write NPZ" + ", or matrix=…" * (normal_map.camera.matrix() is not None)
        )


def matrix_text(camera: Camera) -> bytes:
    """Return the matrix of a camera as text of three lines."""
    matrix = camera.matrix()
    if matrix is None:
        raise NormalMeshError(f"this camera ({camera.describe()}) has no matrix to write: leave out matrix= (--matrix)")
    return "".join(" ".join(f"{number:.17g}" for number in row) + "\n" for row in matrix).encode()


def _camera_arrays(camera: Camera) -> dict[str, Float]:
    """Return the arrays of an NPZ file that hold a camera; none if it is of another kind."""
    if (matrix := camera.matrix()) is not None:
        return {CAMERA_MATRIX: matrix}
    return {PIXEL_SIZE: np.array(camera.pixel_length)} if camera == Orthographic(camera.pixel_length) else {}
