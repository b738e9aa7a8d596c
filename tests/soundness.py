"""What holds for every surface, whatever it was made from."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from normalmesh import NormalMap, ScreenMesh, Surface


def problems_of(mesh: ScreenMesh) -> list[str]:
    """What is wrong with a mesh; vertices that lost their faces are not."""
    return [problem for problem in mesh.check().problems if "without a face" not in problem]


def assert_sound(surface: Surface, normal_map: NormalMap) -> None:
    """Finite, upright on the screen and manifold; every component is there, in unit normals that face the viewer."""
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


def assert_depths(depth: np.ndarray, normal_map: NormalMap) -> None:
    """A depth for each foreground pixel and for no other."""
    assert np.array_equal(np.isfinite(depth), normal_map.mask)
