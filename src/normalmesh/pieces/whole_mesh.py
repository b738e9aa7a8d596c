"""WholeMesh: the mesh of the whole image in the coordinator, from which pieces are taken and into which they return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float, Int, Int32, Integer
from normalmesh.engine.array_file import Arrays
from normalmesh.mesh.components import components
from normalmesh.mesh.cut_mesh import CutMesh, edge_ends
from normalmesh.mesh.repeats import Repeats
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.pieces.tile_grid import TileGrid


@dataclass(frozen=True, eq=False)
class Piece:
    """All faces at some free vertices: a part of a mesh that can be changed while all other vertices stay.

    A vertex at which faces of the piece touch only at a corner occurs several times.
    """

    numbers: Int  # (n,): the vertices in the whole mesh
    vertices: Float  # (n, 2): their positions in the image
    faces: Int32  # (m, 3)
    free: Bool  # (n,): the vertices that may change; all faces at them belong to the piece
    seams: Int32  # (s, 2): edges of the piece along which depth jumps
    unknown: Float  # (n,): unknown of the camera at the vertices; empty if it is not known
    component: Int32  # (n,): component of each vertex before the mesh was cut; empty if it was not


@dataclass(eq=False)
class WholeMesh:
    """A mesh, most of which waits to be changed; what is not known yet is empty.

    Where it repeats, vertices on opposite sides have the same places, and are fixed.
    """

    method = "elimination"
    #: Arrays over the vertices; some are empty until they are known.
    OF_VERTICES = ("vertices", "waiting", "unknown", "component", "fixed")

    vertices: Float  # (N, 2)
    faces: Int32  # (M, 3)
    waiting: Bool  # (N,): vertices that have not been free yet
    seams: Int32  # (S, 2): edges along which depth jumps
    #: (K,), ascending: numbers in the image of pixels that are covered in the background, or not in the foreground.
    flipped: Int
    #: (N,): unknown of the camera at the vertices.
    unknown: Float = field(default_factory=lambda: np.empty(0))
    #: (N,): component of each vertex before the mesh was cut.
    component: Int32 = field(default_factory=lambda: np.empty(0, np.int32))
    #: (N,): vertices that are never free.
    fixed: Bool = field(default_factory=lambda: np.empty(0, np.bool_))
    rounds: list[tuple[int, int]] = field(default_factory=list)  # flips and moves of refinement so far
    error: float = 0.0  # estimated, of the unknown, in px
    #: (4,): collapses, flips and moves of the decimation so far, and the largest cost (px⁴) of a collapse.
    done: Float = field(default_factory=lambda: np.zeros(4))
    dropped_lines: int = 0  # lines of jumps that were left out, because they would have needed too many vertices
    target: int | None = None  # vertices that were asked for, or chosen by the detail
    detail: str | None = None  # low, medium or high, if that chose the target
    #: (C,): what has to be added to the unknown of each component that a prior fixes.
    levels: Float = field(default_factory=lambda: np.empty(0))
    bent: float = 0.0  # largest share of a component that points of large weight bend against the normals
    #: (C,): components that are cut, and those that the next round of refinement changes.
    torn: Bool = field(default_factory=lambda: np.empty(0, np.bool_))
    moving: Bool = field(default_factory=lambda: np.empty(0, np.bool_))
    repeats: Repeats | None = None

    @classmethod
    def joined(cls, tiles: list[Arrays]) -> WholeMesh:
        """Join tiles, which begin and end at common seams: there the ends of common edges become one vertex.

        Vertices at one place that no common edge connects stay apart: foreground pixels that touch at a corner.
        """
        starts = np.cumsum([0, *(len(tile["vertices"]) for tile in tiles[:-1])])

        def joined(name: str, numbers: bool = False) -> NDArray[Any]:
            return np.concatenate([tile[name] + numbers * start for tile, start in zip(tiles, starts, strict=True)])

        vertices, faces = joined("vertices"), joined("faces", numbers=True)
        whole = ScreenMesh(vertices, faces)
        outer = edge_ends(whole, np.flatnonzero(whole.find_opposite() < 0))
        group = components(_same_places(vertices, outer), len(vertices)).astype(np.int64)
        place = np.unique(group, return_index=True)[1]
        seams = np.unique(np.sort(group[joined("seams", numbers=True)], axis=1), axis=0).astype(np.int32)
        waiting = np.concatenate([tile["waiting"] for tile in tiles])
        flipped = np.sort(joined("flipped"))
        return cls(vertices[place], group[faces].astype(np.int32), waiting[place], seams, flipped)

    def cut(self) -> WholeMesh:
        """Return the mesh cut along its seams, whose vertices are fixed from now on."""
        cut = CutMesh.along(self.screen(), self.seams)
        fixed = self.fixed.copy() if len(self.fixed) else np.zeros(len(self.vertices), np.bool_)
        fixed[self.seams] = True
        component = cut.component if self.repeats is None else self.wrapped().components[cut.origin]
        torn = np.zeros(int(component.max()) + 1, np.bool_)
        torn[component[len(self.vertices) :]] = True
        return replace(
            self,
            vertices=cut.mesh.vertices,
            faces=cut.mesh.faces,
            waiting=np.zeros(len(cut.origin), np.bool_),
            seams=np.empty((0, 2), np.int32),
            component=component,
            fixed=fixed[cut.origin],
            torn=torn,
        )

    def cut_again(self, edges: Integer) -> None:
        """Cut the mesh along more edges (E, 2), whose vertices are fixed from now on, in place."""
        if len(edges) == 0:
            return
        cut = CutMesh.along(self.screen(), edges)
        self.fixed[edges] = True
        self.faces = cut.mesh.faces
        self._choose_vertices(cut.origin)
        self.vertices = cut.mesh.vertices

    def _choose_vertices(self, chosen: Bool | Integer) -> None:
        """Reduce or repeat the arrays over vertices that are known."""
        for name in self.OF_VERTICES:
            if len(array := getattr(self, name)):
                setattr(self, name, array[chosen])

    def screen(self) -> ScreenMesh:
        """Return the mesh on the screen."""
        return ScreenMesh(self.vertices, self.faces)

    def wrapped(self) -> ScreenMesh:
        """Return the mesh on the screen, joined across its sides where it repeats."""
        return self.screen() if self.repeats is None else self.repeats.wrap(self.screen())

    def neighbours(self, chosen: Bool) -> Bool:
        """Return the vertices (N,) that have a face in common with the chosen ones, and these."""
        near = chosen.copy()
        near[self.faces[chosen[self.faces].any(axis=1)]] = True
        return near

    def waiting_zones(self, grid: TileGrid, stage: str) -> Int32:
        """Return the zone (N,) of each vertex that waits and is free in a stage, −1 for others.

        Stages are ``"tiles"``, ``"strips"``, ``"crossings"`` and ``"crossings-2"``.
        """
        waiting = np.flatnonzero(self.waiting)
        zones, points = np.full(len(self.waiting), -1, np.int32), self.vertices[waiting]
        if stage == "tiles":
            zones[waiting] = np.where(grid.in_collar(points), -1, grid.tile_of(points))
        elif stage == "strips":
            zones[waiting] = grid.strip_of(points)
        else:
            zones[waiting] = grid.crossing_of(points)
            if stage == "crossings":
                zones[(zones >= 0) & ~grid.is_even(zones)] = -1
        return zones

    def pieces(self, zone: Int32) -> Iterator[tuple[int, Piece]]:
        """Yield the pieces in which vertices are free, by the zone (N,) of each vertex, −1 for none, ascending.

        Fixed vertices, and those with a face in two zones, are not free: ``zone`` becomes −1 there.
        """
        if len(self.fixed):
            zone[self.fixed] = -1
        high = self._highest(zone)
        # Without a zone is the same as the largest number of all.
        unlike = high > ~self._highest(np.where(zone < 0, np.iinfo(zone.dtype).min, ~zone))
        if unlike.any():
            zone[self.faces[unlike]] = -1
            high = self._highest(zone)
        chosen = np.flatnonzero(high >= 0)
        if len(chosen) == 0:
            return
        order = chosen[np.argsort(high[chosen], kind="stable")]
        names, starts = np.unique(high[order], return_index=True)
        for name, faces in zip(names, np.split(order, starts[1:]), strict=True):
            yield int(name), self._piece(faces, zone == name)

    def _highest(self, values: Integer) -> Integer:
        """Return the largest of the values (N,) at the vertices of each face (M,)."""
        first, second, third = (values[self.faces[:, k]] for k in range(3))
        return np.asarray(np.maximum(np.maximum(first, second), third))

    def _piece(self, chosen: Int, free: Bool) -> Piece:
        """Return the piece of the chosen faces."""
        numbers, local = np.unique(self.faces[chosen].astype(np.int64), return_inverse=True)
        faces = local.reshape(-1, 3).astype(np.int32)
        seams = _edges_among(self.seams, numbers, faces)
        cut = CutMesh.at_corners(ScreenMesh(self.vertices[numbers], faces))
        numbers = numbers[cut.origin]
        unknown = self.unknown[numbers] if len(self.unknown) else self.unknown
        component = self.component[numbers] if len(self.component) else self.component
        return Piece(numbers, self.vertices[numbers], cut.mesh.faces, free[numbers], seams, unknown, component)

    def replace(self, changed: list[tuple[Piece, Arrays]]) -> None:
        """Put pieces back that were changed; their free vertices no longer wait.

        Each has ``vertices``, ``faces``, ``seams``, ``flipped``, ``unknown`` and ``component`` if they are known, and
        ``origin`` (n,): the vertex of the piece that each vertex was, −1 for new ones. Vertices that were not free stay
        where they are.
        """
        if not changed:
            return
        gone = np.zeros(len(self.vertices), np.bool_)
        for piece, _ in changed:
            gone[piece.numbers[piece.free]] = True
        kept_faces = self.faces[~gone[self.faces].any(axis=1)]
        lost = _edge_keys(np.concatenate([piece.numbers[piece.seams] for piece, _ in changed]), len(gone))
        kept_seams = self.seams[~np.isin(_edge_keys(self.seams, len(gone)), lost)]
        faces, seams, count = [kept_faces], [kept_seams], len(self.vertices)
        of_vertices = {name: [array] for name in self.OF_VERTICES if len(array := getattr(self, name))}
        for piece, result in changed:
            origin = result["origin"]
            stays = (origin >= 0) & ~piece.free[origin]
            number = np.empty(len(origin), np.int64)
            number[stays] = piece.numbers[origin[stays]]
            fresh = np.flatnonzero(~stays)
            number[fresh] = count + np.arange(len(fresh))
            count += len(fresh)
            for name, arrays in of_vertices.items():
                arrays.append(result[name][fresh] if name in result else np.zeros(len(fresh), np.bool_))
            faces.append(number[result["faces"]].astype(np.int32))
            seams.append(number[result["seams"]].astype(np.int32))
        flipped = np.concatenate([result["flipped"] for _, result in changed])
        # A pixel that was flipped back occurs twice.
        flipped, times = np.unique(np.concatenate([self.flipped, flipped]), return_counts=True)
        self.flipped = flipped[times == 1]
        for name, arrays in of_vertices.items():
            setattr(self, name, np.concatenate(arrays))
        self.faces, self.seams = np.concatenate(faces), np.concatenate(seams)
        self._compact()

    def _compact(self) -> None:
        """Drop vertices without faces."""
        used = np.zeros(len(self.vertices), np.bool_)
        used[self.faces] = True
        number = np.cumsum(used, dtype=np.int32) - np.int32(1)
        self._choose_vertices(used)
        self.faces, self.seams = number[self.faces], number[self.seams]


def shares(pieces: Mapping[int, Piece], count: int) -> dict[int, int]:
    """Divide a number of vertices among pieces, in proportion to their free ones; none if it is negative."""
    sizes = np.array([np.count_nonzero(piece.free) for piece in pieces.values()])
    ends = np.round(np.cumsum(sizes) / max(sizes.sum(), 1) * max(count, 0)).astype(np.int64)
    return dict(zip(pieces, np.diff(ends, prepend=0).tolist(), strict=True))


def _same_places(vertices: Float, edges: Integer) -> Int:
    """Return the pairs of vertices (P, 2) at the ends of edges (E, 2) that occur twice, in opposite directions."""
    places, number = np.unique(vertices[edges].reshape(-1, 2), axis=0, return_inverse=True)
    start, end = number.reshape(-1, 2).T.astype(np.int64)
    forwards, backwards = start * len(places) + end, end * len(places) + start
    _, here, there = np.intersect1d(forwards, backwards, return_indices=True)
    return np.stack([edges[here].ravel(), edges[there][:, ::-1].ravel()], axis=1)


def _edge_keys(edges: Integer, count: int) -> Int:
    """Return a number (E,) for each of the edges (E, 2) between ``count`` vertices, whatever their direction."""
    keys: Int = np.sort(edges.astype(np.int64), axis=1) @ np.array([count, 1])
    return keys


def _edges_among(edges: Int32, numbers: Int, faces: Int32) -> Int32:
    """Return those of the edges (E, 2) that faces (m, 3) have, with the vertices as ``numbers`` (n,) numbers them."""
    place = np.searchsorted(numbers, edges)
    there = np.asarray((place < len(numbers)).all(axis=1))
    there[there] = (numbers[place[there]] == edges[there]).all(axis=1)
    local = place[there].astype(np.int32)
    sides = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    return local[np.isin(_edge_keys(local, len(numbers)), _edge_keys(sides, len(numbers)))]
