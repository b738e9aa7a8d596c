"""Robust weights of the facet system: they separate faces on the two sides of an occlusion.

At an occlusion the normals on both sides are right, but the depth jumps. Edges of the dual graph across which the
planes of the faces do not meet lose their weight, in two stages (Cao et al. 2022 for pixels). On a smooth surface no
edge does, and the solution is that of the continuous system.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from normalmesh.array_types import Float
from normalmesh.facets.facets import FacetSystem

#: Sharpness of the one-sided preference of a face for neighbours at its own depth.
SHARPNESS = 5.0
#: Smallest share of an edge in the first stage, and smallest R⁴, so that the system stays regular.
MIN_SHARE = 1e-6
#: Strain, in widths, beyond which an edge loses no more weight, so that the system stays regular with any prior.
MAX_WIDTHS = 1e5


@dataclass(frozen=True, eq=False)
class RobustWeights:
    """What robust weights of the edges of a facet system consist of, and the strain that they depend on.

    Attributes
    ----------
    system : FacetSystem
    """

    system: FacetSystem

    @cached_property
    def cosines(self) -> Float:
        """Cosines ν_f (M,) between the faces' mean normals and the viewing rays, at least 1e-3."""
        return np.maximum(self.system.means.cosines, 1e-3)

    @cached_property
    def trust(self) -> Float:
        """Length × R⁴ (E,) of each edge. R is the length of a face's mean normal, 1 for a plane."""
        normals = self.system.means.mean_normals
        agreement = np.maximum(np.einsum("fk,fk->f", normals, normals) ** 2, MIN_SHARE)
        return self.system.lengths * self._smaller(agreement)

    def even(self) -> Float:
        """Return the initial weights (E,): both sides of an edge count the same."""
        first, second = self.system.pairs.T
        squared = self.cosines**2
        return self.trust * (squared[first] + squared[second]) / 2

    @cached_property
    def edge_cosines(self) -> Float:
        """Cosines ν_e (E,) of the steeper of the two faces at each edge."""
        return self._smaller(self.cosines)

    def _smaller(self, values: Float) -> Float:
        """Return the smaller value of the two faces at each edge (E,), from values (M,)."""
        first, second = self.system.pairs.T
        return np.minimum(values[first], values[second])

    def strain(self, offsets: Float) -> Float:
        """Return the strains ν_e |r_e| (E,) of the edges, in px.

        The strain is the gap between the planes of two faces, measured perpendicular to them.
        """
        gaps = np.abs(self.system.misfits(offsets))
        return self.edge_cosines * gaps / self.system.means.camera.pixel_length
