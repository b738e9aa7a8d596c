"""Check that solves that redo only a part give the solution of the whole, and that they redo only a part."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_matrix
from scipy.spatial import Delaunay

from normalmesh import NormalMeshError
from normalmesh.runtime.workspace import Workspace
from normalmesh.solvers import elimination_plan
from normalmesh.solvers.cholesky import Cholesky
from normalmesh.solvers.partial_cholesky import PartialCholesky
from thread_counts import on_one_and_on_several


class PlanarSystem:
    """Laplacian of a random planar graph with several components, in which weights and right-hand sides can change."""

    def __init__(self, n, seed, lost=0.3):
        self.rng = np.random.default_rng(seed)
        self.places = self.rng.random((n, 2))
        faces = Delaunay(self.places).simplices
        edges = np.unique(np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
        self.edges = edges[self.rng.random(len(edges)) >= lost]
        self.weights = self.rng.random(len(self.edges)) + 0.1
        self.right_side = self.rng.normal(size=n)
        self.extra = np.full(n, 0.05)

    def matrix(self):
        a, b = self.edges.T
        rows, columns, w = np.concatenate([a, b, a, b]), np.concatenate([b, a, a, b]), self.weights
        # Numbers of a row are added in the order of the edges, so those that do not change keep all their bits.
        matrix = coo_matrix((np.concatenate([-w, -w, w, w]), (rows, columns)), (len(self.places),) * 2).tocsr()
        matrix.sort_indices()
        return matrix

    def cluster(self, share, among=None):
        """Return the unknowns (n,) nearest to a random place, and some others, all of them among the given ones."""
        distance = np.hypot(*(self.places - self.rng.random(2)).T)
        near = distance <= np.quantile(distance, share)
        near |= self.rng.random(near.size) < 0.1 * share
        return near if among is None else near & among

    def change(self, active):
        """Change the weights of edges at active unknowns, and the other numbers that may change, too."""
        at_active = active[self.edges].any(axis=1)
        near = active.copy()
        near[self.edges[at_active]] = True
        self.weights[at_active] *= np.exp(self.rng.normal(size=np.count_nonzero(at_active)))
        self.right_side[near] = self.rng.normal(size=np.count_nonzero(near))
        self.extra[near] *= 1 + self.rng.random(np.count_nonzero(near))
        return near

    def numbers(self):
        return self.matrix().data, self.extra, self.right_side

    def whole_solution(self):
        factor = Cholesky(self.matrix(), self.places)
        factor.factorise(self.matrix(), self.extra)
        return factor.solve(self.right_side)


@settings(max_examples=40)
@given(st.integers(3, 250), st.integers(0, 10**6), st.sampled_from([0.0, 0.05, 0.3, 1.0]), st.integers(1, 5))
def test_any_sequence_gives_the_solution_of_the_whole(n, seed, share, rounds):
    system = PlanarSystem(n, seed)
    factor, active = PartialCholesky(system.matrix(), system.places), system.cluster(share)
    for _ in range(2):
        factor.freeze(active, *system.numbers())
        now = active
        for _ in range(rounds):
            near, x = system.change(now), np.full(n, np.nan)
            assert set(np.flatnonzero(near)) <= set(factor.changing)
            changing, narrower = factor.changing, system.cluster(0.5, now)
            if system.rng.random() < 0.7:
                factor.narrow(system.cluster(0.7, now))
                factor.narrow(narrower)
                now = narrower
            factor.solve(*system.numbers(), x)
            expected = system.whole_solution()
            assert np.array_equal(x[changing], expected[changing])
            assert np.isnan(np.delete(x, changing)).all()
            if system.rng.random() < 0.5:
                factor.finish(x)
                assert np.array_equal(x, expected)
        factor.finish(x)
        dense = np.linalg.solve(system.matrix().toarray() + np.diag(system.extra), system.right_side)
        np.testing.assert_allclose(x, dense, atol=1e-12 * np.abs(dense).max())
        active = system.cluster(share)


def test_kept_blocks_are_not_read_again():
    system = PlanarSystem(2000, 0, lost=0.0)
    factor, active = PartialCholesky(system.matrix(), system.places), system.cluster(0.05)
    factor.freeze(active, *system.numbers())
    system.change(active)
    matrix, extra, right_side = system.matrix(), system.extra.copy(), system.right_side.copy()
    kept = np.delete(np.arange(2000), factor.changing)
    assert kept.size > 1000
    matrix.data[np.isin(np.repeat(np.arange(2000), np.diff(matrix.indptr)), kept)] = np.nan
    extra[kept] = right_side[kept] = np.nan
    x = np.empty(2000)
    factor.solve(matrix.data, extra, right_side, x)
    factor.finish(x)
    assert np.array_equal(x, system.whole_solution())


def test_the_same_part_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(elimination_plan, "_FACTORISED", 0)
    monkeypatch.setattr(elimination_plan, "_SUBSTITUTED", 0)

    def compute():
        system = PlanarSystem(3000, 1)
        factor, active = PartialCholesky(system.matrix(), system.places), system.cluster(0.3)
        x, found = np.zeros(3000), []
        factor.freeze(active, *system.numbers())
        for share in (0.5, 0.3, 0.1):
            system.change(active)
            active = system.cluster(share, active)
            factor.narrow(active)
            factor.solve(*system.numbers(), x)
            found.append(x.copy())
        factor.finish(x)
        assert np.array_equal(x, system.whole_solution())
        return np.array([*found, x])

    assert np.array_equal(*on_one_and_on_several(compute))


def test_indefinite_matrices_are_refused():
    system = PlanarSystem(500, 2)
    factor, active = PartialCholesky(system.matrix(), system.places), system.cluster(0.2)
    values, extra, right_side = system.numbers()
    x = np.empty(500)
    with pytest.raises(NormalMeshError, match="not positive definite: the pivot of unknown"):
        factor.freeze(active, values, extra - 1e6 * ~active, right_side)
    factor.freeze(active, values, extra, right_side)
    with pytest.raises(NormalMeshError, match="not positive definite: the pivot of unknown"):
        factor.solve(values, extra - 1e6 * active, right_side, x)
    factor.freeze(active, values, extra, right_side)
    factor.solve(values, extra, right_side, x)
    factor.finish(x)
    assert np.array_equal(x, system.whole_solution())


def test_all_memory_comes_from_the_workspace():
    system, workspace = PlanarSystem(1000, 3), Workspace()
    factor = PartialCholesky(system.matrix(), system.places, workspace)
    factor.freeze(system.cluster(0.3), *system.numbers())
    buffer = workspace.reserve(1)
    assert factor.bytes <= buffer.base.nbytes <= 1.25 * factor.bytes
