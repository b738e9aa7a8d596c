"""What a prior adds to a surface that was solved without it: a shift of each component, and a correction of its shape.

Weights of points reach from 1e-9 to 1e9, and depths to any distance, while heights are a few pixels and normals weigh
an edge by its length. One system of all of them would lose the normals in its rounding errors. The shift is therefore
computed apart, so that a single point does nothing else, and corrections follow from how much is missing, which is
computed from the points and from the normals separately.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.sparse import csr_matrix

from normalmesh.array_types import Float, Integer
from normalmesh.integration.prior_terms import PriorTerms, weighted_means
from normalmesh.runtime.workspace import Workspace
from normalmesh.solvers.conjugate_gradients import conjugate_gradients, norm
from normalmesh.solvers.gauge import Gauge
from normalmesh.solvers.sparse_system import PreparedSystem

#: Maximum number of corrections; two or three are usual.
MAX_CORRECTIONS = 12
#: Largest weight of a point, relative to the diagonal, with which the system is factorised,
HEAVY = 30.0
#: and least sum of the weights of a part.
LEAST_WEIGHT = 1e-6
#: Accuracy of the forces that hold heavier points, relative to what is missing, and maximum number of steps for them.
FORCE_TOLERANCE, MAX_FORCE_STEPS = 1e-6, 200


#: Returns the unknowns (n,) for a right-hand side (n,).
Solve = Callable[[Float], Float]


class Equations(Protocol):
    """The equations ``matrix x = right`` of the normals; the rows of the matrix sum to zero."""

    @property
    def part(self) -> Integer:
        """Connected part (n,) of each unknown."""
        ...

    def diagonal(self) -> Float:
        """Return the diagonal (n,) of the matrix."""
        ...

    def missing(self, x: Float) -> Float:
        """Return ``right − matrix x`` (n,)."""
        ...

    def restricted(self, chosen: Integer) -> Equations:
        """Return the equations of some unknowns (k,), ascending, which are all of some parts."""
        ...

    def with_terms(self, rows: csr_matrix, weights: Float) -> Solve:
        """Return what solves the system with terms ``Σ weight (row · x)²``, which each part has some of."""
        ...


@dataclass(frozen=True, eq=False)
class MatrixEquations:
    """Equations whose matrix is in memory."""

    matrix: csr_matrix  # (n, n)
    right: Float  # (n,)
    part: Integer  # (n,)
    coordinates: Float  # (n, 2): positions of the unknowns on the screen
    workspace: Workspace  # memory of the solver

    def diagonal(self) -> Float:
        return self.matrix.diagonal()

    def missing(self, x: Float) -> Float:
        return self.right - self.matrix @ x

    def restricted(self, chosen: Integer) -> MatrixEquations:
        matrix = self.matrix[chosen][:, chosen]
        return MatrixEquations(matrix, self.right[chosen], self.part[chosen], self.coordinates[chosen], self.workspace)

    def with_terms(self, rows: csr_matrix, weights: Float) -> Solve:
        matrix = csr_matrix(self.matrix + rows.T @ rows.multiply(weights[:, None]).tocsr())
        matrix.sum_duplicates()
        _, part = np.unique(self.part, return_inverse=True)
        gauge = Gauge(part.astype(np.int32), np.zeros(int(part.max()) + 1, np.bool_))
        system = PreparedSystem(matrix, coordinates=self.coordinates, gauge=gauge, workspace=self.workspace)
        return lambda right: system.solve(right).x


@dataclass(frozen=True, eq=False)
class Corrected:
    """Unknowns with a prior."""

    x: Float  # (n,)
    error: float  # largest change of one of them by the last correction
    levels: Float  # (C,): what has to be added to the unknowns of each component that has points


def corrected(
    x: Float, equations: Equations, terms: PriorTerms, component: Integer, freed: bool, tolerance: float
) -> Corrected:
    """Return unknowns that satisfy the equations and the terms of a prior, relative to a level of each component.

    Parameters
    ----------
    x
        (n,) solution of the equations without a prior.
    equations, terms
    component
        (M,) component of each face of the mesh before it was cut.
    freed
        Whether x solves other equations. Parts that have several points satisfy these ones.
    tolerance
        Largest correction that is small enough.

    Returns
    -------
    Corrected
        Parts without points are as before, parts with one point are shifted.
    """
    of_point = component[terms.faces]
    levels = weighted_means(terms.misfits(x), terms.weights, of_point, int(component.max()) + 1)
    terms = replace(terms, values=terms.values - levels[of_point])
    part, count = terms.among(equations.part), int(equations.part.max()) + 1
    x = x + weighted_means(terms.misfits(x), terms.weights, part, count)[equations.part]
    bent = np.full(count, freed)
    bent[part[terms.misfits(x) != 0]] = True
    bent &= np.bincount(part, minlength=count) > 1
    if not bent.any():
        return Corrected(x, 0.0, levels)
    if bent.all():
        x, error = _bent(x, equations, terms, tolerance)
        return Corrected(x, error, levels)
    chosen, points = np.flatnonzero(bent[equations.part]), np.flatnonzero(bent[part])
    rows = terms.rows[points][:, chosen]
    few = PriorTerms(terms.faces[points], rows, terms.values[points], terms.weights[points])
    x[chosen], error = _bent(x[chosen], equations.restricted(chosen), few, tolerance)
    return Corrected(x, error, levels)


def _bent(x: Float, equations: Equations, terms: PriorTerms, tolerance: float) -> tuple[Float, float]:
    """Correct the unknowns of parts that all have points, until corrections are small or do not get smaller.

    Return them, and the largest change by the last correction.
    """
    part, count = terms.among(equations.part), int(equations.part.max()) + 1
    weights, solve = _prepared(equations, terms)
    heavy = _HeavyPoints.of(terms, weights)
    stalled, last = 0, np.inf
    for _ in range(MAX_CORRECTIONS):
        misfits = terms.misfits(x)
        step = solve(equations.missing(x) + terms.rows.T @ (weights * misfits) + heavy.pull())
        if len(heavy.forces):
            step += heavy.held(solve, step, misfits)
        # The normals leave the mean of each part open: points alone determine it, however small their weights.
        moved = weighted_means(misfits - terms.rows @ step, terms.weights, part, count)
        step += moved[equations.part]
        x = x + step
        size = float(np.abs(step).max())
        stalled += size > last / 2
        if size <= tolerance or stalled > 1:
            break
        last = size
    return x, size


def _prepared(equations: Equations, terms: PriorTerms) -> tuple[Float, Solve]:
    """Return weights of the points (K,), and what solves the system with them.

    Weights beyond :data:`HEAVY` are cut off there: with them the normals would be lost, and forces hold the points
    instead. Those of a part are raised if it would be taken for floating otherwise: corrections are then a little too
    small, but not their sum.
    """
    part, count = terms.among(equations.part), int(equations.part.max()) + 1
    stiffness = np.zeros(count)
    np.maximum.at(stiffness, equations.part, equations.diagonal())
    # A single face has no neighbours to agree with.
    stiffness[stiffness == 0] = 1.0
    weights = np.minimum(terms.weights, HEAVY * stiffness[part])
    total = np.bincount(part, weights, count)
    raised = np.maximum(1.0, LEAST_WEIGHT * stiffness / np.where(total > 0, total, 1.0))[part]
    return weights, equations.with_terms(terms.rows, weights * raised)


@dataclass(eq=False)
class _HeavyPoints:
    """Points whose weight is larger than in the matrix, and the forces that make up for it.

    The force of a point is its misfit times the ``rest`` (H,) of its weight. Forces are unknowns beside the heights,
    because they stay moderate while weights and misfits do not.
    """

    chosen: Integer
    rows: csr_matrix
    rest: Float
    forces: Float

    @classmethod
    def of(cls, terms: PriorTerms, weights: Float) -> _HeavyPoints:
        chosen = np.flatnonzero(terms.weights > weights)
        return cls(chosen, terms.rows[chosen], (terms.weights - weights)[chosen], np.zeros(len(chosen)))

    def pull(self) -> Float:
        """Return what the forces add to the right-hand side (n,)."""
        return self.rows.T @ self.forces

    def held(self, solve: Solve, step: Float, misfits: Float) -> Float:
        """Change the forces so that they hold their points, and return by how much that changes the step (n,)."""
        missed = misfits[self.chosen] - self.forces / self.rest - self.rows @ step
        change = np.zeros(len(missed))

        def yielding(force: Float) -> Float:
            return np.asarray(force / self.rest + self.rows @ solve(self.rows.T @ force))

        goal = FORCE_TOLERANCE * norm(missed)
        conjugate_gradients(yielding, np.copy, change, missed, max_steps=MAX_FORCE_STEPS, max_residual=goal)
        self.forces += change
        return solve(self.rows.T @ change)
