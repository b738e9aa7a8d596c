"""Tile faces: the faces of each tile of a mesh, with the rings of faces around them that their equations need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from normalmesh.array_types import Bool, Float, Int, Int32
from normalmesh.mesh.cut_mesh import boundary_vertices
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.pieces.map_windows import Window, window_around
from normalmesh.pieces.tile_grid import TileGrid

#: Rings of faces around those of a tile: the value at a vertex depends on the faces at all of its neighbours.
RINGS = 2


@dataclass(frozen=True, eq=False)
class TileMesh:
    """The faces of a tile, and those around them.

    Attributes
    ----------
    vertices : (n, 2)
        Positions in the image.
    faces : (m, 3) int32
        Faces of the tile first.
    numbers : (m,) int64
        The faces in the whole mesh.
    tile : (m,) int32
        The tile of each face.
    on_boundary : (n,) bool
        Vertices at the boundary of the whole mesh.
    """

    vertices: Float
    faces: Int32
    numbers: Int
    tile: Int32
    on_boundary: Bool

    @property
    def own(self) -> int:
        """Number of faces that belong to the tile."""
        return int(np.count_nonzero(self.tile == self.tile[0]))

    def window(self, shape: tuple[int, int]) -> Window:
        """Return the pixels around it in an image."""
        return window_around(self.vertices, shape)

    def screen(self, area: Window) -> ScreenMesh:
        """Return the mesh relative to the corner of a window."""
        return ScreenMesh(self.vertices - area.corner, self.faces)


@dataclass(frozen=True, eq=False)
class TileFaces:
    """Which faces of a mesh belong to which tile.

    Attributes
    ----------
    mesh : ScreenMesh
    tile : (M,) int32
        The tile of each face: that of its centroid.
    order : (M,) int64
        Faces by tile, ascending.
    starts : (T + 1,) int64
        Where the faces of each tile begin in ``order``.
    near_seams : (K,) int64
        Faces within some rings of faces of another tile.
    owner : (N,) int32
        Lowest tile of the faces at each vertex.
    on_boundary : (N,) bool
        Vertices at the boundary.
    """

    mesh: ScreenMesh
    tile: Int32
    order: Int
    starts: Int
    near_seams: Int
    owner: Int32
    on_boundary: Bool

    @classmethod
    def of(cls, mesh: ScreenMesh, grid: TileGrid) -> TileFaces:
        """Divide the faces of a mesh among tiles."""
        first, second, third = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
        tile = grid.tile_of((first + second + third) / 3)
        del first, second, third
        count = grid.counts[0] * grid.counts[1]
        order = np.argsort(tile, kind="stable")
        starts = np.searchsorted(tile[order], np.arange(count + 1))
        lowest, highest = np.full(len(mesh.vertices), count, np.int32), np.full(len(mesh.vertices), -1, np.int32)
        for k in range(3):
            np.minimum.at(lowest, mesh.faces[:, k], tile)
            np.maximum.at(highest, mesh.faces[:, k], tile)
        marked = lowest < highest
        for _ in range(RINGS):
            chosen = marked[mesh.faces[:, 0]] | marked[mesh.faces[:, 1]] | marked[mesh.faces[:, 2]]
            marked[mesh.faces[chosen]] = True
        return cls(mesh, tile, order, starts, np.flatnonzero(chosen), lowest, boundary_vertices(mesh))

    @property
    def tiles(self) -> list[int]:
        """The tiles that have faces."""
        return np.flatnonzero(np.diff(self.starts)).tolist()

    def gathered(self, results: Mapping[int, Mapping[str, Any]], *names: str) -> Iterator[Any]:
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
        faces = local.reshape(-1, 3).astype(np.int32)
        return TileMesh(self.mesh.vertices[vertices], faces, numbers, self.tile[numbers], self.on_boundary[vertices])

    def vertices(self, tile: int, rings: bool = True) -> Int32:
        """Return the vertices of :meth:`part` in the whole mesh."""
        return np.unique(self.mesh.faces[self.with_rings(tile) if rings else self.own(tile)])

    def own(self, tile: int) -> Int:
        """Return the faces of a tile."""
        return self.order[self.starts[tile] : self.starts[tile + 1]]

    def with_rings(self, tile: int) -> Int:
        """Return the faces of a tile, then those in the rings around them."""
        own = self.own(tile)
        marked = np.zeros(len(self.mesh.vertices), np.bool_)
        near = self.mesh.faces[self.near_seams]
        is_own = self.tile[self.near_seams] == tile
        marked[near[is_own]] = True
        for _ in range(RINGS):
            chosen = marked[near].any(axis=1)
            marked[near[chosen]] = True
        return np.concatenate([own, self.near_seams[chosen & ~is_own]])
