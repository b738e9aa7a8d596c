"""Diagonals of inverses of sparse symmetric matrices, from their Cholesky factors.

Of an inverse X = A⁻¹, all numbers in the pattern of the factor A = UᵀU follow from each other, front by front from the
last one to the first (Takahashi, Fagan and Chin 1973; Erisman and Tinney 1975), at a few times the cost of the factor:
``X₁₂ = −W X₂₂`` and ``X₁₁ = U₁₁⁻¹ U₁₁⁻ᵀ + W X₂₂ Wᵀ`` with ``W = U₁₁⁻¹ U₁₂``, where 1 are the own rows of a front and 2
is its border.

Noise with the covariance B on the right-hand side gives the solution the covariance X B X, which is the derivative of
−(A + t B)⁻¹ at t = 0. If B has the pattern of A, two inverses give its diagonal.
"""

from __future__ import annotations

from scipy.sparse import csr_matrix

from normalmesh.array_types import Float
from normalmesh.solvers.cholesky import Cholesky

#: Step t of the derivative, relative to the largest for which A − t B is sure to be positive definite. Its square is
#: the relative error of the derivative; rounding errors grow with its reciprocal.
STEP = 1e-4


def sandwich_diagonal(cholesky: Cholesky, matrix: csr_matrix, extra: Float, middle: csr_matrix, bound: float) -> Float:
    """Return the diagonal (n,) of A⁻¹ B A⁻¹, where the elimination of the pattern of A keeps no factor of A.

    A is the matrix (n, n) plus ``extra`` (n,) on its diagonal, positive definite. B, the ``middle``, is positive
    semidefinite with the same pattern, and xᵀB x / xᵀA x does not exceed the ``bound`` for any x.
    """
    step = STEP / bound
    diagonals = []
    for sign in (-1, 1):
        shifted = csr_matrix((matrix.data + sign * step * middle.data, matrix.indices, matrix.indptr), matrix.shape)
        cholesky.factorise(shifted, extra)
        diagonals.append(cholesky.inverse_diagonal())
    return (diagonals[0] - diagonals[1]) / (2 * step)
