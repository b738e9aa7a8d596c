"""Cholesky factorisation of sparse symmetric matrices whose graph lies in the plane.

A sparsity pattern is analysed once, for all matrices with that pattern (:mod:`.elimination_plan`). Some unknowns, the
*border*, may stay: what is left for them is the Schur complement, a dense matrix. Given their values, the others follow
by substitution.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from normalmesh.array_types import Float, Int32, Integer
from normalmesh.runtime.threads import in_parallel
from normalmesh.runtime.workspace import Workspace
from normalmesh.solvers._cholesky import Matrix, Storage
from normalmesh.solvers._dense_elimination import assemble_border
from normalmesh.solvers._selected_inverse import Inverses, invert_fronts
from normalmesh.solvers.conjugate_gradients import times
from normalmesh.solvers.elimination_plan import EliminationPlan


class Cholesky:
    """Elimination of one sparsity pattern, and the factor of the last matrix with that pattern.

    Parameters are those of :class:`.elimination_plan.EliminationPlan`. The next factor has numbers of this ``kind``:
    one of float32, half the size, is accurate to some 1e-6, relative to each number of U, if no number beside the
    diagonal is positive and no row has a negative sum. ``last`` (n,) is the position of each unknown in the elimination
    order; those of the ``border`` (b,) come last, in this order.
    """

    def __init__(
        self,
        matrix: csr_matrix,
        coordinates: Float | None = None,
        workspace: Workspace | None = None,
        kind: type[np.floating[Any]] = np.float64,
        border: Integer | None = None,
    ) -> None:
        self._plan = EliminationPlan(matrix, coordinates, border)
        self._border = 0 if border is None else len(border)
        inside = np.ones(self._plan.update_size.size, np.bool_)
        inside[inside.size - bool(self._border) :] = False
        self._passes = self._plan.passes(inside)
        self._matrix: Matrix | None = None
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
        numbers = Matrix(matrix.data, extra)
        self._plan.factorise(self._passes, numbers, storage)
        self._storage, self._matrix = storage, numbers if self._border else None

    def solve(self, right_side: Float) -> Float:
        """Return x (n,) with A x = right_side (n,), up to rounding. There must be no border."""
        return self.expanded(right_side, np.empty(0))

    def expanded(self, right_side: Float, border_values: Float) -> Float:
        """Return all unknowns (n,), given those of the border (b,)."""
        x, carried = self._upwards(right_side)
        x[x.size - len(border_values) :] = border_values
        self._plan.substitute(self._passes, False, self._factor, x, carried)
        del carried
        solution = np.empty(x.size)
        solution[self._plan.elimination.blocks.order] = x
        return solution

    def condensed(self, right_side: Float) -> Float:
        """Return the right-hand side (b,) that is left for the border."""
        x, _ = self._upwards(right_side)
        return x[x.size - self._border :].copy()

    def triangle(self) -> Float:
        """Return the upper triangle (b (b + 1) / 2,) of the matrix that is left for the border."""
        triangle = np.empty(self._border * (self._border + 1) // 2)
        if self._border:
            assemble_border(self._matrix, self._plan.elimination, self._factor, triangle)
        return triangle

    @property
    def _factor(self) -> Storage:
        assert self._storage is not None
        return self._storage

    def _upwards(self, right_side: Float) -> tuple[Float, Float]:
        """Return the right-hand side after elimination, in elimination order, and what blocks added to borders."""
        tree = self._plan.elimination.tree
        x, carried = right_side[self._plan.elimination.blocks.order], np.empty(tree.rows.size)
        self._plan.substitute(self._passes, True, self._factor, x, carried)
        if self._border:
            for child in np.flatnonzero(tree.parent == tree.parent.size - 1):
                entries = slice(tree.border[child], tree.border[child + 1])
                x[tree.rows[entries]] += carried[entries]
        return x, carried

    def inverse_diagonal(self) -> Float:
        """Return the diagonal (n,) of the inverse of the matrix that was factorised last."""
        elimination, tree = self._plan.elimination, self._plan.tree
        blocks = elimination.blocks
        width = blocks.stop - blocks.start + np.diff(elimination.tree.border)
        # The inverse of a front is not needed any more when those below it are known.
        place, count = tree.kept_places(width**2)
        inverses, diagonal = Inverses(place, np.empty(count)), np.empty(blocks.order.size)
        for chosen in tree.generations:
            in_parallel(invert_fronts, len(chosen), chosen, elimination, self._factor, inverses, diagonal, grain=1)
        return diagonal
