"""Kernels of :mod:`normalmesh.facets.facets`."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from normalmesh.facets._face_means import AREA, CENTRE_U, CENTRE_V, INVERSE, SLOPE_U, SLOPE_V
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.runtime.kernels import inner, kernel

#: Share of the way to the horizon of a plane up to which its depth is followed exactly.
HORIZON = 0.5
#: Weight λ of slopes against heights when planes are projected to the vertices. Without it the angles between faces and
#: normals grow by 1 %, more with noise; with 1, heights are worse than means of planes.
STIFFNESS = 0.1


class Edges(NamedTuple):
    """The attributes of a :class:`.facets.FacetSystem` that describe its inner edges."""

    corners: NDArray[np.int32]
    ends: NDArray[np.int32]
    pairs: NDArray[np.int32]
    lengths: NDArray[np.float64]
    rises: NDArray[np.float64]
    weights: NDArray[np.float64]


@inner(forceinline=True)
def rise(f, u, v, table, central):
    """Return the rise of the plane in space of face f from its centroid to the screen position (u, v).

    Along a plane, the logarithm of the depth rises by −log(1 − ĝ·δu). Beyond :data:`HORIZON` it is continued linearly.
    """
    linear = table[f, SLOPE_U] * (u - table[f, CENTRE_U]) + table[f, SLOPE_V] * (v - table[f, CENTRE_V])
    if not central:
        return linear
    near = min(linear, HORIZON)
    return -math.log1p(-near) + (linear - near) / (1.0 - HORIZON)


@kernel
def fill_edges(first, last, mesh, opposite, table, central, edges):
    """Fill all attributes of the inner edges (E,) from their ``corners``; ``table`` is that of the face means."""
    vertices = mesh.vertices
    pairs, ends, lengths, rises = edges.pairs, edges.ends, edges.lengths, edges.rises
    vertex_of = mesh.faces.reshape(-1)
    for e in range(first, last):
        corner = np.int64(edges.corners[e])
        a, b = vertex_of[next_corner(corner)], vertex_of[previous_corner(corner)]
        ends[e, 0], ends[e, 1] = a, b
        lengths[e] = math.hypot(vertices[b, 0] - vertices[a, 0], vertices[b, 1] - vertices[a, 1])
        u, v = (vertices[a, 0] + vertices[b, 0]) / 2.0, (vertices[a, 1] + vertices[b, 1]) / 2.0
        one, other = corner // 3, opposite[corner] // 3
        pairs[e, 0], pairs[e, 1] = one, other
        rises[e, 0] = rise(one, u, v, table, central)
        rises[e, 1] = rise(other, u, v, table, central)
        edges.weights[e] = lengths[e] / max(table[one, INVERSE], table[other, INVERSE])


@kernel
def fill_planes(first, last, offsets, mesh, table, central, planes):
    """Fill rows of ``planes`` (M, 3): the values of the planes of the faces, with offsets (M,), at their corners."""
    vertices, faces = mesh.vertices, mesh.faces
    for f in range(first, last):
        for k in range(3):
            here = faces[f, k]
            planes[f, k] = offsets[f] + rise(f, vertices[here, 0], vertices[here, 1], table, central)


@kernel
def fill_projections(first, last, mesh, table, matrices):
    """Fill the matrices (M, 3, 3) of the forms m_f ∫ (e² + λ A ‖∇e‖²) of functions e that are linear on each face.

    The gradients of the hat functions of two corners have the product d·d' / (4 A²), with the edges d, d' across.
    """
    vertices, faces = mesh.vertices, mesh.faces
    for f in range(first, last):
        area, mobility = table[f, AREA], 1.0 / table[f, INVERSE]
        for i in range(3):
            a, b = faces[f, (i + 1) % 3], faces[f, (i + 2) % 3]
            u, v = vertices[b, 0] - vertices[a, 0], vertices[b, 1] - vertices[a, 1]
            for j in range(3):
                a, b = faces[f, (j + 1) % 3], faces[f, (j + 2) % 3]
                product = u * (vertices[b, 0] - vertices[a, 0]) + v * (vertices[b, 1] - vertices[a, 1])
                height = area / 6.0 if i == j else area / 12.0
                matrices[f, i, j] = mobility * (height + STIFFNESS * product / 4.0)


@kernel
def add_projections(planes, matrices, cut_faces, values, total, diagonal):
    """Add the residuals of the projection of ``planes`` (M, 3), at ``values`` (N',), to ``total`` (N',).

    The projection minimises the sum of the quadratic forms ``matrices`` (M, 3, 3) of planes − values over the faces of
    the cut mesh, ``cut_faces`` (M, 3). The diagonal of its matrix is added to ``diagonal`` (N',).
    """
    for f in range(cut_faces.shape[0]):
        for i in range(3):
            here = cut_faces[f, i]
            residual = 0.0
            for j in range(3):
                residual += matrices[f, i, j] * (planes[f, j] - values[cut_faces[f, j]])
            total[here] += residual
            diagonal[here] += matrices[f, i, i]


@kernel
def fill_laplacian(first, last, opposite, weights, indptr, indices, values):
    """Fill rows of the Laplacian of the dual graph, in CSR form with ascending columns.

    ``weights`` (3M,) holds the weight of the edge across from each corner, zero at the boundary. Fill ``indices`` and
    ``values``; ``indptr`` (M + 1,) is given.
    """
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
