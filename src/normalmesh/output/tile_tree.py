"""A quadtree over the screen: which faces of a surface go into which tile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Int32, Integer
from normalmesh.mesh.surface import Surface

#: Largest number of faces of a tile without children.
MAX_FACES = 100_000
#: Largest depth of the tree: the square of a tile is this many times halved.
MAX_DEPTH = 15


@dataclass(frozen=True)
class Tile:
    """A square of the screen, or what it holds: the faces ``start`` … ``end − 1`` in the order of the tree.

    The place of the square is in the grid of that depth. Children without faces are left out.
    """

    depth: int
    row: int
    column: int
    start: int
    end: int
    children: tuple[Tile, ...] = ()

    @property
    def name(self) -> str:
        """A name that no other tile of the tree has."""
        return f"{self.depth}_{self.row}_{self.column}"

    def all_tiles(self) -> Iterator[Tile]:
        """Yield this tile and all below it."""
        yield self
        for child in self.children:
            yield from child.all_tiles()


@dataclass(frozen=True, eq=False)
class TileTree:
    """The tiles of a surface.

    ``order`` (M + W,) are faces and walls, tile by tile: those of any tile, at any depth, are next to each other;
    ``first`` and ``last`` (N,) the first and last place in it of the faces and walls of each vertex.
    """

    root: Tile
    order: Int32
    first: Int32
    last: Int32

    @classmethod
    def of_surface(cls, surface: Surface, max_faces: int = MAX_FACES) -> TileTree:
        """Divide the screen until no tile has more than ``max_faces`` faces, each where its centre is."""
        codes = _square_codes(surface)
        if len(surface.walls):
            # A wall is where one of the faces beside it is.
            face = np.zeros(len(surface.vertices), np.int64)
            face[surface.faces] = np.arange(len(surface.faces))[:, None]
            codes = np.concatenate([codes, codes[face[surface.walls[:, 0]]]])
        order = np.argsort(codes, kind="stable").astype(np.int32)
        codes = codes[order]
        root = _divided(codes, Tile(0, 0, 0, 0, len(codes)), max_faces)
        first = np.full(len(surface.vertices), len(order), np.int32)
        last = np.full(len(surface.vertices), -1, np.int32)
        place = np.arange(len(order), dtype=np.int32)
        for corners in surface.all_faces[order].T:
            np.minimum.at(first, corners, place)
            np.maximum.at(last, corners, place)
        return cls(root, order, first, last)

    def faces(self, tile: Tile, surface: Surface) -> tuple[Int32, Int32]:
        """Return the faces (M, 3) and the walls (W, 3) of the surface in a tile."""
        here, count = self.order[tile.start : tile.end], len(surface.faces)
        return surface.faces[here[here < count]], surface.walls[here[here >= count] - count]

    def shared(self, tile: Tile, vertices: Int32) -> Bool:
        """Return which of the vertices (n,) also have faces outside a tile: its border to other tiles."""
        return (self.first[vertices] < tile.start) | (self.last[vertices] >= tile.end)


def _square_codes(surface: Surface) -> NDArray[np.uint32]:
    """Return the smallest square (M,) of the tree that holds the centre of each face, as a Morton code.

    Each pair of bits, from the highest on, chooses one of four squares.
    """
    low = surface.screen.min(axis=0)
    side = float((surface.screen.max(axis=0) - low).max()) or 1.0
    cells = []
    for axis in range(2):
        position = surface.screen[:, axis]
        centre = sum(position[surface.faces[:, k]] for k in range(3)) / 3
        cell = ((centre - low[axis]) * (2**MAX_DEPTH / side)).astype(np.int64)
        cells.append(np.clip(cell, 0, 2**MAX_DEPTH - 1))
    return morton_codes(*cells)


def morton_codes(columns: Integer, rows: Integer) -> NDArray[np.uint32]:
    """Return the Morton codes (N,) of cells: the bits of their columns and rows, of 16 bits each, alternate."""
    spread = []
    for number in (columns, rows):
        bits = number.astype(np.uint32)
        for shift, mask in ((8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
            bits = (bits | (bits << np.uint32(shift))) & np.uint32(mask)
        spread.append(bits)
    return spread[0] | (spread[1] << np.uint32(1))


def _divided(codes: NDArray[np.uint32], tile: Tile, max_faces: int) -> Tile:
    """Return the tile with its children, from the codes (M,) in ascending order."""
    if tile.end - tile.start <= max_faces or tile.depth == MAX_DEPTH:
        return tile
    shift = 2 * (MAX_DEPTH - tile.depth - 1)
    quarters = (codes[tile.start : tile.end] >> np.uint32(shift)) & np.uint32(3)
    ends = tile.start + np.searchsorted(quarters, np.arange(5, dtype=np.uint32))
    children = (
        Tile(tile.depth + 1, 2 * tile.row + k // 2, 2 * tile.column + k % 2, int(ends[k]), int(ends[k + 1]))
        for k in range(4)
        if ends[k] < ends[k + 1]
    )
    divided = tuple(_divided(codes, child, max_faces) for child in children)
    return Tile(tile.depth, tile.row, tile.column, tile.start, tile.end, divided)
