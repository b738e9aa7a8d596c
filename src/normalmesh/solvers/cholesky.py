"""Cholesky factorisation of sparse symmetric matrices whose graph lies in the plane.

Nested dissection by coordinates, then dense fronts (the multifrontal method): all of it permissively licensed Numba.
The analysis of a pattern is done once and serves all matrices of that pattern.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from normalmesh.errors import NormalMeshError
from normalmesh.runtime.threads import in_parallel
from normalmesh.solvers._cholesky import assembly, borders, factorise, substitute
from normalmesh.solvers._dissection import dissect, landmark_coordinates
from normalmesh.solvers.elimination_tree import EliminationTree

Float = NDArray[np.float64]
Int = NDArray[np.int64]

#: Subtrees with at most this share of the work are done in parallel. Fixed, whatever the number of threads.
_SHARE = 1 / 32
#: Work of a block that is not arithmetic, in products.
_BLOCK_WORK = 1000.0
#: So many unknowns are dissected on several threads, in so many parts.
_SHARED_FROM, _PARTS = 10_000, 64
#: Numbers of a level's panels that are worth a second thread: to find them, and to substitute.
_FACTORISED, _SUBSTITUTED = 50_000, 500_000


class Room:
    """Memory that one factorisation after another uses: to touch fresh memory may take longer than the arithmetic.

    It serves one :class:`Cholesky` at a time, the last one that was given it.
    """

    def __init__(self) -> None:
        self._kept = np.empty(0)

    def numbers(self, count: int) -> Float:
        """Room for so many numbers, which may be anything."""
        if self._kept.size < count:
            # The old memory goes first. What is never touched, a reserve for larger systems, costs nothing.
            self._kept = np.empty(0)
            self._kept = np.empty(count + count // 4)
        return self._kept[:count]


class Cholesky:
    """The elimination of one sparsity pattern, and the factor of the last matrix of that pattern.

    Parameters
    ----------
    matrix
        (n, n), symmetric, with the pattern of all matrices to come.
    coordinates
        (n, 2) positions of the unknowns in the plane, in any unit. Without them, positions are derived from distances
        in the graph, which takes longer and gives somewhat more fill-in.
    room
        Memory for factor and workspace; default: its own.

    Attributes
    ----------
    last : (n,) int
        For each unknown, when it is eliminated.
    bytes
        Memory of factor and workspace.
    """

    def __init__(self, matrix: csr_matrix, coordinates: Float | None = None, room: Room | None = None) -> None:
        indptr, indices = matrix.indptr, matrix.indices
        if coordinates is None:
            coordinates = landmark_coordinates(indptr, indices)
        order, start, stop = _dissected(indptr, indices, coordinates)
        position, border, rows, parent, child, sibling = borders(indptr, indices, order, start, stop)
        blocks = (start, stop, border, rows, child, sibling)
        self._entries, slot, until = assembly(indptr, indices, order, position, *blocks)
        self._rows = rows
        self._tree = (order, start, stop, border, slot, until, child, sibling)
        self._plan(parent, stop - start, np.diff(border))
        self._factor: Float | None = None
        self._room = room or Room()
        self.last: NDArray[np.int32] = position
        self.bytes = 8 * (int(self._place[0][-1]) + self._updates)

    def _plan(self, parent: NDArray[np.int32], own: Int, beyond: Int) -> None:
        """Tasks, and places of panels and updates, for blocks with so many unknowns of their own and beyond (B,)."""
        tree = EliminationTree.of(parent)
        task, levels = tree.tasks(own * (own + beyond) ** 2.0 + _BLOCK_WORK, _SHARE)
        pointers = np.concatenate([[0], np.cumsum(np.bincount(task))])
        blocks = np.lexsort((tree.post(), task))
        # As _fronts.padded.
        wide, deep = own + 3 & ~3, beyond + 3 & ~3
        update, self._updates = tree.places(deep**2, task)
        numbers = own * (wide + deep)
        self._place = (np.concatenate([[0], np.cumsum(numbers)]), update)
        of_task = np.bincount(task, numbers)
        self._levels = [
            (float(of_task[low:high].sum()), (pointers[low : high + 1], blocks)) for low, high in pairwise(levels)
        ]

    def factorise(self, matrix: csr_matrix, extra: Float) -> None:
        """Factorise the matrix, of the pattern given first, plus ``extra`` (n,) on its diagonal.

        Raises
        ------
        NormalMeshError
            The sum is not positive definite.
        """
        panels = int(self._place[0][-1])
        self._factor, workspace = np.split(self._room.numbers(panels + self._updates), [panels])
        parts = (matrix.data, *self._entries)
        for numbers, tasks in self._levels:
            count = tasks[0].size - 1
            failed = np.full(count, -1)
            work = (self._tree, self._place, tasks, self._factor, workspace, failed)
            in_parallel(factorise, count, parts, extra, *work, grain=1 if numbers >= _FACTORISED else count + 1)
            if failed.max(initial=-1) >= 0:
                self._factor = None
                unknown = self._tree[0][failed.max()]
                raise NormalMeshError(
                    f"the matrix is not positive definite: the pivot of unknown {unknown} is not positive"
                )

    def solve(self, right_side: Float) -> Float:
        """x (n,) with A x = right_side (n,), up to rounding."""
        order, solution = self._tree[0], np.empty(right_side.size)
        x, carried = right_side[order], np.empty(self._rows.size)
        for upwards in (True, False):
            for numbers, tasks in self._levels if upwards else reversed(self._levels):
                count = tasks[0].size - 1
                work = (self._tree, self._place[0], tasks, self._factor, self._rows, x, carried)
                in_parallel(substitute, count, upwards, *work, grain=1 if numbers >= _SUBSTITUTED else count + 1)
        solution[order] = x
        return solution


def _dissected(indptr: Int, indices: Int, coordinates: Float) -> tuple[NDArray[np.int32], Int, Int]:
    """Elimination order (n,) by nested dissection, and first and last-plus-one position of each block (B,)."""
    n = len(coordinates)
    order, begins = np.arange(n, dtype=np.int32), np.zeros(n, np.bool_)
    places = (coordinates[:, 0].copy(), coordinates[:, 1].copy())
    work = ((indptr, indices), places, order, begins, np.zeros(n, np.int8), np.empty(n, np.int32))
    parts = np.array([[0, n]])
    large = n >= _SHARED_FROM
    # There are no edges between parts: they are halved at the same time.
    while large and len(parts) < _PARTS:
        halves = np.zeros((2 * len(parts), 2), np.int64)
        in_parallel(dissect, len(parts), parts, halves, False, *work, grain=1)
        parts = halves
    in_parallel(dissect, len(parts), parts, parts, True, *work, grain=1)
    start = np.flatnonzero(begins)
    return order, start, np.append(start[1:], n)
