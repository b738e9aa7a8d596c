"""Pixel integration with depth discontinuities: edges with a large residual lose their weight.

Comparable to bilateral normal integration (Cao et al. 2022); :mod:`.robust_weights` does the same on meshes. All
lengths are in pixels, so that a step of 45° is one unit for both cameras.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from normalmesh.errors import NormalMeshError
from normalmesh.facets.robust_weights import MIN_SHARE
from normalmesh.integration._pixel_integration import EdgeWeights
from normalmesh.integration._pixel_jumps import (
    PixelValues,
    Preference,
    cauchy_weights,
    misfit_energies,
    normalise_preferences,
    preferred_weights,
    squared_changes,
    uprightness,
)
from normalmesh.integration.pixel_grid import (
    GridSystem,
    PixelPlanes,
    no_edges,
    over_rows,
    right_side,
    weigh_by_mobility,
)
from normalmesh.normals.noise import estimate_noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.solvers.conjugate_gradients import conjugate_gradients

Float = NDArray[np.float64]

#: Sharpness of the preference for neighbours at the same depth (px⁻²), for each solve of the first stage. It rises
#: slowly, so that steep slopes are distinguished from jumps first.
SHARPNESS = np.append(np.geomspace(1, 5, 10), np.full(10, 5.0))
#: Maximal number of solves of the second stage. Either stage ends once steps change by less than SETTLED (px, RMS).
SETTLINGS, SETTLED = 10, 1e-4
#: Misfit (px) at which an edge begins to lose its weight; noise adds about 1 px per radian.
WIDTH = 0.05


class _Accuracy(NamedTuple):
    """Accuracy of a solution: root of the energy of its error, relative to the misfits or in pixels; maximal steps."""

    relative: float
    pixels: float
    steps: int


_ROUGH, _FINAL = _Accuracy(1e-1, 3e-5, 50), _Accuracy(1e-4, 1e-9, 300)


def integrate_jumps(normal_map: NormalMap) -> Float:
    """Return the unknown (H, W) of the camera, up to a constant per component; arbitrary finite values outside."""
    # Normals are not averaged, unlike on meshes: at 2° to 10° of noise that makes the depths of pixels worse.
    noise = estimate_noise(normal_map).as_white
    surface = _JumpingSurface(PixelPlanes.of(normal_map), normal_map.camera.pixel_length)
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
    unknown[surface.window] = surface.pixels.z * normal_map.camera.pixel_length
    return unknown


def one_sided_weights(pixels: PixelValues, sharpness: float, minimum: float, edges: EdgeWeights) -> None:
    """Set the weights of edges: each pixel prefers the neighbours closest to its own depth, by a softmax."""
    shape = pixels.mask.shape
    preference = Preference(float(sharpness), minimum, np.zeros(shape), np.zeros(shape))
    over_rows(normalise_preferences, shape, pixels, preference)
    over_rows(preferred_weights, shape, pixels, preference, edges)


class _JumpingSurface:
    """The planes of pixels, the weights of the edges between them, and the values z (h, w) at their centres."""

    def __init__(self, planes: PixelPlanes, pixel_length: float) -> None:
        self.window, self.shape = planes.window, planes.mask.shape
        half_steps = np.divide(planes.half_steps, pixel_length, out=planes.half_steps)
        upright = np.zeros(self.shape)
        over_rows(uprightness, self.shape, planes.mobility, planes.mask, planes.frame, upright)
        self.pixels = PixelValues(planes.mask, upright, np.zeros(self.shape), half_steps)
        self.edges = no_edges(self.shape)

    def weigh_evenly(self) -> None:
        """Give both pixels of an edge the same say, as a start."""
        weigh_by_mobility(self.pixels.mask, np.square(self.pixels.upright), self.edges)

    def weigh_by_steps(self, sharpness: float) -> None:
        """First stage: each pixel prefers the neighbours closest to its own depth."""
        one_sided_weights(self.pixels, sharpness, MIN_SHARE, self.edges)

    def weigh_by_misfits(self, width: float) -> None:
        """Second stage: beyond a width, an edge loses weight with the square of its misfit."""
        over_rows(cauchy_weights, self.shape, self.pixels, width, self.edges)

    def solve(self) -> float:
        """Fit z to the present weights, roughly; return the change of the steps (px, root mean square)."""
        before = self.pixels.z.copy()
        self._improve(_ROUGH)
        squares, counts = np.empty(self.shape[0]), np.empty(self.shape[0])
        over_rows(squared_changes, self.shape, self.pixels, before, squares, counts)
        return math.sqrt(_ordered_sum(squares) / max(_ordered_sum(counts), 1.0))

    def finish(self) -> None:
        """Fit z to the weights accurately."""
        taken = self._improve(_FINAL)
        if taken == _FINAL.steps:
            raise NormalMeshError(f"the integration did not converge within {taken} steps of conjugate gradients")

    def _improve(self, accuracy: _Accuracy) -> int:
        """Improve z to an accuracy; return the number of steps."""
        system = GridSystem(self.pixels.mask, self.edges)
        energies, weights = np.empty(self.shape[0]), np.empty(self.shape[0])
        over_rows(misfit_energies, self.shape, self.pixels, self.edges, energies, weights)
        goal = accuracy.relative**2 * _ordered_sum(energies) + accuracy.pixels**2 * _ordered_sum(weights)
        z, b = self.pixels.z.ravel(), right_side(self.pixels.half_steps, self.edges).ravel()
        return conjugate_gradients(
            system.multiply,
            system.precondition,
            z,
            system.residual(b, z),
            max_steps=accuracy.steps,
            max_energy=goal,
        )


def _ordered_sum(values: Float) -> float:
    """Return a sum that is computed in order."""
    return float(np.cumsum(values)[-1])
