"""Kernels of the multigrid on graphs: aggregates, Galerkin matrices, smoothing and transfers, in float32.

A graph is (indptr, indices, weights, diagonal): the matrix with −weights beside the diagonal. An aggregate is a
connected set of unknowns that share one unknown of the next coarser graph; −1 marks unknowns without neighbours, which
need none.
"""

import numpy as np
from numba import prange

from normalmesh.runtime.kernels import inner, kernel

#: Unknowns are smoothed one after the other within so many pieces, and side by side across them.
_PIECES = 64
_SMALLEST_PIECE = 2048

#: Edges lie within an aggregate of a cell only if they are at least this share of the strongest at either end: a
#: correction must not be carried across a jump that the weights leave open.
STRONG = np.float32(0.1)


@kernel
def diagonal_of(indptr, weights, excess):
    """Diagonal (n,): excess plus the weights of the row. One for an unknown that nothing determines."""
    diagonal = np.empty(excess.size, np.float32)
    for v in range(excess.size):
        total = excess[v]
        for e in range(indptr[v], indptr[v + 1]):
            total += weights[e]
        diagonal[v] = total if total > 0 else np.float32(1)
    return diagonal


@kernel
def aggregate_cells(indptr, indices, weights, cells):
    """Aggregates (n,): parts of 2×2 blocks of cells that strong edges join; and their own cells (m, 2)."""
    n = cells.shape[0]
    weakest = np.zeros(n, np.float32)
    for v in range(n):
        for e in range(indptr[v], indptr[v + 1]):
            weakest[v] = max(weakest[v], STRONG * weights[e])
    aggregate = np.full(n, -1, np.int32)
    coarse = np.empty((n, 2), np.int32)
    stack = np.empty(n, np.int32)
    count = 0
    for seed in range(n):
        if aggregate[seed] >= 0 or indptr[seed] == indptr[seed + 1]:
            continue
        row, column = cells[seed, 0] >> 1, cells[seed, 1] >> 1
        aggregate[seed] = count
        stack[0] = seed
        top = 1
        while top > 0:
            top -= 1
            v = stack[top]
            for e in range(indptr[v], indptr[v + 1]):
                w = indices[e]
                if aggregate[w] >= 0 or weights[e] < max(weakest[v], weakest[w]):
                    continue
                if cells[w, 0] >> 1 == row and cells[w, 1] >> 1 == column:
                    aggregate[w] = count
                    stack[top] = w
                    top += 1
        coarse[count] = row, column
        count += 1
    return aggregate, coarse[:count].copy()


@kernel
def aggregate_pairs(indptr, indices, weights, excess):
    """Aggregates (n,) of two: each unknown with the most strongly coupled neighbour that is still free; their count.

    One that has no free neighbour of at least a quarter of its strongest coupling stays alone. So does one without
    neighbours, if it is tied by its excess.
    """
    n = indptr.size - 1
    aggregate = np.full(n, -1, np.int32)
    count = 0
    for v in range(n):
        if aggregate[v] >= 0 or (indptr[v] == indptr[v + 1] and excess[v] == 0):
            continue
        strongest, best, partner = np.float32(0), np.float32(0), -1
        for e in range(indptr[v], indptr[v + 1]):
            strongest = max(strongest, weights[e])
            if aggregate[indices[e]] < 0 and weights[e] > best:
                best, partner = weights[e], indices[e]
        aggregate[v] = count
        if partner >= 0 and best >= strongest / 4:
            aggregate[partner] = count
        count += 1
    return aggregate, count


@kernel
def members_of(aggregate, count):
    """Members of each aggregate as CSR arrays (m + 1,) and (n,)."""
    indptr = np.zeros(count + 1, np.int32)
    for a in aggregate:
        if a >= 0:
            indptr[a + 1] += 1
    for a in range(count):
        indptr[a + 1] += indptr[a]
    at = indptr[:-1].copy()
    members = np.empty(indptr[count], np.int32)
    for v in range(aggregate.size):
        a = aggregate[v]
        if a >= 0:
            members[at[a]] = v
            at[a] += 1
    return indptr, members


@kernel
def galerkin(indptr, indices, weights, excess, aggregate, first, members):
    """The coarse graph: weights between aggregates and excess within them are summed."""
    count = first.size - 1
    slot = np.full(count, -1, np.int32)
    coarse_indptr = np.zeros(count + 1, np.int32)
    coarse_indices = np.empty(indices.size, np.int32)
    coarse_weights = np.empty(indices.size, np.float32)
    coarse_excess = np.zeros(count, np.float32)
    end = 0
    for a in range(count):
        begin = end
        for q in range(first[a], first[a + 1]):
            v = members[q]
            coarse_excess[a] += excess[v]
            for e in range(indptr[v], indptr[v + 1]):
                b = aggregate[indices[e]]
                if b == a:
                    continue
                if slot[b] < begin:
                    slot[b] = end
                    coarse_indices[end] = b
                    coarse_weights[end] = weights[e]
                    end += 1
                else:
                    coarse_weights[slot[b]] += weights[e]
        coarse_indptr[a + 1] = end
    return coarse_indptr, coarse_indices[:end].copy(), coarse_weights[:end].copy(), coarse_excess


@kernel(parallel=True, fastmath={"contract"}, error_model="numpy")
def smooth(graph, b, before, x, backwards):
    """One Gauss–Seidel sweep x (n,) from ``before`` (n,): newest values within a piece, old ones across pieces.

    The pieces do not depend on the number of threads. Backwards is the transpose of forwards.
    """
    indptr, indices, weights, diagonal = graph
    n = b.size
    pieces = max(1, min(_PIECES, n // _SMALLEST_PIECE))
    for piece in prange(pieces):
        low, high = piece * n // pieces, (piece + 1) * n // pieces
        x[low:high] = before[low:high]
        for k in range(high - low):
            v = high - 1 - k if backwards else low + k
            total, scale = b[v] - diagonal[v] * x[v], diagonal[v]
            for e in range(indptr[v], indptr[v + 1]):
                w = indices[e]
                if low <= w < high:
                    # Unknowns of the piece hold the old value until their turn, then the new one.
                    total += weights[e] * x[w]
                else:
                    total += weights[e] * before[w]
                    # Old values on both sides of an edge overshoot; so much damping makes the sweep converge always.
                    scale += np.float32(0.5) * weights[e]
            x[v] += total / scale


@kernel(parallel=True, fastmath={"contract"})
def restrict_residual(graph, b, x, first, members, coarse):
    """coarse (m,) = sums of b − A x over the aggregates."""
    indptr, indices, weights, diagonal = graph
    for a in prange(coarse.size):
        total = np.float32(0)
        for q in range(first[a], first[a + 1]):
            v = members[q]
            total += b[v] - diagonal[v] * x[v]
            for e in range(indptr[v], indptr[v + 1]):
                total += weights[e] * x[indices[e]]
        coarse[a] = total


@kernel(parallel=True, fastmath={"contract"})
def prolong(aggregate, coarse, factor, x):
    """x (n,) += factor · the value of its aggregate."""
    for v in prange(x.size):
        if aggregate[v] >= 0:
            x[v] += factor * coarse[aggregate[v]]


@kernel(parallel=True, fastmath={"contract"})
def apply(graph, x, product):
    """product (n,) = A x."""
    indptr, indices, weights, diagonal = graph
    for v in prange(x.size):
        total = diagonal[v] * x[v]
        for e in range(indptr[v], indptr[v + 1]):
            total -= weights[e] * x[indices[e]]
        product[v] = total


@inner
def total_of(sums):
    """Sum in order. Inside a parallel kernel ``sums.sum()`` would be split among the threads."""
    total = 0.0
    for value in sums:
        total += value
    return total


@kernel
def dots(first, last, a, b, sums):
    """Fill ``sums`` (P,) with ⟨a, b⟩ in float64 over pieces of the two."""
    for piece in range(first, last):
        total = 0.0
        for v in range(piece * a.size // sums.size, (piece + 1) * a.size // sums.size):
            total += np.float64(a[v]) * np.float64(b[v])
        sums[piece] = total
