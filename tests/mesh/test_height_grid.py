"""Test meshes of depth maps: they pass through all heights, and cover what is known."""

import numpy as np
import pytest

from normalmesh import NormalMeshError, Orthographic, Perspective
from normalmesh.mesh.height_grid import grid_surface


@pytest.mark.parametrize("camera", [Orthographic(0.5), Perspective(20, 20, 5, 4)])
def test_heights_are_kept(camera):
    depth = np.random.default_rng(1).uniform(3, 4, (8, 10))
    depth[:2, :3] = depth[5, 6] = np.nan
    surface = grid_surface(depth, camera, "mm")
    assert (surface.mesh.areas > 0).all()
    columns, rows = np.floor(surface.screen).astype(int).T
    np.testing.assert_allclose(camera.depth(surface.vertices), depth[rows, columns])
    assert len(surface.vertices) == np.isfinite(depth).sum()
    # Squares of four pixels have two faces, those of three pixels one.
    known = np.isfinite(depth)
    counts = known[:-1, :-1].astype(int) + known[:-1, 1:] + known[1:, :-1] + known[1:, 1:]
    assert len(surface.faces) == 2 * (counts == 4).sum() + (counts == 3).sum()


def test_large_maps_are_sampled():
    heights = np.add.outer(np.arange(60.0), 2 * np.arange(50.0))
    surface = grid_surface(heights, Orthographic(), "px", max_faces=500)
    assert 100 < len(surface.faces) <= 500
    np.testing.assert_allclose(surface.vertices[:, 2], surface.screen @ [2, 1] - 1.5)


def test_no_three_neighbours():
    with pytest.raises(NormalMeshError, match="no three neighbouring pixels"):
        grid_surface(np.where(np.eye(5), 1.0, np.nan), Orthographic(), "px")
