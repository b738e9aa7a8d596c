"""Diagonals of inverses, against dense inverses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from normalmesh.solvers.cholesky import Cholesky
from normalmesh.solvers.selected_inverse import sandwich_diagonal


def _grid_matrices(rows: int, columns: int, seed: int) -> tuple[csr_matrix, csr_matrix, np.ndarray]:
    """Return a matrix and a smaller one on the pattern of a grid with diagonals, and its positions (n, 2)."""
    rng = np.random.default_rng(seed)
    v, u = np.divmod(np.arange(rows * columns), columns)
    near = (abs(u[:, None] - u) <= 1) & (abs(v[:, None] - v) <= 1) & (u[:, None] != u - 2)
    weights = np.triu(near, 1) * rng.uniform(0.1, 1.0, near.shape)
    weights += weights.T
    changed = weights * (1 + 0.5 * np.cos(np.arange(len(u)))[:, None] * np.cos(np.arange(len(u))))
    pair = [np.diag(each.sum(axis=1) + 0.01 * (each is weights)) - each for each in (weights, changed)]
    where = np.nonzero(near)
    pattern = csr_matrix((np.ones(len(where[0])), where), near.shape)
    whole = [csr_matrix((each[where], pattern.indices, pattern.indptr), near.shape) for each in pair]
    return whole[0], whole[1], np.stack([u, v], axis=1).astype(np.float64)


@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (20, 31)])
def test_diagonals_are_those_of_dense_inverses(shape):
    matrix, middle, positions = _grid_matrices(*shape, seed=3)
    cholesky, extra = Cholesky(matrix, positions), np.full(len(positions), 1e-3)
    inverse = np.linalg.inv(matrix.toarray() + np.diag(extra))
    cholesky.factorise(matrix, extra)
    np.testing.assert_allclose(cholesky.inverse_diagonal(), np.diag(inverse), rtol=1e-9)
    found = sandwich_diagonal(cholesky, matrix, extra, middle, bound=2.0)
    expected = np.diag(inverse @ middle.toarray() @ inverse)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
