"""Kernels of the multifrontal Cholesky factorisation A = UᵀU along the blocks of a nested dissection.

Block s eliminates the positions ``start[s] … stop[s] − 1``. Its rows of U are one dense panel (k, k + b): k own
columns, then the b later positions ``rows[border[s]:border[s + 1]]`` it is coupled to. What it contributes to those is
a dense update (b, b), upper triangle, that is added into the panel and update of its parent.
"""

import numpy as np

from normalmesh.runtime._sorting import sort
from normalmesh.runtime.kernels import inner, kernel
from normalmesh.solvers._fronts import factorise_front, first_column, packed_size, padded, solve_panel, solve_transposed

#: Rows of an update with fewer numbers are added one number at a time.
_SHORT = 32


@kernel
def borders(indptr, indices, order, start, stop):
    """Positions beyond each block that it is coupled to, and the parent of each block (−1: none)."""
    n, blocks = order.size, start.size
    position, owner = np.empty(n, np.int32), np.empty(n, np.int32)
    for s in range(blocks):
        for j in range(start[s], stop[s]):
            owner[j] = s
            position[order[j]] = j
    parent = np.full(blocks, -1, np.int32)
    child, sibling = np.full(blocks, -1, np.int32), np.full(blocks, -1, np.int32)
    border = np.zeros(blocks + 1, np.int64)
    rows = np.empty(8 * n, np.int32)
    seen = np.full(n, -1, np.int32)
    found = np.empty(n, np.int32)
    for s in range(blocks):
        count = 0
        for j in range(start[s], stop[s]):
            v = order[j]
            for e in range(indptr[v], indptr[v + 1]):
                p = position[indices[e]]
                if p >= stop[s] and seen[p] != s:
                    seen[p] = s
                    found[count] = p
                    count += 1
        c = child[s]
        while c >= 0:
            for q in range(border[c], border[c + 1]):
                p = rows[q]
                if p >= stop[s] and seen[p] != s:
                    seen[p] = s
                    found[count] = p
                    count += 1
            c = sibling[c]
        border[s + 1] = border[s] + count
        if border[s + 1] > rows.size:
            more = np.empty(2 * border[s + 1], np.int32)
            for q in range(border[s]):
                more[q] = rows[q]
            rows = more
        sort(found, 0, count, _itself, found)
        for q in range(count):
            rows[border[s] + q] = found[q]
        if count > 0:
            p = owner[rows[border[s]]]
            parent[s] = p
            sibling[s] = child[p]
            child[p] = s
    return position, border, rows[: border[blocks]], parent, child, sibling


@inner
def _itself(item, table):
    return item


@kernel
def assembly(indptr, indices, order, position, start, stop, border, rows, child, sibling):
    """Where numbers go when a front is assembled.

    Entries of the matrix, block by block: pointers (B + 1,), their numbers and their places in the panel. For each row
    of a border (as ``rows``) its column in the parent's front, and where the stretch ends within which they follow
    each other.
    """
    blocks = start.size
    pointers = np.zeros(blocks + 1, np.int64)
    entry, spot = np.empty(indices.size, np.int32), np.empty(indices.size, np.int32)
    slot, until = np.empty(rows.size, np.int32), np.empty(rows.size, np.int32)
    local = np.empty(order.size, np.int32)
    count = 0
    for s in range(blocks):
        low, k = start[s], stop[s] - start[s]
        lead = first_column(k)
        width = lead + k + padded(border[s + 1] - border[s])
        for j in range(k):
            local[low + j] = lead + j
        for q in range(border[s], border[s + 1]):
            local[rows[q]] = lead + k + q - border[s]
        for j in range(k):
            v = order[low + j]
            for e in range(indptr[v], indptr[v + 1]):
                p = position[indices[e]]
                if p >= low + j:
                    entry[count], spot[count] = e, j * width + local[p]
                    count += 1
        pointers[s + 1] = count
        c = child[s]
        while c >= 0:
            end = border[c + 1]
            for q in range(border[c + 1] - 1, border[c] - 1, -1):
                slot[q] = local[rows[q]]
                if q + 1 < border[c + 1] and slot[q + 1] != slot[q] + 1:
                    end = q + 1
                until[q] = end - border[c]
            c = sibling[c]
    return (pointers, entry, spot), slot, until


@inner
def _add(target, source):
    for i in range(source.size):
        target[i] += source[i]


@inner(forceinline=True)
def _add_child(child_update, slot, until, lead, k, panel, update):
    """Add a child's update; ``slot`` (b_child,) are its columns in the parent's front, in stretches.

    ``until`` (b_child,) says for each column where its stretch ends.
    """
    count = slot.size
    for x in range(count):
        i = slot[x] - lead
        row, shift = (panel[i], 0) if i < k else (update[i - k], lead + k)
        if count - x < _SHORT:
            for y in range(x, count):
                row[slot[y] - shift] += child_update[x, y]
            continue
        y = x
        while y < count:
            end = until[y]
            _add(row[slot[y] - shift :], child_update[x, y:end])
            y = end


@inner
def _front(s, matrix, extra, tree, place, factor, workspace, packed, corner):
    """Assemble and factorise the front of block s; the position whose pivot is not positive, or −1."""
    values, pointers, entry, spot = matrix
    order, start, stop, border, slot, until, child, sibling = tree
    panel_at, update_at = place
    low, k = start[s], stop[s] - start[s]
    b = padded(border[s + 1] - border[s])
    lead = first_column(k)
    numbers = factor[panel_at[s] : panel_at[s + 1]]
    panel = numbers.reshape(k, lead + k + b)
    update = workspace[update_at[s] : update_at[s] + b * b].reshape(b, b)
    for j in range(k):
        for i in range(lead + j & ~3, lead + k + b):
            panel[j, i] = 0
        panel[j, lead + j] = extra[order[low + j]]
    for j in range(b):
        for i in range(j & ~3, b):
            update[j, i] = 0
    for q in range(pointers[s], pointers[s + 1]):
        numbers[spot[q]] += values[entry[q]]
    c = child[s]
    while c >= 0:
        size = padded(border[c + 1] - border[c])
        there = workspace[update_at[c] : update_at[c] + size * size].reshape(size, size)
        columns, ends = slot[border[c] : border[c + 1]], until[border[c] : border[c + 1]]
        _add_child(there, columns, ends, lead, k, panel, update)
        c = sibling[c]
    bad = factorise_front(panel, update, packed, corner)
    return low + bad if bad >= 0 else -1


@inner
def _widest(first, last, tree, schedule):
    """Columns of the widest front of the tasks."""
    _, start, stop, border, _, _, _, _ = tree
    pointers, blocks = schedule
    width = 0
    for t in range(pointers[first], pointers[last]):
        s = blocks[t]
        width = max(width, padded(stop[s] - start[s]) + padded(border[s + 1] - border[s]))
    return width


@kernel
def factorise(first, last, matrix, extra, tree, place, schedule, factor, workspace, failed):
    """Fill ``factor`` for the matrix (values and :func:`assembly`) plus ``extra`` (n,) on its diagonal, task by task.

    ``schedule``: pointers (T + 1,) and blocks, those of each task; all tasks of lower levels must have been done.
    ``failed`` (T,), −1 before, becomes a position of each task whose pivot is not positive.
    """
    pointers, blocks = schedule
    packed, corner = np.empty(packed_size(_widest(first, last, tree, schedule))), np.empty((4, 4))
    for t in range(first, last):
        for q in range(pointers[t], pointers[t + 1]):
            failed[t] = _front(blocks[q], matrix, extra, tree, place, factor, workspace, packed, corner)
            if failed[t] >= 0:
                break


@kernel
def substitute(first, last, upwards, tree, panel_at, schedule, factor, rows, x, carried):
    """Solve Uᵀy = b upwards, then Ux = y downwards, those of the last level first, task by task.

    ``x`` (n,) in the order of elimination is b, then y, then x. ``carried`` has, as ``rows``, what each block adds to
    the right side of its border.
    """
    _, start, stop, border, slot, _, child, sibling = tree
    pointers, blocks = schedule
    front = np.empty(_widest(first, last, tree, schedule))
    low, high = pointers[first], pointers[last]
    for t in range(low, high):
        s = blocks[t if upwards else low + high - 1 - t]
        begin, k, b = start[s], stop[s] - start[s], border[s + 1] - border[s]
        lead = first_column(k)
        width = lead + k + padded(b)
        panel = factor[panel_at[s] : panel_at[s + 1]].reshape(k, width)
        for i in range(width):
            front[i] = 0
        for j in range(k):
            front[lead + j] = x[begin + j]
        if upwards:
            c = child[s]
            while c >= 0:
                for q in range(border[c], border[c + 1]):
                    front[slot[q]] += carried[q]
                c = sibling[c]
            solve_transposed(panel, front, width)
            for q in range(b):
                carried[border[s] + q] = front[lead + k + q]
        else:
            for q in range(b):
                front[lead + k + q] = x[rows[border[s] + q]]
            solve_panel(panel, front, width)
        for j in range(k):
            x[begin + j] = front[lead + j]
