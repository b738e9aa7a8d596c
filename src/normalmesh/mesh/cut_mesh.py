"""CutMesh: a mesh on the screen that is cut open along some of its edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Bool, Float, Int, Int32, Integer
from normalmesh.mesh.screen_mesh import ScreenMesh, fans, following, inner_edges, preceding


@dataclass(frozen=True, eq=False)
class CutMesh:
    """A mesh whose vertices are split where cut edges separate the faces around them.

    The first copy of a vertex keeps its number, the others are numbered from N on.
    """

    mesh: ScreenMesh
    origin: Int32  # (N',) the vertex, before cutting, that each vertex is a copy of
    component: Int32  # (N',) connected component of each vertex before cutting

    @classmethod
    def along(cls, mesh: ScreenMesh, edges: Integer) -> CutMesh:
        """Cut a mesh along the inner edges between pairs of vertices (S, 2)."""
        count, opposite = len(mesh.vertices), mesh.opposite
        if len(edges) == 0:
            return cls(mesh, np.arange(count, dtype=np.int32), mesh.components)
        inner = inner_edges(opposite)
        keys = np.sort(edge_ends(mesh, inner).astype(np.int64), axis=1) @ [count, 1]
        return cls._with_fans(mesh, inner[~np.isin(keys, np.sort(edges.astype(np.int64), axis=1) @ [count, 1])])

    @classmethod
    def at_corners(cls, mesh: ScreenMesh) -> CutMesh:
        """Cut a mesh where faces touch only at a vertex, so that it is manifold if no edge has more than two faces."""
        return cls._with_fans(mesh, inner_edges(mesh.opposite))

    @classmethod
    def _with_fans(cls, mesh: ScreenMesh, uncut: Int) -> CutMesh:
        """Cut a mesh along all inner edges but those across from the corners ``uncut``."""
        count = len(mesh.vertices)
        fan, fan_vertex = fans(mesh.faces, mesh.opposite, uncut)
        by_vertex = np.argsort(fan_vertex, kind="stable")
        repeated = np.zeros(len(fan_vertex), np.bool_)
        repeated[by_vertex[1:]] = np.diff(fan_vertex[by_vertex]) == 0
        number = fan_vertex.copy()
        number[repeated] = count + np.arange(np.count_nonzero(repeated))
        origin = np.concatenate([np.arange(count, dtype=np.int32), fan_vertex[repeated]])
        opened = ScreenMesh(mesh.vertices[origin], number[fan].reshape(-1, 3))
        return cls(opened, origin, mesh.components[origin])


def edge_ends(mesh: ScreenMesh, corners: Integer) -> Int32:
    """Return the two vertices (E, 2) of the edges across from corners (E,)."""
    return mesh.faces.ravel()[np.stack([following(corners), preceding(corners)], axis=1)]


def boundary_vertices(mesh: ScreenMesh) -> Bool:
    """Return the vertices (N,) on the boundary."""
    boundary = np.zeros(len(mesh.vertices), np.bool_)
    boundary[edge_ends(mesh, np.flatnonzero(mesh.opposite < 0))] = True
    return boundary


def slits(mesh: ScreenMesh) -> tuple[Int, Int]:
    """Return the corners (S,) across from the boundary edges on the two sides of slits: edges with the same ends."""
    outer = np.flatnonzero(mesh.opposite < 0)
    places = mesh.vertices[edge_ends(mesh, outer)].reshape(-1, 2)
    _, number = np.unique(places, axis=0, return_inverse=True)
    ends = number.reshape(-1, 2)
    back = edges_back(ends)
    matched = (back >= 0) & (ends[:, 0] < ends[:, 1])
    return outer[matched], outer[back[matched]]


def edges_back(ends: Int) -> Int:
    """Return for each edge between places (E, 2) one that runs back between the same places, −1 if there is none."""
    count = int(ends.max(initial=0)) + 1
    forwards, backwards = ends @ [count, 1], ends @ [1, count]
    order = np.argsort(backwards, kind="stable")
    place = np.minimum(np.searchsorted(backwards[order], forwards), len(order) - 1)
    other = order[place] if len(order) else order
    return np.where(backwards[other] == forwards, other, -1)


def slit_heights(mesh: ScreenMesh, depth: Float) -> tuple[Float, Float]:
    """Return the ends (S, 2, 2) of slits, and how much larger the depth (N,) is on one side than on the other (S,)."""
    one, other = slits(mesh)
    first, second = edge_ends(mesh, one), edge_ends(mesh, other)
    # The two sides of a slit run in opposite directions.
    return mesh.vertices[first], (depth[second[:, ::-1]] - depth[first]).mean(axis=1)
