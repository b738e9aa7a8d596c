"""Check that systems condensed to a border, merged and expanded have the solution of the whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import block_diag, coo_matrix, csr_matrix, diags
from scipy.spatial import Delaunay

from normalmesh import NormalMeshError
from normalmesh.solvers.cholesky import Cholesky
from normalmesh.solvers.dense_elimination import backward, eliminated, forward
from normalmesh.solvers.gauge import Gauge
from thread_counts import on_one_and_on_several


def planar(n, rng, excess=0.05):
    """Return the matrix of a random planar graph, and places of its unknowns."""
    places = rng.random((n, 2))
    faces = Delaunay(places).simplices
    a, b = np.unique(np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0).T
    weights = coo_matrix((rng.random(len(a)) + 0.1, (a, b)), (n, n))
    weights = weights + weights.T
    return csr_matrix(diags(weights.sum(axis=1).A1 + excess) - weights), places


def eliminated_to_border(matrix, border, places, gauge=None):
    """Return the elimination of all unknowns but a border."""
    factor = Cholesky(matrix, places, border=border)
    factor.factorise(matrix, np.zeros(len(places)) if gauge is None else gauge.pins(matrix.diagonal(), factor.last))
    return factor


def triangle_of(matrix):
    return matrix[np.triu_indices(len(matrix))]


def schur_complement(matrix, border):
    dense = matrix.toarray()
    inside = np.setdiff1d(np.arange(len(dense)), border)
    across = dense[np.ix_(inside, border)]
    return dense[np.ix_(border, border)] - across.T @ np.linalg.solve(dense[np.ix_(inside, inside)], across)


@settings(max_examples=20)
@given(st.integers(4, 300), st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.integers(0, 10**6))
def test_condensed_and_expanded_against_dense(n, share, seed):
    rng = np.random.default_rng(seed)
    matrix, places = planar(n, rng)
    border, right = rng.permutation(n)[: int(share * n)], rng.normal(size=n)
    found = eliminated_to_border(matrix, border, places)
    expected = schur_complement(matrix, border)
    np.testing.assert_allclose(found.triangle(), triangle_of(expected), atol=1e-12)
    x = np.linalg.solve(matrix.toarray(), right)
    np.testing.assert_allclose(expected @ x[border], found.condensed(right), atol=1e-10)
    np.testing.assert_allclose(found.expanded(right, x[border]), x, atol=1e-10)


@pytest.mark.parametrize("own", [0, 1, 3, 4, 63, 66, 130, 300])
def test_dense_elimination_in_two_steps(own):
    """Include fronts of less than a strip, of several blocks, and with nothing to eliminate."""
    rng = np.random.default_rng(own)
    n = own + 70
    root = rng.normal(size=(n, n))
    whole = root @ root.T + n * np.eye(n)
    right = rng.normal(size=n)
    part = rng.permutation(n)[: n // 2]
    # The sum of two matrices, one of which has only some of the unknowns, in another order.
    second = np.zeros((n, n))
    second[np.ix_(part, part)] = rng.random() * np.eye(len(part))
    extra = rng.random(own)
    parts = [(np.arange(n), triangle_of(whole)), (part, triangle_of(second[np.ix_(part, part)]))]
    whole = whole + second + np.diag(np.append(extra, np.zeros(70)))
    panel, triangle = eliminated(parts, extra, 70)
    np.testing.assert_allclose(triangle, triangle_of(schur_complement(csr_matrix(whole), np.arange(own, n))), 1e-10)
    last, nothing = eliminated([(np.arange(70), triangle)], np.zeros(70), 0)
    assert nothing.size == 0
    substituted, change = forward(panel, right)
    beyond = backward(last, forward(last, change)[0], np.empty(0))
    found = np.append(backward(panel, substituted, beyond), beyond)
    np.testing.assert_allclose(found, np.linalg.solve(whole, right), atol=1e-12)


def test_floating_parts_without_contact_to_the_border():
    rng = np.random.default_rng(0)
    (tied, first), (free, second) = planar(40, rng), planar(60, rng, excess=0.0)
    matrix, places = csr_matrix(block_diag([tied, free])), np.concatenate([first, second + 2])
    x = rng.normal(size=100)
    border = np.arange(5)
    gauge = Gauge(np.repeat([0, 1], [40, 60]), np.array([False, True]))
    found = eliminated_to_border(matrix, border, places, gauge).expanded(matrix @ x, x[border])
    np.testing.assert_allclose(gauge.centred(found), gauge.centred(x), atol=1e-10)
    assert np.abs(found[40:]).min() < 1e-12


def test_the_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(1)
    matrix, places = planar(3000, rng)
    border, right = rng.permutation(3000)[:350], rng.normal(size=3000)

    def compute():
        found = eliminated_to_border(matrix, border, places)
        panel, triangle = eliminated([(np.arange(350), found.triangle())], np.zeros(200), 150)
        # Below the diagonal is nothing.
        return np.concatenate([found.triangle(), found.condensed(right), np.triu(panel).ravel(), triangle])

    assert np.array_equal(*on_one_and_on_several(compute))


def test_indefinite_matrices_are_refused():
    matrix, places = planar(50, np.random.default_rng(2))
    with pytest.raises(NormalMeshError, match="not positive definite: the pivot of unknown"):
        eliminated_to_border(csr_matrix(-matrix), np.arange(5), places)
    with pytest.raises(NormalMeshError, match="not positive definite: pivot 1 of 2"):
        eliminated([(np.arange(2), np.array([1.0, 2.0, 1.0]))], np.zeros(2), 0)
