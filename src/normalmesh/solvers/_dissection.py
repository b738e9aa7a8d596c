"""Kernels of nested dissection: an elimination order with little fill-in for graphs embedded in the plane.

The graph is the symmetric sparsity :class:`Pattern` of a matrix; entries on its diagonal are ignored.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float, Int32
from normalmesh.runtime._sorting import sort
from normalmesh.runtime.kernels import inner, kernel

#: Parts of at most this many unknowns are eliminated as one dense block.
LEAF = 16


class Pattern(NamedTuple):
    """Sparsity pattern in CSR form: row pointers (n + 1,) and column indices."""

    indptr: Int32
    indices: Int32


class Positions(NamedTuple):
    """Coordinates (n,) of the unknowns in the plane."""

    u: Float
    v: Float


class Ordering(NamedTuple):
    """State of a dissection: the elimination order, and work arrays.

    ``order`` (n,) holds the unknowns. ``begins`` (n,) is true at positions where a block begins. ``side`` (n,) is zero
    between calls. ``spare`` (n,) is a work array.
    """

    order: Int32
    begins: Bool
    side: NDArray[np.int8]
    spare: Int32


@inner(forceinline=True)
def _select(order, low, high, middle, key):
    """Reorder ``order[low:high]`` so that keys before ``middle`` are at most those from it on; ties by index."""
    left, right = low, high - 1
    while left < right:
        pivot = order[(left + right) // 2]
        value = key[pivot]
        i, j = left, right
        while i <= j:
            while key[order[i]] < value or (key[order[i]] == value and order[i] < pivot):
                i += 1
            while key[order[j]] > value or (key[order[j]] == value and order[j] > pivot):
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return


@inner
def _entry(item, table):
    return table[item]


@inner(forceinline=True)
def _split(pattern, low, high, ordering):
    """Reorder ``order[low:high]`` into first half, second half and separator; return where the latter two start.

    ``side`` is +1 and −1 on the halves and 0 on separators before the call, and 0 everywhere after it.
    """
    indptr, indices = pattern.indptr, pattern.indices
    order, side, spare = ordering.order, ordering.side, ordering.spare
    first, second = low, high
    for s in range(low, high):
        v = order[s]
        other = -side[v]
        crosses = False
        for e in range(indptr[v], indptr[v + 1]):
            crosses |= side[indices[e]] == other
        if crosses and other < 0:
            spare[first] = v
            first += 1
        elif crosses:
            second -= 1
            spare[second] = v
    # The smaller of the two sets of unknowns along the cut is the separator.
    begin, end = (low, first) if first - low <= high - second else (second, high)
    for s in range(begin, end):
        side[spare[s]] *= 2
    kept, middle, cut = low, low, begin
    for s in range(low, high):
        v = order[s]
        here = side[v]
        side[v] = 0
        if here * here > 1:
            spare[cut] = v
            cut += 1
        else:
            if here > 0:
                middle += 1
            order[kept] = v
            kept += 1
    for s in range(begin, end):
        order[kept + s - begin] = spare[s]
    return middle, kept


@kernel
def dissect(first, last, parts, halves, wholly, pattern, positions, ordering):
    """Halve the parts ``order[low:high]`` for (low, high) in ``parts`` (P, 2), once or down to leaves.

    A part is halved across its longer extent. The unknowns of one half that touch the other form the separator and
    come last. If not ``wholly``, write the two halves of each part to ``halves`` (2P, 2). Set ``begins`` of the
    ordering where a block begins: a leaf or a separator.
    """
    order, begins, side = ordering.order, ordering.begins, ordering.side
    u, v = positions.u, positions.v
    # Parts to be halved; each depth adds at most one.
    stack = np.empty((128, 2), np.int64)
    for part in range(first, last):
        stack[0, 0], stack[0, 1] = parts[part, 0], parts[part, 1]
        waiting = 1
        while waiting > 0:
            waiting -= 1
            low, high = stack[waiting, 0], stack[waiting, 1]
            if high - low <= LEAF:
                if high > low:
                    begins[low] = True
                continue
            u_low, u_high, v_low, v_high = np.inf, -np.inf, np.inf, -np.inf
            for s in range(low, high):
                w = order[s]
                u_low, u_high = min(u_low, u[w]), max(u_high, u[w])
                v_low, v_high = min(v_low, v[w]), max(v_high, v[w])
            along, across = (u, v) if u_high - u_low >= v_high - v_low else (v, u)
            middle = (low + high) // 2
            _select(order, low, high, middle, along)
            for s in range(low, high):
                side[order[s]] = 1 if s < middle else -1
            second, separator = _split(pattern, low, high, ordering)
            if separator < high:
                # Sorting makes neighbours in the separator adjacent in the order, so that the parts beside it are
                # coupled to contiguous stretches of it.
                sort(order, separator, high, _entry, across)
                begins[separator] = True
            if wholly:
                stack[waiting, 0], stack[waiting, 1] = low, second
                stack[waiting + 1, 0], stack[waiting + 1, 1] = second, separator
                waiting += 2
            else:
                halves[2 * part, 0], halves[2 * part, 1] = low, second
                halves[2 * part + 1, 0], halves[2 * part + 1, 1] = second, separator
