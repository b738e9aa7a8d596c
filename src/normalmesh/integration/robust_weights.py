"""Robust weights of the facet system: faces on two sides of an occlusion do not belong together.

Where one part of an object hides another, the normals on both sides of the edge are right but the depth jumps. Edges of
the dual graph that would have to bend too much lose their weight, in two stages (Cao et al. 2022 for pixels). On a
smooth surface no edge does, and the solution is the plain one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from normalmesh.integration.facets import FacetSystem

Float = NDArray[np.float64]

#: Sharpness with which a face turns away from the neighbours that it is least level with.
SHARPNESS = 5.0
#: Smallest share of an edge in the first stage, and smallest R⁴: the system stays regular.
LEAST_SHARE = 1e-6
#: Widths of strain beyond which an edge loses no more weight, for the same reason: a prior may be off by any number.
MOST_WIDTHS = 1e5


@dataclass(frozen=True, eq=False)
class RobustWeights:
    """Weights (E,) for the edges of a facet system, from offsets that were found with others.

    Attributes
    ----------
    system : FacetSystem
    unit
        Of strain, in pixels: 1, or more where normals are so inconsistent that small strain means nothing.
    """

    system: FacetSystem
    unit: float = 1.0

    @cached_property
    def uprightness(self) -> Float:
        """ν_f (M,): cosine between a face's mean normal and the viewing ray, at least 1e-3."""
        return np.maximum(self.system.means.cosines, 1e-3)

    @cached_property
    def _trust(self) -> Float:
        """Length of each edge × R⁴ (E,): R is how well the normals of a face agree, 1 for a plane."""
        normals = self.system.means.mean_normals
        agreement = np.maximum(np.einsum("fk,fk->f", normals, normals) ** 2, LEAST_SHARE)
        return self.system.lengths * self._lesser(agreement)

    def even(self) -> Float:
        """To begin with: both sides of an edge count the same."""
        first, second = self.system.pairs.T
        squared = self.uprightness**2
        return self._trust * (squared[first] + squared[second]) / 2

    def one_sided(self, offsets: Float) -> Float:
        """First stage: each face shares its weight out among its edges, more to neighbours at its own depth."""
        first, second = self.system.pairs.T
        centroids = self.system.means.centroids
        distance = np.hypot(*(centroids[first] - centroids[second]).T)
        step = (offsets[second] - offsets[first]) / self.system.means.camera.pixel_length / distance
        count = len(offsets)
        degree = np.bincount(first, minlength=count) + np.bincount(second, minlength=count)
        likings = [np.exp(-SHARPNESS * (self.uprightness[side] * step) ** 2) + 1e-30 for side in (first, second)]
        total = np.bincount(first, likings[0], count) + np.bincount(second, likings[1], count)
        weights = np.zeros(len(first))
        for side, liking in zip((first, second), likings, strict=True):
            share = np.maximum(0.5 * degree[side] * liking / total[side], LEAST_SHARE)
            weights += share * self.uprightness[side] ** 2
        return self._trust * weights

    @cached_property
    def _upright(self) -> Float:
        """ν_e (E,): of the steeper of the two faces."""
        return self._lesser(self.uprightness)

    def _lesser(self, values: Float) -> Float:
        """Of values (M,) of faces the lesser one at each edge (E,)."""
        first, second = self.system.pairs.T
        return np.minimum(values[first], values[second])

    def strain(self, offsets: Float) -> Float:
        """ν_e |r_e| (E,) in units: by how much the planes of two faces miss each other, across and not along them."""
        return self._upright * np.abs(self.system.misfits(offsets)) / self.system.means.camera.pixel_length / self.unit

    def cauchy(self, strain: Float, width: float) -> Float:
        """Second stage: the weight (E,) of an edge falls as the square of its strain (E,), beyond a width in pixels."""
        return self._trust * self._upright**2 / (1 + np.minimum(strain / width, MOST_WIDTHS) ** 2)
