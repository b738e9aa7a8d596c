"""Check gluing: which faces hold together, and which components are torn."""

import numpy as np
import pytest

from meshes import bumpy_map
from normalmesh import NormalMap, Orthographic, Perspective, decimate
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.facets.robust_weights import RobustWeights
from normalmesh.integration.gluing import Gluing
from normalmesh.solvers.sparse_system import solve_spd
from surfaces import flap, plane_map, waves


def solve(system, guess):
    return solve_spd(system.matrix(), system.right_side()).x


def system_of(mesh, normal_map):
    return FacetSystem.of(FaceMeans.of(mesh, normal_map, 2))


def two_halves(left, right):
    """Return two maps side by side, with a gap between them."""
    rows, columns = left.shape
    normals = np.zeros((rows, 2 * columns + 2, 3), np.float32)
    normals[..., 2] = 1
    normals[:, :columns], normals[:, columns + 2 :] = left.normals, right.normals
    mask = np.ones(normals.shape[:2], bool)
    mask[:, columns : columns + 2] = False
    return NormalMap(normals, mask, left.camera)


def test_only_torn_components_are_released():
    normal_map = two_halves(waves((96, 96))[0], flap()[1])
    mesh = decimate(normal_map, vertices=800)
    system = system_of(mesh, normal_map)
    gluing = Gluing.against(0.0)
    glued = gluing.begin(system, solve)
    right = mesh.vertices[mesh.faces].mean(axis=1)[:, 0] > 97
    assert gluing.torn.tolist() == [False, True]
    np.testing.assert_allclose(glued.offsets[~right], solve(system, None)[~right])
    edges = right[system.pairs[:, 0]]
    assert not glued.strain[~edges].any()
    assert np.array_equal(glued.system.weights[~edges], system.weights[~edges])
    assert glued.strain[edges].max() > 1
    again = gluing.resume(system, glued.strain, solve, last=True)
    np.testing.assert_allclose(again.offsets[~right], glued.offsets[~right])
    assert not again.strain[~edges].any()


@pytest.mark.parametrize("camera", [Orthographic(0.1), Perspective(70.0, 70.0, 24.0, 24.0)], ids=str)
def test_a_plane_is_not_torn(camera):
    normal_map = plane_map((0.3, 0.2, 1), (48, 48), camera)
    mesh = decimate(normal_map, vertices=60)
    gluing = Gluing.against(0.0)
    glued = gluing.begin(system_of(mesh, normal_map), solve)
    assert not gluing.torn.any()
    assert not glued.strain.any()


def rising_step(slope, size=128):
    """Return the map of two gentle slopes side by side, whose step rises from zero to slope × 0.6 size."""
    v, u = np.indices((size, size)) + 0.5
    slope_u = 0.15 * np.cos(u / 15) * np.cos(v / 17) + np.where((v > size / 2) & (u > 0.4 * size), slope, 0.0)
    slope_v = -0.15 * 15 / 17 * np.sin(u / 15) * np.sin(v / 17)
    normals = np.stack([-slope_u, slope_v, np.ones_like(u)], axis=-1)
    return NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True))


@pytest.mark.parametrize(("slope", "torn"), [(0.0, False), (0.03, True)])
def test_the_stages_are_skipped_only_without_jumps(slope, torn):
    """A step that rises slowly puts little strain on each edge, and is found nevertheless."""
    normal_map = rising_step(slope)
    system = system_of(decimate(normal_map, vertices=600), normal_map)
    solves = []

    def counted(weighted, guess):
        solves.append(weighted)
        return solve(weighted, guess)

    gluing = Gluing.against(0.0)
    glued = gluing.begin(system, counted)
    assert gluing.torn.tolist() == [torn]
    assert (len(solves) > 2) == torn
    assert RobustWeights(system).strain(solve(system, None)).max() < 0.5
    assert (glued.strain.max() > 0.5) == torn


def test_resuming_keeps_the_memory_of_strain():
    """The strain changes only partly between rounds of refinement, and converges in the last one."""
    normal_map = flap()[1]
    system = system_of(decimate(normal_map, vertices=400), normal_map)
    gluing = Gluing.against(0.0)
    glued = gluing.begin(system, solve)
    shuffled = np.random.default_rng(0).permutation(glued.strain)
    between = gluing.resume(system, shuffled, solve, last=False)
    assert (between.strain >= 0.7 * shuffled - 1e-12).all()
    settled = gluing.resume(system, glued.strain, solve, last=True)
    assert np.abs(settled.strain - glued.strain).max() < 0.2


def test_inconsistent_normals_need_more_strain_to_tear():
    assert Gluing.against(0.03).unit == 1
    assert Gluing.against(0.125).unit == pytest.approx(4)


def test_one_face_alone():
    normal_map = bumpy_map()
    mask = np.zeros(normal_map.shape, bool)
    mask[5, 5] = True
    alone = NormalMap(normal_map.normals, mask, normal_map.camera)
    gluing = Gluing.against(0.0)
    assert np.isfinite(gluing.begin(system_of(decimate(alone, vertices=4), alone), solve).offsets).all()
    assert not gluing.torn.any()
