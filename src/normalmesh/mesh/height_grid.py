"""A mesh with a vertex at each pixel centre of a depth map, to look at."""

from __future__ import annotations

import math

import numpy as np

from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.mesh.surface import Surface
from normalmesh.normals.camera import Camera

#: All rows or columns but the last, and all but the first.
FIRST, SECOND = slice(None, -1), slice(1, None)


def grid_surface(depth: Float, camera: Camera, units: str, max_faces: float = math.inf) -> Surface:
    """Return the surface of a depth map (H, W), NaN where there is none, as two faces for each square of four pixels.

    If there would be more than ``max_faces``, only every k-th row and column is taken. Three pixels that are known make
    one face.
    """
    step = max(math.ceil(math.sqrt(2 * depth.size / max_faces)), 1)
    start = (step - 1) // 2
    sampled = depth[start::step, start::step]
    known = np.isfinite(sampled)
    number = np.cumsum(known.ravel()).reshape(known.shape) - 1
    corners = [np.where(known, number, -1)[rows, columns] for rows in (FIRST, SECOND) for columns in (FIRST, SECOND)]
    upper_left, upper_right, lower_left, lower_right = (each.ravel() for each in corners)
    complete = np.minimum.reduce([upper_left, upper_right, lower_left, lower_right]) >= 0
    # A square that is complete is divided one way only, one with three corners the way that keeps them.
    candidates = [
        (upper_left, lower_left, upper_right, np.ones_like(complete)),
        (upper_right, lower_left, lower_right, np.ones_like(complete)),
        (upper_left, lower_left, lower_right, ~complete),
        (upper_left, lower_right, upper_right, ~complete),
    ]
    triangles = [
        np.stack([a, b, c], axis=1)[wanted & (np.minimum(np.minimum(a, b), c) >= 0)] for a, b, c, wanted in candidates
    ]
    faces = np.concatenate(triangles).astype(np.int32)
    if not len(faces):
        raise NormalMeshError("no three neighbouring pixels have a height: there is no surface to show")
    rows, columns = np.nonzero(known)
    screen = (np.stack([columns, rows], axis=1) * step + start).astype(np.float64) + 0.5
    used, places = np.unique(faces, return_inverse=True)
    unknown = camera.unknown_of_depth(sampled[known][used])
    mesh = ScreenMesh(screen[used], places.reshape(-1, 3).astype(np.int32))
    return Surface.from_unknown(mesh, unknown, camera, (depth.shape[0], depth.shape[1]), units)
