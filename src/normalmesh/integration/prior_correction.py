"""What a prior adds to a surface that was solved without it: a shift of each component, and a correction of its shape.

Weights of points reach from 1e-9 to 1e9, and depths to any distance, while heights are a few pixels and normals weigh
an edge by its length. One system of all of them would lose the normals in its rounding errors. The shift is therefore
computed apart, so that a single point does nothing else, and corrections follow from how much is missing, which is
computed from the points and from the normals separately.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from normalmesh.runtime.workspace import Workspace
from normalmesh.solvers.gauge import Gauge
from normalmesh.solvers.sparse_system import PreparedSystem

Float = NDArray[np.float64]
Bool = NDArray[np.bool_]
Index = NDArray[np.integer]

#: Maximum number of corrections; direct solvers need two, seldom three.
MAX_CORRECTIONS = 12
#: Least sum of the weights of a part, relative to the diagonal, with which its system is factorised.
LEAST_WEIGHT = 1e-6


@dataclass(frozen=True, eq=False)
class PriorTerms:
    """The terms ``Σ weight (row · x − value)²`` of a prior.

    Attributes
    ----------
    rows : (K, n) sparse
        Rows that sum to one.
    values : (K,)
    weights : (K,)
    part : (K,) int
        Part of the system that each point lies on.
    """

    rows: csr_matrix
    values: Float
    weights: Float
    part: Index

    def misfits(self, x: Float) -> Float:
        """Return how much the surface is below the points (K,)."""
        misfits: Float = self.values - self.rows @ x
        return misfits

    def lowered(self, levels: Float) -> PriorTerms:
        """Return the terms with values that are lower by ``levels`` (K,)."""
        return PriorTerms(self.rows, self.values - levels, self.weights, self.part)


@dataclass(frozen=True, eq=False)
class Equations:
    """The equations ``matrix x = right`` of the normals.

    Attributes
    ----------
    matrix : (n, n) sparse
        Its rows sum to zero.
    right : (n,)
    part : (n,) int
        Connected part of each unknown.
    coordinates : (n, 2)
        Positions of the unknowns on the screen.
    """

    matrix: csr_matrix
    right: Float
    part: Index
    coordinates: Float


@dataclass(frozen=True)
class Corrected:
    """Unknowns (n,) with a prior, and the largest change of one of them by the last correction."""

    x: Float
    error: float


def weighted_means(values: Float, weights: Float, group: Index, count: int) -> Float:
    """Return the weighted mean (G,) of the values (K,) of each group (K,), 0 for those without any.

    The mean of a single value is that value exactly.
    """
    reference = np.zeros(count)
    reference[group] = values
    total = np.bincount(group, weights, count)
    apart = np.bincount(group, weights * (values - reference[group]), count)
    means: Float = reference + apart / np.where(total > 0, total, 1.0)
    return means


def corrected(
    x: Float, equations: Equations, terms: PriorTerms, freed: Bool, tolerance: float, workspace: Workspace
) -> Corrected:
    """Return unknowns that satisfy the equations and the terms of a prior.

    Parameters
    ----------
    x
        (n,) solution of the equations without a prior.
    equations, terms
    freed
        (P,) parts on which x solves other equations.
    tolerance
        Largest correction that is small enough.
    workspace
        Memory of the solver.

    Returns
    -------
    Corrected
        Parts without points are as before. Parts with one point, unless they are freed, are shifted.
    """
    x = x + weighted_means(terms.misfits(x), terms.weights, terms.part, len(freed))[equations.part]
    bent = np.zeros(len(freed), np.bool_)
    bent[terms.part[terms.misfits(x) != 0]] = True
    pointed = np.bincount(terms.part, minlength=len(freed))
    bent = (bent & (pointed > 1)) | (freed & (pointed > 0))
    if not bent.any():
        return Corrected(x, 0.0)
    chosen, points = np.flatnonzero(bent[equations.part]), np.flatnonzero(bent[terms.part])
    some = Equations(
        equations.matrix[chosen][:, chosen],
        equations.right[chosen],
        equations.part[chosen],
        equations.coordinates[chosen],
    )
    rows = terms.rows[points][:, chosen]
    few = PriorTerms(rows, terms.values[points], terms.weights[points], terms.part[points])
    found = _bent(x[chosen], some, few, tolerance, workspace)
    x[chosen] = found.x
    return Corrected(x, found.error)


def _bent(x: Float, equations: Equations, terms: PriorTerms, tolerance: float, workspace: Workspace) -> Corrected:
    """Correct the unknowns of parts that all have points, until corrections are small or do not get smaller."""
    system = _system(equations, terms, workspace)
    count, last = int(equations.part.max()) + 1, np.inf
    for _ in range(MAX_CORRECTIONS):
        missing = equations.right - equations.matrix @ x + terms.rows.T @ (terms.weights * terms.misfits(x))
        before = x
        x = x + system.solve(missing).x
        # The normals leave the mean of each part open: points alone determine it, however small their weights.
        x += weighted_means(terms.misfits(x), terms.weights, terms.part, count)[equations.part]
        size = float(np.abs(x - before).max())
        if size <= tolerance or size > last / 2:
            break
        last = size
    return Corrected(x, size)


def _system(equations: Equations, terms: PriorTerms, workspace: Workspace) -> PreparedSystem:
    """Return the system whose solutions are the corrections.

    The weights of a part are raised where they are so small that the part would be taken for floating. That makes
    corrections a little too small, but not their sum.
    """
    count = int(equations.part.max()) + 1
    stiffness = np.zeros(count)
    np.maximum.at(stiffness, equations.part, equations.matrix.diagonal())
    total = np.bincount(terms.part, terms.weights, count)
    factor = np.maximum(1.0, LEAST_WEIGHT * stiffness / np.where(total > 0, total, 1.0))
    weighted = terms.rows.multiply((terms.weights * factor[terms.part])[:, None])
    matrix = csr_matrix(equations.matrix + terms.rows.T @ weighted.tocsr())
    matrix.sum_duplicates()
    _, part = np.unique(equations.part, return_inverse=True)
    gauge = Gauge(part.astype(np.int32), np.zeros(int(part.max()) + 1, np.bool_))
    return PreparedSystem(matrix, coordinates=equations.coordinates, gauge=gauge, workspace=workspace)
