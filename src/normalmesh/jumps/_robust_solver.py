"""Kernels of :mod:`normalmesh.jumps.robust_solver`."""

import math
from typing import NamedTuple

from normalmesh.array_types import Float, Int32
from normalmesh.facets.robust_weights import MAX_WIDTHS, MIN_SHARE, SHARPNESS
from normalmesh.runtime.kernels import inner, kernel


class StrainedGraph(NamedTuple):
    """The dual graph of a mesh, as the kernels of robust solves take it.

    Attributes
    ----------
    pairs : (E, 2) int32
        The two faces of each edge.
    edges : (M, 3) int32
        The edges of each face, −1 at the boundary.
    steps : (E,)
        Difference of the offsets of its faces at which an edge is not strained.
    cosines : (M,)
        Cosines between the faces and the viewing rays.
    per_offset : (E,)
        Strain, in px, for a unit of the misfit of an edge.
    per_distance : (E,)
        1 / (pixel length × distance of the centroids, px).
    """

    pairs: Int32
    edges: Int32
    steps: Float
    cosines: Float
    per_offset: Float
    per_distance: Float


@inner(forceinline=True)
def affinity(face, edge, graph, offsets):
    """Return how much a face prefers the neighbour across an edge: 1 if both are at the same depth."""
    one, other = graph.pairs[edge, 0], graph.pairs[edge, 1]
    slope = graph.cosines[face] * (offsets[other] - offsets[one]) * graph.per_distance[edge]
    return math.exp(-SHARPNESS * slope * slope) + 1e-30


@kernel
def total_affinities(first, last, faces, graph, offsets, totals):
    """Fill ``totals`` (M,) for faces ``faces[first:last]``: half their number of edges over their summed affinities."""
    for i in range(first, last):
        f = faces[i]
        total, count = 0.0, 0
        for side in range(3):
            e = graph.edges[f, side]
            if e >= 0:
                total += affinity(f, e, graph, offsets)
                count += 1
        totals[f] = 0.5 * count / total if count > 0 else 0.0


@kernel
def weigh_one_sided(first, last, edges, graph, offsets, totals, trust, weights):
    """Set the weights of edges ``edges[first:last]``: each face distributes its weight among its edges."""
    for i in range(first, last):
        e = edges[i]
        weight = 0.0
        for side in range(2):
            f = graph.pairs[e, side]
            share = max(totals[f] * affinity(f, e, graph, offsets), MIN_SHARE)
            weight += share * graph.cosines[f] * graph.cosines[f]
        weights[e] = trust[e] * weight


@kernel
def weigh_by_strain(first, last, edges, strain, width, base, weights):
    """Set Cauchy weights of edges ``edges[first:last]``: beyond a width (px) they fall with the strain squared."""
    for i in range(first, last):
        e = edges[i]
        relative = min(strain[e] / width, MAX_WIDTHS)
        weights[e] = base[e] / (1.0 + relative * relative)


@kernel
def fill_strain(first, last, edges, graph, offsets, strain):
    """Fill the strain (px) of edges ``edges[first:last]``."""
    for i in range(first, last):
        e = edges[i]
        step = offsets[graph.pairs[e, 1]] - offsets[graph.pairs[e, 0]]
        strain[e] = graph.per_offset[e] * abs(step - graph.steps[e])


@kernel
def mark_rings(edges, graph, rings, marked, front, behind):
    """Set ``marked`` (M,) for the faces of ``edges`` and some rings of faces around them; clear it elsewhere.

    ``front`` and ``behind`` (M,) are work arrays.
    """
    marked[:] = False
    count = 0
    for e in edges:
        for side in range(2):
            f = graph.pairs[e, side]
            if not marked[f]:
                marked[f] = True
                front[count] = f
                count += 1
    for _ in range(rings):
        more = 0
        for i in range(count):
            f = front[i]
            for side in range(3):
                e = graph.edges[f, side]
                if e < 0:
                    continue
                other = graph.pairs[e, 0] + graph.pairs[e, 1] - f
                if not marked[other]:
                    marked[other] = True
                    behind[more] = other
                    more += 1
        front, behind = behind, front
        count = more
