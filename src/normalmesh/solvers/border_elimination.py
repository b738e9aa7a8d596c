"""Elimination of a sparse symmetric system down to a *border*: some unknowns that stay, coupled by a dense matrix.

All other unknowns, the interior, are eliminated along a nested dissection as in :mod:`.cholesky`. What is left for the
border is the Schur complement. Given the values of the border, the interior follows by substitution.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from normalmesh.array_types import Float, Integer
from normalmesh.runtime.workspace import Workspace
from normalmesh.solvers._border_elimination import assemble_border
from normalmesh.solvers._cholesky import Matrix
from normalmesh.solvers.elimination_plan import EliminationPlan
from normalmesh.solvers.gauge import Gauge


class BorderElimination:
    """The eliminated interior of a system, which must be positive definite.

    ``border`` (b,) are the unknowns that stay, in the order of the condensed system; ``coordinates`` (n, 2) positions
    of all in the plane. Floating components of the ``gauge`` must have no contact to the border. One unknown of each is
    zero, if the right-hand side sums to zero over the component.
    """

    def __init__(self, matrix: csr_matrix, border: Integer, coordinates: Float, gauge: Gauge | None = None) -> None:
        self._plan = plan = EliminationPlan(matrix, coordinates, border)
        self._border = border
        inside = np.ones(plan.update_size.size, np.bool_)
        inside[inside.size - bool(len(border)) :] = False
        self._passes = plan.passes(inside)
        self._storage = plan.storage(Workspace())
        position = plan.elimination.tree.position
        extra = np.zeros(len(coordinates)) if gauge is None else gauge.pins(matrix.diagonal(), position)
        self._matrix = Matrix(matrix.data, extra)
        plan.factorise(self._passes, self._matrix, self._storage)

    def triangle(self) -> Float:
        """Return the upper triangle (b (b + 1) / 2,) of the matrix that is left for the border."""
        count = len(self._border)
        triangle = np.empty(count * (count + 1) // 2)
        if count:
            assemble_border(self._matrix, self._plan.elimination, self._storage, triangle)
        return triangle

    def condensed(self, right_side: Float) -> Float:
        """Return the right-hand side (b,) that is left for the border."""
        x, _ = self._upwards(right_side)
        return x[x.size - len(self._border) :].copy()

    def expanded(self, right_side: Float, border_values: Float) -> Float:
        """Return all unknowns (n,), given those of the border (b,)."""
        x, carried = self._upwards(right_side)
        x[x.size - len(border_values) :] = border_values
        self._plan.substitute(self._passes, False, self._storage, x, carried)
        solution = np.empty(x.size)
        solution[self._plan.elimination.blocks.order] = x
        return solution

    def _upwards(self, right_side: Float) -> tuple[Float, Float]:
        """Return the right-hand side after elimination, in elimination order, and what blocks added to borders."""
        tree = self._plan.elimination.tree
        x, carried = right_side[self._plan.elimination.blocks.order], np.empty(tree.rows.size)
        self._plan.substitute(self._passes, True, self._storage, x, carried)
        if len(self._border):
            for child in np.flatnonzero(tree.parent == tree.parent.size - 1):
                entries = slice(tree.border[child], tree.border[child + 1])
                x[tree.rows[entries]] += carried[entries]
        return x, carried
