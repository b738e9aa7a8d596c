"""TileGrid: the tiles of an image, and the strips and crossings along the seams between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from normalmesh.arguments import checked_int
from normalmesh.array_types import Bool, Float, Int, Int32, Integer
from normalmesh.decimation.hierarchy import PERIOD
from normalmesh.pieces.map_windows import Window

#: Distance (px) from a seam up to which vertices wait until both tiles beside it are done.
COLLAR = 16
#: Half the side (px) of the square around a crossing of seams whose vertices wait until the strips are done.
CROSSING = 64
#: Least side (px) of a tile: strips between two crossings are longer than wide.
LEAST_SIDE = 2 * PERIOD


@dataclass(frozen=True)
class TileGrid:
    """Square tiles of the rectangle around the foreground of an image.

    Tiles begin at its upper left corner, as squares of a :class:`.Hierarchy` do; the last ones may be smaller.
    """

    area: Window
    side: int  # of a tile in px, a multiple of PERIOD

    def __post_init__(self) -> None:
        checked_int(self.side, LEAST_SIDE, "tiles")

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of rows and columns of tiles."""
        rows, columns = (-(-length // self.side) for length in self.area.shape)
        return rows, columns

    def tile_keys(self) -> Iterator[tuple[int, int]]:
        """Yield row and column of all tiles, row by row."""
        rows, columns = self.counts
        yield from ((row, column) for row in range(rows) for column in range(columns))

    def tile(self, key: tuple[int, int] | int) -> Window:
        """Return the pixels of a tile, given by row and column, or by its number."""
        if isinstance(key, int):
            key = divmod(key, self.counts[1])
        top, left = self.area.top + key[0] * self.side, self.area.left + key[1] * self.side
        return Window(top, left, min(top + self.side, self.area.bottom), min(left + self.side, self.area.right))

    def shifted(self) -> TileGrid:
        """Return a grid whose seams lie halfway between those of this one."""
        back = self.side // 2
        return replace(self, area=replace(self.area, top=self.area.top - back, left=self.area.left - back))

    def in_collar(self, points: Float) -> Bool:
        """Return which of the points (K, 2), as u, v, lie at a seam."""
        (_, along), (_, across) = self._seams(points)
        return np.minimum(along, across) < COLLAR

    def tile_of(self, points: Float) -> Int32:
        """Return the number (K,) of the tile of each point (K, 2)."""
        rows, columns = self.counts
        column = np.clip((points[:, 0] - self.area.left) // self.side, 0, columns - 1)
        row = np.clip((points[:, 1] - self.area.top) // self.side, 0, rows - 1)
        return (row * columns + column).astype(np.int32)

    def strip_of(self, points: Float) -> Int32:
        """Return the number (K,) of the strip that each point (K, 2) is nearest to, −1 in squares around crossings."""
        (vertical, aside), (horizontal, below) = self._seams(points)
        rows, columns = self.counts
        tile = self.tile_of(points)
        row, column = np.divmod(tile, columns)
        beside = vertical * rows + row
        under = (columns - 1) * rows + horizontal * columns + column
        strip = np.where(aside < below, beside, under)
        strip[(aside < CROSSING) & (below < CROSSING)] = -1
        return strip

    def crossing_of(self, points: Float) -> Int32:
        """Return the number (K,) of the crossing nearest to each point (K, 2), −1 if there is none."""
        rows, columns = self.counts
        if min(rows, columns) == 1:
            return np.full(len(points), -1, np.int32)
        (vertical, _), (horizontal, _) = self._seams(points)
        return horizontal * (columns - 1) + vertical

    def is_even(self, crossing: Int32) -> Bool:
        """Return whether crossings (K,) lie on the dark fields of a chess board: no two of them are neighbours."""
        row, column = np.divmod(crossing, max(self.counts[1] - 1, 1))
        even: Bool = (row + column) % 2 == 0
        return even

    def _seams(self, points: Float) -> tuple[tuple[Int32, Float], tuple[Int32, Float]]:
        """Return number and distance (K,) of the nearest vertical, and of the nearest horizontal seam."""
        rows, columns = self.counts
        return (
            self._nearest(points[:, 0] - self.area.left, columns),
            self._nearest(points[:, 1] - self.area.top, rows),
        )

    def _nearest(self, places: Float, tiles: int) -> tuple[Int32, Float]:
        """Return number and distance of the nearest of the seams between a number of tiles in a row."""
        if tiles == 1:
            return np.zeros(len(places), np.int32), np.full(len(places), np.inf)
        number = np.clip(np.floor(places / self.side + 0.5) - 1, 0, tiles - 2).astype(np.int32)
        return number, np.abs(places - (number + 1) * self.side)


def by_tile(tile: Integer) -> dict[int, Int]:
    """Return which of some items lie in each tile, from the tile (K,) of each."""
    return {int(each): np.flatnonzero(tile == each) for each in np.unique(tile)}
