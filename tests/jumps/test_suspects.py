"""A first look at the continuous surface: whether it may have jumps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normalmesh import Orthographic
from normalmesh.decimation.hierarchy import Hierarchy
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.jumps.lines import LOW, LOW_NOISE, RELEASE, RELEASE_NOISE
from normalmesh.jumps.robust_solver import RobustSolver
from normalmesh.jumps.suspects import CORRELATED, closed_noise, is_suspect, near_edges, strain_noise, thresholds
from normalmesh.mesh.cut_mesh import boundary_vertices
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


@given(st.lists(st.floats(0, 9), max_size=30))
def test_noise_is_a_multiple_of_the_median(values):
    assert strain_noise(np.array(values)) == pytest.approx(1.4826 * np.median(values) if values else 0.0)


def test_thresholds_grow_with_the_noise():
    assert thresholds(0.01) == pytest.approx((LOW, RELEASE))
    assert thresholds(0.2) == pytest.approx((0.2 * LOW_NOISE, (0.2 * RELEASE_NOISE) ** 2))


@pytest.mark.parametrize("degrees", [3, 10])
def test_the_noise_of_closures_is_that_of_the_strain(degrees):
    """Without jumps both agree; jumps raise only that of the strain."""
    solver = solved(noisy(waves((120, 120))[0], degrees))
    assert closed_noise(solver) == pytest.approx(strain_noise(solver.strain), rel=0.1)
    torn = solved(scene("steps").normal_map(Orthographic()))
    assert closed_noise(torn) < 0.05 * strain_noise(torn.strain)


def test_closures_against_a_walk_around_vertices():
    solver = solved(noisy(waves((40, 44))[0], 5.0), 200)
    system, mesh = solver.system, solver.system.means.mesh
    closures = []
    for vertex in np.flatnonzero(~boundary_vertices(mesh)):
        faces = np.flatnonzero((mesh.faces == vertex).any(axis=1))
        total = 0.0
        for face in faces:
            # Across the edge from the vertex to the next corner, into the neighbour on its right.
            other = mesh.faces[face, (list(mesh.faces[face]).index(vertex) + 1) % 3]
            (e,) = np.flatnonzero((np.sort(system.ends, axis=1) == sorted((vertex, other))).all(axis=1))
            total += system.steps[e] if system.pairs[e, 0] == face else -system.steps[e]
        closures.append(abs(total) * system.means.cosines[faces].min())
    expected = 1.4826 * np.median(closures) / np.sqrt(18)
    assert closed_noise(solver) == pytest.approx(min(CORRELATED * expected, strain_noise(solver.strain)))


@pytest.mark.parametrize("degrees", [0, 3, 10])
def test_smooth_maps_are_not_suspect(degrees):
    for given_map in (waves((120, 120))[0], waves((120, 120), steepness=0.4)[0]):
        assert not is_suspect(solved(noisy(given_map, degrees)))


@pytest.mark.parametrize("name", ["steps", "flaps", "torus", "cards", "spiral", "hole"])
def test_clear_jumps_are_suspect(name):
    """Each scene has hundreds of px of jumps of 10 to 30 px."""
    assert is_suspect(solved(scene(name).normal_map(Orthographic()), 1280))


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
