"""Kernels of :mod:`normalmesh.solvers.dense_elimination`, and of the border of a sparse elimination.

Dense symmetric matrices travel as their upper *triangle*, row by row: n (n + 1) / 2 numbers.
"""

from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Float
from normalmesh.runtime.kernels import inner, kernel
from normalmesh.solvers._fronts import (
    PIVOTS,
    ROWS,
    eliminate_pivots,
    packed_size,
    padded,
    pivot_column,
    solve_panel,
    solve_transposed,
    subtract,
)


class Front(NamedTuple):
    """A dense front: own rows (k, lead + k + padded b), and the square (padded b, padded b) of its border."""

    panel: Float
    update: Float


@inner(forceinline=True)
def _row_at(i, n):
    """Return where row i of a triangle of n rows would begin if it had all columns."""
    return i * (2 * n - i - 1) // 2


@kernel
def assemble_border(matrix, elimination, storage, triangle):
    """Fill the triangle of the last block's matrix: its entries, and the updates of its children."""
    blocks, tree, assembly = elimination.blocks, elimination.tree, elimination.assembly
    s = blocks.start.size - 1
    n = blocks.stop[s] - blocks.start[s]
    lead = pivot_column(n)
    for i in range(triangle.size):
        triangle[i] = 0
    for e in range(assembly.pointers[s], assembly.pointers[s + 1]):
        j, i = divmod(assembly.place[e], lead + n)
        triangle[_row_at(j, n) + i - lead] += matrix.values[assembly.entry[e]]
    c = tree.child[s]
    while c >= 0:
        column = assembly.column[tree.border[c] : tree.border[c + 1]]
        size, at = padded(column.size), storage.update_at[c]
        update = storage.updates[at : at + size * size].reshape(size, size)
        for x in range(column.size):
            row = _row_at(column[x] - lead, n) - lead
            for y in range(x, column.size):
                triangle[row + column[y]] += update[x, y]
        c = tree.sibling[c]


@kernel
def add_to_front(triangle, places, front):
    """Add a triangle, whose rows have these places (n,) in the front, to the panel and the update."""
    panel, update = front.panel, front.update
    n, k = places.size, panel.shape[0]
    lead = pivot_column(k)
    at = 0
    for i in range(n):
        for j in range(i, n):
            low, high = min(places[i], places[j]), max(places[i], places[j])
            if low < k:
                panel[low, lead + high] += triangle[at]
            else:
                update[low - k, high - k] += triangle[at]
            at += 1


@kernel
def eliminate_next(panel, start, packed):
    """Eliminate the next pivots of a front among themselves; return the first that is not positive, or −1."""
    return eliminate_pivots(panel, start, packed, np.empty((5, 4)), np.empty(0))


@kernel
def subtract_next(first, last, start, front, packed):
    """Subtract the pivots that were eliminated last from all later rows, in blocks of :data:`ROWS` rows.

    Blocks of the panel come first, then those of the update.
    """
    panel, update = front.panel, front.update
    k, end = panel.shape
    lead = pivot_column(k)
    stop = min(start + PIVOTS, k)
    strips, in_panel = (stop - start) // 4, (k - stop + ROWS - 1) // ROWS
    for block in range(first, last):
        if block < in_panel:
            top = stop + block * ROWS
            subtract(packed, 0, strips, panel, (top, min(top + ROWS, k)), lead, 0, end)
        else:
            top = (block - in_panel) * ROWS
            rows = top, min(top + ROWS, update.shape[0])
            subtract(packed, 0, strips, update, rows, lead + k, lead + k, end)


@kernel
def packed_length(columns):
    """Return the length of the work array for fronts of so many columns."""
    return packed_size(columns)


@kernel
def substitute_front(upwards, panel, values):
    """Solve with a panel in place: transposed upwards, where the border gets its right-hand side, or downwards.

    ``values`` (lead + k + padded b) are zero in the padding.
    """
    if upwards:
        solve_transposed(panel, values, values.size)
    else:
        solve_panel(panel, values, values.size)
