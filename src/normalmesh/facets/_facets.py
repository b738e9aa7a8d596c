"""Kernels of :mod:`normalmesh.facets.facets` and :mod:`normalmesh.facets.plane_surface`."""

import math
from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Float, Int32
from normalmesh.facets._face_means import AREA, CENTRE_U, CENTRE_V, INVERSE, SLOPE_U, SLOPE_V
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.normals._camera import plane_rise
from normalmesh.runtime.kernels import inner, kernel

#: Weight λ of slopes against heights when planes are projected to the vertices. Without it the angles between faces and
#: normals grow by 1 %, more with noise; with 1, heights are worse than means of planes.
STIFFNESS = 0.1


class Edges(NamedTuple):
    """The attributes of a :class:`.facets.FacetSystem` that describe its inner edges."""

    corners: Int32
    ends: Int32
    pairs: Int32
    face_edges: Int32
    lengths: Float
    steps: Float
    weights: Float


class DualGraph(NamedTuple):
    """Equations of a facet system.

    ``edges`` (M, 3) are the inner edges of each face, −1 for none; ``pairs`` (E, 2), ``steps`` (E,) and ``weights``
    (E,) are those of :class:`.facets.FacetSystem`.
    """

    edges: Int32
    pairs: Int32
    steps: Float
    weights: Float


@inner(forceinline=True)
def rise(f, u, v, table, camera):
    """Return the rise of the plane in space of face f from its centroid to the screen position (u, v)."""
    linear = table[f, SLOPE_U] * (u - table[f, CENTRE_U]) + table[f, SLOPE_V] * (v - table[f, CENTRE_V])
    return plane_rise(linear, camera)


@kernel
def fill_rises(first, last, gradients, steps, camera, rises):
    """Fill the rises (K,) of planes with the given gradients (K, 2) along steps (K, 2) on the screen."""
    for k in range(first, last):
        linear = gradients[k, 0] * steps[k, 0] + gradients[k, 1] * steps[k, 1]
        rises[k] = plane_rise(linear, camera)


@inner(forceinline=True)
def edge_middle(corner, mesh):
    """Return the midpoint on the screen of the edge across from a corner; on a side, there is another one beyond it."""
    vertex_of, vertices = mesh.faces.reshape(-1), mesh.vertices
    a, b = vertex_of[next_corner(corner)], vertex_of[previous_corner(corner)]
    return (vertices[a, 0] + vertices[b, 0]) / 2.0, (vertices[a, 1] + vertices[b, 1]) / 2.0


@kernel
def fill_edges(first, last, mesh, opposite, table, camera, edges):
    """Fill all attributes of the inner edges (E,) from their ``corners``; ``table`` is that of the face means.

    ``face_edges`` (M, 3) must be −1 before.
    """
    vertices = mesh.vertices
    pairs, ends, lengths = edges.pairs, edges.ends, edges.lengths
    vertex_of, edge_of = mesh.faces.reshape(-1), edges.face_edges.reshape(-1)
    for e in range(first, last):
        corner = np.int64(edges.corners[e])
        a, b = vertex_of[next_corner(corner)], vertex_of[previous_corner(corner)]
        ends[e, 0], ends[e, 1] = a, b
        lengths[e] = math.hypot(vertices[b, 0] - vertices[a, 0], vertices[b, 1] - vertices[a, 1])
        one, other = corner // 3, opposite[corner] // 3
        there_u, there_v = edge_middle(np.int64(opposite[corner]), mesh)
        u, v = edge_middle(corner, mesh)
        pairs[e, 0], pairs[e, 1] = one, other
        edge_of[corner] = edge_of[opposite[corner]] = e
        edges.steps[e] = rise(one, u, v, table, camera) - rise(other, there_u, there_v, table, camera)
        edges.weights[e] = lengths[e] / max(table[one, INVERSE], table[other, INVERSE])


@kernel
def fill_planes(first, last, offsets, mesh, table, camera, planes):
    """Fill rows of ``planes`` (M, 3): the values of the planes of the faces, with offsets (M,), at their corners."""
    vertices, faces = mesh.vertices, mesh.faces
    for f in range(first, last):
        for k in range(3):
            here = faces[f, k]
            planes[f, k] = offsets[f] + rise(f, vertices[here, 0], vertices[here, 1], table, camera)


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
def fill_laplacian(first, last, faces, graph, indptr, indices, values):
    """Fill the rows of some faces in the Laplacian of the dual graph, in CSR form with ascending columns.

    Fill ``indices`` and ``values``; ``indptr`` (M + 1,) is given.
    """
    pairs, weights = graph.pairs, graph.weights
    for i in range(first, last):
        f = faces[i]
        begin = end = indptr[f]
        total = 0.0
        for k in range(4):
            column, value = f, total
            if k < 3:
                e = graph.edges[f, k]
                if e < 0:
                    continue
                column, value = pairs[e, 0] + pairs[e, 1] - f, -weights[e]
                total += weights[e]
            place = end
            while place > begin and indices[place - 1] > column:
                indices[place], values[place] = indices[place - 1], values[place - 1]
                place -= 1
            indices[place], values[place] = column, value
            end += 1


@kernel
def fill_right_side(first, last, faces, graph, right_side):
    """Fill the rows of some faces in the right-hand side (M,)."""
    pairs, edges = graph.pairs, graph.edges
    for i in range(first, last):
        f = faces[i]
        inwards, outwards = 0.0, 0.0
        # The last edge comes last, so that both sums are those in the order of all edges, bit for bit.
        latest = max(edges[f, 0], edges[f, 1], edges[f, 2])
        for k in range(4):
            e = edges[f, k] if k < 3 else latest
            if e < 0 or (k < 3 and e == latest):
                continue
            pull = graph.weights[e] * graph.steps[e]
            if pairs[e, 0] == f:
                outwards += pull
            else:
                inwards += pull
        right_side[f] = inwards - outwards
