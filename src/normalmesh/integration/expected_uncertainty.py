"""The uncertainty of heights to be expected of a normal map, before there is a mesh.

The noise of heights has equal parts from all scales between the size of faces and that of the map, so the shape of the
mask matters, and that of the mesh little. A coarse grid on the mask, flat, gives the part of large scales. By halving
the size of faces, the variance of heights grows by ``σ² log(2) / 2π``. Slopes enlarge both by the median of
``½ (1/cos² + 1/cos⁴)``, the mean over both directions of the noise of a slope.
"""

from __future__ import annotations

import math

import numpy as np

from normalmesh.array_types import Bool
from normalmesh.integration.uncertainty import vertex_uncertainty
from normalmesh.mesh.surface import Surface
from normalmesh.normals.noise import Noise, shared_pixels
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.orthographic import Orthographic

#: Approximate number of cells of the grid, and of sampled normals.
FLAT_CELLS, SAMPLED_NORMALS = 1024, 2**16


def expected_uncertainty(normal_map: NormalMap, noise: Noise, vertices: int) -> float:
    """Estimate the median standard deviation, in px, of the heights of a surface with so many vertices.

    It is about that of :meth:`Surface.uncertainty`, and less where the surface is steep or torn along jumps. For a
    perspective camera, pixels are those at the distance of the surface.
    """
    if noise.degrees == 0:
        return 0.0
    surface = _flat_grid(normal_map.mask)
    coarse = float(np.median(vertex_uncertainty(surface, noise)))
    white = math.radians(noise.degrees) ** 2 * float(shared_pixels(np.array(noise.correlation)))
    finer = max(math.log(max(vertices, 3) / len(surface.vertices)) / (4 * math.pi), 0.0)
    return math.sqrt(_tilt_factor(normal_map) * (coarse**2 + white * finer))


def _flat_grid(mask: Bool) -> Surface:
    """Return a flat surface on the cells of a grid of which most is foreground (H, W), two faces each."""
    side = math.ceil(math.sqrt(np.count_nonzero(mask) / FLAT_CELLS))
    columns = -(-mask.shape[1] // side)
    count = np.add.reduceat(mask, np.arange(0, mask.shape[0], side), axis=0, dtype=np.int64)
    count = np.add.reduceat(count, np.arange(0, mask.shape[1], side), axis=1)
    # A mask of thin parts may fill no cell.
    row, column = np.nonzero(count >= min(side**2 / 2, count.max()))
    corner = row * (columns + 1) + column
    below = corner + columns + 1
    faces = np.concatenate([np.stack([corner, below, corner + 1], 1), np.stack([below, below + 1, corner + 1], 1)])
    used, faces = np.unique(faces, return_inverse=True)
    v, u = np.divmod(used, columns + 1)
    screen = side * np.stack([u, v], axis=1).astype(np.float64)
    camera = Orthographic()
    points = camera.points(screen, np.zeros(len(screen)))
    return Surface(points, faces.reshape(-1, 3).astype(np.int32), screen, camera, mask.shape)


def _tilt_factor(normal_map: NormalMap) -> float:
    """Return by how much slopes enlarge the variance of heights."""
    step = max(math.isqrt(normal_map.foreground // SAMPLED_NORMALS), 1)
    if not normal_map.mask[::step, ::step].any():
        step = 1
    row, column = (step * each for each in np.nonzero(normal_map.mask[::step, ::step]))
    rays = normal_map.camera.rays(column + 0.5, row + 0.5)
    squared = (normal_map.normals[row, column] * rays).sum(axis=1) ** 2 / (rays**2).sum(axis=1)
    return float(np.median(0.5 * (1 / squared + 1 / squared**2)))
