"""Plan of merging: the order in which tiles are merged pair by pair, and which separators each node eliminates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from normalmesh.array_types import Float, Integer

#: Nodes of each level, from the tiles upwards, with their two children, which may lie several levels below. Tiles are
#: numbered row by row, nodes follow.
MergeLevels = list[dict[int, tuple[int, int]]]


@dataclass(frozen=True, eq=False)
class MergeNode:
    """A node of the merge tree, whose ``children`` are tiles or nodes."""

    children: tuple[int, ...]
    places: tuple[Integer, ...]  # for each child, where its unknowns are among own separators, then those beyond
    own: Integer  # (k,) separators that are eliminated here, ascending
    beyond: Integer  # (b,) separators that are handed on, ascending
    pins: Float  # (k,) numbers to be added to the diagonal of own separators, which fix free constants


def merge_levels(rows: int, columns: int) -> MergeLevels:
    """Return the binary tree over a grid of tiles.

    Neighbours are paired across the shorter extent of the merged rectangles, so that these stay compact and their
    outlines short; the last one of a row may stay alone.
    """
    grid = np.arange(rows * columns).reshape(rows, columns)
    height, width, levels = 1, 1, MergeLevels()
    while grid.size > 1:
        in_rows = grid.shape[1] == 1 or (grid.shape[0] > 1 and (height, -len(grid)) < (width, -grid.shape[1]))
        height, width = (2 * height, width) if in_rows else (height, 2 * width)
        grid = grid.T if in_rows else grid
        pairs = grid[:, : grid.shape[1] // 2 * 2].reshape(len(grid), -1, 2)
        nodes = rows * columns + sum(map(len, levels)) + np.arange(pairs.size // 2).reshape(pairs.shape[:2])
        levels.append(
            {int(node): (int(a), int(b)) for node, (a, b) in zip(nodes.flat, pairs.reshape(-1, 2), strict=True)}
        )
        grid = np.concatenate([nodes, grid[:, 2 * pairs.shape[1] :]], axis=1)
        grid = grid.T if in_rows else grid
    return levels


def plan_merges(
    tree: MergeLevels, borders: Mapping[int, Integer], floating: Integer, diagonal: Float
) -> list[dict[int, MergeNode]]:
    """Return the nodes of each level, by number.

    Parameters
    ----------
    tree
        Nodes are left out that have fewer than two children which hand on separators.
    borders
        Separators of each tile that has faces, ascending.
    floating
        (S,) floating component of each separator, −1 for none. The separator of each that is eliminated last is pinned:
        its number on the diagonal is doubled.
    diagonal
        (S,) the diagonal before anything is eliminated.
    """
    counts = np.bincount(np.concatenate([np.empty(0, np.int64), *borders.values()]), minlength=len(floating))
    # What each tile or node hands on, and in how many tiles below it each of these occurs.
    handed = {tile: (border, np.ones(len(border), np.int64)) for tile, border in borders.items() if len(border)}
    stands_for: dict[int, int] = {}
    levels: list[dict[int, MergeNode]] = []
    for level in tree:
        nodes: dict[int, MergeNode] = {}
        for number, pair in level.items():
            children = [each for each in (stands_for.get(child, child) for child in pair) if each in handed]
            if len(children) < 2:
                stands_for[number] = children[0] if children else number
                continue
            unknowns, inverse = np.unique(np.concatenate([handed[c][0] for c in children]), return_inverse=True)
            below = np.bincount(inverse, np.concatenate([handed[c][1] for c in children]), len(unknowns))
            done = below == counts[unknowns]
            if not done.all():
                handed[number] = unknowns[~done], below[~done].astype(np.int64)
            place = np.where(done, np.cumsum(done) - 1, np.count_nonzero(done) + np.cumsum(~done) - 1)
            places = np.split(place[inverse], [len(handed[children[0]][0])])
            nodes[number] = MergeNode(tuple(children), tuple(places), unknowns[done], unknowns[~done], np.empty(0))
        if nodes:
            levels.append(nodes)
    return _pinned(levels, floating, diagonal)


def _pinned(levels: list[dict[int, MergeNode]], floating: Integer, diagonal: Float) -> list[dict[int, MergeNode]]:
    """Return the nodes with pins: of each floating component the separator that is eliminated last."""
    own = [node.own for level in levels for node in level.values()]
    order = np.concatenate([np.empty(0, np.int64), *own])
    order = order[floating[order] >= 0]
    last = np.full(int(floating.max(initial=-1)) + 1, -1)
    # If several values are assigned to one place, the last one is kept.
    last[floating[order]] = order
    last = last[last >= 0]
    pins = np.zeros(len(floating))
    # A row of zeros, whose unknown is not determined, gets one.
    pins[last] = np.where(diagonal[last] > 0, diagonal[last], 1.0)
    return [{key: replace(node, pins=pins[node.own]) for key, node in level.items()} for level in levels]
