"""Kernels of :mod:`normalmesh.facets`."""

import math

import numpy as np

from normalmesh._facemeans import CENTRE_U, CENTRE_V
from normalmesh._kernels import inner, kernel
from normalmesh._topology import next_corner, previous_corner

#: Share of the way to a plane's horizon on which its depth is followed.
HORIZON = 0.5


@inner(forceinline=True)
def rise(f, u, v, table, perspective):
    """By how much the plane in space of face f rises from its centroid to the screen position (u, v).

    Along a plane, the logarithm of the depth rises by −log(1 − ĝ·δu); it goes on in a straight line towards the horizon
    of the plane.
    """
    linear = table[f, 4] * (u - table[f, CENTRE_U]) + table[f, 5] * (v - table[f, CENTRE_V])
    if not perspective:
        return linear
    near = min(linear, HORIZON)
    return -math.log1p(-near) + (linear - near) / (1.0 - HORIZON)


@kernel(error_model="numpy")
def fill_edges(
    first, last, corners, opposite, vertices, faces, table, perspective, pairs, ends, lengths, rises, weights
):
    """Fill what :class:`normalmesh.facets.FacetSystem` says of the edges (E,) across from corners."""
    vertex_of = faces.reshape(-1)
    for e in range(first, last):
        corner = np.int64(corners[e])
        a, b = vertex_of[next_corner(corner)], vertex_of[previous_corner(corner)]
        ends[e, 0], ends[e, 1] = a, b
        lengths[e] = math.hypot(vertices[b, 0] - vertices[a, 0], vertices[b, 1] - vertices[a, 1])
        u, v = (vertices[a, 0] + vertices[b, 0]) / 2.0, (vertices[a, 1] + vertices[b, 1]) / 2.0
        one, other = corner // 3, opposite[corner] // 3
        pairs[e, 0], pairs[e, 1] = one, other
        rises[e, 0] = rise(one, u, v, table, perspective)
        rises[e, 1] = rise(other, u, v, table, perspective)
        weights[e] = lengths[e] / max(table[one, 6], table[other, 6])


@kernel
def add_planes(offsets, vertices, faces, table, importance, perspective, cut_faces, total, weights):
    """Add the planes of all faces at their vertices, by importance (M,), to the totals (N',) of the cut mesh."""
    for f in range(faces.shape[0]):
        for k in range(3):
            here, there = faces[f, k], cut_faces[f, k]
            value = offsets[f] + rise(f, vertices[here, 0], vertices[here, 1], table, perspective)
            total[there] += importance[f] * value
            weights[there] += importance[f]


@kernel
def laplacian(pairs, weights, count):
    """Laplacian of the graph whose edges join pairs (E, 2) of so many nodes: CSR arrays, columns ascending."""
    indptr = np.zeros(count + 1, np.int32)
    for e in range(weights.size):
        indptr[pairs[e, 0] + 1] += 1
        indptr[pairs[e, 1] + 1] += 1
    for f in range(count):
        indptr[f + 1] += indptr[f] + 1
    indices, values = np.empty(indptr[count], np.int32), np.empty(indptr[count])
    # A row begins with its diagonal, and grows as its edges come.
    end, total = np.empty(count, np.int32), np.zeros(count)
    for f in range(count):
        indices[indptr[f]] = f
        end[f] = indptr[f] + 1
    for e in range(weights.size):
        for side in range(2):
            row, column = pairs[e, side], pairs[e, 1 - side]
            place = end[row]
            while place > indptr[row] and indices[place - 1] > column:
                indices[place], values[place] = indices[place - 1], values[place - 1]
                place -= 1
            indices[place], values[place] = column, -weights[e]
            end[row] += 1
            total[row] += weights[e]
    for f in range(count):
        for place in range(indptr[f], indptr[f + 1]):
            if indices[place] == f:
                values[place] = total[f]
    return values, indices, indptr
