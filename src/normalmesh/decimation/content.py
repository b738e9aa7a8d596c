"""Content: how many vertices a map needs, from the costs of leaving out its pixel corners."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Int
from normalmesh.decimation.hierarchy import Hierarchy, bin_of
from normalmesh.decimation.mask_counts import outline_sides
from normalmesh.normals.normal_map import NormalMap

#: Vertices that a threshold leaves, for each pixel corner whose error exceeds it. Measured: 1.1 to 2 on maps with
#: detail; smooth round objects would get more, of which nothing is seen.
PER_CORNER = 1.4
#: Vertices along the outline, for each mean distance of vertices: there surfaces turn away, and have steep slopes.
PER_SPACING = 2.0


@dataclass(frozen=True, eq=False)
class Content:
    """What decides how many vertices a map needs.

    Attributes
    ----------
    histogram : (BINS,) int64
        Pixel corners by their error, see :meth:`.Hierarchy.histogram`. Corners that must stay are not looked at.
    foreground, sides
        Pixels of the foreground, and pixel sides along its outline.
    """

    histogram: Int
    foreground: int
    sides: int

    @classmethod
    def of(cls, normal_map: NormalMap, hierarchy: Hierarchy | None = None) -> Content:
        """Count in a denoised map, whose hierarchy may be known."""
        histogram = (hierarchy or Hierarchy.of(normal_map)).histogram()
        return cls(histogram, normal_map.foreground, outline_sides(normal_map.mask))

    def vertices(self, cost: float) -> float:
        """Return about how many vertices are left when no edge can collapse for less than a cost (px⁴).

        Along the outline there is a vertex for each mean distance d of vertices, d = √(foreground / vertices).
        """
        inside = PER_CORNER * float(self.histogram[bin_of(cost) : bin_of(np.inf)].sum())
        along = PER_SPACING * self.sides / math.sqrt(self.foreground) / 2
        return (along + math.sqrt(along**2 + inside)) ** 2
