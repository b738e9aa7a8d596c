"""Fronts: contrast and lean of the pixels beside edges."""

import numpy as np
import pytest

from normalmesh import NormalMap, Orthographic, Perspective
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.jumps.fronts import Fronts
from normalmesh.jumps.jump_pixels import PixelsInMemory
from surfaces import grid_mesh

SIZE, MIDDLE = 32, 16


def fronts(left, right, camera=None, turned=False):
    """Return the fronts between two halves with these normals, and which edges lie between them."""
    normals = np.empty((SIZE, SIZE, 3))
    normals[:, :MIDDLE], normals[:, MIDDLE:] = left, right
    if turned:
        normals = np.rot90(normals)[..., [1, 0, 2]] * [-1, 1, 1]
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    normal_map = NormalMap(normals, None, camera or Orthographic())
    system = FacetSystem.of(FaceMeans.of(grid_mesh(8, SIZE), normal_map))
    ends = system.means.mesh.vertices[system.ends]
    between = (ends[..., 1 if turned else 0] == MIDDLE).all(axis=1)
    return Fronts.of(system, PixelsInMemory(normal_map)), between


def in_front(found, between, turned):
    """Return whether the right half (turned: the upper one) is in front of the other at each edge between them."""
    system = found.system
    first, second = (system.means.centroids[side][between] for side in system.pairs.T)
    right = (second[:, 1] < first[:, 1]) if turned else (second[:, 0] > first[:, 0])
    return found.signs(between)[between] * np.where(right, 1, -1) * system.means.camera.towards_viewer


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("camera", [Orthographic(), Perspective(300.0, 300.0, 16.0, 16.0)], ids=["one", "other"])
def test_the_side_that_leans_towards_the_line_is_in_front(camera, turned):
    flat, steep = [0, 0, 1], [0.9, 0, 0.4]
    found, between = fronts(steep, flat, camera, turned)
    assert np.count_nonzero(between) == 8
    assert (in_front(found, between, turned) == -1).all()
    found, between = fronts(flat, [-0.9, 0, 0.4], camera, turned)
    assert (in_front(found, between, turned) == 1).all()


def test_a_slope_behind_and_a_valley_say_nothing():
    for left, right in (([0.5, 0, 1], [0, 0, 1]), ([0.9, 0, 0.4], [-0.9, 0, 0.4]), ([0, 0.9, 0.4], [0, 0, 1])):
        found, between = fronts(left, right)
        assert (found.signs(between) == 0).all()


def test_contrast_is_the_difference_of_both_sides():
    found, between = fronts([0, 0, 1], [0.6, 0, 0.8])
    np.testing.assert_allclose(found.contrast[between], np.hypot(0.6, 0.2), rtol=1e-6)
    upright = np.abs(np.diff(found.system.means.mesh.vertices[found.system.ends], axis=1)[:, 0, 0]) == 0
    assert found.contrast[upright & ~between].max() < 1e-6
