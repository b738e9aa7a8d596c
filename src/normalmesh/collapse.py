"""Edge collapse: the cheapest edges first, until few enough vertices are left or all others cost too much."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh import _collapse
from normalmesh.closedmesh import ClosedMesh
from normalmesh.quadrics import OUTLINE_WEIGHT, FaceRecords, Pixels, vertex_quadrics

#: Vertices in a tile: their data and their queue fit into a core's cache.
TILE = 4096
#: Factor between the cost levels to which all tiles are brought one after another.
LEVEL = 4.0
#: The one queue also takes over once a level collapses less than this share of the vertices: most others are refused.
LEAST_PROGRESS = 0.02
#: One queue for all vertices takes over this many times above the target, so that the last collapses are in order.
MARGIN = 2.5


@dataclass(frozen=True)
class Collapsed:
    """How many edges were collapsed, and the largest cost (px⁴) among them."""

    collapses: int
    largest_cost: float


def collapse(
    mesh: ClosedMesh,
    pixels: Pixels,
    records: FaceRecords | None = None,
    *,
    target: int = 0,
    limit: float = np.inf,
    in_plane: bool = False,
) -> Collapsed:
    """Collapse edges that cost less than ``limit`` (px⁴), cheapest first, until ``target`` vertices are left.

    Vertices carry the sum of the quadrics that they replace. Stops early where no edge may collapse without turning a
    face over, closing a hole, pinching the mesh, or laying two faces over one pixel. The mesh is compact afterwards.

    Large meshes are worked on tile by tile, which spares the cache, to cost levels that all tiles share and that rise
    by and by; the last part is done in the order of cost over the whole mesh.

    Parameters
    ----------
    records
        Up to date, or None for a start mesh.
    in_plane
        Whether new vertices may leave the edge for the best point of the plane; the paper keeps them on the edge.
    """
    quadrics = vertex_quadrics(mesh, pixels, records, OUTLINE_WEIGHT)
    count = alive = len(mesh.vertices)
    stamp = np.arange(count, dtype=np.int32)
    clocks = np.array([count, 0], np.int64)
    costing = (*mesh.topology, quadrics, mesh.flags, stamp, pixels.normal_map.mask, in_plane)
    outline = (mesh.outline_of, mesh.outline.next_point, mesh.outline.points, mesh.covered)
    mark = np.zeros(count + 1, np.int32)
    keys = np.empty(count)
    largest = level = 0.0
    enough = True
    while alive > target:
        _collapse.lower_bounds(*costing, keys)
        level = min(LEVEL * level or float(np.median(keys)), limit)
        in_tiles = enough and 0.0 < level < limit and alive > max(MARGIN * target, TILE)
        if not in_tiles:
            level = limit
        mark[:] = clocks[1] = 0
        left = alive
        for queued in _tiles(mesh.vertices, keys < level, alive) if in_tiles else [np.flatnonzero(keys < limit)]:
            items = queued.astype(np.int32)
            left, cost = _collapse.collapse_queue(
                *costing, *outline, mark, clocks, keys[items], items, left, target, level
            )
            largest = max(largest, cost)
        if left == alive and not in_tiles:
            break
        enough = alive - left >= LEAST_PROGRESS * alive
        # Collapses may have made room for edges that were refused before: look at all of them again.
        alive = left
    mesh.compact()
    return Collapsed(count - alive, largest)


def _tiles(vertices: NDArray[np.float64], chosen: NDArray[np.bool_], alive: int) -> Iterator[NDArray[np.int64]]:
    """The chosen vertices, by squares of the screen that hold about :data:`TILE` vertices each."""
    queued = np.flatnonzero(chosen)
    extent = np.prod(np.ptp(vertices, axis=0)) or 1.0
    squares = np.floor(vertices[queued] / np.sqrt(extent * TILE / alive)).astype(np.int64)
    number = (squares[:, 1] - squares[:, 1].min(initial=0)) * 2**20 + squares[:, 0]
    order = np.argsort(number, kind="stable")
    starts = np.flatnonzero(np.diff(number[order], prepend=-(2**40)))
    return (queued[part] for part in np.split(order, starts[1:]))
