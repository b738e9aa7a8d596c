"""Kernels of :mod:`normalmesh.integration.facets`."""

import math

import numpy as np

from normalmesh.integration._face_means import CENTRE_U, CENTRE_V
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.runtime.kernels import inner, kernel

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
    """Fill what :class:`normalmesh.integration.facets.FacetSystem` says of the edges (E,) across from corners."""
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
def fill_laplacian(first, last, opposite, weights, indptr, indices, values):
    """Fill rows of the Laplacian of the dual graph, CSR with ascending columns; weights (3M,) of edges at corners."""
    for f in range(first, last):
        begin = end = indptr[f]
        total = 0.0
        for corner in range(3 * f, 3 * f + 3):
            total += weights[corner]
        for k in range(4):
            corner = 3 * f + k
            column = np.int64(f) if k == 3 else opposite[corner] // 3
            if column < 0:
                continue
            place = end
            while place > begin and indices[place - 1] > column:
                indices[place], values[place] = indices[place - 1], values[place - 1]
                place -= 1
            indices[place], values[place] = column, total if k == 3 else -weights[corner]
            end += 1
