"""A first look at the continuous surface: which components may have jumps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normalmesh import NormalMap, Orthographic
from normalmesh.decimation.hierarchy import Hierarchy
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.jumps.lines import LOW, LOW_NOISE, RELEASE, RELEASE_NOISE
from normalmesh.jumps.robust_solver import RobustSolver
from normalmesh.jumps.suspects import find_suspects, near_edges, strain_noise, thresholds
from normalmesh.runtime.workspace import Workspace
from scenes import scene
from surfaces import flap, noisy, waves


def solved(normal_map, vertices=1000):
    """Return the solver of the continuous surface of a map."""
    hierarchy = Hierarchy.of(normal_map)
    solver = RobustSolver(
        FacetSystem.of(FaceMeans.of(hierarchy.mesh(hierarchy.level(vertices)), normal_map)), Workspace()
    )
    solver.solve_all()
    return solver


def side_by_side(*maps):
    """Return one map with a column of background after each of the given ones."""
    columns = []
    for each in maps:
        gap = np.broadcast_to([0.0, 0.0, 1.0], (each.shape[0], 1, 3))
        columns += [(each.normals, each.mask), (gap, np.zeros(gap.shape[:2], bool))]
    normals, masks = zip(*columns, strict=True)
    return NormalMap(np.concatenate(normals, axis=1), np.concatenate(masks, axis=1))


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 9)), max_size=30))
def test_noise_is_a_multiple_of_the_median_of_each_component(edges):
    component = np.array([each[0] for each in edges], np.int32)
    strain = np.array([each[1] for each in edges], float)
    for c, noise in enumerate(strain_noise(strain, component, 5)):
        own = sorted(strain[component == c])
        assert noise == pytest.approx(1.4826 * own[len(own) // 2] if own else 0.0)


def test_thresholds_grow_with_the_noise():
    low, release = thresholds(np.array([0.0, 0.01, 0.2]))
    assert low.tolist() == pytest.approx([LOW, LOW, 0.2 * LOW_NOISE])
    assert release.tolist() == pytest.approx([RELEASE, RELEASE, (0.2 * RELEASE_NOISE) ** 2])


def test_only_components_with_a_jump_are_suspect():
    normal_map = side_by_side(waves((96, 96))[0], flap()[1], noisy(waves((96, 96))[0], 3.0))
    solver = solved(normal_map, 3000)
    suspect, strained = find_suspects(solver)
    component = solver.system.component
    left = [solver.system.means.centroids[component == c, 0].min() for c in range(3)]
    assert [int(u // 97) for u in np.array(left)[suspect]] == [1]
    places = solver.system.means.mesh.vertices[solver.system.ends[strained]]
    assert len(strained) > 0
    assert (np.abs(places[..., 0] - 97 - 58) < 20).all()


@pytest.mark.parametrize("degrees", [0, 3, 10])
def test_smooth_maps_are_not_suspect(degrees):
    for given_map in (waves((120, 120))[0], waves((120, 120), steepness=0.4)[0]):
        suspect, strained = find_suspects(solved(noisy(given_map, degrees)))
        assert not suspect.any()
        assert len(strained) == 0


def overlooked(name):
    reason = "the median strain of a continuous surface that jumps bend hides them on small maps"
    return pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=reason))


@pytest.mark.parametrize("name", ["flaps", *map(overlooked, ("steps", "torus", "cards", "spiral", "hole"))])
def test_clear_jumps_are_suspect(name):
    """Each scene has hundreds of px of jumps of 10 to 30 px."""
    suspect, strained = find_suspects(solved(scene(name).normal_map(Orthographic()), 1280))
    assert suspect.tolist() == [True]
    assert len(strained) > 5


def test_neighbourhoods_are_those_of_middles_of_edges():
    solver = solved(flap()[1])
    edges = np.array([3, 40])
    near = near_edges(solver, edges)
    middles = solver.system.means.mesh.vertices[solver.system.ends[edges]].mean(axis=1)
    assert near.at(middles).all()
    centroids = solver.system.means.centroids
    distance = np.linalg.norm(centroids[:, None] - middles, axis=2).min(axis=1)
    inside = near.at(centroids)
    assert inside[distance < 20].all()
    assert not inside[distance > 48].any()
