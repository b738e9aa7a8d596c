"""Edge collapse: the cheapest edges first, until few enough vertices are left or all others cost too much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalmesh import _collapse
from normalmesh.closedmesh import ClosedMesh
from normalmesh.quadrics import OUTLINE_WEIGHT, FaceRecords, Pixels, vertex_quadrics


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
    mark = np.zeros(count + 1, np.int32)
    keys = np.empty(count)
    largest = 0.0
    costing = (*mesh.topology, quadrics, mesh.flags, stamp, pixels.normal_map.mask, in_plane)
    while alive > target:
        _collapse.lower_bounds(*costing, keys)
        queued = np.flatnonzero(keys < limit).astype(np.int32)
        left, cost = _collapse.collapse_queue(
            *costing,
            mesh.outline_of,
            mesh.outline.next_point,
            mesh.outline.points,
            mesh.covered,
            mark,
            keys[queued],
            queued,
            alive,
            target,
            limit,
        )
        largest = max(largest, cost)
        if left == alive:
            break
        # Collapses may have made room for edges that were refused before: look at all of them again.
        alive = left
    mesh.compact()
    return Collapsed(count - alive, largest)
