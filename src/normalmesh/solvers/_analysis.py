"""Kernels that analyse the blocks of an elimination: what each is coupled to, and where its numbers belong."""

from typing import NamedTuple

from normalmesh.array_types import Int, Int32
from normalmesh.runtime._sorting import sort
from normalmesh.runtime.kernels import inner, kernel
from normalmesh.solvers._fronts import padded, pivot_column


class Borders(NamedTuple):
    """Couplings of blocks while they are found.

    ``position`` (n,) is the inverse of the order, ``owner`` (n,) the block of each position. The border of a block
    begins at ``begin`` (B,) in ``rows`` and has ``size`` (B,) positions. ``parent``, ``child`` and ``sibling`` (B,) are
    those of the :class:`._cholesky.Tree`.
    """

    position: Int32
    owner: Int32
    begin: Int
    size: Int
    rows: Int32
    parent: Int32
    child: Int32
    sibling: Int32


@inner
def _itself(item, table):
    return item


@inner(forceinline=True)
def _collect(s, at, end, pattern, blocks, borders):
    """Write the border of block s to ``rows[at:end]``, unsorted and with doubles; return where it ends, or −1."""
    stop, rows = blocks.stop[s], borders.rows
    for j in range(blocks.start[s], stop):
        v = blocks.order[j]
        for e in range(pattern.indptr[v], pattern.indptr[v + 1]):
            p = borders.position[pattern.indices[e]]
            if p >= stop:
                if at >= end:
                    return -1
                rows[at] = p
                at += 1
    c = borders.child[s]
    while c >= 0:
        for q in range(borders.begin[c], borders.begin[c] + borders.size[c]):
            if rows[q] >= stop:
                if at >= end:
                    return -1
                rows[at] = rows[q]
                at += 1
        c = borders.sibling[c]
    return at


@kernel
def find_borders(first, last, parts, chosen, pattern, blocks, borders, full):
    """Find the borders of the blocks ``chosen[parts[i, 0]:parts[i, 1]]`` of parts first … last − 1.

    Blocks below them must be among the same part, or done before. ``parts[i, 2:]`` delimit the rows for the part i;
    ``full`` (P,) becomes true if they do not suffice.
    """
    rows, size, owner = borders.rows, borders.size, borders.owner
    for part in range(first, last):
        at, end = parts[part, 2], parts[part, 3]
        for i in range(parts[part, 0], parts[part, 1]):
            s = chosen[i]
            stop = _collect(s, at, end, pattern, blocks, borders)
            if stop < 0:
                full[part] = True
                break
            sort(rows, at, stop, _itself, rows)
            borders.begin[s], size[s] = at, 0
            for q in range(at, stop):
                if q == at or rows[q] != rows[q - 1]:
                    rows[at + size[s]] = rows[q]
                    size[s] += 1
            if size[s] > 0:
                parent = owner[rows[at]]
                borders.parent[s] = parent
                # Blocks of other parts are linked later.
                if parent <= chosen[parts[part, 1] - 1]:
                    borders.sibling[s] = borders.child[parent]
                    borders.child[parent] = s
            at += size[s]


@kernel
def link_blocks(borders):
    """Link all blocks, in their order, to their parents."""
    parent, child, sibling = borders.parent, borders.child, borders.sibling
    child[:] = -1
    sibling[:] = -1
    for s in range(parent.size):
        if parent[s] >= 0:
            sibling[s] = child[parent[s]]
            child[parent[s]] = s


@kernel
def count_entries(first, last, pattern, blocks, tree, counts):
    """Fill the numbers of matrix entries (B,) of blocks: those in their rows, from the diagonal on."""
    for s in range(first, last):
        count = 0
        for j in range(blocks.start[s], blocks.stop[s]):
            v = blocks.order[j]
            for e in range(pattern.indptr[v], pattern.indptr[v + 1]):
                count += tree.position[pattern.indices[e]] >= j
        counts[s] = count


@inner(forceinline=True)
def _place_in(rows, low, high, position):
    """Return where a position is in ``rows[low:high]``, ascending."""
    while low < high:
        middle = (low + high) // 2
        if rows[middle] < position:
            low = middle + 1
        else:
            high = middle
    return low


@inner(forceinline=True)
def _plan_child(c, low, high, lead, tree, border, assembly):
    """Fill the columns of the border of child c in the front of its parent.

    The parent eliminates low … high − 1 and has the rows border[0] … border[1] − 1 beyond.
    """
    rows, column, run_end = tree.rows, assembly.column, assembly.run_end
    begin, end = tree.border[c], tree.border[c + 1]
    beyond, width = border[0], high - low
    for q in range(begin, end):
        p = rows[q]
        if p < high:
            column[q] = lead + p - low
        else:
            while rows[beyond] != p:
                beyond += 1
            column[q] = lead + width + beyond - border[0]
    run = end
    for q in range(end - 1, begin - 1, -1):
        if q + 1 < end and column[q + 1] != column[q] + 1:
            run = q + 1
        run_end[q] = run - begin


@kernel
def plan_assembly(first, last, pattern, blocks, tree, assembly):
    """Fill the :class:`._cholesky.Assembly` of the fronts of blocks first … last − 1, whose ``pointers`` are given."""
    rows = tree.rows
    for s in range(first, last):
        low, high = blocks.start[s], blocks.stop[s]
        k, begin, end = high - low, tree.border[s], tree.border[s + 1]
        lead = pivot_column(k)
        width = lead + k + padded(end - begin)
        count = assembly.pointers[s]
        for j in range(low, high):
            v = blocks.order[j]
            for e in range(pattern.indptr[v], pattern.indptr[v + 1]):
                p = tree.position[pattern.indices[e]]
                if p < j:
                    continue
                local = p - low if p < high else k + _place_in(rows, begin, end, p) - begin
                assembly.entry[count], assembly.place[count] = e, (j - low) * width + lead + local
                count += 1
        c = tree.child[s]
        while c >= 0:
            _plan_child(c, low, high, lead, tree, (begin, end), assembly)
            c = tree.sibling[c]
