"""Cholesky factorisation of sparse symmetric matrices whose graph lies in the plane.

Nested dissection by coordinates, then dense fronts (the multifrontal method): all of it permissively licensed Numba.
The analysis of a pattern is done once and serves all matrices of that pattern.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from normalmesh._cholesky import assembly, assign_tasks, borders, factorise, layout, postorder, substitute
from normalmesh._dissection import dissect, landmark_coordinates
from normalmesh.errors import NormalMeshError
from normalmesh.threads import PARALLEL_FROM, in_parallel

Float = NDArray[np.float64]

#: Subtrees with at most this share of the work are done in parallel. Fixed, whatever the number of threads.
_SHARE = 1 / 24


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
        task, self._tasks = assign_tasks(start, stop, border, parent, post, _SHARE)
        panel, update, workspace = layout(start, stop, border, parent, post, task, self._tasks)
        self._entries, slot, until = assembly(indptr, indices, order, position, start, stop, border, rows, child, sibling)
        self._rows = rows
        self._tree = (order, start, stop, border, slot, until, child, sibling)
        self._place = (panel, update)
        self._room = int(workspace)
        self._workspace: Float | None = None
        pointers = np.concatenate([[0], np.cumsum(np.bincount(task, minlength=self._tasks + 1))])
        self._schedule = (pointers, post[np.argsort(task[post], kind="stable")])
        self._factor: Float | None = None
        self.last: NDArray[np.int32] = position
        self.bytes = 8 * (int(panel[-1]) + self._room)

    def factorise(self, matrix: csr_matrix, extra: Float) -> None:
        """Factorise the matrix, of the pattern given first, plus ``extra`` (n,) on its diagonal.

        Raises
        ------
        NormalMeshError
            The sum is not positive definite.
        """
        if self._factor is None:
            self._factor = np.empty(int(self._place[0][-1]))
        if self._workspace is None:
            self._workspace = np.empty(self._room)
        parts = (matrix.data, *self._entries)
        failed = np.full(self._tasks + 1, -1)
        work = (parts, extra, self._tree, self._place, self._schedule, self._factor, self._workspace, failed)
        small = self._factor.size < PARALLEL_FROM
        in_parallel(factorise, self._tasks, *work, grain=self._tasks + 1 if small else 1)
        if failed.max() < 0:
            factorise(self._tasks, self._tasks + 1, *work)
        if failed.max() >= 0:
            self._factor = None
            unknown = self._tree[0][failed.max()]
            raise NormalMeshError(
                f"the matrix is not positive definite: the pivot of unknown {unknown} is not positive"
            )

    def solve(self, right_side: Float) -> Float:
        """x (n,) with A x = right_side (n,), up to rounding."""
        return substitute(self._tree, self._rows, self._place[0], self._factor, right_side)
