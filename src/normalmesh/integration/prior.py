"""Depth priors: control points or a coarse depth map that complement the normals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_array, checked_positive
from normalmesh.array_types import Bool, Float, Int, Int32, Integer
from normalmesh.errors import NormalMeshError, shape_text, warn_caller
from normalmesh.integration.prior_faces import PointFaces, face_labels, faces_at, placed_points, told_apart
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap

if TYPE_CHECKING:
    from normalmesh.maps.maps_on_disk import MapOnDisk


#: Weight of a control point, and of a pixel of a depth map. Normals weigh an edge by its length in px.
POINT_WEIGHT = 100.0
PIXEL_WEIGHT = 0.01
#: Limits of weights, beyond which rounding would spoil the system,
MIN_WEIGHT, MAX_WEIGHT = 1e-9, 1e9
#: and of depths, beyond which it would spoil the surface.
MAX_DEPTH = 1e30
#: Maximum distance (px) of a control point from the foreground.
MAX_POINT_DISTANCE = 2.0
#: Why points are left out.
OUT_OF_REACH = "points of the prior have no face of their component in reach"
#: Number of pixels of a depth map that are checked at the same time.
CHECKED_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Prior:
    """Values that the surface should have at points of the screen."""

    screen: Float  # (K, 2): u, v in pixels
    unknown: Float  # (K,): height, or logarithm of the depth
    weights: Float  # (K,): weights of the squared differences
    pixels: Int  # (K,): foreground pixel, counted row by row, on or next to which each point lies
    labels: Integer  # (H, W): the components of the mask, or the parts into which jumps divide them, from 1
    whole: Bool  # (L + 1,): labels that are whole components

    @classmethod
    def of(cls, prior: ArrayLike, weight: float | None, normal_map: NormalMap) -> Prior:
        """Return the prior of control points (K, 3 or 4), as u, v, depth[, weight], or of a depth map (H, W).

        Depth is height towards the viewer (orthographic) or distance along the optical axis (perspective), as
        ``Surface.depth_map`` gives it. Unknown pixels of a depth map are NaN. ``weight`` is used for points that have
        no weight of their own.
        """
        given, weight = check_prior(prior, weight, normal_map)
        labels, count = normal_map.component_labels
        if given.shape == normal_map.shape:
            rows, columns = np.nonzero(np.isfinite(given) & normal_map.mask)
            depth = given[rows, columns].astype(np.float64)
            weights = np.full(len(rows), PIXEL_WEIGHT if weight is None else weight)
            screen = np.stack([columns + 0.5, rows + 0.5], axis=1)
            pixels = rows * given.shape[1] + columns
        else:
            screen, depth, weights = weighted_points(given, weight)
            pixels = nearest_pixels(screen, normal_map.mask)
        whole = np.ones(count + 1, np.bool_)
        placed = cls(screen, normal_map.camera.unknown_of_depth(depth), weights, pixels, labels, whole)
        leave_out(pixels < 0, "control points lie off the foreground")
        return placed._part(pixels >= 0)

    def apart(self, parts: Int32) -> Prior:
        """Return the prior with labels (H, W) of the parts into which jumps divide components."""
        inside = parts > 0
        component = np.zeros(int(parts.max()) + 1, np.int32)
        component[parts[inside]] = self.labels[inside]
        whole = np.bincount(parts.ravel()) == np.bincount(self.labels.ravel())[component]
        return replace(self, labels=parts, whole=whole)

    def on_faces(self, mesh: ScreenMesh) -> tuple[Prior, PointFaces]:
        """Return the part of the prior that lies on a mesh, and the faces of its points; warn about the rest."""
        label, home = self.labels.ravel()[self.pixels], face_labels(mesh, self.labels)
        pixels = np.bincount(self.labels.ravel(), minlength=len(self.whole))
        apart = told_apart(mesh, home, pixels, self.whole)
        faces = faces_at(mesh, home, apart, self.screen, label, self.labels.shape)
        found = placed_points(mesh, home, apart, faces, self.screen, label)
        near = found.faces >= 0
        if near.all():
            return self, found
        leave_out(~near, OUT_OF_REACH)
        return self._part(near), PointFaces(found.faces[near], found.feet[near])

    def _part(self, chosen: Bool) -> Prior:
        of_points = ("screen", "unknown", "weights", "pixels")
        return replace(self, **{name: getattr(self, name)[chosen] for name in of_points})


def weighted_points(given: Float, weight: float | None) -> tuple[Float, Float, Float]:
    """Return places (K, 2), depths and weights (K,) of control points (K, 3 or 4)."""
    weights = np.full(len(given), POINT_WEIGHT if weight is None else weight)
    return given[:, :2], given[:, 2], given[:, 3] if given.shape[1] == 4 else weights


def nearest_pixels(screen: Float, mask: Bool) -> Int:
    """Return the foreground pixels (K,) nearest to points (K, 2), −1 if none is within :data:`MAX_POINT_DISTANCE`."""
    steps = np.mgrid[-3:4, -3:4].reshape(2, -1).T
    steps = steps[np.argsort((steps**2).sum(axis=1), kind="stable")]
    # Far beyond the image, numbers of pixels would overflow.
    near = np.clip(screen, -MAX_POINT_DISTANCE - 1, np.array(mask.shape[::-1]) + MAX_POINT_DISTANCE + 1)
    column, row = np.floor(near).astype(np.int64).T
    pixels, least = np.full(len(screen), -1, np.int64), np.full(len(screen), np.inf)
    for down, right in steps:
        i, j = row + down, column + right
        here = (i >= 0) & (j >= 0) & (i < mask.shape[0]) & (j < mask.shape[1])
        here[here] = mask[i[here], j[here]]
        # From the point to the square of the pixel.
        distance = np.hypot(*(np.maximum(np.abs(screen.T - 0.5 - (j, i)) - 0.5, 0)))
        better = here & (distance <= MAX_POINT_DISTANCE) & (distance < least)
        pixels, least = np.where(better, i * mask.shape[1] + j, pixels), np.where(better, distance, least)
    return pixels


def leave_out(far: Bool, which: str) -> None:
    """Warn about points (K,) that are left out, or raise an error if those are all."""
    if far.all():
        raise NormalMeshError("no control point lies on the foreground; are they u (right), v (down) in pixels?")
    if far.any():
        count = np.count_nonzero(far)
        warn_caller(f"{count} {which} and are left out")


def check_prior(
    prior: ArrayLike, weight: float | None, normal_map: NormalMap | MapOnDisk
) -> tuple[NDArray[Any], float | None]:
    """Check a prior and its weight, and return them as :meth:`Prior.of` takes them. A depth map is not copied."""
    given = checked_array(prior, "prior", "an array of numbers: control points or a depth map")
    if weight is not None:
        weight = checked_positive(weight, "prior_weight")
        _refuse_extreme(np.array(weight))
    if given.shape == normal_map.shape:
        # Control points are finite.
        if given.shape[1] in (3, 4) and np.isfinite(given).all():
            raise NormalMeshError(
                f"a prior of {shape_text(given.shape)} numbers could be control points or a depth map of this image; "
                "give one point more or fewer, or pad image and depth map by a column of background"
            )
        known = _extremes(given, normal_map)
    elif given.ndim == 2 and given.shape[1] in (3, 4):
        given = given.astype(np.float64)
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


def _extremes(depths: NDArray[Any], normal_map: NormalMap | MapOnDisk) -> Float:
    """Return the least and largest finite depths (K,) of bands of a depth map (H, W) on the foreground."""
    height, width = normal_map.shape
    step, found = max(CHECKED_AT_ONCE // width, 1), []
    for top in range(0, height, step):
        rows = slice(top, min(top + step, height))
        band = depths[rows]
        known = band[np.isfinite(band) & normal_map.mask_window(rows, slice(0, width))]
        if len(known):
            found += [known.min(), known.max()]
    return np.array(found, np.float64)


def _refuse_extreme(weights: Float) -> None:
    if not np.all((weights >= MIN_WEIGHT) & (weights <= MAX_WEIGHT)):
        raise NormalMeshError(f"prior_weight, and weights of points, must lie in {MIN_WEIGHT:g} … {MAX_WEIGHT:g}")
