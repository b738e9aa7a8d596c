"""The system of equations on the pixel grid, and its solver.

Each foreground pixel is a plane through its centre, and each edge connects two adjacent pixels. The storage of the
weights of edges is described in :mod:`normalmesh.integration._pixel_integration`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.errors import NormalMeshError
from normalmesh.integration._pixel_integration import (
    advance,
    aggregate_pixels,
    apply,
    coarse_graph,
    relax,
    restrict_residual,
    slopes,
    turn,
    two_dots,
)
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import threads_for
from normalmesh.solvers._multigrid import prolong
from normalmesh.solvers.multigrid import Graph, Multigrid

Float = NDArray[np.float64]
Float32 = NDArray[np.float32]
Bool = NDArray[np.bool_]

_TOLERANCE = 1e-8  # of the residual, relative to the right side
_STEPS = 300  # of conjugate gradients; ordinary masks need ten, the worst known forty


@dataclass(frozen=True, eq=False)
class PixelPlanes:
    """The planes of all pixels in the bounding box of the mask.

    Attributes
    ----------
    window
        Rows and columns of the bounding box in the map.
    mask : (h, w) bool
    frame : (5, 3)
        Of the camera, with the window's corner as origin of the screen.
    half_steps : (h, w, 4)
        Change of the unknown over half a step, see :func:`normalmesh.integration._pixel_integration.slopes`.
    mobility : (h, w)
        ⟨n, r⟩².
    """

    window: tuple[slice, slice]
    mask: Bool
    frame: Float
    half_steps: Float
    mobility: Float

    @classmethod
    def of(cls, normal_map: NormalMap) -> PixelPlanes:
        rows, columns = (np.flatnonzero(normal_map.mask.any(axis=axis)) for axis in (1, 0))
        window = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
        mask = np.ascontiguousarray(normal_map.mask[window])
        frame = normal_map.camera.shifted_frame(columns[0], rows[0])
        half_steps, mobility = np.zeros((*mask.shape, 4)), np.zeros(mask.shape)
        with threads_for(mask.size):
            normals = np.ascontiguousarray(normal_map.normals[window])
            slopes(normals, mask, frame, normal_map.camera.is_central, half_steps, mobility)
        return cls(window, mask, frame, half_steps, mobility)


class GridCycle:
    """The multigrid cycle whose finest level is the pixel grid."""

    def __init__(self, mask: Bool, right: Float32, down: Float32) -> None:
        self.right, self.down = right, down
        self.aggregate, cells = aggregate_pixels(mask, right, down)
        count = len(cells)
        indptr, indices, weights = coarse_graph(self.aggregate, cells, right, down)
        graph = Graph(indptr, indices, weights, excess=np.zeros(count, np.float32))
        self.coarser = Multigrid(graph, cells, finest=mask.size)
        self.coarse = np.empty(count, np.float32)

    def __call__(self, rest: Float, step: Float32) -> None:
        """Fill ``step`` (H, W) with an approximation of A⁻¹ rest."""
        step[:] = 0
        relax(self.right, self.down, rest, step, 0)
        relax(self.right, self.down, rest, step, 1)
        restrict_residual(self.right, self.down, rest, step, self.aggregate, self.coarse)
        correction = self.coarser.solve(self.coarse)
        prolong(self.aggregate.ravel(), correction, self.coarser.factor(0), step.ravel())
        relax(self.right, self.down, rest, step, 1)
        relax(self.right, self.down, rest, step, 0)

    def residual(self, b: Float, z: Float) -> Float:
        """Return b − A z."""
        product = np.empty(b.shape)
        apply(self.right, self.down, z, product)
        return np.subtract(b, product, out=product)


def solve_grid(mask: Bool, right: Float32, down: Float32, b: Float) -> Float:
    """Solve ``Σ_q weight_pq (z_p − z_q) = b_p`` for z (H, W), to a residual of 1e-8 of ‖b‖.

    The solver is conjugate gradients in float64, preconditioned by a multigrid cycle in float32.
    """
    with threads_for(mask.size):
        return _solve_grid(GridCycle(mask, right, down), b)


def _solve_grid(cycle: GridCycle, b: Float) -> Float:
    z, rest = np.zeros(b.shape), b.copy()
    goal = _TOLERANCE * float(np.sqrt(np.square(b).sum()))
    steps = 0
    # The residual of the iteration drifts from the true one, so it is computed again and the iteration restarted.
    for _ in range(4):
        steps += conjugate_gradients(cycle, z, rest, _STEPS - steps, size=0.7 * goal)
        rest = cycle.residual(b, z)
        error = float(np.sqrt(np.square(rest).sum()))
        if error <= goal:
            return z
    raise NormalMeshError(
        f"the integration did not converge: residual {error / goal * _TOLERANCE:.1e} of the right side after "
        f"{steps} steps, {_TOLERANCE:.0e} was asked for"
    )


def conjugate_gradients(
    cycle: GridCycle, z: Float, rest: Float, limit: int, *, size: float = 0.0, energy: float = 0.0
) -> int:
    """Improve z until ‖rest‖ ≤ size or the error's energy ⟨rest, A⁻¹ rest⟩ ≤ energy, about; the number of steps.

    Takes at most ``limit`` steps. ``rest`` stays b − A z.
    """
    step = np.empty(z.shape, np.float32)
    p, product = np.zeros(z.shape), np.zeros(z.shape)
    length, factor, slope = 0.0, 0.0, 1.0
    reached = np.sqrt(np.square(rest).sum()) <= size
    taken = 0
    while not reached and taken < limit:
        cycle(rest, step)
        new_slope, change = two_dots(rest, product, step)
        # Polak–Ribière: the cycle is not quite the same operator each time.
        factor = -length * change / slope
        slope = new_slope
        turn(p, step, factor)
        curvature = apply(cycle.right, cycle.down, p, product)
        if not curvature > 0:
            break
        length = slope / curvature
        reached = np.sqrt(advance(z, rest, p, product, length)) <= size or slope <= energy
        taken += 1
    return taken
