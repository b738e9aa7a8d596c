"""Cholesky factorisation of sparse symmetric matrices whose graph lies in the plane.

Nested dissection by coordinates, then dense fronts (the multifrontal method): all of it permissively licensed Numba.
The analysis of a pattern is done once and serves all matrices of that pattern.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from normalmesh._cholesky import assembly, assign_tasks, backward, borders, factorise, forward, layout, postorder
from normalmesh._dissection import dissect, landmark_coordinates
from normalmesh.errors import NormalMeshError
from normalmesh.threads import PARALLEL_FROM, in_parallel

Float = NDArray[np.float64]
#: Tasks that do not depend on each other: pointers to their blocks, and the blocks of all levels.
_Level = tuple[NDArray[np.int64], NDArray[np.int32]]

#: Subtrees with at most this share of the work are done in parallel. Fixed, whatever the number of threads.
_SHARE = 1 / 32


class Cholesky:
    """The elimination of one sparsity pattern, and the factor of the last matrix of that pattern.

    Parameters
    ----------
    matrix
        (n, n), symmetric, with the pattern of all matrices to come.
    coordinates
        (n, 2) positions of the unknowns in the plane, in any unit. Without them, positions are derived from distances
        in the graph, which takes longer and gives somewhat more fill-in.

    Attributes
    ----------
    last : (n,) int
        For each unknown, when it is eliminated.
    bytes
        Memory of factor and workspace.
    """

    def __init__(self, matrix: csr_matrix, coordinates: Float | None = None) -> None:
        indptr, indices = matrix.indptr, matrix.indices
        if coordinates is None:
            coordinates = landmark_coordinates(indptr, indices)
        order, start, stop = dissect(indptr, indices, coordinates)
        ascending = np.argsort(start)
        start, stop = start[ascending], stop[ascending]
        position, border, rows, parent, child, sibling = borders(indptr, indices, order, start, stop)
        post = postorder(parent, child, sibling)
        task, levels = assign_tasks(start, stop, border, parent, post, _SHARE)
        panel, update, room = layout(start, stop, border, parent, post, task, levels[-1])
        self._entries, slot, until = assembly(indptr, indices, order, position, start, stop, border, rows, child, sibling)
        self._rows = rows
        self._tree = (order, start, stop, border, slot, until, child, sibling)
        self._place = (panel, update)
        pointers = np.concatenate([[0], np.cumsum(np.bincount(task))])
        blocks = post[np.argsort(task[post], kind="stable")]
        self._levels = [(pointers[low : high + 1], blocks) for low, high in pairwise(levels)]
        self._room = int(room)
        self._factor: Float | None = None
        self._workspace: Float | None = None
        self.last: NDArray[np.int32] = position
        self.bytes = 8 * (int(panel[-1]) + self._room)

    def factorise(self, matrix: csr_matrix, extra: Float) -> None:
        """Factorise the matrix, of the pattern given first, plus ``extra`` (n,) on its diagonal.

        Raises
        ------
        NormalMeshError
            The sum is not positive definite.
        """
        if self._factor is None or self._workspace is None:
            self._factor, self._workspace = np.empty(int(self._place[0][-1])), np.empty(self._room)
        parts = (matrix.data, *self._entries)
        for level in self._levels:
            failed = np.full(level[0].size - 1, -1)
            work = (self._tree, self._place, level, self._factor, self._workspace, failed)
            self._in_parallel(factorise, level, parts, extra, *work)
            if failed.max(initial=-1) >= 0:
                self._factor = None
                unknown = self._tree[0][failed.max()]
                raise NormalMeshError(
                    f"the matrix is not positive definite: the pivot of unknown {unknown} is not positive"
                )

    def solve(self, right_side: Float) -> Float:
        """x (n,) with A x = right_side (n,), up to rounding."""
        y, solution, carried = np.empty(right_side.size), np.empty(right_side.size), np.empty(self._rows.size)
        factor = (self._tree, self._place[0])
        for level in self._levels:
            self._in_parallel(forward, level, *factor, level, self._factor, right_side, y, carried)
        for level in reversed(self._levels):
            self._in_parallel(backward, level, *factor, level, self._factor, self._rows, y, solution)
        return solution

    def _in_parallel(self, kernel: Callable[..., None], level: _Level, *arguments: object) -> None:
        """Run a kernel on all tasks of a level."""
        tasks = level[0].size - 1
        small = self._place[0][-1] < PARALLEL_FROM
        in_parallel(kernel, tasks, *arguments, grain=tasks + 1 if small else 1)
