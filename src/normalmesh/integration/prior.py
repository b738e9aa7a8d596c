"""Depth priors: control points or a coarse depth map that complement the normals."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_array, checked_positive
from normalmesh.errors import NormalMeshError, NormalMeshWarning, shape_text
from normalmesh.mesh.raster import pixel_faces
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap

Float = NDArray[np.float64]

#: Weight of a control point, and of a pixel of a depth map. Normals weigh an edge by its length in px.
POINT_WEIGHT = 100.0
PIXEL_WEIGHT = 0.01
#: Limits of weights, beyond which rounding would spoil the system,
MIN_WEIGHT, MAX_WEIGHT = 1e-9, 1e9
#: and of depths, beyond which it would spoil the surface.
MAX_DEPTH = 1e30
#: Maximum distance (px) of a control point outside the mesh.
REACH = 2.0


@dataclass(frozen=True, eq=False)
class Prior:
    """Values that the surface should have at points of the screen.

    Attributes
    ----------
    screen : (K, 2)
        u, v in pixels.
    unknown : (K,)
        Height, or logarithm of the depth.
    weights : (K,)
        Weights of the squared differences.
    """

    screen: Float
    unknown: Float
    weights: Float

    @classmethod
    def of(cls, prior: ArrayLike, weight: float | None, normal_map: NormalMap) -> Prior:
        """Return the prior of control points (K, 3 or 4), as u, v, depth[, weight], or of a depth map (H, W).

        Depth is height towards the viewer (orthographic) or distance along the optical axis (perspective), as
        ``Surface.depth_map`` gives it. Unknown pixels of a depth map are NaN. ``weight`` is used for points that have
        no weight of their own.
        """
        given, weight = check_prior(prior, weight, normal_map)
        if given.shape == normal_map.shape:
            rows, columns = np.nonzero(np.isfinite(given) & normal_map.mask)
            depth, weights = given[rows, columns], np.full(len(rows), PIXEL_WEIGHT if weight is None else weight)
            screen = np.stack([columns + 0.5, rows + 0.5], axis=1)
        else:
            screen, depth = given[:, :2], given[:, 2]
            weights = np.full(len(given), POINT_WEIGHT if weight is None else weight)
            weights = given[:, 3] if given.shape[1] == 4 else weights
        return cls(screen, normal_map.camera.unknown_of_depth(depth), weights)

    def on_faces(self, mesh: ScreenMesh, shape: tuple[int, int]) -> tuple[Prior, NDArray[np.int32]]:
        """Return the part of the prior that lies on a mesh, and the face (K,) of each point; warn about the rest."""
        from scipy import ndimage

        owner = pixel_faces(mesh, shape)
        distance, (row, column) = ndimage.distance_transform_edt(owner < 0, return_indices=True)
        j = np.clip(self.screen[:, 0], 0, shape[1] - 1).astype(np.int64)
        i = np.clip(self.screen[:, 1], 0, shape[0] - 1).astype(np.int64)
        off = np.hypot(self.screen[:, 0] - j - 0.5, self.screen[:, 1] - i - 0.5) > 1
        nearest = owner[row[i, j], column[i, j]]
        # A mesh that owns no pixel centre has no nearest pixel either.
        far = off | (distance[i, j] > REACH) | (nearest < 0)
        if far.any():
            if far.all():
                raise NormalMeshError(
                    "no control point lies on the foreground; are they u (right), v (down) in pixels?"
                )
            warnings.warn(
                f"{np.count_nonzero(far)} control points lie off the foreground and are left out",
                NormalMeshWarning,
                stacklevel=5,
            )
        near = ~far
        return Prior(self.screen[near], self.unknown[near], self.weights[near]), nearest[near]


def check_prior(prior: ArrayLike, weight: float | None, normal_map: NormalMap) -> tuple[Float, float | None]:
    """Check a prior and its weight, and return them as :meth:`Prior.of` takes them."""
    given = np.asarray(checked_array(prior, "prior", "an array of numbers: control points or a depth map"), np.float64)
    if weight is not None:
        weight = checked_positive(weight, "prior_weight")
        _refuse_extreme(np.array(weight))
    if given.shape == normal_map.shape:
        known = given[np.isfinite(given) & normal_map.mask]
    elif given.ndim == 2 and given.shape[1] in (3, 4):
        if not np.all(np.isfinite(given)) or (given.shape[1] == 4 and np.any(given[:, 3] <= 0)):
            raise NormalMeshError("the prior's control points must be finite numbers, with positive weights")
        _refuse_extreme(given[:, 3:])
        known = given[:, 2]
    else:
        raise NormalMeshError(
            f"prior must be control points (number, 3 or 4) as u, v, depth[, weight], or a depth map of "
            f"{shape_text(normal_map.shape)}, not {shape_text(given.shape)}"
        )
    if len(known) == 0:
        raise NormalMeshError("the prior holds no finite depth on the foreground")
    if np.abs(known).max() > MAX_DEPTH:
        raise NormalMeshError(f"depths of the prior must be at most {MAX_DEPTH:g}, not {np.abs(known).max():g}")
    normal_map.camera.check_depths(known, "depths of the prior")
    return given, weight


def _refuse_extreme(weights: Float) -> None:
    if not np.all((weights >= MIN_WEIGHT) & (weights <= MAX_WEIGHT)):
        raise NormalMeshError(f"prior_weight, and weights of points, must lie in {MIN_WEIGHT:g} … {MAX_WEIGHT:g}")
