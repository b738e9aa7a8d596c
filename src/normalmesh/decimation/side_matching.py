"""Matching sides: the same vertices on opposite sides of the mesh of a map that repeats, so that copies fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Bool, Float, Int, Int32
from normalmesh.decimation.decimated_mesh import DecimatedMesh
from normalmesh.errors import NormalMeshError
from normalmesh.mesh._validity import MIN_AREA, MIN_FLATNESS
from normalmesh.mesh.cut_mesh import edge_ends
from normalmesh.mesh.repeats import Repeats, SidePair
from normalmesh.mesh.screen_mesh import ScreenMesh

#: Distance of two vertices on opposite sides up to which they become one, as a share of the distance to the next ones.
NEAR = 0.3
#: Vertices that matching may add, for each root of the number of vertices.
ADDED = 2.0


def room_for_matching(target: int) -> int:
    """Return how many of a number of vertices to leave for :func:`with_matching_sides`; integration adds the rest."""
    return min(math.ceil(ADDED * math.sqrt(target)), target // 4)


def with_matching_sides(
    mesh: DecimatedMesh, repeats: Repeats, mask_window: Callable[[slice, slice], Bool]
) -> DecimatedMesh:
    """Return a mesh whose vertices have the same places on opposite sides, exactly, and are locked there.

    Where the foreground goes on beyond a side, vertices within a pixel of the side are put on it. Two that are
    close to each other's place on opposite sides meet halfway; the others get a new twin, which divides a face. The
    ends of such stretches (:meth:`.Repeats.side_ends`) must be locked vertices.
    """
    matched = matched_sides(mesh, mesh.locked, mesh.seams, repeats.side_pairs(mask_window))
    return replace(mesh, **matched._asdict(), repeats=repeats)


class MatchedMesh(NamedTuple):
    """A mesh whose sides match, the vertices (N,) that are locked, and the edges (S, 2) along which depth jumps."""

    vertices: Float
    faces: Int32
    locked: Bool
    seams: Int32


def matched_sides(mesh: ScreenMesh, locked: Bool, seams: Int32, pairs: list[SidePair]) -> MatchedMesh:
    """Return a mesh after :func:`with_matching_sides`, and what goes with it."""
    mesh, locked, seams = _without_flat_faces(mesh, locked, seams, pairs)
    sides = _Sides(mesh, locked)
    chains = sides.chains(pairs)
    for pair, near, far in chains:
        sides.vertices[near[1:-1], pair.axis] = 0
        sides.vertices[far[1:-1], pair.axis] = pair.far
    for pair, near, far in chains:
        sides.meet(near, far, 1 - pair.axis)
    for pair, near, far in chains:
        sides.add_twins(near, far, 1 - pair.axis)
        sides.add_twins(far, near, 1 - pair.axis)
    vertices, faces = np.concatenate([sides.vertices, *sides.added]), sides.faces()
    locked = np.append(locked, np.ones(len(vertices) - len(locked), np.bool_))
    for _, near, far in chains:
        locked[near] = locked[far] = True
    if not ScreenMesh(vertices, faces).areas.min() > 0:
        raise NormalMeshError("the sides of the mesh cannot be matched: ask for another number of vertices")
    return MatchedMesh(vertices, faces, locked, seams)


def _without_flat_faces(
    mesh: ScreenMesh, locked: Bool, seams: Int32, pairs: list[SidePair]
) -> tuple[ScreenMesh, Bool, Int32]:
    """Return a mesh without the faces that would be flat on a side, and without the vertices that only they have."""
    flat = np.zeros(len(mesh.faces), np.bool_)
    on_sides = np.zeros((2, 2, len(mesh.vertices)), np.bool_)
    for pair, *both in _Sides(mesh, locked).chains(pairs):
        for side, chain in enumerate(both):
            on_sides[pair.axis, side, chain] = True
    for there in on_sides.reshape(4, -1):
        flat |= there[mesh.faces].all(axis=1)
    if not flat.any():
        return mesh, locked, seams
    used = np.zeros(len(mesh.vertices), np.bool_)
    used[mesh.faces[~flat]] = True
    number = np.cumsum(used, dtype=np.int32) - np.int32(1)
    kept = seams[used[seams].all(axis=1)]
    return ScreenMesh(mesh.vertices[used], number[mesh.faces[~flat]]), locked[used], number[kept]


class _Sides:
    """The vertices and faces of a mesh under matching."""

    def __init__(self, mesh: ScreenMesh, locked: Bool) -> None:
        self.vertices, self.locked = mesh.vertices.copy(), locked
        #: Faces that were divided, and those that were added.
        self._changed: dict[int, tuple[int, int, int]] = {}
        self.added: list[Float] = []
        self.count = len(mesh.vertices)
        outer = np.flatnonzero(mesh.opposite < 0)
        ends = edge_ends(mesh, outer)
        #: Next vertex along the boundary, and the face of each boundary edge.
        self.after = dict(ends.tolist())
        self.face_of = dict(zip(map(tuple, ends.tolist()), (outer // 3).tolist(), strict=True))
        order = np.argsort(mesh.faces.ravel(), kind="stable")
        self._corners = order, np.searchsorted(mesh.faces.ravel()[order], np.arange(self.count + 1))
        self._all_faces, self._face_count = mesh.faces, len(mesh.faces)

    def chains(self, pairs: list[SidePair]) -> list[tuple[SidePair, Int, Int]]:
        """Return the pairs that the mesh reaches, with the vertices along both of their sides."""
        found = [(pair, self.chain(pair, 0), self.chain(pair, pair.far)) for pair in pairs]
        return [each for each in found if len(each[1]) and len(each[2])]

    def chain(self, pair: SidePair, side: int) -> Int:
        """Return the vertices along one side of a pair, from its first end to the last; none if it has no faces."""
        ends = [np.roll([side, along], pair.axis) for along in (pair.first, pair.last)]
        # The boundary runs with the foreground on its left: down the left side, and up the right one.
        forwards = (side == 0) == (pair.axis == 0)
        start, end = ends if forwards else ends[::-1]
        for first in np.flatnonzero((self.vertices == start).all(axis=1)).tolist():
            chain = [first]
            while chain[-1] in self.after:
                following = self.after[chain[-1]]
                if abs(self.vertices[following, pair.axis] - side) > 1 or following == first:
                    break
                chain.append(following)
                if (self.vertices[following] == end).all():
                    return np.array(chain if forwards else chain[::-1])
        return np.empty(0, np.int64)

    def meet(self, near: Int, far: Int, along: int) -> None:
        """Move vertices of two chains that are close to each other's place to the same place."""
        places, others = self.vertices[near, along], self.vertices[far, along]
        partner = np.abs(places[:, None] - others).argmin(axis=1)
        mutual = np.abs(others[:, None] - places).argmin(axis=1)[partner] == np.arange(len(near))
        for k in np.flatnonzero(mutual).tolist():
            one, two = near[k], far[partner[k]]
            gap = abs(places[k] - others[partner[k]])
            if 0 < gap < NEAR * min(_room(places, k), _room(others, partner[k])):
                self._join(int(one), int(two), along)

    def _join(self, one: int, two: int, along: int) -> None:
        """Move two vertices on opposite sides to the same place, if they may be moved and no face suffers."""
        if self.locked[one] and self.locked[two]:
            return
        before = self.vertices[one, along], self.vertices[two, along]
        goal = before[0] if self.locked[one] else before[1] if self.locked[two] else sum(before) / 2
        shapes = self._fitness(one), self._fitness(two)
        self.vertices[one, along] = self.vertices[two, along] = goal
        if self._fitness(one) < min(shapes[0], 1.0) or self._fitness(two) < min(shapes[1], 1.0):
            self.vertices[one, along], self.vertices[two, along] = before

    def _fitness(self, vertex: int) -> float:
        """Return the shape of the worst face around a vertex: 1 or more for faces that are well shaped."""
        order, starts = self._corners
        a, b, c = self.vertices[self._all_faces[order[starts[vertex] : starts[vertex + 1]] // 3]].swapaxes(0, 1)
        double = (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0]) - (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1])
        longest = np.max([((p - q) ** 2).sum(axis=1) for p, q in ((a, b), (b, c), (c, a))], axis=0)
        return float((double / np.maximum(2 * MIN_AREA, MIN_FLATNESS * longest)).min())

    def add_twins(self, chain: Int, model: Int, along: int) -> None:
        """Divide edges of a chain where another chain has vertices and it has none."""
        places = self.vertices[chain, along]
        missing = np.setdiff1d(self.vertices[model, along], places)
        edge = np.searchsorted(places, missing) - 1
        for k in np.unique(edge).tolist():
            new = np.repeat(self.vertices[chain[k], None], np.count_nonzero(edge == k), axis=0)
            new[:, along] = missing[edge == k]
            a, b = int(chain[k]), int(chain[k + 1])
            if (a, b) in self.face_of:
                self._divide(a, b, new)
            else:
                self._divide(b, a, new[::-1])

    def _divide(self, a: int, b: int, new: Float) -> None:
        """Divide the boundary edge from a to b, and its face, at new vertices (K, 2) in the order of the edge."""
        face = self.face_of.pop((a, b))
        corners = self._changed[face] if face in self._changed else self._all_faces[face].tolist()
        apex = next(vertex for vertex in corners if vertex not in (a, b))
        line = [a, *range(self.count, self.count + len(new)), b]
        self.added.append(new)
        self.count += len(new)
        self._changed[face] = (apex, line[0], line[1])
        for start, end in pairwise(line[1:]):
            self._changed[self._face_count] = (apex, start, end)
            self._face_count += 1
        if (b, apex) in self.face_of:
            self.face_of[b, apex] = self._face_count - 1

    def faces(self) -> Int32:
        """Return the faces as they are now."""
        faces = np.empty((self._face_count, 3), np.int32)
        faces[: len(self._all_faces)] = self._all_faces
        for face, corners in self._changed.items():
            faces[face] = corners
        return faces


def _room(places: Float, k: int) -> float:
    """Return the distance of a place to the next ones in a list, 0 for its ends."""
    return float(min(places[k] - places[k - 1], places[k + 1] - places[k])) if 0 < k < len(places) - 1 else 0.0
