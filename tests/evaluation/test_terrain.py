"""Test the terrain: depth and normals come from the same spline."""

import numpy as np
import pytest

from depth_normals import angles_to_depth
from normalmesh import NormalMeshError, Orthographic, Perspective
from normalmesh.evaluation.metrics import angles_between
from normalmesh.evaluation.synthetic.terrain import fractal, interpolated, terrain


def hills(rows=40, columns=52):
    v, u = np.indices((rows, columns)) + 0.5
    return 4 * np.sin(0.21 * u + 0.1 * v) + 3 * np.cos(0.17 * v)


def test_normals_are_those_of_the_heights():
    v, u = np.indices((40, 52)) + 0.5
    right = 0.84 * np.cos(0.21 * u + 0.1 * v)
    up = 0.51 * np.sin(0.17 * v) - 0.4 * np.cos(0.21 * u + 0.1 * v)
    truth = np.stack([-right, -up, np.ones_like(u)], axis=-1)
    angles = angles_between(interpolated("hills", hills(), "orthographic").normals, truth)
    assert angles.max() < 0.5  # at the border
    assert angles[4:-4, 4:-4].max() < 0.01


@pytest.mark.parametrize("camera", ["orthographic", "perspective"])
def test_normals_agree_with_the_depth(camera):
    case = interpolated("hills", hills(240, 312) / 6, camera)
    assert np.nanmax(angles_to_depth(case)) < 0.2
    assert np.nanmedian(angles_to_depth(terrain(96, camera, seed=3))) < 2


def test_the_spline_interpolates_the_heights():
    heights = hills()
    assert np.allclose(interpolated("hills", heights, "orthographic").depth, heights, atol=1e-9)
    assert np.allclose(interpolated("hills", heights, Orthographic(0.5)).depth, 0.5 * heights, atol=1e-9)
    camera = Perspective(300, 300, 26, 20)
    assert np.allclose(interpolated("hills", heights, camera).depth, 300 - heights, atol=1e-9)
    with pytest.raises(NormalMeshError, match="reaches the camera"):
        interpolated("hills", 1000 * heights, "perspective")


def test_the_terrain_is_the_same_at_any_size():
    small, large = fractal((64, 64), 5), fractal((256, 256), 5)
    means = large.reshape(64, 4, 64, 4).mean(axis=(1, 3)) / 4
    assert np.corrcoef(small.ravel(), means.ravel())[0, 1] > 0.97
    assert np.isclose(np.ptp(large), 0.2 * 256)
    assert np.array_equal(terrain(64, seed=5).depth, terrain(64, seed=5).depth)
    assert np.allclose(terrain(64, seed=5).depth, small)
    assert not np.allclose(terrain(64, seed=6).depth, small)
    assert terrain((30, 50)).depth.shape == (30, 50)
    assert terrain(256, seed=5).normal_map.repairs.back_facing == 0
    with pytest.raises(NormalMeshError, match="size must be"):
        terrain(0)
