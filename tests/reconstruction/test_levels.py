"""Test levels of detail: several surfaces from one decimation, each coarser than the one before."""

import numpy as np
import pytest

from normalmesh import NormalMeshError, decimate, evaluate, reconstruct, reconstruct_levels
from normalmesh.decimation.decimation_options import DecimationOptions
from normalmesh.decimation.rounds import decimate_levels
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.evaluation.synthetic.medallion import Medallion
from surfaces import waves


def counts(*vertices):
    return [StoppingRule(vertices=each) for each in vertices]


@pytest.fixture(scope="module")
def normal_map():
    return Medallion(96).normal_map


def test_meshes_are_valid_and_have_the_requested_vertices(normal_map):
    meshes = list(decimate_levels(normal_map, counts(600, 200, 60), DecimationOptions()))
    assert [len(mesh.vertices) for mesh in meshes] == [600, 200, 60]
    assert all(mesh.check().ok and mesh.report.target_met for mesh in meshes)


def test_the_first_level_equals_decimate_and_later_ones_do_not_change_it(normal_map):
    meshes = list(decimate_levels(normal_map, counts(300, 100), DecimationOptions()))
    alone = decimate(normal_map, vertices=300)
    assert np.array_equal(meshes[0].vertices, alone.vertices)
    assert np.array_equal(meshes[0].faces, alone.faces)


def test_options_reach_the_decimation(normal_map):
    (mesh,) = decimate_levels(normal_map, counts(200), DecimationOptions(flips=False, moves=False))
    assert mesh.report.flips == mesh.report.moves == 0
    locked = np.zeros(normal_map.shape, bool)
    locked[40, 40:44] = True
    for mesh in decimate_levels(normal_map, counts(300, 100), DecimationOptions(locked=locked)):
        assert {(float(u), float(v)) for u in range(40, 45) for v in (40, 41)} <= {tuple(x) for x in mesh.vertices}


def test_surfaces_are_nearly_as_accurate_as_separate_reconstructions(normal_map):
    surfaces = reconstruct_levels(normal_map, [500, 150])
    fine = reconstruct(normal_map, vertices=500)
    assert np.array_equal(surfaces[0].vertices, fine.vertices)
    coarse = evaluate(reconstruct(normal_map, vertices=150), normal_map).mae
    assert evaluate(surfaces[1], normal_map).mae < 1.15 * coarse


def test_outlines_do_not_drift():
    """The outline of the coarsest level follows the mask, not the level before."""
    normal_map, _ = waves((64, 64))
    *_, last = decimate_levels(normal_map, counts(800, 200, 50, 12), DecimationOptions())
    corners = np.arange(3 * len(last.faces)).reshape(-1, 3)[last.opposite.reshape(-1, 3) < 0]
    faces, sides = np.divmod(corners, 3)
    outline = last.vertices[np.concatenate([last.faces[faces, (sides + k) % 3] for k in (1, 2)])]
    outside = np.abs(outline - 32).max(axis=1) - 32
    assert np.abs(outside).max() <= 1


def test_progress_never_decreases_and_ends_once(normal_map):
    steps = []
    reconstruct_levels(normal_map, [200, 80], progress=steps.append)
    shares = [step.share for step in steps]
    assert shares == sorted(shares)
    assert [step.stage for step in steps].count("done") == 1


@pytest.mark.parametrize("vertices", [[], [100, 100], [50, 100], [100, 2], [100, "1%"]], ids=str)
def test_levels_must_be_decreasing(vertices, normal_map):
    with pytest.raises(NormalMeshError, match="vertices"):
        reconstruct_levels(normal_map, vertices)
