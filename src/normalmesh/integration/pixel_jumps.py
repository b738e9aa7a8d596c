"""Pixel integration with depth discontinuities: edges that would have to bend too much lose their weight.

The peer of bilateral normal integration (Cao et al. 2022): see :mod:`.robust_weights` for the same on meshes. All
lengths count in pixels, so that a step of 45° is one unit for both cameras.
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

#: Sharpness with which a pixel turns away from neighbours that it is not level with, for each solve of the first stage.
#: Steep slopes are not level either: it rises slowly, so that they are told from jumps first.
SHARPNESS = np.append(np.geomspace(1, 5, 10), np.full(10, 5.0))
#: Solves of the second stage, at most. Either stage ends once steps change by less than SETTLED (px, root mean square).
SETTLINGS, SETTLED = 10, 1e-4
#: Misfit (px) at which an edge begins to lose its weight; noise adds its own, about 1 px for each radian.
WIDTH = 0.05


class _Accuracy(NamedTuple):
    """Of a solution: root of the energy of its error, relative to that of the misfits or in pixels; steps at most."""

    relative: float
    pixels: float
    steps: int


_ROUGH, _FINAL = _Accuracy(1e-1, 3e-5, 50), _Accuracy(1e-4, 1e-9, 300)


def integrate_jumps(normal_map: NormalMap) -> Float:
    """The unknown (H, W) of the camera, up to a constant for each component; finite and meaningless outside."""
    # Normals are not averaged, unlike for meshes: at 2° to 10° of noise that makes depths of pixels worse, not better.
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
        """To begin with: both sides of an edge count the same."""
        weights_of(self.mask, np.square(self.upright), self.right, self.down)

    def weigh_by_steps(self, sharpness: float) -> None:
        """First stage: each pixel shares its weight out among its edges, more to neighbours at its own depth."""
        one_sided_weights(self.mask, self.upright, self.z, sharpness, MIN_SHARE, self.right, self.down)

    def weigh_by_misfits(self, width: float) -> None:
        """Second stage: an edge loses weight as the square of its misfit, beyond a width."""
        cauchy_weights(self.mask, self.upright, self.z, self.half_steps, width, self.right, self.down)

    def solve(self) -> float:
        """Fit z to the present weights, roughly; by how much steps changed (px, root mean square)."""
        before = self.z.copy()
        self._improve(_ROUGH)
        return mean_change(self.mask, self.upright, before, self.z)

    def finish(self) -> None:
        """Fit z to the present weights."""
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
