"""NearCells: the neighbourhood of points on the screen, as a grid of coarse cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Bool, Float

#: Side of a cell, in px.
SIZE = 8


@dataclass(frozen=True, eq=False)
class NearCells:
    """Cells of :data:`SIZE` px near some points.

    Attributes
    ----------
    cells : (R, C) bool
        Cells in rows and columns from the upper left corner of the screen.
    inset : (int, int)
        Row and column, in px, of the screen in the first cell.
    """

    cells: Bool
    inset: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, points: Float, reach: float, shape: tuple[int, int]) -> NearCells:
        """Mark the cells within about ``reach`` px of points (K, 2), as u, v, on a screen of the given shape."""
        rows, columns, around = shape[0] // SIZE + 1, shape[1] // SIZE + 1, int(reach / SIZE)
        column, row = np.unique((points / SIZE).astype(np.int64), axis=0).T
        steps = np.arange(-around, around + 1)
        # With a margin, which discs around cells at the sides reach into.
        cells = np.zeros((rows + 2 * around, columns + 2 * around), np.bool_)
        for down, right in np.argwhere(steps[:, None] ** 2 + steps**2 <= around**2):
            cells[row + down, column + right] = True
        return cls(cells[around : around + rows, around : around + columns].copy())

    def window(self, rows: slice, columns: slice) -> NearCells:
        """Return the cells of a window of the screen, with the pixel corners at its end."""
        inset = rows.start % SIZE, columns.start % SIZE
        part = self.cells[rows.start // SIZE : rows.stop // SIZE + 1, columns.start // SIZE : columns.stop // SIZE + 1]
        return NearCells(np.ascontiguousarray(part), inset)

    def at(self, points: Float) -> Bool:
        """Return whether the cells of points (K, 2) are marked."""
        column, row = ((points + self.inset[::-1]) / SIZE).astype(np.int64).T
        return self.cells[row, column]
