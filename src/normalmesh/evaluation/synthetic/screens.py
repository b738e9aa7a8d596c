"""Size and camera of an image, as they are asked for."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from normalmesh.arguments import checked_image_shape
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.normals.camera import Camera, Orthographic, Perspective, checked_camera

#: Focal length of ``"perspective"`` in lengths of the image's longer side: a field of view of 37°.
FOCAL = 1.5


def checked_shape(size: int | tuple[int, int]) -> tuple[int, int]:
    """Rows and columns from the side of a square, or from both; or an error."""
    if isinstance(size, tuple | list):
        return checked_image_shape(size, "size")
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise NormalMeshError(
            f"size must be a positive whole number of pixels, or (rows, columns), not {repr_for_error(size)}"
        )
    return checked_image_shape((size, size), "size")


def chosen_camera(camera: Camera | str, shape: tuple[int, int]) -> Camera:
    """Return the camera given, or the one of this name.

    ``"orthographic"``: one unit a pixel. ``"perspective"``: a field of view of 37° along the longer side, the principal
    point in the image's middle.
    """
    expected = "'orthographic', 'perspective', Orthographic(...) or Perspective(...)"
    if not isinstance(camera, str):
        return checked_camera(camera, expected)
    if camera == "orthographic":
        return Orthographic()
    if camera == "perspective":
        return Perspective.centred(FOCAL * max(shape), shape)
    raise NormalMeshError(f"camera must be {expected}, not {repr_for_error(camera)}")


def pixel_centres(rows: slice, columns: int) -> NDArray[np.float64]:
    """Screen positions (rows, columns, 2) of the pixel centres: u right, v down."""
    u, v = np.arange(columns) + 0.5, np.arange(rows.start, rows.stop) + 0.5
    return np.stack(np.meshgrid(u, v), axis=-1)
