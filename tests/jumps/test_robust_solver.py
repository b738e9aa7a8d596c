"""Robust solves that repeat only what changes, against plain solves with weights from their formulas."""

import math
from dataclasses import replace

import numpy as np
import pytest

from meshes import point_mesh
from naive_integration import NaiveRobustWeights
from normalmesh import Orthographic, Perspective
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.jumps import robust_solver
from normalmesh.jumps.robust_solver import LOOSE, TWISTED, RobustSolver
from normalmesh.runtime.workspace import Workspace
from normalmesh.solvers.sparse_system import PreparedSystem
from scenes import scene
from surfaces import flap
from thread_counts import on_one_and_on_several

CAMERAS = [Orthographic(0.7), Perspective(900.0, 850.0, 45.0, 50.0, skew=3.0)]


def flap_system(camera=None, vertices=900):
    """Return the facet system of a flap that ends in a jump, on a mesh of random points."""
    if camera is None:
        return FacetSystem.of(FaceMeans.of(point_mesh((96, 96), vertices), flap()[1]))
    return FacetSystem.of(FaceMeans.of(point_mesh((96, 96), vertices), scene("steps", 96).normal_map(camera)))


class PlainSolver:
    """Solves the whole system again and again, with weights from their formulas."""

    def __init__(self, system):
        self.system, self.robust = system, NaiveRobustWeights(system)
        gradients, vertices = system.means.gradients, system.means.mesh.vertices
        self.twist = np.array(
            [
                nu * abs((gradients[g] - gradients[f]) @ (vertices[b] - vertices[a])) / math.sqrt(12)
                for (f, g), (a, b), nu in zip(system.pairs, system.ends, self.robust.edge_cosines, strict=True)
            ]
        )
        self.twist /= system.means.camera.pixel_length
        self.holds = 1 / (1 + (self.twist / TWISTED) ** 2)
        self.solve(system.weights)

    def solve(self, weights):
        self.weights = weights
        system = replace(self.system, weights=weights)
        x = PreparedSystem(system.matrix()).solve(system.right_side()).x
        mean = np.bincount(system.component, x) / np.bincount(system.component)
        self.offsets = x - mean[system.component]
        self.strain = self.robust.strain(self.offsets)

    def one_sided(self, solves):
        self.solve(self.holds * self.robust.even())
        for _ in range(solves):
            self.solve(self.holds * self.robust.one_sided(self.offsets))

    def cauchy(self, width, solves, twisted=np.inf):
        for _ in range(solves):
            full = np.hypot(self.strain, self.twist)
            seen = np.where(full >= twisted, full, self.strain)
            self.solve(self.holds * self.robust.cauchy(seen, width))


@pytest.fixture
def every_change(monkeypatch):
    """Let edges settle only when their weights hardly change any more."""
    monkeypatch.setattr(robust_solver, "MOVED", 1e-10)
    monkeypatch.setattr(robust_solver, "MOVED_CAUCHY", 1e-10)


def assert_same(solver, plain, atol=1e-8):
    unit = solver.system.means.camera.pixel_length
    np.testing.assert_allclose(solver.offsets, plain.offsets, atol=atol * unit)
    np.testing.assert_allclose(solver.strain, plain.strain, atol=atol)
    np.testing.assert_allclose(solver.weights, plain.weights, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("camera", CAMERAS, ids=["orthographic", "perspective"])
def test_weights_and_strain_are_those_of_their_formulas(camera, every_change):
    system = flap_system(camera)
    solver, plain = RobustSolver(system, Workspace()), PlainSolver(system)
    np.testing.assert_allclose(solver.twist, plain.twist, atol=1e-12)
    assert np.count_nonzero(solver.twist > TWISTED) > 10
    solver.solve_all()
    assert_same(solver, plain)
    solver.one_sided(0)
    np.testing.assert_allclose(solver.weights, plain.holds * plain.robust.even(), rtol=1e-12)
    before = solver.offsets.copy()
    solver.one_sided(1)
    np.testing.assert_allclose(solver.weights, plain.holds * plain.robust.one_sided(before), rtol=1e-9)
    np.testing.assert_allclose(solver.strain, plain.robust.strain(solver.offsets), atol=1e-12)
    before = solver.strain.copy()
    solver.cauchy(0.05, 1)
    np.testing.assert_allclose(solver.weights, plain.holds * plain.robust.cauchy(before, 0.05), rtol=1e-12)
    full = solver.full_strain()
    np.testing.assert_allclose(full, np.sqrt(solver.strain**2 + plain.twist**2), atol=1e-12)
    seen = np.where(full >= 0.5, full, solver.strain)
    solver.cauchy(0.05, 1, 0.5)
    np.testing.assert_allclose(solver.weights, plain.holds * plain.robust.cauchy(seen, 0.05), rtol=1e-12)


@pytest.mark.parametrize("camera", CAMERAS, ids=["orthographic", "perspective"])
def test_a_whole_sequence_equals_plain_solves(camera, every_change):
    system = flap_system(camera)
    solver, plain = RobustSolver(system, Workspace()), PlainSolver(system)
    solver.solve_all()
    solver.one_sided(8, (3,))
    # After the third solve, all edges are weighed and solved again.
    plain.one_sided(9)
    assert_same(solver, plain, 1e-6)
    solver.cauchy(0.05, 4)
    plain.cauchy(0.05, 4)
    assert_same(solver, plain, 1e-6)
    solver.cauchy(0.05, 2, 0.5)
    plain.cauchy(0.05, 2, 0.5)
    assert_same(solver, plain, 1e-6)


def test_settled_edges_change_little():
    """With the usual tolerance far fewer faces are solved again, and the surface is nearly the same."""
    system = flap_system(vertices=3000)
    solver, plain = RobustSolver(system, Workspace()), PlainSolver(system)
    solver.solve_all()
    solver.one_sided(8, (3,))
    plain.one_sided(9)
    assert len(solver._faces) < 0.7 * len(solver.offsets)
    jump = np.abs(plain.offsets).max()
    assert np.abs(solver.offsets - plain.offsets).max() < 0.05 * jump
    assert np.abs(solver.offsets - plain.offsets).mean() < 0.005 * jump


def test_only_movable_faces_lose_weight():
    system = flap_system()
    solver = RobustSolver(system, Workspace())
    solver.solve_all()
    solver.movable = system.means.centroids[:, 0] > 50
    before, own = solver.weights.copy(), solver.own
    assert np.array_equal(own, (system.means.centroids[system.pairs, 0] > 50).all(axis=1))
    solver.one_sided(5)
    solver.cauchy(0.05, 2)
    assert np.array_equal(solver.weights[~own], before[~own])
    assert (solver.weights[own] != before[own]).all()


def test_cut_edges_are_open_where_others_hold():
    """Edges get their full weight, cut ones a share of it."""
    system = flap_system()
    solver, plain = RobustSolver(system, Workspace()), PlainSolver(system)
    solver.solve_all()
    cut = np.random.default_rng(0).random(len(system.pairs)) < 0.1
    base = plain.holds * plain.robust.trust * plain.robust.edge_cosines**2
    solver.open(cut)
    plain.solve(np.where(cut, LOOSE, 1.0) * base)
    assert_same(solver, plain)
    solver.hold(np.where(cut, 0.3, 1.0))
    plain.solve(np.where(cut, 0.3, 1.0) * base)
    np.testing.assert_allclose(solver.shares(), np.where(cut, 0.3, 1.0))
    assert_same(solver, plain)


def test_edges_that_are_kept_hold():
    system = flap_system()
    solver, plain = RobustSolver(system, Workspace()), PlainSolver(system)
    base = plain.holds * plain.robust.trust * plain.robust.edge_cosines**2
    solver.solve_all()
    solver.one_sided(5)
    shares = np.where(solver.strain > 2, 0.9, 0.0)
    assert shares.any()
    solver.keep(shares)
    np.testing.assert_allclose(solver.weights, base, rtol=1e-12)
    for _ in range(2):
        solver.one_sided(5)
        solver.cauchy(0.05, 2)
        assert (solver.weights >= (1 - 1e-12) * shares * base).all()
    solver.keep(np.zeros(len(shares)))
    solver.one_sided(5)
    assert (solver.weights < shares * base).any()


def test_what_is_behind_does_not_come_in_front():
    """Of two planes that are cut apart, only edges whose misfits have the wrong sign push back."""
    system = flap_system()
    solver = RobustSolver(system, Workspace())
    solver.solve_all()
    solver.one_sided(10)
    is_open = solver.strain > 1
    edges = np.flatnonzero(is_open)
    solver.open(is_open)
    offsets, misfits = solver.offsets.copy(), solver.misfits()[edges]
    signs = np.zeros(len(is_open))
    signs[edges] = np.sign(misfits)
    solver.push_back(signs)
    np.testing.assert_allclose(solver.offsets, offsets, atol=1e-9)
    solver.push_back(-signs)
    assert np.abs(solver.misfits()[edges]).max() < np.abs(misfits).max() / 2
    solver.push_back(np.zeros(len(is_open)))


def test_edges_near_others_are_found():
    solver = RobustSolver(flap_system(), Workspace())
    one = np.zeros(len(solver.strain), np.bool_)
    one[17] = True
    near = [np.count_nonzero(solver.within(one, rings)) for rings in (0, 1, 2)]
    assert near[0] == 1 < near[1] < near[2]


def test_the_same_on_any_number_of_threads():
    def offsets():
        solver = RobustSolver(flap_system(), Workspace())
        solver.solve_all()
        solver.one_sided(6, (3,))
        solver.cauchy(0.05, 2)
        return solver.offsets

    alone, together = on_one_and_on_several(offsets)
    assert np.array_equal(alone, together)
