"""Cholesky factorisation of matrices of which only some rows change from one solve to the next.

Blocks of the elimination tree that hold no changing unknown and lie above none are factorised once, and kept with their
update and their forward-substituted right-hand side. All others are redone in each solve. The solution is that of
:class:`~normalmesh.solvers.cholesky.Cholesky`, bit for bit.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from normalmesh.array_types import Bool, Float, Int, Int32, Integer
from normalmesh.runtime.workspace import Workspace
from normalmesh.solvers._cholesky import Matrix
from normalmesh.solvers._partial_cholesky import mark_changing
from normalmesh.solvers.elimination_plan import EliminationPlan


class PartialCholesky:
    """Elimination of one sparsity pattern, for a sequence of solves in which ever fewer rows change.

    :meth:`freeze` names the *active* unknowns. From then on the following may change: all matrix entries in rows or
    columns of active unknowns, and the diagonal and the right-hand side of active unknowns and their neighbours. So, of
    a graph Laplacian, the weights of all edges at active unknowns. Each :meth:`solve` gives the solution at
    :attr:`changing` (m,), ascending, among them active unknowns and their neighbours; :meth:`finish` completes it. From
    :meth:`freeze` to :meth:`finish` the workspace is in use. After an error, begin again with :meth:`freeze`.

    Kept updates take at most twice the memory of the updates of any blocks none of which lies above another; for graphs
    in the plane that is in proportion to n.
    """

    def __init__(
        self, matrix: csr_matrix, coordinates: Float | None = None, workspace: Workspace | None = None
    ) -> None:
        self._plan = plan = EliminationPlan(matrix, coordinates)
        kept_at, self._kept_count = plan.tree.kept_places(plan.update_size)
        self._kept_at = plan.update_count + kept_at
        self._workspace = workspace or Workspace()
        blocks, tree = plan.elimination.blocks, plan.elimination.tree
        self._block = np.empty(blocks.order.size, np.int32)
        self._block[blocks.order] = np.repeat(np.arange(blocks.start.size), blocks.stop - blocks.start)
        self._forward, self._backward = np.empty(blocks.order.size), np.empty(blocks.order.size)
        self._carried = np.empty(tree.rows.size)
        self._next: Bool | None = None
        self.last: Int32 = tree.position
        self.bytes = 8 * (plan.panel_count + plan.update_count + self._kept_count)

    def freeze(self, active: Bool, values: Float, extra: Float, right_side: Float) -> None:
        """Begin: eliminate, once and for all, what does not change if the rows of active unknowns (n,) do.

        The matrix has these ``values``, as CSR stores them, plus ``extra`` (n,) on its diagonal.
        """
        plan = self._plan
        self._storage = plan.storage(self._workspace, self._kept_count)
        redone = self._touched(active, np.arange(plan.update_size.size))
        self._keep_below(redone)
        self._redo(redone, np.arange(active.size))
        kept = plan.passes(~redone)
        plan.factorise(kept, Matrix(values, extra), self._storage)
        np.take(right_side, plan.elimination.blocks.order, out=self._forward)
        plan.substitute(kept, True, self._storage, self._forward, self._carried)

    def solve(self, values: Float, extra: Float, right_side: Float, x: Float) -> None:
        """Write the solution for this matrix and right-hand side (n,) into x (n,), at the unknowns :attr:`changing`."""
        plan, who, at = self._plan, self.changing, self._at
        if self._next is not None:
            self._keep_below(self._next)
        plan.factorise(self._passes, Matrix(values, extra), self._storage)
        self._forward[at] = right_side[who]
        plan.substitute(self._passes, True, self._storage, self._forward, self._carried)
        self._backward[at] = self._forward[at]
        plan.substitute(self._passes, False, self._storage, self._backward, self._carried)
        x[who] = self._backward[at]
        if self._next is not None:
            self._redo(self._next, who)

    def narrow(self, active: Bool) -> None:
        """After the next solve, which is as before, let only rows of these unknowns (n,) change, a subset of before."""
        self._next = self._touched(active, np.flatnonzero(self._redone))

    def finish(self, x: Float) -> None:
        """Write the whole solution of the last solve into x (n,)."""
        kept = ~self._redone
        at = self.last[kept[self._block]]
        self._backward[at] = self._forward[at]
        self._plan.substitute(self._plan.passes(kept), False, self._storage, self._backward, self._carried)
        x[self._plan.elimination.blocks.order] = self._backward

    def _touched(self, active: Bool, candidates: Int) -> Bool:
        """Return those of the candidate blocks (B,) that change if the rows of active unknowns do."""
        touched = np.zeros(self._plan.update_size.size, np.bool_)
        mark_changing(active, candidates, self._plan.pattern, self._plan.elimination, touched)
        return touched

    def _keep_below(self, redone: Bool) -> None:
        """Let blocks next below those that are redone (B,) write their updates where they are kept."""
        parent = self._plan.tree.parent
        below = np.flatnonzero((parent >= 0) & redone[parent] & ~redone)
        self._storage.update_at[below] = self._kept_at[below]

    def _redo(self, redone: Bool, candidates: Integer) -> None:
        """Let the next solves redo these blocks (B,), whose unknowns are among the candidates."""
        self._redone, self._next = redone, None
        self._passes = self._plan.passes(redone)
        self.changing = candidates[redone[self._block[candidates]]]
        self._at = self.last[self.changing]
