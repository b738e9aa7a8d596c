"""Integration on the pixel grid of a map that repeats: edges also connect the pixels of opposite sides."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from scipy import fft

from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError, ShortfallWarning
from normalmesh.integration._pixel_integration import TO_BOTTOM, TO_RIGHT
from normalmesh.integration.levelling import check_repeating_map
from normalmesh.integration.pixel_grid import PixelPlanes
from normalmesh.mesh.repeats import Repeats
from normalmesh.normals.normal_map import NormalMap
from normalmesh.solvers.conjugate_gradients import conjugate_gradients, norm

#: Largest residual, relative to the right-hand side.
MAX_RESIDUAL = 1e-8
#: Maximal number of steps of conjugate gradients; rough textures need thirty.
MAX_STEPS = 500


def repeating_heights(normal_map: NormalMap, repeats: Repeats) -> Float:
    """Return heights (H, W) that repeat, with mean zero, and fit the normals together with a mean slope best.

    Minimises ``Σ_pq m_pq (z_q − z_p + s_pq − g_pq)²`` over heights z and the slopes s along both directions that
    repeat, with g and m as in :func:`normalmesh.integrate_pixels`. The mean slope is left out of the result.
    """
    if not normal_map.mask.all():
        raise NormalMeshError("integrate_pixels(tileable=…) needs a map without background: use reconstruct")
    check_repeating_map(normal_map, repeats)
    system = _TorusSystem(normal_map, repeats)
    right = system.right_side()
    x, residual = np.zeros_like(right), right.copy()
    goal = MAX_RESIDUAL * norm(right)
    conjugate_gradients(system.multiply, system.precondition, x, residual, max_steps=MAX_STEPS, max_residual=goal)
    if norm(right - system.multiply(x)) > 10 * goal:
        raise NormalMeshError("the integration of the tile did not converge: use reconstruct")
    heights, (slope_u, slope_v) = system.parts(x)
    size = normal_map.camera.pixel_length
    if doubt := replace(repeats, mean_slope=(slope_u / size, -slope_v / size)).excess:
        warnings.warn(doubt, ShortfallWarning, stacklevel=3)
    heights -= heights.mean()
    return heights


class _TorusSystem:
    """The normal equations; vectors (H · W + 2,) are heights and the slopes along u and v, in units per px."""

    def __init__(self, normal_map: NormalMap, repeats: Repeats) -> None:
        planes = PixelPlanes.of(normal_map)
        self.shape, wraps = normal_map.shape, (repeats.y, repeats.x)
        self.wraps = wraps
        self.weights, self.rises = [], []
        for axis, side in ((0, TO_BOTTOM), (1, TO_RIGHT)):
            half = planes.half_steps[..., side]
            weights = (planes.mobility + np.roll(planes.mobility, -1, axis)) / 2
            if not wraps[axis]:
                np.moveaxis(weights, axis, 0)[-1] = 0
            self.weights.append(weights)
            self.rises.append(half + np.roll(half, -1, axis))
        self.scale = np.mean([weights.mean() for weights in self.weights])
        own = [
            2 - 2 * np.cos((2 if wraps[axis] else 1) * np.pi * np.arange(side) / side)
            for axis, side in enumerate(self.shape)
        ]
        self.halved = max(axis for axis in (0, 1) if wraps[axis])
        own[self.halved] = own[self.halved][: self.shape[self.halved] // 2 + 1]
        self.values = own[0][:, None] + own[1]
        self.values[0, 0] = np.inf

    def parts(self, x: Float) -> tuple[Float, tuple[float, float]]:
        """Return the heights (H, W) and the slopes of a vector."""
        return x[:-2].reshape(self.shape), (float(x[-2]), float(x[-1]))

    def right_side(self) -> Float:
        """Return the right-hand side."""
        return self._gathered(self.rises)

    def multiply(self, x: Float) -> Float:
        """Return the product of the matrix with a vector."""
        heights, (slope_u, slope_v) = self.parts(x)
        steps = [np.roll(heights, -1, axis) - heights for axis in (0, 1)]
        return self._gathered([steps[0] + slope_v, steps[1] + slope_u])

    def _gathered(self, steps: list[Float]) -> Float:
        """Return the transposed matrix of the edges times weighted steps along them, down and to the right."""
        flows = [weights * step for weights, step in zip(self.weights, steps, strict=True)]
        heights = sum(np.roll(flow, 1, axis) - flow for axis, flow in enumerate(flows))
        slopes = [flow.sum() if wraps else 0.0 for flow, wraps in zip(flows, self.wraps, strict=True)]
        return np.append(heights, [slopes[1], slopes[0]])

    def precondition(self, residual: Float) -> Float:
        """Return the solution for weights that are the same everywhere."""
        heights, (slope_u, slope_v) = self.parts(residual)
        still = [axis for axis in (0, 1) if not self.wraps[axis]]
        periodic = [axis for axis in (0, 1) if self.wraps[axis]]
        found = fft.rfftn(fft.dctn(heights, axes=still) if still else heights, axes=periodic) / self.values
        lengths = [self.shape[axis] for axis in periodic]
        found = fft.irfftn(found, lengths, axes=periodic)
        heights = fft.idctn(found, axes=still) if still else found
        return np.append(heights, np.array([slope_u, slope_v]) / heights.size) / self.scale
