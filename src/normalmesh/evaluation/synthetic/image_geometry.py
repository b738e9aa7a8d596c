"""Image size, camera and pixel centres of synthetic cases."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from normalmesh.arguments import checked_image_shape
from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.normals.camera import Camera, checked_camera
from normalmesh.normals.orthographic import Orthographic
from normalmesh.normals.perspective import Perspective

#: Focal length of ``"perspective"`` as a fraction of the longer side of the image: a field of view of 37°.
FOCAL = 1.5


def checked_shape(size: int | tuple[int, int]) -> tuple[int, int]:
    """Return rows and columns, given both or the side of a square; raise if they are invalid."""
    if isinstance(size, tuple | list):
        return checked_image_shape(size, "size")
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise NormalMeshError(
            f"size must be a positive whole number of pixels, or (rows, columns), not {repr_for_error(size)}"
        )
    return checked_image_shape((size, size), "size")


def chosen_camera(camera: Camera | str, shape: tuple[int, int]) -> Camera:
    """Return the given camera, or the one with the given name.

    ``"orthographic"`` has pixels of side 1. ``"perspective"`` has a field of view of 37° along the longer side, and its
    principal point in the centre of the image.
    """
    expected = "'orthographic', 'perspective', Orthographic(...) or Perspective(...)"
    if not isinstance(camera, str):
        return checked_camera(camera, expected)
    if camera == "orthographic":
        return Orthographic()
    if camera == "perspective":
        return Perspective.centred(FOCAL * max(shape), shape)
    raise NormalMeshError(f"camera must be {expected}, not {repr_for_error(camera)}")


def pixel_centres(rows: slice, columns: int) -> Float:
    """Return the screen positions (rows, columns, 2) of the pixel centres: u right, v down."""
    u, v = np.arange(columns) + 0.5, np.arange(rows.start, rows.stop) + 0.5
    return np.stack(np.meshgrid(u, v), axis=-1)
