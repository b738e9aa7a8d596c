"""Compare the normals of a case with those implied by its depth map."""

import numpy as np

from normalmesh import Perspective
from normalmesh.evaluation.metrics import angles_between


def normals_of_depth(depth, camera):
    """Return unit normals (H, W, 3) by central differences of points in space; NaN where a neighbour is missing."""
    v, u = np.indices(depth.shape) + 0.5
    unknown = np.log(depth) if isinstance(camera, Perspective) else depth
    points = camera.points(np.stack([u, v], axis=-1), unknown)
    normals = np.full(points.shape, np.nan)
    along_u, along_v = points[1:-1, 2:] - points[1:-1, :-2], points[2:, 1:-1] - points[:-2, 1:-1]
    normals[1:-1, 1:-1] = np.cross(along_v, along_u)
    return normals / np.linalg.norm(normals, axis=-1, keepdims=True)


def angles_to_depth(case):
    """Return the angles (H, W) in degrees between the true normals of a case and those implied by its depth."""
    return angles_between(case.normals, normals_of_depth(case.depth, case.normal_map.camera))
