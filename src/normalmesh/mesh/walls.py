"""Walls: the sides of a relief along the viewing rays, between the two sides of what is cut where its depth jumps.

No pixel sees a wall: walls are no faces of the mesh on the screen, but kept beside them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from normalmesh.array_types import Float, Int, Int32, Integer
from normalmesh.mesh.components import components
from normalmesh.mesh.cut_mesh import edge_ends, slits
from normalmesh.mesh.repeats import Repeats
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.camera import Camera

if TYPE_CHECKING:
    from normalmesh.mesh.surface import Surface

#: What may become of the gaps at jumps.
GAPS = ("auto", "open", "walls")
#: Least share of the image that a relief fills. The silhouette of an object never does: the largest ellipse fills π/4.
#: Terrains whose corners are missing do.
RELIEF = 0.9


def has_walls(gaps: str, camera: Camera, filled: float, repeats: Repeats | None) -> bool:
    """Decide whether a surface has walls: by default if it is a relief, or repeats.

    A relief is seen by an orthographic camera, and goes on beyond the image: its mask fills it. What is behind an
    object, or behind the edges in a room, is not a part of it: there, a wall would be a thing that does not exist.
    """
    if gaps != "auto":
        return gaps == "walls"
    return repeats is not None or (camera.gauge == "offset" and filled >= RELIEF)


def walls_of(mesh: ScreenMesh, level: Float) -> Int32:
    """Return the walls (W, 3) of a mesh that is cut, counter-clockwise as seen from the lower side.

    ``level`` (N,) is the unknown of the camera at the vertices, larger towards the viewer. Vertices at the same place
    between which the mesh is cut form a column. Walls join the edges on both sides of a cut, and have as corners all
    vertices of the columns at their ends that lie in between: where three cuts meet, the highest wall borders on the
    two others. Oriented like the faces, they leave boundary edges at the outline only. An edge has four faces where
    levels around a column rise, fall and rise again.
    """
    one, other = slits(mesh)
    # The two sides of a slit run in opposite directions.
    start, end = edge_ends(mesh, one).T
    end_across, start_across = edge_ends(mesh, other).T
    rank, vertex = _ranked(np.concatenate([[start, start_across], [end, end_across]], axis=1).T, level)
    # The diagonal of a wall whose edges cross joins the lower vertices: the other one would stand out above both.
    over = (rank[start] < rank[start_across]) & (rank[end] > rank[end_across])
    first = steps(np.where(over, end_across, end), rank[start], rank[start_across])
    last = steps(np.where(over, start, start_across), rank[end_across], rank[end])
    walls = np.concatenate([first, last]).astype(np.int32)
    walls[:, 1:] = vertex[walls[:, 1:]]
    return walls


def _ranked(pairs: Integer, level: Float) -> tuple[Int, Int]:
    """Return the ranks (N,) of vertices, and the vertex (R,) of each; vertices across a cut (K, 2) share a column."""
    column, members = components(pairs.astype(np.int32), len(level)), np.unique(pairs).astype(np.int64)
    rank = np.zeros(len(level), np.int64)
    rank[members], first = ranks(column[members], level[members])
    return rank, members[first]


def ranks(column: Integer, level: Float) -> tuple[Int, Int]:
    """Return the rank (N,) of points in an order of all columns, each by level, and the first point (R,) of each rank.

    Those at the same level of a column share a rank.
    """
    order = np.lexsort((level, column))
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = (np.diff(column[order]) != 0) | (np.diff(level[order]) != 0)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.cumsum(is_new) - 1
    return rank, order[is_new]


def steps(apex: Integer, start: Int, end: Int) -> Int:
    """Return the triangles (K, 3) from apices (S,) to the steps between successive ranks, from start to end (S,)."""
    counts = np.abs(end - start)
    which = np.repeat(np.arange(len(counts)), counts)
    upper = np.arange(len(which)) - (np.cumsum(counts) - counts)[which] + np.minimum(start, end)[which] + 1
    falls = (start > end)[which]
    return np.stack([apex[which], *np.where(falls, [upper, upper - 1], [upper - 1, upper])], axis=1)


def with_walls(surface: Surface) -> Surface:
    """Return a surface to be shown, whose last faces are its walls."""
    if not len(surface.walls):
        return surface
    faces, origin = parted(surface.faces, surface.walls, np.arange(len(surface.vertices)))
    arrays = {name: getattr(surface, name)[origin] for name in ("vertices", "screen", "components")}
    return replace(surface, **arrays, faces=faces, walls=surface.walls[:0])


def parted(faces: Int32, walls: Int32, vertices: Integer) -> tuple[Int32, Integer]:
    """Return faces with walls behind them (M + W, 3), and the vertices (N + K,) of the surface that they name.

    Walls name vertices of their own, behind the others, which can have other normals. ``faces`` (M, 3) name the first
    ``vertices`` (N,) already, ``walls`` (W, 3) vertices of the surface.
    """
    corners, local = np.unique(walls, return_inverse=True)
    own = (local.reshape(-1, 3) + len(vertices)).astype(np.int32)
    return np.concatenate([faces, own]), np.concatenate([vertices, corners])
