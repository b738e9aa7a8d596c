"""Cholesky factorisation of sparse symmetric matrices whose graph lies in the plane.

A sparsity pattern is analysed once, for all matrices with that pattern (:mod:`.elimination_plan`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from normalmesh.array_types import Float, Int32
from normalmesh.runtime.workspace import Workspace
from normalmesh.solvers._cholesky import Matrix, Storage
from normalmesh.solvers.conjugate_gradients import times
from normalmesh.solvers.elimination_plan import EliminationPlan
from normalmesh.solvers.selected_inverse import inverse_diagonal


class Cholesky:
    """Elimination of one sparsity pattern, and the factor of the last matrix with that pattern.

    Parameters are those of :class:`.elimination_plan.EliminationPlan`. The next factor has numbers of this ``kind``:
    one of float32, half the size, is accurate to some 1e-6, relative to each number of U, if no number beside the
    diagonal is positive and no row has a negative sum. ``last`` (n,) is the position of each unknown in the elimination
    order.
    """

    def __init__(
        self,
        matrix: csr_matrix,
        coordinates: Float | None = None,
        workspace: Workspace | None = None,
        kind: type[np.floating[Any]] = np.float64,
    ) -> None:
        self._plan = EliminationPlan(matrix, coordinates)
        self._passes = self._plan.passes(np.ones(self._plan.update_size.size, np.bool_))
        self._storage: Storage | None = None
        self._workspace = workspace or Workspace()
        self.last: Int32 = self._plan.elimination.tree.position
        self.kind = kind

    @property
    def bytes(self) -> int:
        """Memory of the factor and of updates."""
        return np.dtype(self.kind).itemsize * (self._plan.panel_count + self._plan.update_count)

    def factorise(self, matrix: csr_matrix, extra: Float) -> None:
        """Factorise the matrix, of the pattern given first, plus ``extra`` (n,) on its diagonal: positive definite."""
        self._storage = None
        storage = self._plan.storage(self._workspace, kind=self.kind)
        if storage.by_sums:
            extra = extra + np.maximum(times(matrix, np.ones(extra.size)), 0.0)
        self._plan.factorise(self._passes, Matrix(matrix.data, extra), storage)
        self._storage = storage

    def solve(self, right_side: Float) -> Float:
        """Return x (n,) with A x = right_side (n,), up to rounding."""
        assert self._storage is not None
        order, rows = self._plan.elimination.blocks.order, self._plan.elimination.tree.rows
        x, carried = right_side[order], np.empty(rows.size)
        for upwards in (True, False):
            self._plan.substitute(self._passes, upwards, self._storage, x, carried)
        del carried
        solution = np.empty(x.size)
        solution[order] = x
        return solution

    def inverse_diagonal(self) -> Float:
        """Return the diagonal (n,) of the inverse of the matrix that was factorised last."""
        assert self._storage is not None
        return inverse_diagonal(self._plan, self._storage)
