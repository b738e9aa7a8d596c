"""Pixel ownership: the face that each pixel centre lies in."""

from __future__ import annotations

import numpy as np

from normalmesh.arguments import checked_image_shape, checked_instance
from normalmesh.array_types import Bool, Int32
from normalmesh.mesh._raster import fill_pixel_faces
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.runtime.threads import in_parallel


def pixel_faces(mesh: ScreenMesh, shape: tuple[int, int]) -> Int32:
    """Find the face that owns the centre of each pixel.

    Exact for any vertex positions: every centre inside a mesh without overlaps belongs to exactly one face. A centre
    on an edge belongs to the face right of it, or below it if the edge is horizontal. Inverted and degenerate
    faces own nothing.

    Parameters
    ----------
    mesh
        The mesh. Faces may reach over the image's border.
    shape
        Rows and columns of the image.

    Returns
    -------
    (H, W) int32
        Index of the owning face, −1 outside the mesh.
    """
    checked_instance(mesh, ScreenMesh, "mesh")
    owner = np.full(checked_image_shape(shape), -1, np.int32)
    in_parallel(fill_pixel_faces, len(mesh.faces), mesh.vertices, mesh.faces, False, owner)
    return owner


def covered_pixels(mesh: ScreenMesh, shape: tuple[int, int]) -> Bool:
    """Find the pixels (H, W) of an image that faces own: those of :func:`pixel_faces`, in a quarter of the memory."""
    covered = np.zeros(shape, np.uint8)
    in_parallel(fill_pixel_faces, len(mesh.faces), mesh.vertices, mesh.faces, True, covered)
    return covered.view(np.bool_)
