"""A medallion with lettering, ridges and a smooth bowl, whose height and normals are exact."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from normalmesh.array_types import Float
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.synthetic.relief_case import Relief, lift, pixel_centres
from normalmesh.normals.camera import Camera
from normalmesh.normals.normal_map import NormalMap

#: Strokes of the letters N and M in units of the radius: start (x, y), end (x, y).
STROKES = np.array(
    [
        [-0.42, -0.20, -0.42, 0.20],
        [-0.42, 0.20, -0.14, -0.20],
        [-0.14, -0.20, -0.14, 0.20],
        [0.10, -0.20, 0.10, 0.20],
        [0.10, 0.20, 0.26, -0.06],
        [0.26, -0.06, 0.42, 0.20],
        [0.42, 0.20, 0.42, -0.20],
    ]
)
#: Half the width of a stroke, in units of the radius.
STROKE_WIDTH = 0.035


@dataclass(frozen=True)
class Medallion:
    """The medallion on ``size`` × ``size`` pixels, with heights and normals from formulas."""

    size: int = 512

    @property
    def radius(self) -> float:
        """Radius in pixels."""
        return 0.48 * self.size

    def relief(self, screen: Float) -> Relief:
        """Return the height in pixels at screen positions (..., 2), and its slopes to the right and upwards."""
        x = (screen[..., 0] - self.size / 2) / self.radius
        y = (self.size / 2 - screen[..., 1]) / self.radius
        parts = [_bowl(x, y), _rim(x, y), _flutes(x, y), _letters(x, y)]
        height, slope_x, slope_y = (np.sum(values, axis=0) for values in zip(*parts, strict=True))
        return self.radius * height, slope_x, slope_y

    def seen_by(self, camera: Camera | str = "orthographic") -> Case:
        """Return the case for a camera; the mask is a disc."""
        offsets = pixel_centres(slice(0, self.size), self.size) - self.size / 2
        mask = np.linalg.norm(offsets, axis=-1) < self.radius
        return lift("medallion", self.relief, (self.size, self.size), camera, mask)

    @cached_property
    def _seen(self) -> Case:
        return self.seen_by()

    @property
    def normal_map(self) -> NormalMap:
        """The normal map of an orthographic camera."""
        return self._seen.normal_map

    @property
    def height(self) -> Float:
        """Height (H, W) in pixels at pixel centres, NaN outside."""
        assert self._seen.depth is not None
        return self._seen.depth


def _bowl(x: Float, y: Float) -> Relief:
    fall = 1 - x**2 - y**2
    return -0.15 * fall**2, 0.6 * fall * x, 0.6 * fall * y


def _rim(x: Float, y: Float) -> Relief:
    r = np.hypot(x, y)
    bump = 0.05 * np.exp(-(((r - 0.92) / 0.035) ** 2))
    slope = -2 * (r - 0.92) / 0.035**2 * bump / np.maximum(r, 1e-12)
    return bump, slope * x, slope * y


def _flutes(x: Float, y: Float) -> Relief:
    """Return 32 radial ridges with sharp crests between two circles."""
    r = np.maximum(np.hypot(x, y), 1e-12)
    angle = np.arctan2(y, x)
    t = np.clip((r - 0.58) / 0.24, 0, 1)
    window, window_slope = 16 * t**2 * (1 - t) ** 2, 32 * t * (1 - t) * (1 - 2 * t) / 0.24
    crest = np.abs(np.sin(16 * angle))
    crest_slope = 16 * np.cos(16 * angle) * np.sign(np.sin(16 * angle))
    along_r, along_angle = 0.03 * window_slope * crest, 0.03 * window * crest_slope
    return (
        0.03 * window * crest,
        along_r * x / r - along_angle * y / r**2,
        along_r * y / r + along_angle * x / r**2,
    )


def _letters(x: Float, y: Float) -> Relief:
    """Return rounded strokes, as a smooth function of the distance to the nearest stroke."""
    distance = np.full_like(x, np.inf)
    away_x, away_y = np.zeros_like(x), np.zeros_like(x)
    for x0, y0, x1, y1 in STROKES:
        along = np.clip(((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / ((x1 - x0) ** 2 + (y1 - y0) ** 2), 0, 1)
        dx, dy = x - x0 - along * (x1 - x0), y - y0 - along * (y1 - y0)
        nearer = np.hypot(dx, dy) < distance
        distance = np.where(nearer, np.hypot(dx, dy), distance)
        away_x, away_y = np.where(nearer, dx, away_x), np.where(nearer, dy, away_y)
    fall = np.clip(1 - (distance / STROKE_WIDTH) ** 2, 0, None)
    slope = -2 * 0.03 * fall * 2 / STROKE_WIDTH**2
    return 0.03 * fall**2, slope * away_x, slope * away_y
