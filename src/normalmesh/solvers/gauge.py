"""Gauge: the free constants of a symmetric system, and how they are fixed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix

from normalmesh.array_types import Bool, Float, Int, Int32, Integer
from normalmesh.mesh.components import components
from normalmesh.runtime.threads import in_parallel
from normalmesh.solvers._conjugate_gradients import component_sums
from normalmesh.solvers.conjugate_gradients import PIECES, VECTOR_GRAIN

#: Row sums below this share of the diagonal are taken for rounding errors.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Gauge:
    """Connected components of a symmetric matrix. Those whose rows all sum to zero are floating."""

    component: Int32  # (n,) that of each unknown; nonzero entries connect unknowns
    floating: Bool  # (C,) components whose unknowns are determined only up to a constant

    @classmethod
    def of(cls, matrix: csr_matrix) -> Gauge:
        """Return the gauge of a matrix (n, n)."""
        component = components(_connected(matrix), matrix.shape[0])
        row_sums = np.asarray(matrix.sum(axis=1)).ravel()
        tied = np.abs(row_sums) > _ROUNDING * np.abs(matrix.diagonal())
        return cls(component, np.bincount(component, tied) == 0)

    def pins(self, diagonal: Float, last: Integer) -> Float:
        """Return the numbers (n,) to add to the diagonal (n,) so that floating components become definite.

        The diagonal of one unknown of each component is doubled. For a right-hand side that sums to zero, this gives
        exactly the solution in which that unknown is zero. It is the unknown that is eliminated last (``last`` are the
        positions in the elimination order), where no error can grow from it.
        """
        order = np.empty(len(last), np.int64)
        order[last] = np.arange(len(last))
        pinned = np.empty(len(self.floating), np.int64)
        # If several values are assigned to one place, the last one is kept.
        pinned[self.component[order]] = order
        pinned = pinned[self.floating]
        extra = np.zeros(diagonal.size)
        # A row of zeros, whose unknown is not determined, gets one.
        extra[pinned] = np.where(diagonal[pinned] > 0, diagonal[pinned], 1.0)
        return extra

    @cached_property
    def _sizes(self) -> Int:
        return np.maximum(np.bincount(self.component), 1)

    def centred(self, values: Float) -> Float:
        """Return values (n,) minus their mean over each floating component."""
        if not self.floating.any():
            return values
        mean = np.where(self.floating, self._sums(values) / self._sizes, 0.0)
        return values - mean[self.component]

    def _sums(self, values: Float) -> Float:
        """Return the sums (C,) of values (n,) over each component, in pieces that do not depend on threads."""
        count = len(self.floating)
        if count * PIECES > values.size:
            return np.bincount(self.component, values, count).astype(np.float64)
        pieces = np.zeros((PIECES, count))
        in_parallel(
            component_sums, PIECES, self.component, values, pieces, grain=max(1, PIECES * VECTOR_GRAIN // values.size)
        )
        # In order; sum() would not be.
        return np.cumsum(pieces, axis=0)[-1]


def _connected(matrix: csr_matrix) -> Integer:
    """Return the pairs (E, 2) of rows that an entry connects; stored zeros connect nothing."""
    row = np.repeat(np.arange(matrix.shape[0], dtype=np.int32), np.diff(matrix.indptr))
    connects = (matrix.indices < row) & (matrix.data != 0)
    return np.stack([row[connects], matrix.indices[connects]], axis=1)
