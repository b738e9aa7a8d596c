"""Kernels of :mod:`normalmesh.evaluation.isotropic`: edge lengths on the surface, splits and collapses by them.

A *sample* of a face is four numbers: its mean normal times its area on the surface, and its mean density times that
area. *Density* is h⁻² (px⁻²) for a target edge length h. The *stretch* of an edge is its squared length on the surface
times the larger density of its ends: 1 where it is as long as the shorter of both lengths wants it.
"""

import math

import numpy as np
from numba import njit, prange

from normalmesh._closedmesh import BOUNDARY, boundary_neighbours, collapse_edge, split_edge, turn, vertex_at
from normalmesh._collapse import boundary_order, edge_on_boundary, outline_follows
from normalmesh._outline import change_outline, deviation_squared, near_outline, nearest_point
from normalmesh._quadrics import facing, jacobian, sample_pixel
from normalmesh._raster import by_height, first_row, row_span
from normalmesh._topology import next_corner, previous_corner
from normalmesh._validity import is_fit, keeps_faces_upright, link_is_simple

#: Target edge lengths lie between these (px).
SHORTEST, LONGEST = 1.0, 100.0
#: Curvature (1/px) that counts as none.
FLAT = 1e-12
#: Stretches beyond which edges are split and below which they are collapsed: (4/3)² and (4/5)².
LONG, SHORT = 16.0 / 9.0, 16.0 / 25.0
#: Edges not longer than this on the screen (px) are never split: there is nothing to see between pixels.
UNSPLIT = 2.0
#: A collapse leaves the outline, without its stairs, this close (px) to the boundary.
DEVIATION = 1.0

#: What is known of a vertex in a sweep of collapses.
IDLE, ACTIVE, CHANGED = 0, 1, 2


@njit(cache=True, nogil=True)
def target_squared(curvature, error):
    """h² = 6ε/κ − 3ε² (px²), clamped: the equilateral triangle in a sphere of curvature κ, off it by ε in the middle.

    Triangles in the sphere grow until ε is its radius 1/κ, where h² = 3ε/κ. They go on so, for small bumps count less
    the larger ε is.
    """
    radius = 1.0 / max(curvature, FLAT)
    return min(max(3.0 * error * max(2.0 * radius - error, radius), SHORTEST * SHORTEST), LONGEST * LONGEST)


@njit(cache=True, parallel=True, nogil=True)
def fill_density(curvature, error, density):
    """Density h⁻² (H, W) float32 at all pixels."""
    for i in prange(curvature.shape[0]):
        for j in range(curvature.shape[1]):
            density[i, j] = 1.0 / target_squared(curvature[i, j], error)


@njit(cache=True, parallel=True, nogil=True)
def expected_vertices(normals, curvature, mask, step, frame, scale, error):
    """Vertices of equilateral triangles of the target lengths, ∫ 2/(√3 h²) over the surface; every ``step``-th row."""
    total = 0.0
    for k in prange((mask.shape[0] + step - 1) // step):
        i = k * step
        for j in range(mask.shape[1]):
            if mask[i, j]:
                u, v = j + 0.5, i + 0.5
                t = jacobian(normals[i, j, 0], normals[i, j, 1], normals[i, j, 2], u, v, frame, scale)
                total += surface_share(t) / target_squared(curvature[i, j], error)
    return total * step * 2.0 / math.sqrt(3.0)


@njit(cache=True, nogil=True)
def surface_share(t):
    """√det JᵀJ: area on the surface of a piece of the screen."""
    uu = t[0] * t[0] + t[1] * t[1] + t[2] * t[2]
    uv = t[0] * t[3] + t[1] * t[4] + t[2] * t[5]
    vv = t[3] * t[3] + t[4] * t[4] + t[5] * t[5]
    return math.sqrt(max(uu * vv - uv * uv, 0.0))


@njit(cache=True, parallel=True, nogil=True)
def sample_faces(vertices, faces, real_faces, normals, density, mask, frame, towards_viewer, scale, samples):
    """Samples (F, 4) float32 of all faces from their pixels; zero for ghosts.

    Faces without a pixel centre sample the pixel under their centroid.
    """
    rows, columns = mask.shape
    for f in prange(faces.shape[0]):
        samples[f] = 0.0
        if f >= real_faces:
            continue
        a, b, c = vertices[faces[f, 0]], vertices[faces[f, 1]], vertices[faces[f, 2]]
        top, middle, bottom = by_height(a, b, c)
        middle_row = first_row(middle[1], rows)
        nx = ny = nz = total = 0.0
        pixels = 0
        for row in range(first_row(top[1], rows), first_row(bottom[1], rows)):
            start, end = row_span(top, middle, bottom, row, middle_row, columns)
            for column in range(start, end):
                if mask[row, column]:
                    pixels += 1
                    nx += normals[row, column, 0]
                    ny += normals[row, column, 1]
                    nz += normals[row, column, 2]
                    total += density[row, column]
        u, v = (a[0] + b[0] + c[0]) / 3.0, (a[1] + b[1] + c[1]) / 3.0
        if pixels == 0:
            row, column = sample_pixel(mask, u, v)
            if row < 0:
                continue
            pixels = 1
            nx += normals[row, column, 0]
            ny += normals[row, column, 1]
            nz += normals[row, column, 2]
            total += density[row, column]
        nx, ny, nz = facing(nx, ny, nz, u, v, frame, towards_viewer)
        area = 0.5 * abs((b[1] - a[1]) * (c[0] - a[0]) - (b[0] - a[0]) * (c[1] - a[1]))
        area *= surface_share(jacobian(nx, ny, nz, u, v, frame, scale))
        samples[f, 0], samples[f, 1], samples[f, 2] = area * nx, area * ny, area * nz
        samples[f, 3] = area * total / pixels


@njit(cache=True, parallel=True, nogil=True)
def vertex_densities(opposite, corner_of, samples, densities):
    """Mean density (N,) float32 over the faces of each vertex."""
    for vertex in prange(densities.size):
        densities[vertex] = 1.0 / (LONGEST * LONGEST)
        start = corner_of[vertex]
        if start < 0:
            continue
        area = density = 0.0
        corner = start
        while True:
            s = samples[corner // 3]
            area += math.sqrt(s[0] * s[0] + s[1] * s[1] + s[2] * s[2])
            density += s[3]
            corner = turn(corner, opposite)
            if corner == start:
                break
        if area > 0.0:
            densities[vertex] = density / area


@njit(cache=True, nogil=True)
def surface_length_squared(u, v, du, dv, one, two, samples, frame, towards_viewer, scale):
    """‖J δu‖² (px²) of the step (du, dv) from (u, v), with J of the mean normal of two faces."""
    mid_u, mid_v = u + 0.5 * du, v + 0.5 * dv
    p, q = samples[one], samples[two]
    nx, ny, nz = facing(p[0] + q[0], p[1] + q[1], p[2] + q[2], mid_u, mid_v, frame, towards_viewer)
    t = jacobian(nx, ny, nz, mid_u, mid_v, frame, scale)
    x, y, z = t[0] * du + t[3] * dv, t[1] * du + t[4] * dv, t[2] * du + t[5] * dv
    return x * x + y * y + z * z


@njit(cache=True, nogil=True)
def stretch_of(corner, vertices, faces, opposite, samples, densities, frame, towards_viewer, scale):
    """Stretch of the edge across from a corner."""
    a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    u, v = vertices[a, 0], vertices[a, 1]
    return max(densities[a], densities[b]) * surface_length_squared(
        u, v, vertices[b, 0] - u, vertices[b, 1] - v, corner // 3, opposite[corner] // 3, samples, frame,
        towards_viewer, scale,
    )  # fmt: skip


@njit(cache=True, parallel=True, nogil=True)
def stretches_of_long_edges(
    vertices, faces, real_faces, opposite, samples, densities, frame, towards_viewer, scale, stretches
):  # fmt: skip
    """Stretches (3M,) float32 of the edges that are to be split, each at one of its corners; zero elsewhere."""
    for corner in prange(3 * real_faces):
        stretches[corner] = 0.0
        if corner < opposite[corner] and can_be_long(corner, vertices, faces):
            stretch = stretch_of(corner, vertices, faces, opposite, samples, densities, frame, towards_viewer, scale)
            if stretch > LONG:
                stretches[corner] = stretch


@njit(cache=True, nogil=True)
def can_be_long(corner, vertices, faces):
    """Whether the edge across from a corner is long enough on the screen to be split."""
    a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    du, dv = vertices[b, 0] - vertices[a, 0], vertices[b, 1] - vertices[a, 1]
    return du * du + dv * dv > UNSPLIT * UNSPLIT


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def halves_are_fit(corner, vertices, faces):
    """Whether the halves of a face, cut from a corner to the middle across, are neither tiny nor needles."""
    a, b, c = vertex_at(corner, faces), vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    bu, bv = vertices[b, 0] - vertices[a, 0], vertices[b, 1] - vertices[a, 1]
    cu, cv = vertices[c, 0] - vertices[a, 0], vertices[c, 1] - vertices[a, 1]
    return is_fit(0.5 * (bv * cu - bu * cv), max(bu * bu + bv * bv, cu * cu + cv * cv))


@njit(cache=True, nogil=True)
def stays_short(vertex, other, u, v, density, vertices, faces, opposite, corner_of, ghost, samples, densities, frame,
                towards_viewer, scale):  # fmt: skip
    """Whether no edge of a vertex, but that to the other one, is to be split when the vertex moves to (u, v)."""
    start = corner_of[vertex]
    corner = start
    while True:
        end = vertex_at(next_corner(corner), faces)
        if end != ghost and end != other:
            du, dv = vertices[end, 0] - u, vertices[end, 1] - v
            if du * du + dv * dv > UNSPLIT * UNSPLIT:
                two = opposite[previous_corner(corner)] // 3
                length = surface_length_squared(
                    u, v, du, dv, corner // 3, two, samples, frame, towards_viewer, scale
                )  # fmt: skip
                if length * max(density, densities[end]) > LONG:
                    return False
        corner = turn(corner, opposite)
        if corner == start:
            return True


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def may_collapse(
    vertex, other, corner, vertices, faces, opposite, corner_of, ghost, flags, outline_of, next_point, smooth, mask,
    covered, samples, densities, frame, towards_viewer, scale, mark, token, place,
):  # fmt: skip
    """Whether the edge from a corner's vertex to another one may collapse; where to is written into ``place``."""
    both = flags[vertex] & flags[other] & BOUNDARY
    if both and not edge_on_boundary(corner, faces, opposite, ghost):
        return False
    if not link_is_simple(vertex, other, faces, opposite, corner_of, mark, token):
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


@njit(cache=True, nogil=True)
def shortest_edge(
    vertex, vertices, faces, opposite, corner_of, ghost, flags, samples, densities, frame, towards_viewer, scale,
    states, beyond, beyond_end,
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


@njit(cache=True, nogil=True)
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
                vertex, vertices, faces, opposite, corner_of, ghost, flags, samples, densities, frame, towards_viewer,
                scale, states, beyond, end,
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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
