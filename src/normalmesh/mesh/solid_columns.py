"""Columns: the points of the screen on which a solid stands, and the levels at which its vertices lie above them.

A solid is the body under a surface, seen along the rays of its camera: *level* is the height of a point along its ray,
which increases towards the viewer. Vertices of the surface with the same position on the screen, which a cut along a
jump separates, share a column: walls close the solid between their levels, and from the surface to the base along the
outline. Behind a pinhole, columns are rays, and planes stay planes: what holds on the screen holds in space.

Around a column, the surface consists of fans of faces, one for each of its vertices, and possibly the outside, at the
level of the base. The solid is manifold if their levels rise once and fall once on the way around.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Float, Int, Int32
from normalmesh.errors import NormalMeshError
from normalmesh.mesh.components import components
from normalmesh.mesh.cut_mesh import edge_ends, edges_back
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.mesh.surface import Surface
from normalmesh.mesh.walls import ranks, steps

#: Levels that are closer become one, in pixels: files of 32 bits could not tell them apart.
CLOSE = 1e-3
#: How far columns that touch in a point, such as the corner of two pixels, are moved apart: pixels, and as a share of
#: the height of the smallest face there.
APART, SHARE = 0.01, 0.1


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a surface of N vertices, M faces and E boundary edges."""

    faces: Int32  # (M, 3) vertices of the surface
    column: Int  # (N,) column of each vertex, numbered from 0
    level: Float  # (N,) of each vertex; equal ones in a column are one vertex of the solid
    screen: Float  # (C, 2) positions of the columns, in pixels
    edges: Int  # (E, 2) first and last vertex of boundary edges, with the surface on their left as the viewer sees it
    twin: Int  # (E,) the edge on the other side of a cut, −1 along the outline

    @classmethod
    def of(cls, surface: Surface) -> Columns:
        """Find the columns of a surface, and make their levels those of a manifold."""
        mesh, camera = surface.mesh, surface.camera
        if problems := mesh.check().problems:
            raise NormalMeshError(f"a solid needs a surface that is valid on the screen: {', '.join(problems)}")
        edges = edge_ends(mesh, np.flatnonzero(mesh.opposite < 0)).astype(np.int64)
        point = _points(mesh.vertices, edges)
        twin = _twins(point[edges])
        following = _next_vertices(edges, twin, len(mesh.vertices))
        column = _columns(following)
        depth = camera.depth(surface.vertices)
        level = camera.towards_viewer * camera.unknown_of_depth(depth)
        rounding = np.finfo(np.float32).eps * np.abs(surface.vertices).max() / camera.depth_per_unknown(depth).min()
        close = max(CLOSE * camera.pixel_length, 4 * rounding)
        level = _manifold_levels(level, column, following, edges, twin, close)
        screen = np.empty((column.max() + 1, 2))
        screen[column] = _parted(mesh, point, column)
        return cls(mesh.faces, column, level, screen, edges, twin)

    def closed(self, base: float) -> tuple[Float, Float, Int32]:
        """Return screen positions (K, 2) and levels (K,) of the vertices of the solid, and its faces (L, 3)."""
        count = len(self.screen)
        # The vertices of a column follow each other upwards, the base first.
        columns = np.concatenate([np.arange(count), self.column])
        levels = np.concatenate([np.full(count, base), self.level])
        number, kept = ranks(columns, levels)
        bottom, top = number[:count][self.column], number[count:]
        faces = [top[self.faces], bottom[self.faces[:, ::-1]], *self._walls(bottom, top)]
        return self.screen[columns[kept]], levels[kept], np.concatenate(faces).astype(np.int32)

    def _walls(self, bottom: Int, top: Int) -> tuple[Int, Int]:
        """Return the faces of the walls below boundary edges: those with a side on the first column, and on the last.

        A wall is a trapezium between two columns, both of which may have vertices of the solid in between.
        """
        outline, cut = self.edges[self.twin < 0], np.flatnonzero(self.twin >= 0)
        # The edge of a cut that is below runs the other way.
        upper, lower = self.edges[cut], self.edges[self.twin[cut]][:, ::-1]
        is_wall = (top[upper] >= top[lower]).all(axis=1) & (top[upper] > top[lower]).any(axis=1)
        above = np.concatenate([top[outline], top[upper[is_wall]]])
        below = np.concatenate([bottom[outline], top[lower[is_wall]]])
        (first_top, last_top), (first_bottom, last_bottom) = above.T, below.T
        return steps(last_top, first_top, first_bottom), steps(first_bottom, last_bottom, last_top)


def _points(screen: Float, edges: Int) -> Int:
    """Return the first boundary vertex (N,) at the same position as each vertex; inner vertices are alone."""
    point, boundary = np.arange(len(screen)), np.unique(edges)
    _, first, same = np.unique(screen[boundary], axis=0, return_index=True, return_inverse=True)
    point[boundary] = boundary[first[same.ravel()]]
    return point


def _twins(ends: Int) -> Int:
    """Return for each edge between points (E, 2) the one that runs back between the same points, −1 if there is none.

    Points that several edges join in one direction are those of overlapping surfaces, which have no twins.
    """
    twin = edges_back(ends)
    _, which, counts = np.unique(ends @ [int(ends.max()) + 1, 1], return_inverse=True, return_counts=True)
    repeated = counts[which] > 1
    twin[repeated | repeated[twin]] = -1
    return twin


def _next_vertices(edges: Int, twin: Int, count: int) -> Int:
    """Return the vertex (N,) whose fan comes next clockwise around the same point.

    It is the vertex itself if there is no other fan, and −1 if the outside comes next.
    """
    following = np.arange(count)
    # A boundary vertex has one edge that leaves it; across that edge lies the next fan.
    following[edges[:, 0]] = np.where(twin >= 0, edges[twin, 1], -1)
    return following


def _columns(following: Int) -> Int:
    """Number the columns: vertices whose fans lie beside each other share one."""
    here = np.flatnonzero(following >= 0)
    return components(np.stack([here, following[here]], axis=1), len(following)).astype(np.int64)


def _manifold_levels(level: Float, column: Int, following: Int, edges: Int, twin: Int, close: float) -> Float:
    """Return levels (N,) of which walls can be made: none crosses another, and no edge of the solid has four faces.

    Where they are not, neighbouring fans are joined: at the end of an edge where the jump is smaller, if it changes
    sign between both ends, and at the shallower side of a second valley on the way around a column.
    """
    group = np.arange(len(level))
    cut = np.flatnonzero(twin > np.arange(len(twin)))
    sides = np.stack([edges[cut], edges[twin[cut]][:, ::-1]])  # side, edge, end
    members = _members(column)
    crowded = list(members.values())
    rings = [_ring(each, following) for each in crowded]
    for _ in range(len(level)):
        level = _snapped(level, crowded, close)
        jumps = level[sides[0]] - level[sides[1]]
        crossing = np.flatnonzero(jumps[:, 0] * jumps[:, 1] < 0)
        end = np.abs(jumps[crossing]).argmin(axis=1)
        joined = sides[:, crossing, end].T.tolist()
        joined += [pair for ring, is_open in rings if (pair := _second_valley(level[ring], ring, is_open))]
        if not joined:
            return level
        for one, other in joined:
            here = members[int(column[one])]
            together = here[(group[here] == group[one]) | (group[here] == group[other])]
            group[together] = group[one]
            level[together] = level[together].mean()
    raise AssertionError("each round joins fans, of which there are as many as vertices")


def _members(column: Int) -> dict[int, Int]:
    """Return the vertices of each column that has several."""
    counts = np.bincount(column)
    several = np.flatnonzero(counts > 1)
    vertices = np.flatnonzero(counts[column] > 1)
    vertices = vertices[np.argsort(column[vertices], kind="stable")]
    groups = np.split(vertices, np.cumsum(counts[several])[:-1])
    return dict(zip(several.tolist(), groups, strict=False))


def _ring(vertices: Int, following: Int) -> tuple[Int, bool]:
    """Return the vertices of a column in the order of their fans, and whether the outside closes the ring."""
    after = {int(vertex): int(following[vertex]) for vertex in vertices}
    starts = set(after) - set(after.values())
    vertex = min(starts or after)
    ring: list[int] = []
    while vertex >= 0 and len(ring) < len(after):
        ring.append(vertex)
        vertex = after[vertex]
    return np.array(ring), bool(starts)


def _snapped(level: Float, crowded: list[Int], close: float) -> Float:
    """Return levels of which those in a column that are close to each other are equal."""
    level = level.copy()
    for vertices in crowded:
        order = vertices[np.argsort(level[vertices], kind="stable")]
        starts = np.flatnonzero(np.diff(level[order], prepend=-np.inf) > close)
        level[order] = np.repeat(level[order[starts]], np.diff([*starts, len(order)]))
    return level


def _second_valley(levels: Float, ring: Int, is_open: bool) -> tuple[int, int] | None:
    """Return two neighbours to join if levels (k,) around a column rise more than once: the shallowest step up.

    The outside of an open ring is below all levels.
    """
    around = np.append(levels, -np.inf) if is_open else levels
    rising = [k for k in range(len(around)) if around[k] != around[k - 1]]
    around, kept = around[rising], rising
    count = len(around)
    valleys = [k for k in range(count) if around[k - 1] > around[k] < around[(k + 1) % count]]
    if len(valleys) <= 1:
        return None
    lowest = min(valleys, key=lambda k: around[k])
    steps = [
        (around[beside] - around[k], kept[k], kept[beside])
        for k in valleys
        for beside in ((k - 1) % count, (k + 1) % count)
        if k != lowest
    ]
    _, valley, beside = min(steps)
    return int(ring[valley]), int(ring[beside])


def _parted(mesh: ScreenMesh, point: Int, column: Int) -> Float:
    """Return the positions (N, 2) of the vertices, with those of different columns in the same point moved apart."""
    screen = mesh.vertices.copy()
    pairs = np.unique(np.stack([point, column], axis=1), axis=0)
    several = np.bincount(pairs[:, 0], minlength=point.max() + 1) > 1
    touching = np.flatnonzero(several[point])
    if not len(touching):
        return screen
    inward, room = _inward(mesh, touching, column)
    length = np.minimum(APART, SHARE * room)[column[touching], None]
    screen[touching] += length * inward[column[touching]]
    return screen


def _inward(mesh: ScreenMesh, touching: Int, column: Int) -> tuple[Float, Float]:
    """Return for each column the direction (C, 2) into its faces, and the least height (C,) of them above the rest."""
    count = int(column.max()) + 1
    inward, room = np.zeros((count, 2)), np.full(count, np.inf)
    is_touching = np.zeros(len(mesh.vertices), np.bool_)
    is_touching[touching] = True
    face, k = np.nonzero(is_touching[mesh.faces])
    here, one, other = (mesh.vertices[mesh.faces[face, (k + turn) % 3]] for turn in range(3))
    owner = column[mesh.faces[face, k]]
    along = [(end - here) / np.linalg.norm(end - here, axis=1, keepdims=True) for end in (one, other)]
    angle = np.arccos(np.clip((along[0] * along[1]).sum(axis=1), -1, 1))
    middle = along[0] + along[1]
    middle /= np.linalg.norm(middle, axis=1, keepdims=True)
    np.add.at(inward, owner, angle[:, None] * middle)
    np.minimum.at(room, owner, 2 * mesh.areas[face] / np.linalg.norm(other - one, axis=1))
    lengths = np.linalg.norm(inward, axis=1, keepdims=True)
    return inward / np.where(lengths > 0, lengths, 1), room
