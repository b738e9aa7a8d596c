"""Analysis of the blocks of a dissection: the tree that they form, and the places of all numbers in their fronts."""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Int
from normalmesh.runtime.threads import in_parallel
from normalmesh.solvers import _analysis
from normalmesh.solvers._cholesky import Assembly, Blocks, Tree
from normalmesh.solvers._dissection import Pattern

#: Minimum number of blocks for each thread.
BLOCKS_AT_ONCE = 512
#: Positions in borders for which there is room at first, for each unknown. Graphs in the plane have two or three.
_ROOM = 16


def couplings(pattern: Pattern, blocks: Blocks, parts: Int) -> Tree:
    """Return the tree of the blocks.

    ``parts`` (P, 2) are ranges of positions without couplings between them, which are analysed in parallel. Blocks that
    lie in none follow one by one.
    """
    room = _ROOM
    while (tree := _couplings(pattern, blocks, parts, room)) is None:
        room *= 4
    return tree


def _couplings(pattern: Pattern, blocks: Blocks, parts: Int, room: int) -> Tree | None:
    """Return the tree, or None if there is too little room."""
    n, count = blocks.order.size, blocks.start.size
    borders = _analysis.Borders(
        position=np.empty(n, np.int32),
        owner=np.repeat(np.arange(count, dtype=np.int32), blocks.stop - blocks.start),
        begin=np.zeros(count, np.int64),
        size=np.zeros(count, np.int64),
        # Memory that is not touched costs nothing.
        rows=np.empty(2 * room * n, np.int32),
        parent=np.full(count, -1, np.int32),
        child=np.full(count, -1, np.int32),
        sibling=np.full(count, -1, np.int32),
    )
    borders.position[blocks.order] = np.arange(n)
    within = np.searchsorted(blocks.start, parts)
    above = np.ones(count, np.bool_)
    for first, last in within:
        above[first:last] = False
    chosen = np.flatnonzero(above)
    rest = np.array([[0, chosen.size, room * n, 2 * room * n]])
    for ranges, members in ((np.concatenate([within, room * parts], axis=1), np.arange(count)), (rest, chosen)):
        full = np.zeros(len(ranges), np.bool_)
        in_parallel(_analysis.find_borders, len(ranges), ranges, members, pattern, blocks, borders, full, grain=1)
        if full.any():
            return None
        _analysis.link_blocks(borders)
    border = np.concatenate([[0], np.cumsum(borders.size)])
    rows = borders.rows[np.repeat(borders.begin - border[:-1], borders.size) + np.arange(border[-1])]
    return Tree(borders.position, border, rows, borders.parent, borders.child, borders.sibling)


def assembly_of(pattern: Pattern, blocks: Blocks, tree: Tree) -> Assembly:
    """Return the places of all numbers in the fronts of the blocks."""
    count = blocks.start.size
    pointers = np.zeros(count + 1, np.int64)
    in_parallel(_analysis.count_entries, count, pattern, blocks, tree, pointers[1:], grain=BLOCKS_AT_ONCE)
    np.cumsum(pointers, out=pointers)
    entry, place = (np.empty(pointers[-1], np.int32) for _ in range(2))
    column, run_end = (np.empty(tree.rows.size, np.int32) for _ in range(2))
    assembly = Assembly(pointers, entry, place, column, run_end)
    in_parallel(_analysis.plan_assembly, count, pattern, blocks, tree, assembly, grain=BLOCKS_AT_ONCE)
    return assembly
