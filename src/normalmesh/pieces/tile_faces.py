"""Tile faces: the faces of each tile of a mesh, with the rings of faces around them that their equations need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from normalmesh.array_types import Bool, Float, Int, Int32, Integer
from normalmesh.engine.array_file import Arrays, Run
from normalmesh.engine.task_arguments import LazyArguments
from normalmesh.mesh.cut_mesh import boundary_vertices
from normalmesh.mesh.repeats import Repeats
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.pieces.map_windows import Window, WindowedMap, window_around
from normalmesh.pieces.repeating_map import limits_of
from normalmesh.pieces.tile_grid import TileGrid

#: Rings of faces around those of a tile: the value at a vertex depends on the faces at all of its neighbours.
RINGS = 2


@dataclass(frozen=True, eq=False)
class TileMesh:
    """The faces of a tile, and those around them."""

    vertices: Float  # (n, 2): positions in the image
    faces: Int32  # (m, 3): those of the tile first
    corners: Int32  # (n,): the vertices in the mesh of all tiles
    numbers: Int32  # (m,): the faces in the whole mesh
    tile: Int32  # (m,): the tile of each face, as in labels of TileFaces
    on_boundary: Bool  # (n,): vertices at the boundary of the whole mesh

    @property
    def own(self) -> int:
        """Number of faces that belong to the tile."""
        return int(np.count_nonzero(self.tile == self.tile[0]))

    def window(self, normal_map: WindowedMap) -> Window:
        """Return the pixels around it in a map, also beyond its sides if it repeats."""
        return window_around(self.vertices, limits_of(normal_map))

    def screen(self, area: Window) -> ScreenMesh:
        """Return the mesh relative to the corner of a window."""
        return ScreenMesh(self.vertices - area.corner, self.faces)


@dataclass(frozen=True, eq=False)
class TileFaces:
    """Which faces of a mesh belong to which tile."""

    mesh: ScreenMesh  # with copies of faces beyond its sides if it repeats
    face_of: Int32  # (M',): the face of the mesh that each of these faces is
    tile: Int32  # (M,): the tile of each face: that of its centroid
    #: (M',): the same with −1 for copies beyond the left and the upper side, T for those beyond the others: so one tile
    #: only is the highest at each edge across sides.
    labels: Int32
    order: Int  # (M,): faces by tile, ascending
    starts: Int  # (T + 1,): where the faces of each tile begin in order
    in_collar: Int  # (K,): faces within some rings of faces of another tile
    owner: Int32  # (N',): lowest tile of the faces at each vertex, T for those of copies only
    on_boundary: Bool  # (N',): vertices at the boundary

    @classmethod
    def of(cls, mesh: ScreenMesh, grid: TileGrid, repeats: Repeats | None = None) -> TileFaces:
        """Divide the faces of a mesh among tiles; if it repeats, rings go on beyond its sides."""
        first, second, third = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
        tile = grid.tile_of((first + second + third) / 3)
        del first, second, third
        count = grid.counts[0] * grid.counts[1]
        order = np.argsort(tile, kind="stable")
        starts = np.searchsorted(tile[order], np.arange(count + 1))
        unrolled = UnrolledMesh.of(mesh, repeats, RINGS)
        mesh, own = unrolled.mesh, len(tile)
        copied = np.where(unrolled.beyond[own:] < 0, -1, count).astype(np.int32)
        labels = np.append(tile, copied) if len(copied) else tile
        lowest, highest = np.full(len(mesh.vertices), count, np.int32), np.full(len(mesh.vertices), -1, np.int32)
        for k in range(3):
            np.minimum.at(lowest, mesh.faces[:own, k], tile)
            np.maximum.at(highest, mesh.faces[:, k], labels)
        marked = lowest < highest
        marked[mesh.faces[own:]] = True
        for _ in range(RINGS):
            chosen = marked[mesh.faces[:, 0]] | marked[mesh.faces[:, 1]] | marked[mesh.faces[:, 2]]
            marked[mesh.faces[chosen]] = True
        arrays = tile, labels, order, starts, np.flatnonzero(chosen), lowest, boundary_vertices(mesh)
        return cls(mesh, unrolled.face_of, *arrays)

    @property
    def tiles(self) -> list[int]:
        """The tiles that have faces."""
        return np.flatnonzero(np.diff(self.starts)).tolist()

    def ask(
        self,
        run: Run,
        stage: str,
        task: Callable[..., Arrays],
        source: WindowedMap,
        further: Callable[[int, TileMesh], tuple[Any, ...]] = lambda tile, part: (),
        rings: bool = True,
        work: float = 0.0,
    ) -> Mapping[int, Arrays]:
        """Return what a task answers for the part of each tile, of a map and further arguments for the tile."""

        def arguments(tile: int) -> tuple[Any, ...]:
            part = self.part(tile, rings)
            return source, part, *further(tile, part)

        return run(stage, task, LazyArguments(self.tiles, arguments), work=work)

    def gathered(self, results: Mapping[int, Arrays], *names: str) -> Iterator[Any]:
        """Yield arrays (M, …) of all faces from those that the tiles have for their own, None for names they lack."""
        for name in names:
            if name not in results[self.tiles[0]]:
                yield None
                continue
            parts = {tile: results[tile][name] for tile in self.tiles}
            first = parts[self.tiles[0]]
            whole = np.empty((len(self.tile), *first.shape[1:]), first.dtype)
            for tile, part in parts.items():
                whole[self.own(tile)] = part
            yield whole

    def part(self, tile: int, rings: bool = True) -> TileMesh:
        """Return the faces of a tile, with or without the rings around them."""
        numbers = self.with_rings(tile) if rings else self.own(tile)
        vertices, local = np.unique(self.mesh.faces[numbers], return_inverse=True)
        faces, places = local.reshape(-1, 3).astype(np.int32), self.mesh.vertices[vertices]
        on_boundary = self.on_boundary[vertices]
        return TileMesh(places, faces, vertices, self.face_of[numbers], self.labels[numbers], on_boundary)

    def own(self, tile: int) -> Int:
        """Return the faces of a tile."""
        return self.order[self.starts[tile] : self.starts[tile + 1]]

    def with_rings(self, tile: int) -> Int:
        """Return the faces of a tile, then those in the rings around them, in :attr:`mesh`."""
        own = self.own(tile)
        marked = np.zeros(len(self.mesh.vertices), np.bool_)
        near = self.mesh.faces[self.in_collar]
        is_own = self.labels[self.in_collar] == tile
        marked[near[is_own]] = True
        for _ in range(RINGS):
            chosen = marked[near].any(axis=1)
            marked[near[chosen]] = True
        return np.concatenate([own, self.in_collar[chosen & ~is_own]])


@dataclass(frozen=True, eq=False)
class UnrolledMesh:
    """A mesh that goes on beyond its sides, in the plane: its vertices and faces first, then copies.

    Copies have vertices on the sides in common with the mesh.
    """

    mesh: ScreenMesh
    face_of: Int32  # (M',): the face that each face is, or is a copy of
    beyond: Int32  # (M',): −1 for copies beyond the left or the upper side, 1 beyond the others, 0 for the mesh

    @classmethod
    def of(cls, mesh: ScreenMesh, repeats: Repeats | None, rings: int) -> UnrolledMesh:
        """Return a mesh with so many rings of faces beyond its sides; none if it does not repeat."""
        count = len(mesh.faces)
        unrolled = cls(mesh, np.arange(count, dtype=np.int32), np.zeros(count, np.int32))
        if repeats is not None:
            for axis, period in repeats.axes:
                unrolled = unrolled._along(axis, period, repeats, rings)
        return unrolled

    def _along(self, axis: int, period: int, repeats: Repeats, rings: int) -> UnrolledMesh:
        """Return the mesh with faces beyond its two sides in one direction."""
        mesh, count = self.mesh, len(self.mesh.vertices)
        joined = replace(repeats, x=axis == 0, y=axis == 1).wrap(mesh)
        # Rings near a corner go on beyond the sides in the other direction.
        ringed = replace(repeats, x=repeats.x and axis == 1, y=repeats.y and axis == 0).wrap(mesh).first_twins
        # A vertex at the end of a cut may be several ones at the near or the far side: the first there stands for all.
        first = np.full((2, count), count)
        for side, vertices in enumerate(joined.twins.T):
            np.minimum.at(first[side], joined.first_twins[vertices], vertices)
        first = first[:, joined.first_twins]
        name = np.arange(count)
        for side, vertices in enumerate(joined.twins.T):
            name[vertices] = first[side, vertices]
        faces = name[mesh.faces]
        places, parts, face_of, beyond = [mesh.vertices], [faces], [self.face_of], [self.beyond]
        for side, (origin, shift) in enumerate(((1, -period), (0, period))):
            starts = name[joined.twins[:, origin]]
            chosen = _near(ringed[mesh.faces], ringed[starts], rings)
            used = np.setdiff1d(faces[chosen], starts)
            number = np.empty(count, np.int64)
            number[used] = sum(map(len, places)) + np.arange(len(used))
            number[starts] = first[side, starts]
            copies = mesh.vertices[used]
            copies[:, axis] += shift
            places.append(copies)
            parts.append(number[faces[chosen]])
            face_of.append(self.face_of[chosen])
            beyond.append(np.full(len(parts[-1]), np.sign(shift), np.int32))
        opened = ScreenMesh(np.concatenate(places), np.concatenate(parts).astype(np.int32))
        return UnrolledMesh(opened, np.concatenate(face_of), np.concatenate(beyond))


def _near(faces: Integer, starts: Integer, rings: int) -> Bool:
    """Return the faces (M,) within so many rings around some of their vertices (K,)."""
    marked, chosen = np.zeros(int(faces.max()) + 1, np.bool_), np.zeros(len(faces), np.bool_)
    marked[starts] = True
    for _ in range(rings):
        chosen = np.asarray(marked[faces].any(axis=1))
        marked[faces[chosen]] = True
    return chosen
