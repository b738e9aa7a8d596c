"""Kernels of :mod:`normalmesh.refinement`: flips and moves judged by the angle between pixel and face normals."""

import math

import numpy as np
from numba import njit, prange

from normalmesh._closedmesh import LOCKED, are_neighbours, flip_edge, turn, vertex_at
from normalmesh._facemeans import SUMS, add_face
from normalmesh._raster import by_height, first_row, row_span
from normalmesh._topology import next_corner, previous_corner
from normalmesh._validity import crossing, is_fit

#: Directions in which a vertex looks for a better place.
DIRECTIONS = 6
#: A change must lower the summed angle by this share, and by this part of what noise does to it.
LEAST_GAIN = 1e-3
NOISE_GAIN = 0.25
#: No face becomes smaller than this by a move (px²): below it the pixels say nothing.
LEAST_AREA = 0.3


@njit(cache=True, nogil=True)
def space_point(position, unknown, frame, perspective, point):
    """The point in space of a screen position and the unknown there."""
    u, v = position[0], position[1]
    if perspective:
        depth = math.exp(unknown)
        for k in range(3):
            point[k] = depth * (frame[2, k] + u * frame[3, k] + v * frame[4, k])
    else:
        for k in range(3):
            point[k] = u * frame[0, k] + v * frame[1, k] + unknown * frame[2, k]


@njit(cache=True, nogil=True)
def sum_of_angles(a, b, c, za, zb, zc, normals, mask, frame, perspective):
    """Sum over the pixels of a face of the angle (radians) between their normals and the face's."""
    p, q, r = np.empty(3), np.empty(3), np.empty(3)
    space_point(a, za, frame, perspective, p)
    space_point(b, zb, frame, perspective, q)
    space_point(c, zc, frame, perspective, r)
    ux, uy, uz = q[0] - p[0], q[1] - p[1], q[2] - p[2]
    vx, vy, vz = r[0] - p[0], r[1] - p[1], r[2] - p[2]
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    length = math.sqrt(nx * nx + ny * ny + nz * nz)
    if length == 0.0:
        return np.inf
    nx, ny, nz = nx / length, ny / length, nz / length
    rows, columns = mask.shape
    top, middle, bottom = by_height(a, b, c)
    middle_row = first_row(middle[1], rows)
    total = 0.0
    for row in range(first_row(top[1], rows), first_row(bottom[1], rows)):
        start, end = row_span(top, middle, bottom, row, middle_row, columns)
        for column in range(start, end):
            if mask[row, column]:
                total += _angle(
                    nx * normals[row, column, 0] + ny * normals[row, column, 1] + nz * normals[row, column, 2]
                )
    return total


@njit(cache=True, nogil=True)
def _angle(cosine):
    """arccos, to 0.02 %: Abramowitz and Stegun 4.4.45."""
    x = min(abs(cosine), 1.0)
    angle = math.sqrt(1.0 - x) * (1.5707288 + x * (-0.2121144 + x * (0.0742610 - 0.0187293 * x)))
    return angle if cosine >= 0.0 else math.pi - angle


@njit(cache=True, parallel=True, nogil=True)
def face_angles(vertices, unknown, faces, normals, mask, frame, perspective, angles):
    """Summed angles (M,) of all faces."""
    for f in prange(angles.size):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        angles[f] = sum_of_angles(
            vertices[a], vertices[b], vertices[c], unknown[a], unknown[b], unknown[c], normals, mask, frame, perspective
        )


@njit(cache=True, nogil=True)
def goal(angle, area, noise):
    """The summed angle (radians) that a change must reach. Noise adds its deviation times √pixels to such a sum."""
    return (1.0 - LEAST_GAIN) * angle - NOISE_GAIN * noise * math.sqrt(area)


@njit(cache=True, nogil=True)
def gain_of_flip(
    corner, vertices, unknown, faces, real_faces, opposite, flags, angles, noise, normals, mask, frame, perspective
):  # fmt: skip
    """By how much the summed angle falls when the edge across from a corner is flipped; 0 where it should not be."""
    other = opposite[corner]
    one, two = corner // 3, other // 3
    if one >= real_faces or two >= real_faces:
        return 0.0
    a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    if flags[a] & flags[b] & LOCKED:
        return 0.0
    c, d = vertex_at(corner, faces), vertex_at(other, faces)
    s, _, double_area = crossing(a, b, c, d, vertices)
    if min(s, 1.0 - s) * double_area < 2.0 * LEAST_AREA:
        return 0.0
    now = angles[one] + angles[two]
    then = sum_of_angles(
        vertices[c], vertices[a], vertices[d], unknown[c], unknown[a], unknown[d], normals, mask, frame, perspective
    ) + sum_of_angles(
        vertices[d], vertices[b], vertices[c], unknown[d], unknown[b], unknown[c], normals, mask, frame, perspective
    )
    return now - then if then < goal(now, 0.5 * double_area, noise) else 0.0


@njit(cache=True, parallel=True, nogil=True)
def gains_of_flips(
    vertices, unknown, faces, real_faces, opposite, flags, angles, noise, normals, mask, frame, perspective, gains
):  # fmt: skip
    """Gains (3M,) of all edges, each at the smaller of its two corners."""
    for corner in prange(3 * real_faces):
        gains[corner] = 0.0
        if corner < opposite[corner]:
            gains[corner] = gain_of_flip(
                corner, vertices, unknown, faces, real_faces, opposite, flags, angles, noise, normals, mask, frame,
                perspective,
            )  # fmt: skip


@njit(cache=True, nogil=True)
def flip_in_order(
    order, vertices, unknown, faces, real_faces, opposite, corner_of, flags, angles, noise, normals, mask, frame,
    perspective,
):  # fmt: skip
    """Flip the edges across from the given corners that still gain by it; the number of flips."""
    flips = 0
    for corner in order:
        gain = gain_of_flip(
            corner, vertices, unknown, faces, real_faces, opposite, flags, angles, noise, normals, mask, frame,
            perspective,
        )  # fmt: skip
        if gain <= 0.0:
            continue
        one, two = corner // 3, opposite[corner] // 3
        if are_neighbours(vertex_at(corner, faces), vertex_at(opposite[corner], faces), faces, opposite, corner_of):
            continue
        flip_edge(corner, faces, opposite, corner_of)
        for f in (one, two):
            a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
            angles[f] = sum_of_angles(
                vertices[a], vertices[b], vertices[c], unknown[a], unknown[b], unknown[c], normals, mask, frame,
                perspective,
            )  # fmt: skip
        flips += 1
    return flips


@njit(cache=True, nogil=True)
def colours(faces, opposite, corner_of, vertex_count):
    """A colour (N,) for each vertex, different from all its neighbours'; the smallest that is free, in order."""
    colour = np.full(vertex_count, -1, np.int32)
    taken = np.full(4096, -1, np.int64)
    for vertex in range(vertex_count):
        start = corner_of[vertex]
        if start < 0:
            continue
        corner = start
        while True:
            other = vertex_at(next_corner(corner), faces)
            if other < vertex_count and 0 <= colour[other] < taken.size:
                taken[colour[other]] = vertex
            corner = turn(corner, opposite)
            if corner == start:
                break
        free = 0
        while taken[free] == vertex:
            free += 1
        colour[vertex] = free
    return colour


@njit(cache=True, nogil=True)
def star_optimum(vertex, position, vertices, unknown, faces, opposite, corner_of, normals, mask, frame):
    """The unknown of a vertex at a position that fits the mean gradients of its faces best, its neighbours fixed.

    NaN where a face would become too small. The functional of each face is area · m_f ‖∇z − ḡ_f‖².
    """
    sums = np.empty(SUMS)
    bend = 0.0
    pull = 0.0
    start = corner_of[vertex]
    corner = start
    while True:
        b, c = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
        bu, bv = vertices[b, 0] - position[0], vertices[b, 1] - position[1]
        cu, cv = vertices[c, 0] - position[0], vertices[c, 1] - position[1]
        double_area = bv * cu - bu * cv
        longest = max(bu * bu + bv * bv, cu * cu + cv * cv, (bu - cu) ** 2 + (bv - cv) ** 2)
        if double_area < 2.0 * LEAST_AREA or not is_fit(double_area, longest):
            return np.nan
        sums[:] = 0.0
        add_face(position, vertices[b], vertices[c], normals, mask, frame, sums)
        if sums[0] > 0.0:
            # Gradients of the hat functions: of the vertex itself, and of b and c.
            hat_u, hat_v = (cv - bv) / double_area, (bu - cu) / double_area
            known_u = (bv * unknown[c] - cv * unknown[b]) / double_area
            known_v = (cu * unknown[b] - bu * unknown[c]) / double_area
            weight = double_area * sums[0] / sums[6]
            bend += weight * (hat_u * hat_u + hat_v * hat_v)
            pull += weight * (hat_u * (sums[4] / sums[0] - known_u) + hat_v * (sums[5] / sums[0] - known_v))
        corner = turn(corner, opposite)
        if corner == start:
            break
    return pull / bend if bend > 0.0 else np.nan


@njit(cache=True, nogil=True)
def star_angle(vertex, position, own, vertices, unknown, faces, opposite, corner_of, normals, mask, frame, perspective):
    """Summed angle of the faces around a vertex, if it were at a position with an unknown of its own."""
    total = 0.0
    start = corner_of[vertex]
    corner = start
    while True:
        b, c = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
        total += sum_of_angles(
            position, vertices[b], vertices[c], own, unknown[b], unknown[c], normals, mask, frame, perspective
        )
        corner = turn(corner, opposite)
        if corner == start:
            return total


@njit(cache=True, parallel=True, nogil=True)
def move_vertices(
    chosen, reach, first, vertices, unknown, faces, opposite, corner_of, noise, normals, mask, frame, perspective, moved
):  # fmt: skip
    """Move vertices, no two of them neighbours, to the best of six places around, if that lowers the summed angle.

    The places lie at ``reach`` times the mean length of the vertex's edges; ``first`` turns them by a part of the angle
    between two.
    """
    for k in prange(chosen.size):
        vertex = chosen[k]
        length = area = 0.0
        valence = 0
        start = corner_of[vertex]
        corner = start
        while True:
            other = vertex_at(next_corner(corner), faces)
            after = vertex_at(previous_corner(corner), faces)
            du, dv = vertices[other, 0] - vertices[vertex, 0], vertices[other, 1] - vertices[vertex, 1]
            length += math.hypot(du, dv)
            area += 0.5 * (
                dv * (vertices[after, 0] - vertices[vertex, 0]) - du * (vertices[after, 1] - vertices[vertex, 1])
            )
            valence += 1
            corner = turn(corner, opposite)
            if corner == start:
                break
        radius = reach * length / valence
        here = vertices[vertex].copy()
        best_own = unknown[vertex]
        now = star_angle(
            vertex, here, best_own, vertices, unknown, faces, opposite, corner_of, normals, mask, frame, perspective
        )
        best = goal(now, area, noise)
        best_place = here
        moved[k] = False
        for direction in range(DIRECTIONS):
            place = np.empty(2)
            place[0] = here[0] + radius * math.cos(2.0 * math.pi * (direction + first) / DIRECTIONS)
            place[1] = here[1] + radius * math.sin(2.0 * math.pi * (direction + first) / DIRECTIONS)
            own = star_optimum(vertex, place, vertices, unknown, faces, opposite, corner_of, normals, mask, frame)
            if math.isnan(own):
                continue
            angle = star_angle(
                vertex, place, own, vertices, unknown, faces, opposite, corner_of, normals, mask, frame, perspective
            )
            if angle < best:
                best, best_own, best_place = angle, own, place
                moved[k] = True
        if moved[k]:
            vertices[vertex, 0], vertices[vertex, 1] = best_place[0], best_place[1]
            unknown[vertex] = best_own
