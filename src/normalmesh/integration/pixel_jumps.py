"""Jumps on the pixel grid: edges across their lines are cut, and their placement holds the pixels."""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Bool, Float, Int, Int32
from normalmesh.integration._pixel_integration import EdgeWeights
from normalmesh.integration.mesh_solver import HOLD
from normalmesh.integration.pixel_grid import PixelPlanes
from normalmesh.jumps.placement import rises
from normalmesh.mesh.components import components
from normalmesh.mesh.jumps import JumpLine, Jumps, Placement
from normalmesh.mesh.raster import pixel_faces
from normalmesh.normals.normal_map import NormalMap


def with_jumps(
    jumps: Jumps, planes: PixelPlanes, edges: EdgeWeights, normal_map: NormalMap
) -> tuple[EdgeWeights, Float]:
    """Return edges that jumps cut and hold, and what the hold adds to the right-hand side (h, w).

    The weights of edges between pixels are changed in place.
    """
    rows, columns = planes.window
    for line in jumps.lines:
        cut_across(line, rows.start, columns.start, edges)
    if jumps.placement is None:
        return edges, np.zeros(planes.mask.shape)
    values, held = _placed_pixels(jumps.placement, normal_map)
    hold = (HOLD * planes.mobility * held[planes.window]).astype(np.float32)
    return edges._replace(hold=hold), hold * values[planes.window]


def cut_across(line: JumpLine, top: int, left: int, edges: EdgeWeights) -> None:
    """Set the weights of edges across a line to zero; the first pixel has the row ``top`` and the column ``left``."""
    _cut_sides(np.stack([line.path[:-1], line.path[1:]], axis=1) - np.array([left, top]), edges)


def _cut_sides(sides: Int, edges: EdgeWeights) -> None:
    """Set the weights of edges across pixel sides, given as both ends (S, 2, 2), to zero."""
    u, v = sides.min(axis=1).T
    along_row = sides[:, 0, 1] == sides[:, 1, 1]
    edges.down[v[along_row] - 1, u[along_row]] = 0
    edges.right[v[~along_row], u[~along_row] - 1] = 0


def pixel_parts(mask: Bool, lines: tuple[JumpLine, ...]) -> Int32:
    """Return the labels (H, W), from 1, of the parts of a mask that lines separate; 0 outside."""
    sides = [np.stack([line.path[:-1], line.path[1:]], axis=1) for line in lines]
    return parts_between(mask, np.concatenate([np.empty((0, 2, 2), np.int64), *sides]))


def parts_between(mask: Bool, sides: Int) -> Int32:
    """Return the labels (H, W), from 1, of the parts of a mask that pixel sides (S, 2, 2) separate; 0 outside."""
    # Pixels at the last row and column have no neighbour beyond.
    right, down = ((mask & np.roll(mask, -1, axis=axis)).astype(np.float32) for axis in (1, 0))
    right[:, -1], down[-1] = 0, 0
    _cut_sides(sides, EdgeWeights(right, down, np.zeros((0, 0), np.float32)))
    steps = ((np.flatnonzero(right), 1), (np.flatnonzero(down), mask.shape[1]))
    pairs = [np.stack([first, first + step], axis=1) for first, step in steps]
    part = components(np.concatenate(pairs), mask.size).reshape(mask.shape)
    labels = np.zeros(mask.shape, np.int32)
    labels[mask] = np.unique(part[mask], return_inverse=True)[1] + 1
    return labels


def _placed_pixels(placement: Placement, normal_map: NormalMap) -> tuple[Float, Bool]:
    """Return the unknown (H, W) on the planes of a placement at the centres of pixels, and which pixels they hold."""
    face = pixel_faces(placement.mesh, normal_map.shape)
    held = normal_map.mask & (face >= 0)
    row, column = np.nonzero(held)
    face = face[held]
    steps = np.stack([column + 0.5, row + 0.5], axis=1) - placement.centroids[face]
    values = np.zeros(normal_map.shape)
    values[held] = placement.offsets[face] + rises(placement.gradients[face], steps, normal_map.camera)
    return values, held
