"""Kernels of :mod:`normalmesh.evaluation.isotropic.isotropic`: splits of long edges and collapses of short ones."""

import numpy as np

from normalmesh.decimation._collapse import boundary_order, edge_on_boundary, outline_follows
from normalmesh.evaluation.isotropic._edge_lengths import LONG, SHORT, can_be_long, stays_short, stretch_of
from normalmesh.mesh._closed_mesh import BOUNDARY, boundary_neighbours, collapse_edge, split_edge, turn, vertex_at
from normalmesh.mesh._outline import change_outline, deviation_squared, near_outline, nearest_point
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.mesh._validity import is_fit, keeps_faces_upright, link_is_simple
from normalmesh.runtime.kernels import inner, kernel

#: A collapse leaves the outline, without its stairs, this close (px) to the boundary.
DEVIATION = 1.0

#: What is known of a vertex in a sweep of collapses.
IDLE, ACTIVE, CHANGED = 0, 1, 2


@kernel
def split_in_order(
    order, vertices, faces, opposite, corner_of, ghost, real_faces, flags, outline_of, next_point, smooth, mask,
    covered, samples, densities, frame, towards_viewer, scale, vertex, face, ghost_face,
):  # fmt: skip
    """Split the edges across from the given corners that still are long in the middle; the number of splits.

    New vertices and faces are taken from ``vertex``, ``face`` and ``ghost_face`` on.
    """
    splits = 0
    for corner in order:
        if not can_be_long(corner, vertices, faces):
            continue
        if stretch_of(corner, vertices, faces, opposite, samples, densities, frame, towards_viewer, scale) <= LONG:
            continue
        other = opposite[corner]
        on_boundary = other // 3 >= real_faces
        if not halves_are_fit(corner, vertices, faces) or not (on_boundary or halves_are_fit(other, vertices, faces)):
            continue
        a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
        u, v = 0.5 * (vertices[a, 0] + vertices[b, 0]), 0.5 * (vertices[a, 1] + vertices[b, 1])
        if on_boundary:
            # Rounding may put the middle to the other side of a pixel centre on the edge.
            polygon = np.empty((3, 2))
            polygon[0], polygon[2] = vertices[a], vertices[b]
            polygon[1, 0], polygon[1, 1] = u, v
            if not near_outline(u, v, mask) or not change_outline(polygon, covered, True):
                continue
            flags[vertex] = BOUNDARY
            outline_of[vertex] = nearest_point(outline_of[a], outline_of[b], u, v, next_point, smooth)
        vertices[vertex, 0], vertices[vertex, 1] = u, v
        densities[vertex] = 0.5 * (densities[a] + densities[b])
        far_face = face + 1
        if on_boundary:
            far_face = ghost_face
            ghost_face += 1
        samples[corner // 3] *= 0.5
        samples[other // 3] *= 0.5
        samples[face], samples[far_face] = samples[corner // 3], samples[other // 3]
        split_edge(corner, vertex, face, far_face, faces, opposite, corner_of)
        vertex += 1
        face += 1 if on_boundary else 2
        splits += 1
    return splits


@inner
def halves_are_fit(corner, vertices, faces):
    """Whether the halves of a face, cut from a corner to the middle across, are neither tiny nor needles."""
    a, b, c = vertex_at(corner, faces), vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    bu, bv = vertices[b, 0] - vertices[a, 0], vertices[b, 1] - vertices[a, 1]
    cu, cv = vertices[c, 0] - vertices[a, 0], vertices[c, 1] - vertices[a, 1]
    return is_fit(0.5 * (bv * cu - bu * cv), max(bu * bu + bv * bv, cu * cu + cv * cv))


@inner
def place_on_outline(
    first, second, vertices, faces, opposite, corner_of, ghost, outline_of, next_point, smooth, mask, place
):  # fmt: skip
    """Where a boundary edge may collapse to: its middle or an end, whichever keeps closest to the outline.

    Written into ``place``; whether that is close enough.
    """
    before, _ = boundary_neighbours(first, faces, opposite, corner_of, ghost)
    _, after = boundary_neighbours(second, faces, opposite, corner_of, ghost)
    least = DEVIATION * DEVIATION
    found = False
    for share in (0.5, 0.0, 1.0):
        u = (1.0 - share) * vertices[first, 0] + share * vertices[second, 0]
        v = (1.0 - share) * vertices[first, 1] + share * vertices[second, 1]
        if not near_outline(u, v, mask):
            continue
        point = nearest_point(outline_of[first], outline_of[second], u, v, next_point, smooth)
        off = max(
            deviation_squared(
                outline_of[before], point, vertices[before, 0], vertices[before, 1], u, v, next_point, smooth
            ),
            deviation_squared(
                point, outline_of[after], u, v, vertices[after, 0], vertices[after, 1], next_point, smooth
            ),
        )  # fmt: skip
        # An end must be clearly better than the middle, which spaces vertices more evenly.
        if off < least - 1e-9 or (off <= least and not found):
            least = off
            found = True
            place[0], place[1] = u, v
    return found


@inner
def may_collapse(
    vertex, other, corner, vertices, faces, opposite, corner_of, ghost, flags, outline_of, next_point, smooth, mask,
    covered, samples, densities, frame, towards_viewer, scale, mark, token, place,
):  # fmt: skip
    """Whether the edge from a corner's vertex to another one may collapse; where to is written into ``place``."""
    both = flags[vertex] & flags[other] & BOUNDARY
    if both and not edge_on_boundary(corner, faces, opposite, ghost):
        return False
    if not link_is_simple(vertex, other, faces, opposite, corner_of, ghost, mark, token):
        return False
    if both:
        first, second = boundary_order(vertex, other, corner, faces, ghost)
        if not place_on_outline(
            first, second, vertices, faces, opposite, corner_of, ghost, outline_of, next_point, smooth, mask, place
        ):
            return False
    else:
        # An inner vertex moves onto one of the boundary.
        share = 0.5 * (1.0 + (flags[other] & BOUNDARY) - (flags[vertex] & BOUNDARY))
        for k in range(2):
            place[k] = (1.0 - share) * vertices[vertex, k] + share * vertices[other, k]
    u, v = place[0], place[1]
    density = 0.5 * (densities[vertex] + densities[other])
    for one, two in ((vertex, other), (other, vertex)):
        if not keeps_faces_upright(one, two, u, v, vertices, faces, opposite, corner_of, ghost):
            return False
        if not stays_short(
            one, two, u, v, density, vertices, faces, opposite, corner_of, ghost, samples, densities, frame,
            towards_viewer, scale,
        ):  # fmt: skip
            return False
    if both:
        return outline_follows(first, second, u, v, vertices, faces, opposite, corner_of, ghost, covered, False)
    return True


@inner
def shortest_edge(
    vertex, vertices, faces, opposite, corner_of, ghost, samples, densities, frame, towards_viewer, scale, states,
    beyond, beyond_end,
):  # fmt: skip
    """The shortest edge of a vertex that is to be collapsed, after ``beyond`` in the order of stretch, then of end.

    Its corner at the vertex, −1 if there is none, its stretch and end, and whether one leads to a changed vertex.
    """
    found, least, least_end, waits = -1, SHORT, -1, False
    start = corner_of[vertex]
    corner = start
    while True:
        end = vertex_at(next_corner(corner), faces)
        if end != ghost:
            back = previous_corner(corner)
            stretch = stretch_of(back, vertices, faces, opposite, samples, densities, frame, towards_viewer, scale)
            if stretch < SHORT and states[end] == CHANGED:
                waits = True
            else:
                untried = stretch > beyond or (stretch == beyond and end > beyond_end)
                if untried and (stretch < least or (stretch == least and end < least_end)):
                    found, least, least_end = corner, stretch, end
        corner = turn(corner, opposite)
        if corner == start:
            return found, least, least_end, waits


@kernel
def collapse_sweep(
    vertices, faces, opposite, corner_of, ghost, flags, outline_of, next_point, smooth, mask, covered, samples,
    densities, frame, towards_viewer, scale, mark, token, states,
):  # fmt: skip
    """Collapse the shortest edge of each active vertex, no two at one vertex; collapses and the last token used.

    Vertices around a collapse become active, those without an edge to collapse idle.
    """
    collapses = 0
    place = np.empty(2)
    for vertex in range(states.size):
        if states[vertex] != ACTIVE or corner_of[vertex] < 0:
            continue
        beyond, end, waits = -1.0, -1, False
        while True:
            corner, beyond, end, waits = shortest_edge(
                vertex, vertices, faces, opposite, corner_of, ghost, samples, densities, frame, towards_viewer, scale,
                states, beyond, end,
            )  # fmt: skip
            if corner < 0:
                if not waits:
                    states[vertex] = IDLE
                break
            token += 1
            if may_collapse(
                vertex, end, corner, vertices, faces, opposite, corner_of, ghost, flags, outline_of, next_point, smooth,
                mask, covered, samples, densities, frame, towards_viewer, scale, mark, token, place,
            ):  # fmt: skip
                merge(
                    vertex, end, corner, place[0], place[1], vertices, faces, opposite, corner_of, ghost, flags,
                    outline_of, next_point, smooth, covered, densities,
                )  # fmt: skip
                wake_neighbours(vertex, faces, opposite, corner_of, ghost, states)
                states[vertex] = CHANGED
                collapses += 1
                break
    for vertex in range(states.size):
        if states[vertex] == CHANGED:
            states[vertex] = ACTIVE
    return collapses, token


@inner
def merge(
    vertex, other, corner, u, v, vertices, faces, opposite, corner_of, ghost, flags, outline_of, next_point, smooth,
    covered, densities,
):  # fmt: skip
    """Collapse the edge from a corner's vertex to another one; the vertex then lies at (u, v)."""
    if flags[vertex] & flags[other] & BOUNDARY:
        first, second = boundary_order(vertex, other, corner, faces, ghost)
        outline_follows(first, second, u, v, vertices, faces, opposite, corner_of, ghost, covered, True)
        outline_of[vertex] = nearest_point(outline_of[first], outline_of[second], u, v, next_point, smooth)
    elif flags[other] & BOUNDARY:
        outline_of[vertex] = outline_of[other]
    densities[vertex] = 0.5 * (densities[vertex] + densities[other])
    flags[vertex] |= flags[other]
    collapse_edge(previous_corner(corner), faces, opposite, corner_of)
    vertices[vertex, 0], vertices[vertex, 1] = u, v


@inner
def wake_neighbours(vertex, faces, opposite, corner_of, ghost, states):
    """Neighbours of a vertex that are idle become active."""
    start = corner_of[vertex]
    corner = start
    while True:
        end = vertex_at(next_corner(corner), faces)
        if end != ghost and states[end] == IDLE:
            states[end] = ACTIVE
        corner = turn(corner, opposite)
        if corner == start:
            return
