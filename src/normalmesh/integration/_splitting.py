"""Kernels of :mod:`normalmesh.integration.splitting`: splits of inner edges at their midpoints."""

from typing import NamedTuple

from normalmesh.array_types import Int, Int32
from normalmesh.integration._patch import is_fit
from normalmesh.mesh._closed_mesh import LOCKED, split_edge, vertex_at
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.normals._camera import middle_unknown
from normalmesh.runtime.kernels import inner, kernel

#: Splits make no face smaller than this (px²): it might own no pixel.
MIN_HALF = 2.0


class Room(NamedTuple):
    """How many vertices may be added, and where.

    ``component`` (N,) is that of each vertex, filled for new ones. ``own`` (C,) is the number of new vertices that each
    component may have, ``shared`` (1,) that of further ones, wherever they are needed. Both are counted down.
    """

    component: Int32
    own: Int
    shared: Int


@inner
def takes_room(component, room):
    """Return whether a component may have one more vertex, and count it."""
    if room.own[component] > 0:
        room.own[component] -= 1
        return True
    room.shared[0] -= 1
    return room.shared[0] >= 0


@inner
def halves_fit(corner, mesh):
    """Return whether both halves of a corner's face are neither small nor needles, cut from the corner to the midpoint.

    Return also the share of the squared length of the edge across in that of the face's longest side.
    """
    vertices, faces = mesh.vertices, mesh.faces
    a, b, c = vertex_at(corner, faces), vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    bu, bv = vertices[b, 0] - vertices[a, 0], vertices[b, 1] - vertices[a, 1]
    cu, cv = vertices[c, 0] - vertices[a, 0], vertices[c, 1] - vertices[a, 1]
    mu, mv = 0.5 * (bu + cu), 0.5 * (bv + cv)
    across = (bu - cu) ** 2 + (bv - cv) ** 2
    share = across / max(across, bu * bu + bv * bv, cu * cu + cv * cv)
    fits = bv * cu - bu * cv >= 4.0 * MIN_HALF and is_fit(bu, bv, mu, mv) and is_fit(mu, mv, cu, cv)
    return fits, share


@kernel
def fill_split_scores(first, last, mesh, costs, scores):
    """Fill the scores (3M,) of edges, at the smaller of their two corners; 0 if an edge must not be split.

    It is the cost (M,) of both faces, each times the share of the squared length of the edge in that of the face's
    longest side.
    """
    faces, flags = mesh.faces, mesh.flags
    for corner in range(first, last):
        scores[corner] = 0.0
        other = mesh.opposite[corner]
        if not corner < other < 3 * mesh.real_faces:
            continue
        a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
        one_fits, one_share = halves_fit(corner, mesh)
        two_fits, two_share = halves_fit(other, mesh)
        if one_fits and two_fits and not flags[a] & flags[b] & LOCKED:
            scores[corner] = one_share * costs[corner // 3] + two_share * costs[other // 3]


@kernel
def split_in_halves(order, mesh, unknown, camera, firsts, touched, room):
    """Split the edges across from the given corners until no vertex is left, each face at most once.

    The surface in space stays as it is. ``firsts`` are the indices of the first unused vertex and face; vertices end
    with ``unknown``, which is filled for the new ones. ``touched`` (M,) is False before; ``room`` is a :class:`Room`.
    Return the number of splits.
    """
    vertices, faces = mesh.vertices, mesh.faces
    vertex, face = firsts
    splits = 0
    for corner in order:
        one, two = corner // 3, mesh.opposite[corner] // 3
        if touched[one] or touched[two]:
            continue
        if vertex == unknown.size:
            break
        component = room.component[vertex_at(corner, faces)]
        if not takes_room(component, room):
            continue
        room.component[vertex] = component
        touched[one] = touched[two] = touched[face] = touched[face + 1] = True
        a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
        vertices[vertex, 0] = 0.5 * (vertices[a, 0] + vertices[b, 0])
        vertices[vertex, 1] = 0.5 * (vertices[a, 1] + vertices[b, 1])
        unknown[vertex] = middle_unknown(unknown[a], unknown[b], camera)
        split_edge(corner, vertex, face, face + 1, mesh)
        vertex += 1
        face += 2
        splits += 1
    return splits
