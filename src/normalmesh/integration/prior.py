"""Depth priors: control points or a coarse depth map that complement the normals."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_array, checked_positive
from normalmesh.errors import NormalMeshError, NormalMeshWarning, shape_text
from normalmesh.integration.prior_faces import PointFaces, faces_of_points
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap

Float = NDArray[np.float64]
Int = NDArray[np.int32]

#: Weight of a control point, and of a pixel of a depth map. Normals weigh an edge by its length in px.
POINT_WEIGHT = 100.0
PIXEL_WEIGHT = 0.01
#: Limits of weights, beyond which rounding would spoil the system,
MIN_WEIGHT, MAX_WEIGHT = 1e-9, 1e9
#: and of depths, beyond which it would spoil the surface.
MAX_DEPTH = 1e30
#: Maximum distance (px) of a control point from the foreground.
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
    label : (K,) int32
        Component of the mask that each point lies on.
    labels : (H, W) int32
        The 4-connected components of the mask, from 1.
    """

    screen: Float
    unknown: Float
    weights: Float
    label: Int
    labels: Int

    @classmethod
    def of(cls, prior: ArrayLike, weight: float | None, normal_map: NormalMap) -> Prior:
        """Return the prior of control points (K, 3 or 4), as u, v, depth[, weight], or of a depth map (H, W).

        Depth is height towards the viewer (orthographic) or distance along the optical axis (perspective), as
        ``Surface.depth_map`` gives it. Unknown pixels of a depth map are NaN. ``weight`` is used for points that have
        no weight of their own.
        """
        from scipy import ndimage

        given, weight = check_prior(prior, weight, normal_map)
        labels: Int = ndimage.label(normal_map.mask, output=np.int32)[0]
        if given.shape == normal_map.shape:
            rows, columns = np.nonzero(np.isfinite(given) & normal_map.mask)
            depth, weights = given[rows, columns], np.full(len(rows), PIXEL_WEIGHT if weight is None else weight)
            screen = np.stack([columns + 0.5, rows + 0.5], axis=1)
            label = labels[rows, columns]
        else:
            screen, depth = given[:, :2], given[:, 2]
            weights = np.full(len(given), POINT_WEIGHT if weight is None else weight)
            weights = given[:, 3] if given.shape[1] == 4 else weights
            label = _nearest_labels(screen, labels)
        placed = cls(screen, normal_map.camera.unknown_of_depth(depth), weights, label, labels)
        _leave_out(label == 0, "lie off the foreground")
        return placed._part(label > 0)

    def on_faces(self, mesh: ScreenMesh) -> tuple[Prior, PointFaces]:
        """Return the part of the prior that lies on a mesh, and the faces of its points; warn about the rest."""
        found = faces_of_points(mesh, self.screen, self.label, self.labels)
        near = found.faces >= 0
        if near.all():
            return self, found
        _leave_out(~near, "have no face of their component in reach")
        return self._part(near), PointFaces(found.faces[near], found.feet[near])

    def _part(self, chosen: NDArray[np.bool_]) -> Prior:
        return Prior(self.screen[chosen], self.unknown[chosen], self.weights[chosen], self.label[chosen], self.labels)


def _nearest_labels(screen: Float, labels: Int) -> Int:
    """Return the labels (K,) of the foreground pixels nearest to points (K, 2), 0 if none is within :data:`REACH`."""
    steps = np.mgrid[-3:4, -3:4].reshape(2, -1).T
    steps = steps[np.argsort((steps**2).sum(axis=1), kind="stable")]
    # Points beyond the image are as far from it as from its outermost pixels.
    near = np.clip(screen, -REACH - 1, np.array(labels.shape[::-1]) + REACH + 1)
    column, row = np.floor(near).astype(np.int64).T
    label, least = np.zeros(len(screen), np.int32), np.full(len(screen), np.inf)
    for down, right in steps:
        i, j = row + down, column + right
        inside = (i >= 0) & (j >= 0) & (i < labels.shape[0]) & (j < labels.shape[1])
        here = np.where(inside, labels[np.where(inside, i, 0), np.where(inside, j, 0)], 0)
        # From the point to the square of the pixel.
        distance = np.hypot(*(np.maximum(np.abs(screen.T - 0.5 - (j, i)) - 0.5, 0)))
        better = (here > 0) & (distance <= REACH) & (distance < least)
        label, least = np.where(better, here, label), np.where(better, distance, least)
    return label


def _leave_out(far: NDArray[np.bool_], why: str) -> None:
    """Warn about points (K,) that are left out, or raise an error if those are all."""
    if far.all():
        raise NormalMeshError("no control point lies on the foreground; are they u (right), v (down) in pixels?")
    if far.any():
        count = np.count_nonzero(far)
        warnings.warn(f"{count} control points {why} and are left out", NormalMeshWarning, stacklevel=6)


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
