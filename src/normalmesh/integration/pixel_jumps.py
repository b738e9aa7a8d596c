"""Pixel integration with depth discontinuities: edges with large misfits lose their weight.

It is comparable to bilateral normal integration (Cao et al. 2022); :mod:`.robust_weights` does the same on meshes. All
lengths are in pixels, so that a step at a slope of 45° is one unit for both cameras.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from normalmesh.errors import NormalMeshError
from normalmesh.integration._pixel_integration import divergence, weights_of
from normalmesh.integration._pixel_jumps import (
    cauchy_weights,
    mean_change,
    misfit_energy,
    one_sided_weights,
    uprightness,
)
from normalmesh.integration.pixel_grid import GridCycle, PixelPlanes, conjugate_gradients
from normalmesh.integration.robust_weights import MIN_SHARE
from normalmesh.normals.noise import estimate_noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import threads_for

Float = NDArray[np.float64]

#: Sharpness of the preference of a pixel for neighbours at its own depth, for each solve of the first stage. It rises
#: slowly, so that steep slopes are distinguished from jumps first.
SHARPNESS = np.append(np.geomspace(1, 5, 10), np.full(10, 5.0))
#: Maximum number of solves of the second stage, and the change of steps (px, root mean square) at which a stage ends.
SETTLINGS, SETTLED = 10, 1e-4
#: Misfit (px) from which on an edge loses its weight. The noise of the normals in radians is added to it.
WIDTH = 0.05


class _Accuracy(NamedTuple):
    """Root of the energy of the error, relative to that of the misfits or in pixels, and maximum number of steps."""

    relative: float
    pixels: float
    steps: int


_ROUGH, _FINAL = _Accuracy(1e-1, 3e-5, 50), _Accuracy(1e-4, 1e-9, 300)


def integrate_jumps(normal_map: NormalMap) -> Float:
    """Return the unknown (H, W) of the camera, up to a constant for each component; undefined outside the mask."""
    # Unlike for meshes, normals are not averaged: with noise of 2° to 10° that makes the depths of pixels worse.
    noise = estimate_noise(normal_map)
    surface = _JumpingSurface(PixelPlanes.of(normal_map), normal_map.camera.pixel_length)
    with threads_for(surface.mask.size):
        surface.weigh_evenly()
        surface.solve()
        for sharpness in SHARPNESS:
            surface.weigh_by_steps(sharpness)
            if surface.solve() < SETTLED:
                break
        for _ in range(SETTLINGS):
            surface.weigh_by_misfits(WIDTH + math.radians(noise))
            if surface.solve() < SETTLED:
                break
        surface.finish()
    unknown = np.zeros(normal_map.shape)
    unknown[surface.planes.window] = surface.z * normal_map.camera.pixel_length
    return unknown


class _JumpingSurface:
    """Planes of pixels, the weights of the edges between them, and values z (h, w) at their centres."""

    def __init__(self, planes: PixelPlanes, pixel_length: float) -> None:
        self.planes, self.mask = planes, planes.mask
        self.half_steps = np.divide(planes.half_steps, pixel_length, out=planes.half_steps)
        shape = self.mask.shape
        self.z, self.upright = np.zeros(shape), np.zeros(shape)
        self.right, self.down = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        with threads_for(self.mask.size):
            uprightness(planes.mobility, self.mask, planes.frame, self.upright)

    def weigh_evenly(self) -> None:
        """Set the initial weights: both sides of an edge count the same."""
        weights_of(self.mask, np.square(self.upright), self.right, self.down)

    def weigh_by_steps(self, sharpness: float) -> None:
        """Set the weights of the first stage: pixels prefer neighbours at their own depth."""
        one_sided_weights(self.mask, self.upright, self.z, sharpness, MIN_SHARE, self.right, self.down)

    def weigh_by_misfits(self, width: float) -> None:
        """Set the weights of the second stage: beyond a width, they fall as the square of the misfit."""
        cauchy_weights(self.mask, self.upright, self.z, self.half_steps, width, self.right, self.down)

    def solve(self) -> float:
        """Fit z to the weights approximately, and return the change of steps (px, root mean square)."""
        before = self.z.copy()
        self._improve(_ROUGH)
        return mean_change(self.mask, self.upright, before, self.z)

    def finish(self) -> None:
        """Fit z to the weights accurately."""
        taken = self._improve(_FINAL)
        if taken == _FINAL.steps:
            raise NormalMeshError(f"the integration did not converge within {taken} steps of conjugate gradients")

    def _improve(self, accuracy: _Accuracy) -> int:
        b = np.empty(self.mask.shape)
        divergence(self.half_steps, self.right, self.down, b)
        cycle = GridCycle(self.mask, self.right, self.down)
        energy, weight = misfit_energy(self.half_steps, self.right, self.down, self.z)
        goal = accuracy.relative**2 * energy + accuracy.pixels**2 * weight
        return conjugate_gradients(cycle, self.z, cycle.residual(b, self.z), accuracy.steps, energy=goal)
