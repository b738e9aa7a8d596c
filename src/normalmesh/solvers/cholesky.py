"""Cholesky factorisation of sparse symmetric matrices whose graph lies in the plane.

It uses nested dissection by coordinates and the multifrontal method with dense fronts. A sparsity pattern is analysed
once, for all matrices with that pattern.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from normalmesh.errors import NormalMeshError
from normalmesh.runtime.threads import in_parallel
from normalmesh.runtime.workspace import Workspace
from normalmesh.solvers._cholesky import (
    Blocks,
    Elimination,
    Matrix,
    Schedule,
    Storage,
    factorise,
    find_borders,
    plan_assembly,
    substitute,
)
from normalmesh.solvers._dissection import Ordering, Pattern, Positions, dissect, landmark_coordinates
from normalmesh.solvers.elimination_tree import EliminationTree

Float = NDArray[np.float64]
Int = NDArray[np.int64]

#: Subtrees with at most this share of the work are done in parallel. The share is fixed, so that results do not depend
#: on the number of threads.
_SHARE = 1 / 32
#: Overhead of a block besides its arithmetic, in multiplications.
_BLOCK_WORK = 1000.0
#: Systems of at least `_PARALLEL_FROM` unknowns are dissected on several threads, in `_PARTS` parts.
_PARALLEL_FROM, _PARTS = 10_000, 64
#: Numbers in the panels of a level from which on its tasks are shared among threads: to factorise, and to substitute.
_FACTORISED, _SUBSTITUTED = 50_000, 500_000


class Cholesky:
    """Elimination of one sparsity pattern, and the factor of the last matrix with that pattern.

    Parameters
    ----------
    matrix
        (n, n), symmetric, with the pattern of all matrices to be factorised.
    coordinates
        (n, 2) positions of the unknowns in the plane, in any unit. Without them, positions are derived from distances
        in the graph, which takes longer and gives somewhat more fill-in.
    workspace
        Memory for the factor and for updates. By default, the factorisation has its own.

    Attributes
    ----------
    last : (n,) int
        Position of each unknown in the elimination order.
    bytes
        Memory of the factor and of updates.
    """

    def __init__(
        self, matrix: csr_matrix, coordinates: Float | None = None, workspace: Workspace | None = None
    ) -> None:
        pattern = Pattern(matrix.indptr, matrix.indices)
        if coordinates is None:
            coordinates = landmark_coordinates(pattern)
        blocks = _dissected(pattern, coordinates)
        tree = find_borders(pattern, blocks)
        self._elimination = Elimination(blocks, tree, plan_assembly(pattern, blocks, tree))
        self._plan(tree.parent, blocks.stop - blocks.start, np.diff(tree.border))
        self._storage: Storage | None = None
        self._workspace = workspace or Workspace()
        self.last: NDArray[np.int32] = tree.position
        self.bytes = 8 * (self._panel_count + self._update_count)

    def _plan(self, parent: NDArray[np.int32], own: Int, beyond: Int) -> None:
        """Plan tasks, and the places of panels and updates.

        Block s has ``own[s]`` unknowns of its own and is coupled to ``beyond[s]`` later ones.
        """
        tree = EliminationTree.of(parent)
        task, levels = tree.tasks(own * (own + beyond) ** 2.0 + _BLOCK_WORK, _SHARE)
        pointers = np.concatenate([[0], np.cumsum(np.bincount(task))])
        blocks = np.lexsort((tree.postorder(), task))
        # Padded as by _fronts.padded.
        wide, deep = own + 3 & ~3, beyond + 3 & ~3
        self._update_at, self._update_count = tree.update_places(deep**2, task)
        numbers = own * (wide + deep)
        self._panel_at = np.concatenate([[0], np.cumsum(numbers)])
        self._panel_count = int(self._panel_at[-1])
        of_task = np.bincount(task, numbers)
        self._levels = [
            (float(of_task[low:high].sum()), Schedule(pointers[low : high + 1], blocks))
            for low, high in pairwise(levels)
        ]

    def factorise(self, matrix: csr_matrix, extra: Float) -> None:
        """Factorise the matrix, of the pattern given first, plus ``extra`` (n,) on its diagonal.

        Raises
        ------
        NormalMeshError
            The sum is not positive definite.
        """
        buffer = self._workspace.reserve(self._panel_count + self._update_count)
        panels, updates = np.split(buffer, [self._panel_count])
        storage = Storage(self._panel_at, self._update_at, panels, updates)
        self._storage = None
        for numbers, schedule in self._levels:
            count = schedule.pointers.size - 1
            failed = np.full(count, -1)
            in_parallel(
                factorise,
                count,
                Matrix(matrix.data, extra),
                self._elimination,
                schedule,
                storage,
                failed,
                grain=1 if numbers >= _FACTORISED else count + 1,
            )
            if failed.max(initial=-1) >= 0:
                unknown = self._elimination.blocks.order[failed.max()]
                raise NormalMeshError(
                    f"the matrix is not positive definite: the pivot of unknown {unknown} is not positive"
                )
        self._storage = storage

    def solve(self, right_side: Float) -> Float:
        """Return x (n,) with A x = right_side (n,), up to rounding."""
        order, solution = self._elimination.blocks.order, np.empty(right_side.size)
        x, carried = right_side[order], np.empty(self._elimination.tree.rows.size)
        for upwards in (True, False):
            for numbers, schedule in self._levels if upwards else reversed(self._levels):
                count = schedule.pointers.size - 1
                in_parallel(
                    substitute,
                    count,
                    upwards,
                    self._elimination,
                    schedule,
                    self._storage,
                    x,
                    carried,
                    grain=1 if numbers >= _SUBSTITUTED else count + 1,
                )
        solution[order] = x
        return solution


def _dissected(pattern: Pattern, coordinates: Float) -> Blocks:
    """Return elimination order and blocks by nested dissection."""
    n = len(coordinates)
    positions = Positions(coordinates[:, 0].copy(), coordinates[:, 1].copy())
    ordering = Ordering(
        np.arange(n, dtype=np.int32), np.zeros(n, np.bool_), np.zeros(n, np.int8), np.empty(n, np.int32)
    )
    parts = np.array([[0, n]])
    # There are no edges between parts, so they can be halved at the same time.
    while n >= _PARALLEL_FROM and len(parts) < _PARTS:
        halves = np.zeros((2 * len(parts), 2), np.int64)
        in_parallel(dissect, len(parts), parts, halves, False, pattern, positions, ordering, grain=1)
        parts = halves
    in_parallel(dissect, len(parts), parts, parts, True, pattern, positions, ordering, grain=1)
    start = np.flatnonzero(ordering.begins)
    return Blocks(ordering.order, start, np.append(start[1:], n))
