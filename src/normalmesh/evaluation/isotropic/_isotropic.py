"""Kernels of :mod:`normalmesh.evaluation.isotropic.isotropic`: splits of long edges and collapses of short ones."""

import numpy as np

from normalmesh.decimation._edge_collapse import boundary_order, edge_on_boundary, outline_follows
from normalmesh.evaluation.isotropic._edge_lengths import LONG, SHORT, can_be_long, stays_short, stretch_of
from normalmesh.mesh._closed_mesh import BOUNDARY, boundary_neighbours, collapse_edge, split_edge, turn, vertex_at
from normalmesh.mesh._outline import change_outline, deviation_squared, near_outline, nearest_point
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.mesh._validity import is_well_shaped, keeps_faces_upright, link_is_simple
from normalmesh.runtime.kernels import inner, kernel

#: Maximum distance (px) between the boundary and the outline, without its staircase, after a collapse.
DEVIATION = 1.0

#: States of a vertex in a sweep of collapses: nothing to collapse, to be examined, changed in this sweep.
IDLE, ACTIVE, CHANGED = 0, 1, 2


@kernel
def split_in_order(order, mesh, outline, mask, lengths, firsts):
    """Split the edges across from the given corners that are still too long, and return the number of splits.

    ``firsts`` are the indices of the first unused vertex, face and ghost face.
    """
    vertices, faces, opposite, point_of = mesh.vertices, mesh.faces, mesh.opposite, outline.point_of
    samples, densities = lengths.samples, lengths.densities
    vertex, face, ghost_face = firsts
    splits = 0
    for corner in order:
        if not can_be_long(corner, mesh):
            continue
        if stretch_of(corner, mesh, lengths) <= LONG:
            continue
        other = opposite[corner]
        on_boundary = other // 3 >= mesh.real_faces
        if not halves_are_fit(corner, vertices, faces) or not (on_boundary or halves_are_fit(other, vertices, faces)):
            continue
        a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
        u, v = 0.5 * (vertices[a, 0] + vertices[b, 0]), 0.5 * (vertices[a, 1] + vertices[b, 1])
        if on_boundary:
            # Rounding may put the midpoint on the other side of a pixel centre that lies on the edge.
            start, end = (vertices[a, 0], vertices[a, 1]), (vertices[b, 0], vertices[b, 1])
            polygon = start, (u, v), end, end, end
            if not near_outline(u, v, mask) or not change_outline(polygon, outline.coverage, True):
                continue
            mesh.flags[vertex] = BOUNDARY
            point_of[vertex] = nearest_point(point_of[a], point_of[b], u, v, outline.next_point, outline.smooth)
        vertices[vertex, 0], vertices[vertex, 1] = u, v
        densities[vertex] = 0.5 * (densities[a] + densities[b])
        far_face = face + 1
        if on_boundary:
            far_face = ghost_face
            ghost_face += 1
        samples[corner // 3] *= 0.5
        samples[other // 3] *= 0.5
        samples[face], samples[far_face] = samples[corner // 3], samples[other // 3]
        split_edge(corner, vertex, face, far_face, mesh)
        vertex += 1
        face += 1 if on_boundary else 2
        splits += 1
    return splits


@inner
def halves_are_fit(corner, vertices, faces):
    """Return whether the two halves of a face, cut at a corner, are neither too small nor too thin."""
    a, b, c = vertex_at(corner, faces), vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    bu, bv = vertices[b, 0] - vertices[a, 0], vertices[b, 1] - vertices[a, 1]
    cu, cv = vertices[c, 0] - vertices[a, 0], vertices[c, 1] - vertices[a, 1]
    return is_well_shaped(0.5 * (bv * cu - bu * cv), max(bu * bu + bv * bv, cu * cu + cv * cv))


@inner
def place_on_outline(first, second, mesh, outline, mask, place):
    """Fill ``place`` with the position to which a boundary edge may collapse, and return whether there is one.

    It is the midpoint or an end of the edge, whichever leaves the boundary closest to the outline.
    """
    vertices, point_of, next_point, smooth = mesh.vertices, outline.point_of, outline.next_point, outline.smooth
    before, _ = boundary_neighbours(first, mesh)
    _, after = boundary_neighbours(second, mesh)
    least = DEVIATION * DEVIATION
    found = False
    for share in (0.5, 0.0, 1.0):
        u = (1.0 - share) * vertices[first, 0] + share * vertices[second, 0]
        v = (1.0 - share) * vertices[first, 1] + share * vertices[second, 1]
        if not near_outline(u, v, mask):
            continue
        point = nearest_point(point_of[first], point_of[second], u, v, next_point, smooth)
        off = max(
            deviation_squared(
                point_of[before], point, vertices[before, 0], vertices[before, 1], u, v, next_point, smooth
            ),
            deviation_squared(
                point, point_of[after], u, v, vertices[after, 0], vertices[after, 1], next_point, smooth
            ),
        )  # fmt: skip
        # An end must be clearly better than the midpoint, which spaces vertices more evenly.
        if off < least - 1e-9 or (off <= least and not found):
            least = off
            found = True
            place[0], place[1] = u, v
    return found


@inner
def may_collapse_short(corner, mesh, outline, mask, lengths, mark, token, place):
    """Return whether the edge from a corner's vertex to the next one may collapse; fill ``place`` with the position."""
    vertices, flags, densities = mesh.vertices, mesh.flags, lengths.densities
    vertex, other = vertex_at(corner, mesh.faces), vertex_at(next_corner(corner), mesh.faces)
    both = flags[vertex] & flags[other] & BOUNDARY
    if both and not edge_on_boundary(corner, mesh):
        return False
    if not link_is_simple(vertex, other, mesh, mark, token):
        return False
    if both:
        first, second = boundary_order(corner, mesh)
        if not place_on_outline(first, second, mesh, outline, mask, place):
            return False
    else:
        # An inner vertex moves onto one of the boundary.
        share = 0.5 * (1.0 + (flags[other] & BOUNDARY) - (flags[vertex] & BOUNDARY))
        for k in range(2):
            place[k] = (1.0 - share) * vertices[vertex, k] + share * vertices[other, k]
    u, v = place[0], place[1]
    density = 0.5 * (densities[vertex] + densities[other])
    for one, two in ((vertex, other), (other, vertex)):
        if not keeps_faces_upright(one, two, u, v, mesh):
            return False
        if not stays_short(one, two, u, v, density, mesh, lengths):
            return False
    if both:
        return outline_follows(first, second, u, v, mesh, outline.coverage, False)
    return True


@inner
def shortest_edge(vertex, mesh, lengths, states, beyond, beyond_end):
    """Find the shortest edge of a vertex that should collapse and comes after the edge (``beyond``, ``beyond_end``).

    Edges are ordered by stretch, then by the index of their other end. Return the corner at the vertex, −1 if there is
    no such edge, its stretch and end, and whether an edge that should collapse leads to a changed vertex.
    """
    found, least, least_end, waits = -1, SHORT, -1, False
    start = mesh.corner_of[vertex]
    corner = start
    while True:
        end = vertex_at(next_corner(corner), mesh.faces)
        if end != mesh.ghost:
            stretch = stretch_of(previous_corner(corner), mesh, lengths)
            if stretch < SHORT and states[end] == CHANGED:
                waits = True
            else:
                untried = stretch > beyond or (stretch == beyond and end > beyond_end)
                if untried and (stretch < least or (stretch == least and end < least_end)):
                    found, least, least_end = corner, stretch, end
        corner = turn(corner, mesh.opposite)
        if corner == start:
            return found, least, least_end, waits


@kernel
def collapse_sweep(mesh, outline, mask, lengths, mark, token, states):
    """Collapse the shortest edge of each active vertex, at most one at each vertex.

    Vertices around a collapse become active, vertices without an edge to collapse become idle. Return the number of
    collapses and the last token used.
    """
    collapses = 0
    place = np.empty(2)
    for vertex in range(states.size):
        if states[vertex] != ACTIVE or mesh.corner_of[vertex] < 0:
            continue
        beyond, end, waits = -1.0, -1, False
        while True:
            corner, beyond, end, waits = shortest_edge(vertex, mesh, lengths, states, beyond, end)
            if corner < 0:
                if not waits:
                    states[vertex] = IDLE
                break
            token += 1
            if may_collapse_short(corner, mesh, outline, mask, lengths, mark, token, place):
                merge(corner, place[0], place[1], mesh, outline, lengths.densities)
                wake_neighbours(vertex, mesh, states)
                states[vertex] = CHANGED
                collapses += 1
                break
    for vertex in range(states.size):
        if states[vertex] == CHANGED:
            states[vertex] = ACTIVE
    return collapses, token


@inner
def merge(corner, u, v, mesh, outline, densities):
    """Collapse the edge from a corner's vertex to the next one, and move the vertex to (u, v)."""
    vertices, flags, point_of = mesh.vertices, mesh.flags, outline.point_of
    vertex, other = vertex_at(corner, mesh.faces), vertex_at(next_corner(corner), mesh.faces)
    if flags[vertex] & flags[other] & BOUNDARY:
        first, second = boundary_order(corner, mesh)
        outline_follows(first, second, u, v, mesh, outline.coverage, True)
        point_of[vertex] = nearest_point(point_of[first], point_of[second], u, v, outline.next_point, outline.smooth)
    elif flags[other] & BOUNDARY:
        point_of[vertex] = point_of[other]
    densities[vertex] = 0.5 * (densities[vertex] + densities[other])
    flags[vertex] |= flags[other]
    collapse_edge(previous_corner(corner), mesh)
    vertices[vertex, 0], vertices[vertex, 1] = u, v


@inner
def wake_neighbours(vertex, mesh, states):
    """Make the idle neighbours of a vertex active."""
    start = mesh.corner_of[vertex]
    corner = start
    while True:
        end = vertex_at(next_corner(corner), mesh.faces)
        if end != mesh.ghost and states[end] == IDLE:
            states[end] = ACTIVE
        corner = turn(corner, mesh.opposite)
        if corner == start:
            return
