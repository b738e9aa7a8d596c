"""What a prior adds to a surface that was solved without it: a shift of each component, and a correction of its shape.

Weights of points reach from 1e-9 to 1e9, and depths to any distance, while heights are a few pixels and normals weigh
an edge by its length. One system of all of them would lose the normals in its rounding errors. The shift is therefore
computed apart, so that a single point does nothing else, and corrections follow from how much is missing, which is
computed from the points and from the normals separately.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from normalmesh.solvers.conjugate_gradients import conjugate_gradients, norm
from normalmesh.solvers.gauge import Gauge
from normalmesh.solvers.sparse_system import LinearSystem

Float = NDArray[np.float64]
Bool = NDArray[np.bool_]
Index = NDArray[np.integer]
Prepared: TypeAlias = Callable[[csr_matrix, Float, Gauge], LinearSystem]

#: Maximum number of corrections; two or three are usual.
MAX_CORRECTIONS = 12
#: Largest weight of a point, relative to the diagonal, with which the system is factorised,
HEAVY = 30.0
#: and least sum of the weights of a part.
LEAST_WEIGHT = 1e-6
#: Accuracy of the forces that hold heavier points, relative to what is missing, and maximum number of steps for them.
FORCE_TOLERANCE, MAX_FORCE_STEPS = 1e-6, 200


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
    x: Float, equations: Equations, terms: PriorTerms, freed: Bool, tolerance: float, prepared: Prepared
) -> Corrected:
    """Return unknowns that satisfy the equations and the terms of a prior.

    Parameters
    ----------
    x
        (n,) solution of the equations without a prior.
    equations, terms
    freed
        (P,) parts on which x solves other equations, unless they have several points.
    tolerance
        Largest correction that is small enough.
    prepared
        Function that prepares a system from its matrix (n, n), coordinates (n, 2) and gauge.

    Returns
    -------
    Corrected
        Parts without points are as before, parts with one point are shifted.
    """
    x = x + weighted_means(terms.misfits(x), terms.weights, terms.part, len(freed))[equations.part]
    bent = np.zeros(len(freed), np.bool_)
    bent[terms.part[terms.misfits(x) != 0]] = True
    pointed = np.bincount(terms.part, minlength=len(freed))
    bent = (bent | freed) & (pointed > 1)
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
    found = _bent(x[chosen], some, few, tolerance, prepared)
    x[chosen] = found.x
    return Corrected(x, found.error)


def _bent(x: Float, equations: Equations, terms: PriorTerms, tolerance: float, prepared: Prepared) -> Corrected:
    """Correct the unknowns of parts that all have points, until corrections are small or do not get smaller."""
    count = int(equations.part.max()) + 1
    weights, system = _system(equations, terms, prepared)
    heavy = _HeavyPoints.of(terms, weights)
    stalled, last = 0, np.inf
    for _ in range(MAX_CORRECTIONS):
        misfits = terms.misfits(x)
        missing = equations.right - equations.matrix @ x + terms.rows.T @ (weights * misfits) + heavy.pull()
        step = system.solve(missing).x
        if len(heavy.forces):
            step += heavy.held(system, step, misfits)
        # The normals leave the mean of each part open: points alone determine it, however small their weights.
        moved = weighted_means(misfits - terms.rows @ step, terms.weights, terms.part, count)
        step += moved[equations.part]
        x = x + step
        size = float(np.abs(step).max())
        stalled += size > last / 2
        if size <= tolerance or stalled > 1:
            break
        last = size
    return Corrected(x, size)


def _system(equations: Equations, terms: PriorTerms, prepared: Prepared) -> tuple[Float, LinearSystem]:
    """Return weights of the points (K,), and the system with them.

    Weights beyond :data:`HEAVY` are cut off there: with them the normals would be lost, and forces hold the points
    instead. Those of a part are raised if it would be taken for floating otherwise: corrections are then a little too
    small, but not their sum.
    """
    count = int(equations.part.max()) + 1
    stiffness = np.zeros(count)
    np.maximum.at(stiffness, equations.part, equations.matrix.diagonal())
    # A single face has no neighbours to agree with.
    stiffness[stiffness == 0] = 1.0
    weights = np.minimum(terms.weights, HEAVY * stiffness[terms.part])
    total = np.bincount(terms.part, weights, count)
    raised = np.maximum(1.0, LEAST_WEIGHT * stiffness / np.where(total > 0, total, 1.0))[terms.part]
    weighted = terms.rows.multiply((weights * raised)[:, None]).tocsr()
    matrix = csr_matrix(equations.matrix + terms.rows.T @ weighted)
    matrix.sum_duplicates()
    _, part = np.unique(equations.part, return_inverse=True)
    gauge = Gauge(part.astype(np.int32), np.zeros(int(part.max()) + 1, np.bool_))
    return weights, prepared(matrix, equations.coordinates, gauge)


@dataclass(eq=False)
class _HeavyPoints:
    """Points whose weight is larger than in the matrix, and the forces that make up for it.

    The force of a point is its misfit times the ``rest`` (H,) of its weight. Forces are unknowns beside the heights,
    because they stay moderate while weights and misfits do not.
    """

    chosen: Index
    rows: csr_matrix
    rest: Float
    forces: Float

    @classmethod
    def of(cls, terms: PriorTerms, weights: Float) -> _HeavyPoints:
        chosen = np.flatnonzero(terms.weights > weights)
        return cls(chosen, terms.rows[chosen], (terms.weights - weights)[chosen], np.zeros(len(chosen)))

    def pull(self) -> Float:
        """Return what the forces add to the right-hand side (n,)."""
        pull: Float = self.rows.T @ self.forces
        return pull

    def held(self, system: LinearSystem, step: Float, misfits: Float) -> Float:
        """Change the forces so that they hold their points, and return by how much that changes the step (n,)."""
        missed = misfits[self.chosen] - self.forces / self.rest - self.rows @ step
        change = np.zeros(len(missed))

        def yielding(force: Float) -> Float:
            return np.asarray(force / self.rest + self.rows @ system.solve(self.rows.T @ force).x)

        goal = FORCE_TOLERANCE * norm(missed)
        conjugate_gradients(yielding, np.copy, change, missed, max_steps=MAX_FORCE_STEPS, max_residual=goal)
        self.forces += change
        return system.solve(self.rows.T @ change).x
