"""Splitting: new vertices where the faces fit their pixels worst, so that a mesh has as many as it should."""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Float, Int, Int32
from normalmesh.integration import _splitting
from normalmesh.integration.tidying import judged
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.sorting import largest_first
from normalmesh.runtime.threads import GRAIN, in_parallel


def split_worst(
    mesh: ClosedMesh,
    unknown: Float,
    normal_map: NormalMap,
    count: int,
    component: Int32 | None = None,
    own: Int | None = None,
    costs: Float | None = None,
) -> tuple[Float, Int32]:
    """Split ``count`` inner edges at their midpoints: long edges of the faces that fit their pixels worst.

    The surface stays as it is until it is integrated again. Edges of the boundary and between locked vertices are not
    split, nor are those whose halves would be small or needles: if too few edges are left, there are fewer splits.

    Parameters
    ----------
    mesh
        Changed in place; it must be compact, and is so afterwards.
    unknown
        (N,) height, or logarithm of the depth, at the vertices.
    normal_map
        The normals that faces should fit, denoised as far as possible.
    count
        Number of new vertices.
    component, own
        Component (N,) of each vertex, and how many (C,) of the new vertices are for each component. The others may be
        anywhere; by default all of them.
    costs
        Cost (M,) of each face, if it is known; see :func:`.tidying.judged`.

    Returns
    -------
    unknown : (N + count,) float64
        The unknown at the vertices; new ones follow those of the mesh.
    component : (N + count,) int32
        Component of each vertex.
    """
    component = np.zeros(len(unknown), np.int32) if component is None else component
    own = np.zeros(int(component.max()) + 1, np.int64) if own is None else own.copy()
    shared = np.array([max(count - int(own.sum()), 0)])
    while count > 0:
        if costs is None:
            costs = judged(mesh, unknown, normal_map).costs
        scores = np.empty(3 * mesh.real_faces)
        in_parallel(_splitting.fill_split_scores, len(scores), mesh.arrays, costs, scores, grain=GRAIN)
        order = largest_first(scores)
        vertex, face, _ = mesh.reserve_for_splits(count)
        touched = np.zeros(mesh.real_faces, np.bool_)
        unknown = np.concatenate([unknown, np.zeros(count)])
        room = _splitting.Room(np.concatenate([component, np.zeros(count, np.int32)]), own, np.maximum(shared, 0))
        camera = normal_map.camera.arrays
        splits = _splitting.split_in_halves(order, mesh.arrays, unknown, camera, (vertex, face), touched, room)
        kept, shared = mesh.compact(), room.shared
        unknown, component = unknown[kept], room.component[kept]
        if splits == 0:
            break
        count, costs = count - splits, None
    return unknown, component
