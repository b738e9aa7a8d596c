"""Check properties that every surface and depth map must have, whatever it was made from."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from normalmesh import NormalMap, ScreenMesh, Surface


def problems_of(mesh: ScreenMesh) -> list[str]:
    """Return the problems of a mesh, without those about vertices that belong to no face."""
    return [problem for problem in mesh.check().problems if "without a face" not in problem]


def assert_valid_surface(surface: Surface, normal_map: NormalMap) -> None:
    """Check that a surface is finite, manifold and not inverted on the screen, and that it covers every component.

    Its normals must have unit length and face the viewer.
    """
    assert np.isfinite(surface.vertices).all()
    assert problems_of(surface.mesh) == []
    depth, normals = surface.depth_map(), surface.normal_map().astype(np.float64)
    covered = np.isfinite(depth)
    labels, count = ndimage.label(normal_map.mask)
    assert np.isin(np.arange(1, count + 1), labels[covered]).all()
    assert not covered[~ndimage.binary_dilation(normal_map.mask, np.ones((3, 3)))].any()
    np.testing.assert_allclose(np.linalg.norm(normals[covered], axis=1), 1, atol=1e-4)
    rows, columns = np.nonzero(covered)
    to_viewer = surface.camera.towards_viewer * surface.camera.rays(columns + 0.5, rows + 0.5)
    assert ((normals[covered] * to_viewer).sum(axis=1) > -1e-6 * np.linalg.norm(to_viewer, axis=1)).all()


def assert_depth_on_mask(depth: np.ndarray, normal_map: NormalMap) -> None:
    """Check that a depth map is finite at the foreground pixels and nowhere else."""
    assert np.array_equal(np.isfinite(depth), normal_map.mask)
