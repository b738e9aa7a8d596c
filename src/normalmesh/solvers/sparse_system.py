"""Interface to the sparse solvers: symmetric positive (semi)definite systems of meshes and their dual graphs.

``"cholesky"``, the default, is a direct factorisation by nested dissection. ``"multigrid"`` needs memory in proportion
to the system, and is used if a factor would not fit into memory. Both are preconditioners of the same conjugate
gradients, which with the factor of the same matrix are iterative refinement and stop after one or two steps. With a
factor in float32, which takes half the memory, they stop after three.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError
from normalmesh.runtime.memory import installed_memory
from normalmesh.runtime.workspace import Workspace
from normalmesh.solvers.cholesky import Cholesky
from normalmesh.solvers.conjugate_gradients import conjugate_gradients, norm, times
from normalmesh.solvers.gauge import Gauge
from normalmesh.solvers.multigrid import Graph, Multigrid

#: Largest ‖A x − b‖ / ‖b‖ of a solution.
TOLERANCE = 1e-8

#: Assumed memory of the machine in bytes, if it is unknown.
UNKNOWN_MEMORY = 8 << 30

#: Of ‖|A| |x|‖: no arithmetic in float64 gets the residual lower.
ROUNDING = 1e-14

_SHARPER = 0.05  # of the residual: what may be left of it by the step that estimates the error


class _Factor:
    """The Cholesky factor of a matrix, an approximate inverse for conjugate gradients of at most ``max_steps``."""

    method, max_steps = "cholesky", 20

    def __init__(
        self, matrix: csr_matrix, coordinates: Float | None, workspace: Workspace | None, single: bool
    ) -> None:
        self.cholesky = Cholesky(matrix, coordinates, workspace, np.float32 if single else np.float64)

    def prepare(self, matrix: csr_matrix, gauge: Gauge) -> None:
        """Prepare for a matrix with these free constants."""
        extra = gauge.pins(matrix.diagonal(), self.cholesky.last)
        try:
            self.cholesky.factorise(matrix, extra)
        except NormalMeshError:
            if not self.sharpen():
                raise
            self.cholesky.factorise(matrix, extra)

    def apply(self, residual: Float) -> Float:
        """Return an approximation of A⁻¹ times the residual (n,)."""
        return self.cholesky.solve(residual)

    def sharpen(self) -> bool:
        """Let the next preparation be more exact; return whether it can be."""
        was_single = self.cholesky.kind is np.float32
        self.cholesky.kind = np.float64
        return was_single


class _Hierarchy:
    """One multigrid cycle in float32, with the interface of :class:`_Factor`."""

    method, max_steps = "multigrid", 500

    def prepare(self, matrix: csr_matrix, gauge: Gauge) -> None:
        self.multigrid = Multigrid(Graph.of(matrix))

    def apply(self, residual: Float) -> Float:
        # The scale is taken out first, because the range of float32 is small.
        scale = float(np.abs(residual).max()) or 1.0
        return scale * self.multigrid.cycle((residual / scale).astype(np.float32)).astype(np.float64)

    def sharpen(self) -> bool:
        return False


@dataclass(frozen=True)
class Solution:
    """Solution of a system, and how it was found."""

    x: Float  # (n,)
    method: str  # "cholesky" or "multigrid"
    iterations: int  # steps of preconditioned conjugate gradients
    residual: float  # ‖A x − b‖ / ‖b‖, computed from x: at most 1e-8, or 1e-14 of ‖|A| |x|‖, the limit of float64
    error: float  # estimated for the worst unknown; NaN unless ``max_error`` was given
    free_constants: int  # components with one; the mean of x over each is zero


class PreparedSystem:
    """A matrix that has been analysed and factorised: it can be solved for many right-hand sides.

    The free constant of each connected component whose rows sum to zero is chosen so that its mean is zero. A row of
    zeros is such a component, too. The caller need not fix any unknown.

    The matrix (n, n) is CSR in float64 without duplicates, symmetric, and positive definite except for the free
    constants, which are found unless the ``gauge`` is given. ``coordinates`` (n, 2) are positions of the unknowns in
    the plane, in any unit; without them the factor is about three times as large. ``workspace`` is memory of earlier
    systems, which are no longer used. With ``single``, a factor in float32 is tried first: it saves half the memory,
    and pays if there are few right-hand sides. ``method`` is ``"auto"``, ``"cholesky"`` or ``"multigrid"``.
    """

    def __init__(
        self,
        matrix: csr_matrix,
        *,
        coordinates: Float | None = None,
        method: str = "auto",
        gauge: Gauge | None = None,
        workspace: Workspace | None = None,
        single: bool = False,
    ) -> None:
        self._matrix = matrix
        self._gauge = gauge or Gauge.of(matrix)
        self._preconditioner: _Factor | _Hierarchy = _Hierarchy()
        if method != "multigrid":
            factor = _Factor(matrix, coordinates, workspace, single)
            if method == "cholesky" or factor.cholesky.bytes <= (installed_memory() or UNKNOWN_MEMORY) / 2:
                self._preconditioner = factor
        self.method = self._preconditioner.method
        self._preconditioner.prepare(self._matrix, self._gauge)

    def solve(self, right_side: Float, *, max_error: float = math.inf) -> Solution:
        """Solve for a right-hand side (n,).

        The residual is a sum over all unknowns, in which small components count for nothing. ``max_error`` asks for a
        small error of each unknown, as far as rounding allows: ``Solution.error`` has what was reached.

        Raises
        ------
        NormalMeshError
            The right-hand side contradicts the matrix, or the residual of 1e-8 is not reached.
        """
        # Rounding errors of its sums over floating components are taken out.
        b = self._gauge.centred(right_side)
        if not norm(right_side - b) <= TOLERANCE * norm(right_side):
            raise NormalMeshError(
                "the system has no solution: the right side must be finite and sum to zero over each connected "
                "component whose rows of the matrix sum to zero"
            )
        x = np.zeros(b.size)
        steps, residual, is_solved = self._improve(x, b)
        if not is_solved and self._preconditioner.sharpen():
            self._preconditioner.prepare(self._matrix, self._gauge)
            steps, residual, is_solved = self._improve(x, b)
        if not is_solved:
            raise NormalMeshError(
                f"the system could not be solved: residual {residual:.1e} of the right side after {steps} steps of "
                f"{self.method}, {TOLERANCE:.0e} was asked for; is the matrix positive definite?"
            )
        error = math.nan
        if not math.isinf(max_error):
            more, residual, error = self._sharpen(x, b, max_error)
            steps += more
        free = int(np.count_nonzero(self._gauge.floating))
        return Solution(self._gauge.centred(x), self.method, steps, residual, error, free)

    def _improve(self, x: Float, b: Float) -> tuple[int, float, bool]:
        """Improve x in place; return steps, residual relative to ‖b‖, and whether x is as exact as it has to be.

        The residual is computed from x: within the tolerance, or as low as rounding allows.
        """
        size = norm(b)
        if size == 0:
            x[:] = 0
            return 0, 0.0, True
        steps = self._descend(x, b - times(self._matrix, x), 0.5 * TOLERANCE * size)
        error = norm(b - times(self._matrix, x))
        goal = TOLERANCE * size
        if goal < error < np.inf:
            goal = max(goal, ROUNDING * norm(abs(self._matrix) @ np.abs(x)))
        return steps, error / size, error <= goal

    def _sharpen(self, x: Float, b: Float, max_error: float) -> tuple[int, float, float]:
        """Improve x in place until its error is small enough or does not get smaller; return steps, residual, error."""
        steps, last, scale = 0, math.inf, norm(b) or 1.0
        while True:
            residual = self._gauge.centred(b - times(self._matrix, x))
            size, step = norm(residual), np.zeros(x.size)
            more = self._descend(step, residual, _SHARPER * size)
            # Constants of floating components are free.
            step = self._gauge.centred(step)
            error = float(np.abs(step).max())
            if error <= max_error or not error < last / 2:
                return steps, size / scale, error
            x += step
            steps, last = steps + more, error
            if self.method == "cholesky" and _SHARPER * error <= max_error:
                # A factor lowers the error of each unknown as much as the residual.
                return steps, norm(residual) / scale, _SHARPER * error

    def _descend(self, x: Float, residual: Float, max_residual: float) -> int:
        """Improve x and its residual in place by conjugate gradients; return the number of steps."""
        return conjugate_gradients(
            lambda p: times(self._matrix, p),
            self._preconditioner.apply,
            x,
            residual,
            max_steps=self._preconditioner.max_steps,
            max_residual=max_residual,
        ).steps
