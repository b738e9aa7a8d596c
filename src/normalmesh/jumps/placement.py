"""Placement: where the planes of a jump mesh place the faces of another mesh."""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Float, Int, Integer
from normalmesh.facets._facets import fill_rises
from normalmesh.facets.face_means import FaceMeans
from normalmesh.mesh.jumps import Placement
from normalmesh.mesh.raster import pixel_faces
from normalmesh.normals.camera import Camera
from normalmesh.runtime.threads import in_parallel

#: Minimum number of planes for each thread.
GRAIN = 4096


def placed_offsets(placement: Placement, means: FaceMeans, shape: tuple[int, int]) -> tuple[Float, Float]:
    """Return the offsets (M,) of faces at which they lie in the planes of a placement, and the areas (M,) that say so.

    A face takes the median of the offsets at which it passes through the centroids of the jump mesh in it, weighted by
    their areas; a face without any centroid takes the plane under its own. Areas are zero where nothing holds a face.

    All may be in a window (:meth:`.Placement.window`) of the given shape that holds the faces.
    """
    count = len(means.mesh.faces)
    inside = np.flatnonzero(((placement.centroids >= 0) & (placement.centroids < shape[::-1])).all(axis=1))
    owner = pixel_faces(means.mesh, shape)[_pixels(placement.centroids[inside], shape)]
    inside, face = inside[owner >= 0], owner[owner >= 0]
    area = placement.areas[inside]
    steps = placement.centroids[inside] - means.centroids[face]
    offsets = placement.offsets[inside] - rises(means.gradients[face], steps, means.camera)
    values = _medians(offsets, area, face, count)
    weights: Float = np.bincount(face, area, count).astype(np.float64)
    bare = np.flatnonzero(weights == 0)
    under = pixel_faces(placement.mesh, shape)[_pixels(means.centroids[bare], shape)]
    bare, under = bare[under >= 0], under[under >= 0]
    steps = means.centroids[bare] - placement.centroids[under]
    values[bare] = placement.offsets[under] + rises(placement.gradients[under], steps, means.camera)
    weights[bare] = means.areas[bare]
    return values, weights


def rises(gradients: Float, steps: Float, camera: Camera) -> Float:
    """Return the rises (K,) of planes with the given gradients (K, 2) along steps (K, 2) on the screen, in px."""
    rises = np.empty(len(gradients))
    planes = np.ascontiguousarray(gradients), np.ascontiguousarray(steps)
    in_parallel(fill_rises, len(rises), *planes, camera.arrays, rises, grain=GRAIN)
    return rises


def _pixels(points: Float, shape: tuple[int, int]) -> tuple[Int, Int]:
    """Return row and column (K,) of the pixels that hold points (K, 2), within the image."""
    column, row = np.floor(points).astype(np.int64).T
    return np.clip(row, 0, shape[0] - 1), np.clip(column, 0, shape[1] - 1)


def _medians(values: Float, weights: Float, group: Integer, count: int) -> Float:
    """Return the weighted median (G,) of the values (K,) in each group (K,), 0 for those without any."""
    order = np.lexsort((values, group))
    total = np.bincount(group, weights, count)
    # The first value, in ascending order, with half of the weight at or below it.
    middle = np.searchsorted(np.cumsum(weights[order]), np.cumsum(total) - total / 2)
    medians = np.zeros(count)
    some = total > 0
    medians[some] = values[order[np.minimum(middle[some], len(order) - 1)]]
    return medians
