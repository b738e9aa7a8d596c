"""Normals in memory: arrays, tensors and Pillow images, taken as files of them are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.arguments import checked_array
from normalmesh.errors import NormalMeshError, repr_for_error, shape_text

if TYPE_CHECKING:
    from PIL.Image import Image

#: What messages call normals that are in no file.
NAME = Path("normal_map")
EXPECTED = "a NormalMap, the path of a file, an array (rows, columns, 3) or a Pillow image"


def given_array(given: Any) -> NDArray[Any]:
    """Return the values (H, W, 3 or 4) of an array, a tensor or an image, or raise :class:`NormalMeshError`.

    Tensors may be on a device, part of a graph, and of the shape (3, H, W).
    """
    # Whether it is a Pillow image is found without importing Pillow for others.
    if any(kind.__module__ == "PIL.Image" for kind in type(given).__mro__):
        return _image_values(given)
    if hasattr(given, "window") and hasattr(given, "mask_window"):
        raise NormalMeshError("normal_map stays on disk: give it to reconstruct_tiled, or read it by read_normal_map")
    if given is None or isinstance(given, int | float | bytes | dict | set):
        raise NormalMeshError(f"normal_map must be {EXPECTED}, not {repr_for_error(given)}")
    array = checked_array(given, "normal_map", EXPECTED, kinds=None)
    if array.dtype.kind not in "fiu":
        raise NormalMeshError(f"normal_map must be {EXPECTED}, not {array.dtype} {shape_text(array.shape)}")
    if array.ndim == 3 and array.shape[0] == 3 and array.shape[2] not in (3, 4):
        array = np.moveaxis(array, 0, 2)
    if array.ndim != 3 or array.shape[2] not in (3, 4) or array.size == 0:
        raise NormalMeshError(
            f"normal_map must have the shape (rows, columns, 3), not {shape_text(array.shape)}" + _hint(array.shape)
        )
    return array


def _hint(shape: tuple[int, ...]) -> str:
    if len(shape) == 4 and shape[0] == 1:
        return "; give the only map of the batch, as normal_map[0]"
    if len(shape) == 4:
        return "; give one map of the batch at a time"
    return "; from_heights makes a map of heights, and read_normal_map takes a mask as mask=" if len(shape) == 2 else ""


def _image_values(image: Image) -> NDArray[Any]:
    if image.mode not in ("RGB", "RGBA"):
        raise NormalMeshError(
            f"normal_map is a Pillow image of mode {image.mode}; a normal map needs three channels, mode RGB or RGBA"
        )
    return np.asarray(image)
