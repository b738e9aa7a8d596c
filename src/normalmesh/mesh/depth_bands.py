"""The depth of a surface at the pixel centres, a band of rows at a time: images too large for memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from normalmesh.array_types import Float, Int32
from normalmesh.mesh import _surface
from normalmesh.mesh._raster import fill_pixel_faces
from normalmesh.mesh.surface import Surface
from normalmesh.runtime.threads import in_parallel


def depth_bands(surface: Surface, height: int) -> Iterator[Float]:
    """Yield the rows of :meth:`Surface.depth_map`, ``height`` at a time, and the rest.

    Each is (height, W) float64, NaN outside the mesh. In addition to the surface, this needs memory for one band, and
    12 bytes for each face.
    """
    rows, _ = surface.shape
    depth = np.ascontiguousarray(surface.camera.depth(surface.vertices))
    first, last = _bands_of_faces(surface, height)
    by_first = np.argsort(first, kind="stable").astype(np.int32)
    starts = np.searchsorted(first[by_first], np.arange(-(-rows // height) + 1))
    reaching = np.empty(0, np.int32)
    for band, top in enumerate(range(0, rows, height)):
        reaching = np.concatenate([reaching[last[reaching] >= band], by_first[starts[band] : starts[band + 1]]])
        yield _depth_band(surface, depth, np.sort(reaching), top, min(top + height, rows))


def _bands_of_faces(surface: Surface, height: int) -> tuple[Int32, Int32]:
    """Return the first and the last band (M,) that each face reaches into."""
    row = np.clip(surface.screen[:, 1], 0, surface.shape[0] - 0.5)
    band = (row // height).astype(np.int32)
    corners = [band[surface.faces[:, k]] for k in range(3)]
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


def _depth_band(surface: Surface, depth: Float, members: Int32, top: int, bottom: int) -> Float:
    """Return the depth of rows of pixels, which only the faces ``members`` reach."""
    owners = np.full((bottom - top, surface.shape[1]), -1, np.int32)
    vertices, local = np.unique(surface.faces[members], return_inverse=True)
    faces = local.reshape(-1, 3).astype(np.int32)
    screen = surface.screen[vertices] - [0.0, top]
    for array in (screen, faces):
        array.flags.writeable = False  # as in a mesh, so that kernels are compiled once
    in_parallel(fill_pixel_faces, len(faces), screen, faces, False, owners)
    band = np.empty(owners.shape)
    arguments = (owners, screen, faces, depth[vertices], surface.camera.arrays)
    in_parallel(_surface.fill_depth, len(owners), *arguments, band, grain=64)
    return band
