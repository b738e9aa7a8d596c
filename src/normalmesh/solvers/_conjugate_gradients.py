"""Kernels of :mod:`normalmesh.solvers.conjugate_gradients` and of gauges. All are range kernels on vectors."""

import numpy as np

from normalmesh.runtime.kernels import kernel


@kernel
def dots(first, last, a, b, sums):
    """Fill ``sums`` (P,) with ⟨a, b⟩ in float64 over P pieces of the two vectors."""
    for piece in range(first, last):
        total = 0.0
        for v in range(piece * a.size // sums.size, (piece + 1) * a.size // sums.size):
            total += np.float64(a[v]) * np.float64(b[v])
        sums[piece] = total


@kernel
def new_direction(first, last, direction, step, factor):
    """Set ``direction`` to step + factor · direction."""
    for v in range(first, last):
        direction[v] = step[v] + factor * direction[v]


@kernel
def advance(first, last, x, residual, direction, product, length):
    """Add length · direction to x, and subtract length · product from the residual."""
    for v in range(first, last):
        x[v] += length * direction[v]
        residual[v] -= length * product[v]


@kernel
def multiply(first, last, indptr, indices, values, x, product):
    """Fill rows of the product of a CSR matrix with x."""
    for row in range(first, last):
        total = 0.0
        for e in range(indptr[row], indptr[row + 1]):
            total += values[e] * x[indices[e]]
        product[row] = total


@kernel
def component_sums(first, last, component, values, sums):
    """Fill ``sums`` (P, C), zero before, with the sums of values (n,) over components, in P pieces of the vectors."""
    pieces = sums.shape[0]
    for piece in range(first, last):
        for v in range(piece * values.size // pieces, (piece + 1) * values.size // pieces):
            sums[piece, component[v]] += values[v]
