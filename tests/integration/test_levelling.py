"""Test the mean slope that is taken away from maps that repeat."""

import numpy as np
import pytest

from normalmesh import NormalMap, Orthographic
from normalmesh.facets.face_means import FaceMeans
from normalmesh.integration.levelling import coarse_mesh, mean_slope
from normalmesh.mesh.repeats import Repeats
from periodic_maps import map_of_slopes, waves


@pytest.mark.parametrize("creased", [False, True])
def test_an_added_slope_is_found(creased):
    _, right, down = waves((150, 130), creased=creased)
    found = slope_of(map_of_slopes(right + 0.03, down - 0.02), Repeats.of(True, (150, 130)))
    np.testing.assert_allclose(found, (0.03, -0.02), atol=2e-4)


def slope_of(normal_map, repeats):
    mesh = coarse_mesh(normal_map.mask_window, repeats)
    return mean_slope(FaceMeans.of(mesh, normal_map, planes_only=True), repeats)


def test_unit_and_hole():
    """The mean of the slopes of all pixels is not that of the surface if there is a hole."""
    _, right, down = waves((90, 90), seed=1)
    mask = np.ones((90, 90), bool)
    mask[20:70, 30:60] = False
    tilted = map_of_slopes(right + 0.05, down, mask)
    camera = Orthographic(0.1)
    found = slope_of(NormalMap(tilted.normals, mask, camera), Repeats.of(True, (90, 90)))
    np.testing.assert_allclose(found, (0.05, 0), atol=2e-3)
    assert abs((right[mask] + 0.05).mean() - 0.05) > 5e-3


def test_a_few_grazing_pixels_count_little():
    _, right, down = waves((64, 64))
    right[10:12, 10:14] = 60.0
    found = slope_of(map_of_slopes(right, down), Repeats.of(True, (64, 64)))
    assert right.mean() > 0.1
    assert abs(found[0]) < 0.01


def test_slope_that_nothing_determines():
    """Only foreground all around the map determines the slope along it."""
    _, right, down = waves((40, 40))
    mask = np.ones((40, 40), bool)
    mask[:, 15:25] = False
    found = slope_of(map_of_slopes(right + 0.2, down, mask), Repeats.of("x", (40, 40)))
    np.testing.assert_allclose(found, 0, atol=1e-6)
