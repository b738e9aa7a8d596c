"""Test that the built-in models are closed and deterministic."""

import numpy as np
import pytest

from normalmesh.evaluation.synthetic.models import knot, stone, vase


@pytest.mark.parametrize("model", [stone, knot, vase])
def test_models_are_closed_and_oriented_outwards(model):
    mesh = model()
    assert mesh.is_watertight
    assert mesh.is_winding_consistent
    assert mesh.volume > 0
    assert mesh.area_faces.min() > 0
    assert np.array_equal(model().vertices, mesh.vertices)


def test_detail_can_be_chosen():
    assert len(stone(3).faces) == 20 * 4**3
    assert len(knot(60, 12).vertices) == 60 * 12
    assert vase(24, 36).is_watertight
    assert stone(3).is_watertight


def test_the_stone_is_star_shaped():
    mesh = stone(5)
    outwards = (mesh.face_normals * mesh.triangles_center).sum(axis=1)
    assert outwards.min() > 0
