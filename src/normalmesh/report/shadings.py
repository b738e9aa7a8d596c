"""Shadings: values at the vertices that the viewer maps to colours, with the limits of the colour scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Float, Int32
from normalmesh.integration.uncertainty import UncertaintySummary
from normalmesh.mesh.cut_mesh import edge_ends, slits
from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map import NormalMap
from normalmesh.pictures.frame import Frame, angular_errors


@dataclass(frozen=True, eq=False)
class Shading:
    """Values (N,) from 0 to 1 on a colour scale, NaN where unknown, and the labels at both ends of the scale."""

    values: Float
    low: str
    high: str


@dataclass(frozen=True, eq=False)
class AngularErrors:
    """Angles in degrees between the faces of a surface and the normals of the pixels that they cover.

    Mean, median and 95th percentile over the pixels, and means (N,) over the pixels of the faces around each vertex;
    NaN where no pixel is covered.
    """

    mean: float
    median: float
    high: float
    at_vertices: Float

    @classmethod
    def of(cls, surface: Surface, normal_map: NormalMap) -> AngularErrors:
        """Measure the angular errors of a surface."""
        _, owners = surface.owners(normal_map.shape)
        angles = angular_errors(surface, normal_map, Frame.whole(surface.shape).samples(np.inf), owners)
        here = (owners >= 0) & normal_map.mask
        faces, angles = owners[here], np.nan_to_num(angles[here])
        count: Float = np.bincount(faces, minlength=len(surface.faces)).astype(np.float64)
        total: Float = np.bincount(faces, angles, len(count)).astype(np.float64)
        median, high = np.percentile(angles, (50, 95)) if len(angles) else (np.nan, np.nan)
        pixels, sums = (_sums_at_vertices(surface.faces, each, len(surface.vertices)) for each in (count, total))
        at_vertices = np.divide(sums, pixels, out=np.full(len(pixels), np.nan), where=pixels > 0)
        mean = float(angles.mean(dtype=np.float64)) if len(angles) else np.nan
        return cls(mean, float(median), float(high), at_vertices)

    def shading(self) -> Shading:
        """Return the shading, whose scale ends at the 95th percentile over the vertices, rounded up."""
        known = self.at_vertices[np.isfinite(self.at_vertices)]
        end = round_up(float(np.percentile(known, 95))) if len(known) else 1.0
        return Shading(self.at_vertices / end, "0°", f"{end:g}°")


def uncertainty_shading(found: UncertaintySummary) -> Shading:
    """Return the standard deviations of heights as a shading, whose scale ends at their 95th percentile."""
    values = np.where(np.isfinite(found.deviations), found.deviations / found.high, np.nan)
    return Shading(values, "0", f"± {found.high:.2g} {found.units}")


def density(points: Float, faces: Int32, unit: str | None) -> Shading:
    """Return the vertex density as a shading on a logarithmic scale, from vertices (N, 2 or 3) and faces (M, 3).

    The scale is in vertices per 100 square units, or relative to the mean if there is no unit.
    """
    sides = [points[faces[:, k]] - points[faces[:, 0]] for k in (1, 2)]
    squares = [(a * b).sum(axis=1) for a, b in ((sides[0], sides[0]), (sides[1], sides[1]), (sides[0], sides[1]))]
    areas = np.sqrt(np.maximum(squares[0] * squares[1] - squares[2] ** 2, 0)) / 2
    around = _sums_at_vertices(faces, areas, len(points)) / 3
    known = around > 0
    if not known.any():
        return Shading(np.full(len(points), np.nan), "", "")
    found = np.full(len(points), np.nan)
    found[known] = np.log((around.mean() if unit is None else 100.0) / around[known])
    low, high = np.percentile(found[known], (1, 99))
    if high - low < np.log(1.5):
        low, high = low - np.log(2), high + np.log(2)
    texts = [f"{np.exp(end):.2g}" for end in (low, high)]
    after = "× the mean" if unit is None else f" vertices per 100 {unit}²"
    return Shading((found - low) / (high - low), texts[0], texts[1] + after)


def cut_edges(surface: Surface) -> Int32:
    """Return the vertices (K, 2) of the cut edges: boundary edges that coincide with another one on the screen."""
    return edge_ends(surface.mesh, np.concatenate(slits(surface.mesh)))


def round_up(value: float) -> float:
    """Round up to one significant digit, such as 0.3, 4 or 50; at least 0.1."""
    value = max(value, 0.1)
    power = 10.0 ** np.floor(np.log10(value) + 1e-9)
    return float(np.ceil(value / power - 1e-9) * power)


def _sums_at_vertices(faces: Int32, values: Float, vertices: int) -> Float:
    """Return the sums (N,) of the values (M,) of the faces around each vertex."""
    return np.bincount(faces.ravel(), np.repeat(values, 3), vertices).astype(np.float64)
