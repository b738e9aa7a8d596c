"""Make random masks and normal maps to decimate, and check the properties of every decimated mesh."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from meshes import bumpy_map
from normalmesh import ScreenMesh
from normalmesh.mesh._outline import near_outline

#: Random nonempty masks of up to 14 × 14 pixels.
masks = arrays.arrays(np.bool_, st.tuples(st.integers(1, 14), st.integers(1, 14))).filter(np.any)


def bumpy(mask, seed=0, camera=None):
    """Return a normal map of smooth random normals on a mask."""
    return bumpy_map(mask.shape, seed, mask, camera, height=4.0)


def assert_valid(mesh, normal_map):
    """Check every property of a decimated mesh except its number of vertices."""
    check = mesh.check()
    assert check.ok, str(check)
    before = ScreenMesh.from_mask(normal_map.mask).check()
    assert sorted(check.boundary_loops) == sorted(before.boundary_loops)
    assert max_faces_over_a_pixel(mesh, normal_map.shape) <= 1
    boundary = np.unique(mesh.faces.ravel()[_boundary_corners(mesh)])
    for u, v in mesh.vertices[boundary]:
        assert near_outline(u, v, normal_map.mask)


def max_faces_over_a_pixel(mesh, shape):
    """Return the largest number of faces whose interior contains the same pixel centre."""
    u, v = np.meshgrid(np.arange(shape[1]) + 0.5, np.arange(shape[0]) + 0.5)
    counts = np.zeros(shape, int)
    for corners in mesh.vertices[mesh.faces]:
        a, b = corners, np.roll(corners, -1, axis=0)
        sides = [(a[k, 1] - v) * (b[k, 0] - u) - (a[k, 0] - u) * (b[k, 1] - v) for k in range(3)]
        counts += np.min(sides, axis=0) > 1e-9
    return counts.max()


def _boundary_corners(mesh):
    """Return the corners at the start of boundary edges."""
    corners = np.flatnonzero(mesh.opposite < 0)
    return corners - corners % 3 + (corners + 1) % 3
