"""Kernels of the multifrontal Cholesky factorisation A = UᵀU along the blocks of a nested dissection.

Block s eliminates the positions ``start[s] … stop[s] − 1``. Its rows of U are one dense panel (k, k + b): k own
columns, then the b later positions ``rows[border[s]:border[s + 1]]`` it is coupled to. Its contribution to those is a
dense update (b, b), upper triangle, that is added to the panel and the update of its parent.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Float, Int, Int32
from normalmesh.runtime.kernels import inner, kernel
from normalmesh.solvers._fronts import factorise_front, packed_size, padded, pivot_column, solve_panel, solve_transposed

#: Rows of an update with fewer numbers are added one number at a time.
_SHORT = 32


class Blocks(NamedTuple):
    """Elimination order (n,), and first and last-plus-one position of each block (B,)."""

    order: Int32
    start: Int
    stop: Int


class Tree(NamedTuple):
    """Couplings between blocks.

    ``position`` (n,) is the inverse of the order. ``border`` (B + 1,) are pointers into ``rows``, the positions beyond
    each block that it is coupled to, ascending. ``parent``, first ``child`` and next ``sibling`` (B,) are −1 for none.
    """

    position: Int32
    border: Int
    rows: Int32
    parent: Int32
    child: Int32
    sibling: Int32


class Assembly(NamedTuple):
    """Places of numbers when a front is assembled.

    ``pointers`` (B + 1,) delimit the matrix entries of each block: ``entry`` is their index among the matrix values,
    ``place`` their index in the panel. For each of the tree's ``rows``, ``column`` is its column in the parent's front,
    and ``run_end`` the end, counted within the border, of the run of consecutive columns that it is part of.
    """

    pointers: Int
    entry: Int32
    place: Int32
    column: Int32
    run_end: Int32


class Matrix(NamedTuple):
    """Values of the matrix as CSR stores them, and numbers (n,) that are added to its diagonal.

    If pivots are computed from sums, the diagonal is not read, and the numbers are the sums of the rows.
    """

    values: Float
    extra: Float


class Storage(NamedTuple):
    """Panels of all blocks, and updates, in float64 or float32.

    ``panel_at`` (B + 1,) is where each panel begins. ``update_at`` (B,) is where each update begins among ``updates``,
    or a negative number ~p if it begins at p on a stack of ``stack`` numbers that each task has for itself. If
    ``by_sums``, pivots are computed from the sums of rows, and diagonals of updates hold the excess of their rows.
    """

    panel_at: Int
    update_at: Int
    panels: NDArray[np.floating[Any]]
    updates: NDArray[np.floating[Any]]
    stack: int
    by_sums: bool


class Schedule(NamedTuple):
    """Tasks of one level: ``blocks[pointers[t]:pointers[t + 1]]`` are the blocks of task t."""

    pointers: Int
    blocks: Int


class Elimination(NamedTuple):
    """Everything that follows from the sparsity pattern."""

    blocks: Blocks
    tree: Tree
    assembly: Assembly


@inner
def _add(target, source):
    for i in range(source.size):
        target[i] += source[i]


@inner(forceinline=True)
def _add_child(child_update, column, run_end, lead, k, panel, update):
    """Add a child's update to the panel and the update of its parent.

    ``column`` (b_child,) are its columns in the parent's front, ``run_end`` (b_child,) the ends of their runs.
    """
    count = column.size
    for x in range(count):
        i = column[x] - lead
        row, shift = (panel[i], 0) if i < k else (update[i - k], lead + k)
        if count - x < _SHORT:
            for y in range(x, count):
                row[column[y] - shift] += child_update[x, y]
            continue
        y = x
        while y < count:
            end = run_end[y]
            _add(row[column[y] - shift :], child_update[x, y:end])
            y = end


@inner(forceinline=True)
def _take_excess(panel, update, excess):
    """Fill the excess of a front, unless it is empty, with what its diagonal holds."""
    if excess.size > 0:
        k = panel.shape[0]
        lead = pivot_column(k)
        for i in range(lead):
            excess[i] = 0
        for j in range(k):
            excess[lead + j] = panel[j, lead + j]
        for j in range(update.shape[0]):
            excess[lead + k + j] = update[j, j]


@inner
def _widest(first, last, elimination, schedule):
    """Return the number of columns of the widest front of the tasks."""
    blocks, border = elimination.blocks, elimination.tree.border
    width = 0
    for t in range(schedule.pointers[first], schedule.pointers[last]):
        s = schedule.blocks[t]
        width = max(width, padded(blocks.stop[s] - blocks.start[s]) + padded(border[s + 1] - border[s]))
    return width


@inner(forceinline=True, allocates=True)
def _update(at, size, storage, stack):
    """Return the update of ``size`` rows that begins at ``at``."""
    numbers = storage.updates if at >= 0 else stack
    begin = max(at, ~at)
    return numbers[begin : begin + size * size].reshape(size, size)


@kernel
def factorise(first, last, matrix, elimination, schedule, storage, failed):
    """Fill the panels of the storage for the matrix, task by task.

    All tasks of lower levels must have been done. ``failed`` (T,), −1 before, becomes a position whose pivot is not
    positive for each task that has one.
    """
    blocks, tree, assembly = elimination.blocks, elimination.tree, elimination.assembly
    border, update_at = tree.border, storage.update_at
    kind = storage.panels.dtype
    stack = np.empty(storage.stack, kind)
    widest = _widest(first, last, elimination, schedule)
    packed, corner = np.empty(packed_size(widest), kind), np.empty((5, 4), kind)
    sums = np.empty(widest if storage.by_sums else 0, kind)
    for t in range(first, last):
        for q in range(schedule.pointers[t], schedule.pointers[t + 1]):
            s = schedule.blocks[q]
            low, k = blocks.start[s], blocks.stop[s] - blocks.start[s]
            b = padded(border[s + 1] - border[s])
            lead = pivot_column(k)
            numbers = storage.panels[storage.panel_at[s] : storage.panel_at[s + 1]]
            panel = numbers.reshape(k, lead + k + b)
            update = _update(update_at[s], b, storage, stack)
            for j in range(k):
                for i in range(lead + j & ~3, lead + k + b):
                    panel[j, i] = 0
                panel[j, lead + j] = matrix.extra[blocks.order[low + j]]
            for j in range(b):
                for i in range(j & ~3, b):
                    update[j, i] = 0
            for entry in range(assembly.pointers[s], assembly.pointers[s + 1]):
                numbers[assembly.place[entry]] += matrix.values[assembly.entry[entry]]
            if storage.by_sums:
                for j in range(k):
                    panel[j, lead + j] = matrix.extra[blocks.order[low + j]]
            c = tree.child[s]
            while c >= 0:
                begin, end = border[c], border[c + 1]
                child_update = _update(update_at[c], padded(end - begin), storage, stack)
                _add_child(
                    child_update, assembly.column[begin:end], assembly.run_end[begin:end], lead, k, panel, update
                )
                c = tree.sibling[c]
            excess = sums[: lead + k + b]
            _take_excess(panel, update, excess)
            bad = factorise_front(panel, update, packed, corner, excess)
            if bad >= 0:
                failed[t] = low + bad
                break
            if excess.size > 0:
                for j in range(b):
                    update[j, j] = excess[lead + k + j]


@kernel
def substitute(first, last, upwards, elimination, schedule, storage, x, carried):
    """Solve Uᵀy = b upwards, then, in a second call for each level, Ux = y downwards, task by task.

    ``x`` (n,), in elimination order, is b before and y after the first, x after the second. ``carried``, one number
    for each of the tree's ``rows``, holds what a block adds to the right-hand side of its border.
    """
    blocks, tree, column = elimination.blocks, elimination.tree, elimination.assembly.column
    border, rows, panel_at = tree.border, tree.rows, storage.panel_at
    front = np.empty(_widest(first, last, elimination, schedule))
    low, high = schedule.pointers[first], schedule.pointers[last]
    for t in range(low, high):
        s = schedule.blocks[t if upwards else low + high - 1 - t]
        begin, k, b = blocks.start[s], blocks.stop[s] - blocks.start[s], border[s + 1] - border[s]
        lead = pivot_column(k)
        width = lead + k + padded(b)
        panel = storage.panels[panel_at[s] : panel_at[s + 1]].reshape(k, width)
        for i in range(width):
            front[i] = 0
        for j in range(k):
            front[lead + j] = x[begin + j]
        if upwards:
            c = tree.child[s]
            while c >= 0:
                for q in range(border[c], border[c + 1]):
                    front[column[q]] += carried[q]
                c = tree.sibling[c]
            solve_transposed(panel, front, width)
            for q in range(b):
                carried[border[s] + q] = front[lead + k + q]
        else:
            for q in range(b):
                front[lead + k + q] = x[rows[border[s] + q]]
            solve_panel(panel, front, width)
        for j in range(k):
            x[begin + j] = front[lead + j]
