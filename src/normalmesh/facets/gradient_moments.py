"""Second moments of places and slopes over the faces of a mesh: how the surface bends below a face."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Float
from normalmesh.facets import _gradient_moments as columns
from normalmesh.facets._face_means import Triangles
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import in_parallel


@dataclass(frozen=True, eq=False)
class GradientMoments:
    """Means and covariances over the pixels whose centres lie in a face; zeros for faces without pixels.

    Slopes are those of :attr:`.FaceMeans.gradients`.

    Attributes
    ----------
    count : (M,)
        Number of pixels.
    slope : (M, 2)
        Mean slopes ∂z/∂u, ∂z/∂v.
    spread : (M,)
        Variance of the slopes, the sum of both.
    places : (M, 2, 2)
        Covariance of the places u, v, in px².
    mixed : (M, 2, 2)
        Covariance of slopes (rows) and places (columns): the second derivatives of z times ``places``, if they are
        constant.
    noise : (M, 2, 2)
        Covariance of the slopes of a pixel for noise of one radian on its normal.
    """

    count: Float
    slope: Float
    spread: Float
    places: Float
    mixed: Float
    noise: Float

    @classmethod
    def of(cls, mesh: ScreenMesh, normal_map: NormalMap) -> GradientMoments:
        """Sum over the pixels of the faces of a mesh."""
        table = np.empty((len(mesh.faces), columns.COLUMNS))
        triangles = Triangles(mesh.vertices, mesh.faces)
        in_parallel(columns.gradient_moments, len(table), triangles, normal_map.arrays, table)
        count = table[:, columns.COUNT].copy()
        means = table / np.maximum(count, 1.0)[:, None]
        place, slope = means[:, columns.PLACE_U : columns.PLACE_V + 1], means[:, columns.SLOPE_U : columns.SLOPE_V + 1]
        spread = np.maximum(means[:, columns.SQUARE] - (slope**2).sum(axis=1), 0.0)
        places = _symmetric(means[:, columns.PLACES_UU : columns.PLACES_VV + 1]) - place[:, :, None] * place[:, None]
        mixed = means[:, columns.MIXED_UU : columns.MIXED_VV + 1].reshape(-1, 2, 2) - slope[:, :, None] * place[:, None]
        noise = _symmetric(means[:, columns.NOISE_UU : columns.NOISE_VV + 1])
        return cls(count, slope.copy(), spread, places, mixed, noise)


def _symmetric(values: Float) -> Float:
    """Return matrices (M, 2, 2) from their entries uu, uv and vv (M, 3)."""
    return values[:, [0, 1, 1, 2]].reshape(-1, 2, 2)
