"""Gauge: which parts of a system have a free constant, and how it is fixed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from normalmesh.mesh.components import components

Float = NDArray[np.float64]

#: Row sums below this share of the diagonal are rounding errors.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Gauge:
    """Connected components of a symmetric matrix; those whose rows all sum to zero float.

    Attributes
    ----------
    component : (n,) int
        Component of each unknown: connected by nonzero entries.
    floating : (C,) bool
        The component determines its unknowns only up to a constant.
    """

    component: NDArray[np.int32]
    floating: NDArray[np.bool_]

    @classmethod
    def of(cls, matrix: csr_matrix) -> Gauge:
        """Gauge of a matrix (n, n)."""
        component = components(_connected(matrix), matrix.shape[0])
        row_sums = np.asarray(matrix.sum(axis=1)).ravel()
        tied = np.abs(row_sums) > _ROUNDING * np.abs(matrix.diagonal())
        return cls(component, np.bincount(component, tied) == 0)

    def pins(self, diagonal: Float, last: NDArray[np.integer]) -> Float:
        """What to add to the diagonal (n,) so that floating components become definite.

        One unknown of each gets its own diagonal once more. For a right side that sums to zero the solution is the
        one in which that unknown is zero, exactly. It is the one eliminated last, where no error can grow from it.
        """
        order = np.empty(len(last), np.int64)
        order[last] = np.arange(len(last))
        pinned = np.empty(len(self.floating), np.int64)
        # Of all values for one place the last one stays.
        pinned[self.component[order]] = order
        pinned = pinned[self.floating]
        extra = np.zeros(diagonal.size)
        # A row of zeros, an unknown that nothing determines, gets one.
        extra[pinned] = np.where(diagonal[pinned] > 0, diagonal[pinned], 1.0)
        return extra

    def centred(self, values: Float) -> Float:
        """Values (n,) less their mean over each floating component."""
        if not self.floating.any():
            return values
        count = np.maximum(np.bincount(self.component), 1)
        mean = np.where(self.floating, np.bincount(self.component, values) / count, 0.0)
        return values - mean[self.component]


def _connected(matrix: csr_matrix) -> NDArray[np.integer]:
    """Pairs (E, 2) of rows that an entry connects; a stored zero connects nothing."""
    row = np.repeat(np.arange(matrix.shape[0], dtype=np.int32), np.diff(matrix.indptr))
    connects = (matrix.indices < row) & (matrix.data != 0)
    return np.stack([row[connects], matrix.indices[connects]], axis=1)
