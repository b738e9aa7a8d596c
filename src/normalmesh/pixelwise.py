"""Integration on the pixel grid: one unknown a foreground pixel. The yardstick for integration on meshes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from normalmesh._multigrid import prolong
from normalmesh._pixelwise import (
    advance,
    aggregate_pixels,
    apply,
    coarse_graph,
    divergence,
    relax,
    restrict_residual,
    slopes,
    turn,
    two_dots,
    weights_of,
)
from normalmesh.camera import Perspective
from normalmesh.errors import NormalMeshError
from normalmesh.multigrid import Graph, Multigrid
from normalmesh.normalmap import NormalMap
from normalmesh.threads import threads_for

Float = NDArray[np.float64]
Float32 = NDArray[np.float32]

_TOLERANCE = 1e-8  # of the residual, relative to the right side
_STEPS = 300  # of conjugate gradients; ordinary masks need ten, the worst known forty


def integrate_pixels(normal_map: NormalMap, *, distance: float = 1.0) -> Float:
    """Heights or distances whose gradients fit the normals best, one for each pixel.

    Minimises ``Σ_pq m_pq (z_q − z_p − g_pq)²`` over edges between adjacent foreground pixels, the functional
    ``∫ ‖⟨n, r⟩ ∇z + (⟨n, τ_u⟩, ⟨n, τ_v⟩)‖²`` of the paper (equation E_Int). Each pixel is a plane through its centre;
    ``g_pq`` runs on it from p to the midpoint of the common side, and from there on the plane of q to its centre, so
    that planes are exact for both cameras. ``m_pq`` is the mean of ``⟨n, r⟩²`` of both.

    Parameters
    ----------
    normal_map
        Normals, mask and camera.
    distance
        Mean distance along the optical axis of each component behind a :class:`Perspective` camera. Unused for
        :class:`Orthographic`.

    Returns
    -------
    (H, W) float64
        Orthographic: height towards the viewer, in the unit of the pixel size, mean zero. Perspective: distance
        along the optical axis, mean ``distance``. Both for each 4-connected component of the mask by itself, since
        normals do not tell how components lie to each other. NaN outside the mask.

    Raises
    ------
    NormalMeshError
        ``distance`` is not positive, or the solution missed the tolerance of 1e-8.
    """
    if not (np.isfinite(distance) and distance > 0):
        raise NormalMeshError(f"distance must be a positive number, not {distance}")
    unknown = _integrated(normal_map)
    component, count = ndimage.label(normal_map.mask, output=np.int32)
    index = component.ravel()
    pixels = np.maximum(np.bincount(index, minlength=count + 1), 1)
    mean = np.bincount(index, unknown.ravel(), count + 1) / pixels
    unknown -= mean[component]
    if isinstance(normal_map.camera, Perspective):
        np.exp(unknown, out=unknown)
        mean = np.bincount(index, unknown.ravel(), count + 1) / pixels
        unknown *= distance / mean[component]
    unknown[~normal_map.mask] = np.nan
    return unknown


def _integrated(normal_map: NormalMap) -> Float:
    """The unknown (H, W) of the camera, up to a constant for each component; finite and meaningless outside."""
    mask = normal_map.mask
    right, down = np.zeros(mask.shape, np.float32), np.zeros(mask.shape, np.float32)
    b = np.empty(mask.shape)
    half_steps, mobility = np.zeros((*mask.shape, 4)), np.zeros(mask.shape)
    with threads_for(mask.size):
        slopes(normal_map.normals, mask, normal_map.camera.frame, half_steps, mobility)
        weights_of(mask, mobility, right, down)
        divergence(half_steps, right, down, b)
    del half_steps, mobility
    return solve_grid(mask, right, down, b)


class _GridCycle:
    """The multigrid cycle whose finest level is the pixel grid."""

    def __init__(self, mask: NDArray[np.bool_], right: Float32, down: Float32) -> None:
        self.right, self.down = right, down
        self.aggregate, cells = aggregate_pixels(mask)
        count = len(cells)
        indptr, indices, weights = coarse_graph(self.aggregate, cells, right, down)
        graph = Graph(indptr, indices, weights, excess=np.zeros(count, np.float32))
        self.coarser = Multigrid(graph, cells, finest=mask.size)
        self.coarse = np.empty(count, np.float32)

    def __call__(self, rest: Float, step: Float32) -> None:
        """step (H, W) = an approximation of A⁻¹ rest."""
        step[:] = 0
        relax(self.right, self.down, rest, step, 0)
        relax(self.right, self.down, rest, step, 1)
        restrict_residual(self.right, self.down, rest, step, self.aggregate, self.coarse)
        correction = self.coarser.solve(self.coarse)
        prolong(self.aggregate.ravel(), correction, self.coarser.factor(0), step.ravel())
        relax(self.right, self.down, rest, step, 1)
        relax(self.right, self.down, rest, step, 0)


def solve_grid(mask: NDArray[np.bool_], right: Float32, down: Float32, b: Float) -> Float:
    """z (H, W) with ``Σ_q weight_pq (z_p − z_q) = b_p`` to 1e-8 of ‖b‖; see :mod:`normalmesh._pixelwise`.

    Conjugate gradients in float64, preconditioned by a multigrid cycle in float32.
    """
    with threads_for(mask.size):
        return _solve_grid(_GridCycle(mask, right, down), b)


def _solve_grid(cycle: _GridCycle, b: Float) -> Float:
    z, rest = np.zeros(b.shape), b.copy()
    goal = _TOLERANCE * float(np.sqrt(np.square(b).sum()))
    steps = 0
    # The residual that the iteration carries along drifts from the true one: check it, and go on from there.
    for _ in range(4):
        steps += _conjugate_gradients(cycle, z, rest, goal, _STEPS - steps)
        product = np.empty(b.shape)
        apply(cycle.right, cycle.down, z, product)
        np.subtract(b, product, out=rest)
        del product
        error = float(np.sqrt(np.square(rest).sum()))
        if error <= goal:
            return z
    raise NormalMeshError(
        f"the integration did not converge: residual {error / goal * _TOLERANCE:.1e} of the right side after "
        f"{steps} steps, {_TOLERANCE:.0e} was asked for"
    )


def _conjugate_gradients(cycle: _GridCycle, z: Float, rest: Float, goal: float, limit: int) -> int:
    """Improve z until ‖rest‖ ≤ 0.7 goal, at most ``limit`` steps; their number. ``rest`` stays b − A z."""
    step = np.empty(z.shape, np.float32)
    p, product = np.zeros(z.shape), np.zeros(z.shape)
    size, length, factor = float(np.sqrt(np.square(rest).sum())), 0.0, 0.0
    slope = 1.0
    for taken in range(limit):
        if size <= 0.7 * goal:
            return taken
        cycle(rest, step)
        new_slope, change = two_dots(rest, product, step)
        # Polak–Ribière: the cycle is not quite the same operator each time.
        factor = -length * change / slope
        slope = new_slope
        turn(p, step, factor)
        energy = apply(cycle.right, cycle.down, p, product)
        if not energy > 0:
            return taken
        length = slope / energy
        size = float(np.sqrt(advance(z, rest, p, product, length)))
    return limit
