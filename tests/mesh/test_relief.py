"""Test the exaggeration of the relief."""

import numpy as np
import pytest

from normalmesh import NormalMeshError, Orthographic, Perspective, ScreenMesh, Surface
from normalmesh.mesh.relief import exaggerated_normals
from surfaces import waves

MESH = ScreenMesh(np.array([[0.0, 0], [0, 8], [8, 0]]), np.array([[0, 1, 2]], np.int32))


def test_heights_and_normals_agree():
    surface = Surface.from_unknown(MESH, np.array([1.0, 2, 4]), Orthographic(0.5), (8, 8))
    strong = surface.exaggerated(3).exaggerated(0.5)
    np.testing.assert_allclose(strong.vertices, surface.vertices * [1, 1, 1.5])
    assert (surface.strength, strong.strength) == (1, 1.5)


@pytest.mark.parametrize("strength", [0.25, 2.0, -1.0])
def test_slopes_are_multiplied(strength):
    normal_map, _ = waves((16, 20))
    slopes = [n[..., :2] / n[..., 2:] for n in (normal_map.normals, exaggerated_normals(normal_map, strength).normals)]
    np.testing.assert_allclose(slopes[1], strength * slopes[0], atol=1e-5)


@pytest.mark.parametrize("strength", [0, np.nan, "2", None])
def test_bad_factors(strength):
    with pytest.raises(NormalMeshError, match="strength must be a finite number other than 0"):
        Surface.from_unknown(MESH, np.zeros(3), Orthographic(), (8, 8)).exaggerated(strength)


def test_perspective_is_refused():
    with pytest.raises(NormalMeshError, match="orthographic"):
        Surface.from_unknown(MESH, np.zeros(3), Perspective(9, 9, 4, 4), (8, 8)).exaggerated(2)
