"""Preconditioned conjugate gradients for symmetric positive semidefinite systems A x = b."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from normalmesh.array_types import Float
from normalmesh.runtime.threads import in_parallel
from normalmesh.solvers._conjugate_gradients import advance, dots, multiply, new_direction

#: Minimal number of elements of a vector that a thread works on.
VECTOR_GRAIN = 1 << 18
#: Number of pieces of a dot product, whatever the number of threads.
PIECES = 64


class Progress(NamedTuple):
    """Number of steps taken, and about the energy ⟨r, A⁻¹ r⟩ of the error before the last one; ∞ if there is none."""

    steps: int
    energy: float


def conjugate_gradients(
    multiplied: Callable[[Float], Float],
    precondition: Callable[[Float], NDArray[np.floating[Any]]],
    x: Float,
    residual: Float,
    *,
    max_steps: int,
    max_residual: float = 0.0,
) -> Progress:
    """Improve x (n,) in place until the norm of the residual is small enough.

    ``multiplied`` returns A p for a vector p (n,), ``precondition`` an approximation of A⁻¹ r for a vector r (n,) that
    may change from step to step. The residual b − A x is updated, too; it drifts from the true one by rounding.
    """
    direction, product = np.zeros(x.size), np.zeros(x.size)
    length, slope, energy = 0.0, 1.0, math.inf
    for taken in range(max_steps):
        if norm(residual) <= max_residual or (taken > 0 and slope <= 0):
            return Progress(taken, energy)
        step = precondition(residual)
        # Polak–Ribière, because the preconditioner may change from step to step.
        factor = -length * dot(step, product) / slope
        slope = energy = dot(step, residual)
        in_parallel(new_direction, x.size, direction, step, factor, grain=VECTOR_GRAIN)
        # Memory for one product at a time.
        del product, step
        product = multiplied(direction)
        curvature = dot(direction, product)
        if not curvature > 0:
            return Progress(taken, energy)
        length = slope / curvature
        in_parallel(advance, x.size, x, residual, direction, product, length, grain=VECTOR_GRAIN)
    return Progress(max_steps, energy)


def dot(a: NDArray[np.floating[Any]], b: NDArray[np.floating[Any]]) -> float:
    """Return ⟨a, b⟩ in float64, summed in pieces that do not depend on the number of threads."""
    sums = np.empty(PIECES)
    in_parallel(dots, PIECES, a, b, sums, grain=max(1, PIECES * VECTOR_GRAIN // max(a.size, 1)))
    # In order; sum() would not be.
    return float(np.cumsum(sums)[-1])


def times(matrix: csr_matrix, vector: Float) -> Float:
    """Return the product (n,) of a matrix with a vector, on several threads."""
    product = np.empty(matrix.shape[0])
    in_parallel(
        multiply, product.size, matrix.indptr, matrix.indices, matrix.data, vector, product, grain=VECTOR_GRAIN // 8
    )
    return product


def norm(vector: Float) -> float:
    """Return the Euclidean norm of a vector."""
    return math.sqrt(dot(vector, vector))
