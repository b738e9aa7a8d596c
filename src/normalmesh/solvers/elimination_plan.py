"""Plan of the elimination of one sparsity pattern: order, parallel tasks, and places of all numbers.

The order is a nested dissection by coordinates. Blocks of it, or all of them, are factorised by the multifrontal method
with dense fronts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee

from normalmesh.array_types import Bool, Float, Int, Integer
from normalmesh.errors import NormalMeshError
from normalmesh.runtime.threads import in_parallel
from normalmesh.runtime.workspace import Workspace
from normalmesh.solvers import _analysis
from normalmesh.solvers._cholesky import (
    Assembly,
    Blocks,
    Elimination,
    Matrix,
    Schedule,
    Storage,
    Tree,
    factorise,
    substitute,
)
from normalmesh.solvers._dissection import Ordering, Pattern, Positions, dissect
from normalmesh.solvers.elimination_tree import EliminationTree

#: Subtrees with at most this share of the work are done in parallel. The share is fixed, so that results do not depend
#: on the number of threads.
_SHARE = 1 / 128
#: Overhead of a block besides its arithmetic, in multiplications.
_BLOCK_WORK = 1000.0
#: Systems of at least `_PARALLEL_FROM` unknowns are dissected on several threads, in `_PARTS` parts.
_PARALLEL_FROM, _PARTS = 10_000, 64
#: Minimum number of blocks that a thread analyses.
_BLOCKS = 512
#: Positions in borders for which there is room at first, for each unknown. Graphs in the plane have two or three.
_ROOM = 16
#: Numbers in the panels of a level from which on its tasks are shared among threads: to factorise, and to substitute.
_FACTORISED, _SUBSTITUTED = 50_000, 500_000


class Passes(NamedTuple):
    """Schedules for a set of blocks, children before parents, to factorise them and to substitute with them."""

    factorising: list[Schedule]
    substituting: list[Schedule]


class EliminationPlan:
    """What follows from the sparsity pattern of all symmetric matrices (n, n) to be factorised.

    ``coordinates`` (n, 2) are positions of the unknowns in the plane, in any unit. Without them, the order is that of
    the breadth-first search of Cuthill and McKee, with several times the fill-in. The unknowns ``last`` (b,) form the
    last block, in this order, which is left to the caller.

    Panels and updates of blocks begin at ``panel_at`` (B + 1,) and ``update_at`` (B,), as in
    :class:`._cholesky.Storage`; an update has ``update_size`` (B,) numbers. There are ``panel_count`` numbers in all
    panels, and ``update_count`` in all updates that are not on stacks.
    """

    def __init__(self, matrix: csr_matrix, coordinates: Float | None, last: Integer | None = None) -> None:
        self.pattern = Pattern(matrix.indptr, matrix.indices)
        if coordinates is None:
            coordinates = _breadth_first_coordinates(matrix)
        blocks, parts = _dissected(self.pattern, coordinates, np.empty(0, np.int32) if last is None else last)
        tree = _tree(self.pattern, blocks, parts)
        self.elimination = Elimination(blocks, tree, _assembly(self.pattern, blocks, tree))
        self.tree = EliminationTree.of(tree.parent)
        own, beyond = blocks.stop - blocks.start, np.diff(tree.border)
        work = own * (own + beyond) ** 2.0 + _BLOCK_WORK
        if last is not None and len(last):
            # Enough to make the last block a task on its own, and those next below it, whose updates the caller reads.
            work[-1] = 2 * _SHARE * work[:-1].sum() + 1.0
        task, self._levels = self.tree.tasks(work, _SHARE)
        self._tasks = np.concatenate([[0], np.cumsum(np.bincount(task))])
        self._blocks = np.lexsort((self.tree.postorder(), task))
        # Padded as by _fronts.padded.
        wide, deep = own + 3 & ~3, beyond + 3 & ~3
        self.update_size: Int = deep**2
        self.update_at, self.update_count, self._stack = self.tree.update_places(self.update_size, task)
        self._panel_size: Int = own * (wide + deep)
        self.panel_at = _pointers(self._panel_size)
        self.panel_count = int(self.panel_at[-1])

    def storage(self, workspace: Workspace, more: int = 0, kind: type[np.floating[Any]] = np.float64) -> Storage:
        """Reserve memory for all panels, the updates beside stacks, and so many ``more`` numbers of updates.

        In float32, pivots are computed from sums (:mod:`._fronts`).
        """
        buffer = workspace.reserve(self.panel_count + self.update_count + more, kind)
        panels, updates = np.split(buffer, [self.panel_count])
        return Storage(self.panel_at, self.update_at.copy(), panels, updates, self._stack, kind is np.float32)

    def passes(self, chosen: Bool) -> Passes:
        """Return the passes over the chosen blocks (B,)."""
        is_chosen = chosen[self._blocks]
        blocks = self._blocks[is_chosen]
        tasks = _pointers(is_chosen)[self._tasks]
        numbers = np.diff(_pointers(self._panel_size[blocks])[tasks[self._levels]])
        several = np.diff(_pointers(np.diff(tasks) > 0)[self._levels]) > 1

        def schedules(least: int) -> list[Schedule]:
            shared = several & (numbers >= least)
            # Consecutive levels that one thread does are a single task.
            begins = np.flatnonzero(np.append(True, shared[1:] | shared[:-1]))
            bounds = pairwise(self._levels[np.append(begins, shared.size)])
            pointers = (
                np.unique(tasks[low : high + 1] if split else tasks[[low, high]])
                for (low, high), split in zip(bounds, shared[begins], strict=True)
            )
            return [Schedule(each, blocks) for each in pointers if each.size > 1]

        return Passes(schedules(_FACTORISED), schedules(_SUBSTITUTED))

    def factorise(self, passes: Passes, matrix: Matrix, storage: Storage) -> None:
        """Fill panels and updates of the blocks of the passes, whose matrix must be positive definite."""
        for schedule in passes.factorising:
            count = schedule.pointers.size - 1
            failed = np.full(count, -1)
            in_parallel(factorise, count, matrix, self.elimination, schedule, storage, failed, grain=1)
            if failed.max() >= 0:
                unknown = self.elimination.blocks.order[failed.max()]
                raise NormalMeshError(
                    f"the matrix is not positive definite: the pivot of unknown {unknown} is not positive"
                )

    def substitute(self, passes: Passes, upwards: bool, storage: Storage, x: Float, carried: Float) -> None:
        """Solve Uᵀy = b upwards or Ux = y downwards, in place, in the blocks of the passes.

        ``x`` (n,) is in elimination order. ``carried``, one number for each of the tree's ``rows``, holds what blocks
        add to the right-hand side of their borders.
        """
        for schedule in passes.substituting if upwards else reversed(passes.substituting):
            count = schedule.pointers.size - 1
            in_parallel(substitute, count, upwards, self.elimination, schedule, storage, x, carried, grain=1)


def _breadth_first_coordinates(matrix: csr_matrix) -> Float:
    """Return positions (n, 2) on a line for a graph without coordinates: neighbours are close together there."""
    positions = np.zeros((matrix.shape[0], 2))
    positions[reverse_cuthill_mckee(matrix, symmetric_mode=True), 0] = np.arange(len(positions))
    return positions


def _pointers(counts: NDArray[np.generic]) -> Int:
    """Return where each of several consecutive ranges (m,) begins, and where the last one ends: (m + 1,)."""
    pointers = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=pointers[1:])
    return pointers


def _dissected(pattern: Pattern, coordinates: Float, last: Integer) -> tuple[Blocks, Int]:
    """Return elimination order and blocks by nested dissection, and ranges (P, 2) of positions that are not coupled.

    The ``last`` unknowns are a block.
    """
    n, inside = len(coordinates), len(coordinates) - len(last)
    positions = Positions(coordinates[:, 0].copy(), coordinates[:, 1].copy())
    order = np.concatenate([np.delete(np.arange(n, dtype=np.int32), last), last], dtype=np.int32)
    ordering = Ordering(order, np.zeros(n, np.bool_), np.zeros(n, np.int8), np.empty(n, np.int32))
    ordering.begins[inside:][:1] = True
    parts = np.array([[0, inside]])
    # There are no edges between parts, so they can be halved at the same time.
    while inside >= _PARALLEL_FROM and len(parts) < _PARTS:
        halves = np.zeros((2 * len(parts), 2), np.int64)
        in_parallel(dissect, len(parts), parts, halves, False, pattern, positions, ordering, grain=1)
        parts = halves
    in_parallel(dissect, len(parts), parts, parts, True, pattern, positions, ordering, grain=1)
    start = np.flatnonzero(ordering.begins)
    return Blocks(ordering.order, start, np.append(start[1:], n)), parts


def _tree(pattern: Pattern, blocks: Blocks, parts: Int) -> Tree:
    """Return the tree of the blocks.

    ``parts`` (P, 2) are ranges of positions without couplings between them, which are analysed in parallel. Blocks that
    lie in none follow one by one.
    """
    room = _ROOM
    while (tree := _tree_in_room(pattern, blocks, parts, room)) is None:
        room *= 4
    return tree


def _tree_in_room(pattern: Pattern, blocks: Blocks, parts: Int, room: int) -> Tree | None:
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


def _assembly(pattern: Pattern, blocks: Blocks, tree: Tree) -> Assembly:
    """Return the places of all numbers in the fronts of the blocks."""
    count = blocks.start.size
    pointers = np.zeros(count + 1, np.int64)
    in_parallel(_analysis.count_entries, count, pattern, blocks, tree, pointers[1:], grain=_BLOCKS)
    np.cumsum(pointers, out=pointers)
    entry, place = (np.empty(pointers[-1], np.int32) for _ in range(2))
    column, run_end = (np.empty(tree.rows.size, np.int32) for _ in range(2))
    assembly = Assembly(pointers, entry, place, column, run_end)
    in_parallel(_analysis.plan_assembly, count, pattern, blocks, tree, assembly, grain=_BLOCKS)
    return assembly
