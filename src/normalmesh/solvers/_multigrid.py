"""Kernels of the multigrid on graphs: aggregates, Galerkin matrices, smoothing and transfers, in float32.

An aggregate is a connected set of unknowns that share one unknown of the next coarser graph; −1 marks unknowns without
neighbours, which need none.
"""

from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Float32, Int32
from normalmesh.runtime.kernels import kernel

#: Edges lie within an aggregate of a cell only if they have at least this fraction of the largest weight at either end:
#: a correction must not be carried across a jump that the weights leave open.
STRONG = np.float32(0.1)


class GraphArrays(NamedTuple):
    """A symmetric matrix with −weights beside the diagonal, as CSR arrays."""

    indptr: Int32
    indices: Int32
    weights: Float32
    diagonal: Float32


class Aggregates(NamedTuple):
    """The members of aggregates: those of a are ``members[indptr[a]:indptr[a + 1]]``."""

    indptr: Int32
    members: Int32


@kernel
def diagonal_of(indptr, weights, excess):
    """Return the diagonal (n,): excess plus the weights of the row, or one for an unknown that nothing determines."""
    diagonal = np.empty(excess.size, np.float32)
    for v in range(excess.size):
        total = excess[v]
        for e in range(indptr[v], indptr[v + 1]):
            total += weights[e]
        diagonal[v] = total if total > 0 else np.float32(1)
    return diagonal


@kernel
def aggregate_cells(indptr, indices, weights, cells):
    """Return aggregates (n,), parts of 2×2 blocks of cells that strong edges connect, and their own cells (m, 2)."""
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
    """Return aggregates (n,) of two, and their number: each unknown with its most strongly coupled free neighbour.

    An unknown stays alone if no free neighbour has at least a quarter of its strongest coupling, or if it has no
    neighbours but an excess.
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
    """Return the members of each aggregate as CSR arrays (m + 1,) and (n,)."""
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
    return Aggregates(indptr, members)


@kernel
def galerkin(indptr, indices, weights, excess, aggregate, aggregates):
    """Return the coarse graph: weights between aggregates and excess within them are summed."""
    count = aggregates.indptr.size - 1
    slot = np.full(count, -1, np.int32)
    coarse_indptr = np.zeros(count + 1, np.int32)
    coarse_indices = np.empty(indices.size, np.int32)
    coarse_weights = np.empty(indices.size, np.float32)
    coarse_excess = np.zeros(count, np.float32)
    end = 0
    for a in range(count):
        begin = end
        for q in range(aggregates.indptr[a], aggregates.indptr[a + 1]):
            v = aggregates.members[q]
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


@kernel
def smooth(first, last, pieces, graph, b, before, x, backwards):
    """Fill pieces of x (n,) by a Gauss–Seidel sweep from ``before`` (n,): new values within a piece, old ones across.

    The number of pieces does not depend on the number of threads. A backward sweep is the transpose of a forward one.
    """
    n = b.size
    for piece in range(first, last):
        low, high = piece * n // pieces, (piece + 1) * n // pieces
        x[low:high] = before[low:high]
        for k in range(high - low):
            v = high - 1 - k if backwards else low + k
            total, scale = b[v] - graph.diagonal[v] * x[v], graph.diagonal[v]
            for e in range(graph.indptr[v], graph.indptr[v + 1]):
                w = graph.indices[e]
                if low <= w < high:
                    # Unknowns of the piece hold the old value until their turn, then the new one.
                    total += graph.weights[e] * x[w]
                else:
                    total += graph.weights[e] * before[w]
                    # Old values at both ends of an edge overshoot; this damping makes every sweep converge.
                    scale += np.float32(0.5) * graph.weights[e]
            x[v] += total / scale


@kernel
def restrict_residual(first, last, graph, b, x, aggregates, coarse):
    """Fill ``coarse`` (m,) with the sums of b − A x over the aggregates."""
    for a in range(first, last):
        total = np.float32(0)
        for q in range(aggregates.indptr[a], aggregates.indptr[a + 1]):
            v = aggregates.members[q]
            total += b[v] - graph.diagonal[v] * x[v]
            for e in range(graph.indptr[v], graph.indptr[v + 1]):
                total += graph.weights[e] * x[graph.indices[e]]
        coarse[a] = total


@kernel
def prolong(first, last, aggregate, coarse, factor, x):
    """Add factor · the value of its aggregate to each unknown x (n,)."""
    for v in range(first, last):
        if aggregate[v] >= 0:
            x[v] += factor * coarse[aggregate[v]]


@kernel
def multiply_graph(first, last, graph, x, product):
    """Fill ``product`` (n,) with A x."""
    for v in range(first, last):
        total = graph.diagonal[v] * x[v]
        for e in range(graph.indptr[v], graph.indptr[v + 1]):
            total -= graph.weights[e] * x[graph.indices[e]]
        product[v] = total
