"""A fractal terrain. Depth and normals come from the same spline through its heights, so that they agree exactly."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import RectBivariateSpline

from normalmesh.array_types import Float
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.synthetic.relief_case import Relief, checked_shape, lift
from normalmesh.normals.camera import Camera

#: Height from the lowest to the highest point, as a fraction of the longer side.
HEIGHT = 0.2


def terrain(size: int | tuple[int, int] = 512, camera: Camera | str = "orthographic", seed: int = 0) -> Case:
    """Return a fractal mountain terrain with sharp crests and smooth valleys, from 4×4 pixels on.

    The same seed gives the same terrain at any size, with detail down to the pixel.
    """
    return interpolated("terrain", fractal(checked_shape(size), seed), camera)


def interpolated(name: str, heights: Float, camera: Camera | str) -> Case:
    """Return the case of the cubic spline through heights (H, W) in pixels at the pixel centres."""
    rows, columns = heights.shape
    # The outer pieces are extrapolated to the border of the map.
    spline = RectBivariateSpline(
        np.arange(rows) + 0.5, np.arange(columns) + 0.5, heights, bbox=[0, rows, 0, columns], s=0
    )

    def relief(screen: Float) -> Relief:
        v, u = screen[:, 0, 1], screen[0, :, 0]
        return spline(v, u), spline(v, u, dy=1), -spline(v, u, dx=1)

    return lift(name, relief, (rows, columns), camera)


def fractal(shape: tuple[int, int], seed: int) -> Float:
    """Return the heights (H, W) of the terrain in pixels."""
    longer = max(shape)
    heights, weight, cells, strength = np.zeros(shape), np.ones(shape), 3, 1.0
    while cells == 3 or 4 * cells <= longer:
        crest = (1 - np.abs(_noise(shape, cells, seed))) ** 2
        heights += strength * weight * crest
        # Detail is concentrated on crests.
        weight *= 0.3 + 0.7 * crest
        cells, strength = 2 * cells, 0.55 * strength
    return (heights - heights.min()) * (HEIGHT * longer / float(np.ptp(heights)))


def _noise(shape: tuple[int, int], cells: int, seed: int) -> Float:
    """Return smooth random values (H, W) from about −1 to 1, with ``cells`` cells along the longer side."""
    lattice = np.random.default_rng([seed, cells]).uniform(-1, 1, size=(cells + 4, cells + 4))
    axis = np.arange(-2.0, cells + 2)
    places = [(np.arange(side) + 0.5) * cells / max(shape) for side in shape]
    return RectBivariateSpline(axis, axis, lattice, s=0)(*places)
