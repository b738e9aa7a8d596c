"""Kernels of :mod:`normalmesh.mesh.chains`."""

from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Int
from normalmesh.runtime.kernels import inner, kernel


class Adjacency(NamedTuple):
    """Edges around the vertices of a graph.

    ``edges[first[v]:first[v + 1]]`` are the edges at vertex v, in ascending order, and ``others`` their other ends.
    """

    first: Int
    edges: Int
    others: Int


@inner
def fill_adjacency(ends, adjacency):
    """Fill the :class:`Adjacency` of edges (E, 2); ``first`` is zero before."""
    first, count = adjacency.first, ends.shape[0]
    for e in range(count):
        first[ends[e, 0]] += 1
        first[ends[e, 1]] += 1
    for v in range(1, first.size):
        first[v] += first[v - 1]
    # Filled from behind: the end of a vertex's places becomes their beginning.
    for k in range(2 * count - 1, -1, -1):
        e, side = k // 2, k % 2
        v = ends[e, side]
        first[v] -= 1
        adjacency.edges[first[v]], adjacency.others[first[v]] = e, ends[e, 1 - side]


@inner
def walk_chain(start, adjacency, stops, seen, vertices, edges, filled):
    """Append the chain that begins with the edge at place ``start`` of an adjacency; return the number of vertices.

    The first vertex of the chain is already in ``vertices[filled - 1]``. ``edges`` gets the edge before each vertex.
    """
    place = start
    while True:
        e, v = adjacency.edges[place], adjacency.others[place]
        seen[e] = True
        vertices[filled], edges[filled] = v, e
        filled += 1
        if stops[v]:
            return filled
        place = -1
        for k in range(adjacency.first[v], adjacency.first[v + 1]):
            if not seen[adjacency.edges[k]]:
                place = k
        if place < 0:
            return filled


@kernel
def trace_chains(ends, fixed):
    """Return the chains of edges (E, 2) as flat arrays: starts (C + 1,), vertices, and the edge before each vertex.

    Chains end at vertices of a degree other than two and at ``fixed`` (N,) ones; loops without any are opened at their
    smallest vertex.
    """
    count = fixed.size
    adjacency = Adjacency(np.zeros(count + 1, np.int64), np.empty(ends.size, np.int64), np.empty(ends.size, np.int64))
    fill_adjacency(ends, adjacency)
    stops = fixed.copy()
    for v in range(count):
        stops[v] |= adjacency.first[v + 1] - adjacency.first[v] != 2
    seen = np.zeros(ends.shape[0], np.bool_)
    # Each chain has one vertex more than edges.
    vertices, edges = np.empty(2 * ends.shape[0], np.int64), np.empty(2 * ends.shape[0], np.int64)
    starts = np.zeros(ends.shape[0] + 1, np.int64)
    chains = filled = 0
    for loops in range(2):
        for v in range(count):
            if not stops[v] and loops == 0:
                continue
            for place in range(adjacency.first[v], adjacency.first[v + 1]):
                if seen[adjacency.edges[place]]:
                    continue
                # A loop ends where it began.
                stops[v] = True
                vertices[filled], edges[filled] = v, -1
                filled = walk_chain(place, adjacency, stops, seen, vertices, edges, filled + 1)
                chains += 1
                starts[chains] = filled
    return starts[: chains + 1], vertices[:filled], edges[:filled]
