"""MergeTree: the order in which the tiles of a grid are merged, pair by pair, into the whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Int


@dataclass(frozen=True)
class MergeTree:
    """Binary tree over the tiles of a grid.

    Attributes
    ----------
    levels
        For each level, from the tiles upwards, its nodes as (number, (child, child)). Tiles are numbered row by row,
        nodes follow. A child may lie several levels below.
    """

    levels: tuple[tuple[tuple[int, tuple[int, int]], ...], ...]

    @classmethod
    def of(cls, rows: int, columns: int) -> MergeTree:
        """Return the tree over a grid of tiles.

        Neighbours are paired across the shorter extent of the merged rectangles, so that these stay compact and their
        outlines short.
        """
        grid = np.arange(rows * columns).reshape(rows, columns)
        height, width, free, levels = 1, 1, rows * columns, []
        while grid.size > 1:
            in_rows = grid.shape[1] == 1 or (grid.shape[0] > 1 and (height, -len(grid)) < (width, -grid.shape[1]))
            height, width = (2 * height, width) if in_rows else (height, 2 * width)
            merged, nodes = _paired(grid.T if in_rows else grid, free)
            grid = merged.T if in_rows else merged
            free += len(nodes)
            levels.append(tuple(nodes))
        return cls(tuple(levels))


def _paired(grid: Int, free: int) -> tuple[Int, list[tuple[int, tuple[int, int]]]]:
    """Merge neighbours within each row of a grid, into nodes from number ``free`` on; the last one may stay alone."""
    first, second = grid[:, :-1:2], grid[:, 1::2]
    numbers = free + np.arange(first.size).reshape(first.shape)
    nodes = [
        (int(node), (int(a), int(b))) for node, a, b in zip(numbers.ravel(), first.ravel(), second.ravel(), strict=True)
    ]
    alone = grid[:, 2 * first.shape[1] :]
    return np.concatenate([numbers, alone], axis=1), nodes
