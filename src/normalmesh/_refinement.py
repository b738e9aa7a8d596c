"""Kernels of :mod:`normalmesh.refinement`: flips and moves judged by the angle between pixel and face normals.

``unknown`` and ``strain`` are (3M,), for each corner: the value there, the same in all faces around a vertex that no
cut edge parts, and the strain of the edge across, which is cut from a strain of :data:`normalmesh.cutting.CUT` on.
"""

import math

import numpy as np
from numba import njit, prange

from normalmesh._closedmesh import LOCKED, are_neighbours, flip_edge, turn, vertex_at
from normalmesh._facemeans import gradient_sums
from normalmesh._raster import by_height, first_row, row_span
from normalmesh._topology import next_corner, previous_corner
from normalmesh._validity import crossing, is_fit
from normalmesh.cutting import CUT

#: Directions in which a vertex looks for a better place.
DIRECTIONS = 6
#: A change must lower the summed angle by this share, and by this part of what noise does to it.
LEAST_GAIN = 1e-3
NOISE_GAIN = 0.25
#: No face becomes smaller than this by a move (px²): below it the pixels say nothing.
LEAST_AREA = 0.3


@njit(cache=True, nogil=True)
def space_point(position, unknown, frame, perspective):
    """The point in space of a screen position and the unknown there."""
    u, v = position[0], position[1]
    if perspective:
        depth = math.exp(unknown)
        return (
            depth * (frame[2, 0] + u * frame[3, 0] + v * frame[4, 0]),
            depth * (frame[2, 1] + u * frame[3, 1] + v * frame[4, 1]),
            depth * (frame[2, 2] + u * frame[3, 2] + v * frame[4, 2]),
        )
    return (
        u * frame[0, 0] + v * frame[1, 0] + unknown * frame[2, 0],
        u * frame[0, 1] + v * frame[1, 1] + unknown * frame[2, 1],
        u * frame[0, 2] + v * frame[1, 2] + unknown * frame[2, 2],
    )


@njit(cache=True, nogil=True)
def sum_of_angles(a, b, c, za, zb, zc, normals, mask, frame, perspective):
    """Sum over the pixels of a face of the angle (radians) between their normals and the face's."""
    px, py, pz = space_point(a, za, frame, perspective)
    qx, qy, qz = space_point(b, zb, frame, perspective)
    rx, ry, rz = space_point(c, zc, frame, perspective)
    ux, uy, uz = qx - px, qy - py, qz - pz
    vx, vy, vz = rx - px, ry - py, rz - pz
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


@njit(cache=True, nogil=True)
def face_angle(f, vertices, unknown, faces, normals, mask, frame, perspective):
    """Summed angle of one face."""
    a, b, c = vertices[faces[f, 0]], vertices[faces[f, 1]], vertices[faces[f, 2]]
    return sum_of_angles(
        a, b, c, unknown[3 * f], unknown[3 * f + 1], unknown[3 * f + 2], normals, mask, frame, perspective
    )


@njit(cache=True, parallel=True, nogil=True)
def face_angles(vertices, unknown, faces, normals, mask, frame, perspective, angles):
    """Summed angles (M,) of all faces."""
    for f in prange(angles.size):
        angles[f] = face_angle(f, vertices, unknown, faces, normals, mask, frame, perspective)


@njit(cache=True, nogil=True)
def goal(angle, area, noise):
    """The summed angle (radians) that a change must reach. Noise adds its deviation times √pixels to such a sum."""
    return (1.0 - LEAST_GAIN) * angle - NOISE_GAIN * noise * math.sqrt(area)


@njit(cache=True, nogil=True)
def gain_of_flip(
    corner, vertices, unknown, strain, faces, real_faces, opposite, flags, angles, noise, normals, mask, frame,
    perspective,
):  # fmt: skip
    """By how much the summed angle falls when the edge across from a corner is flipped; 0 where it should not be."""
    other = opposite[corner]
    one, two = corner // 3, other // 3
    if one >= real_faces or two >= real_faces or strain[corner] >= CUT:
        return 0.0
    a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    if flags[a] & flags[b] & LOCKED:
        return 0.0
    c, d = vertex_at(corner, faces), vertex_at(other, faces)
    s, _, double_area = crossing(a, b, c, d, vertices)
    if min(s, 1.0 - s) * double_area < 2.0 * LEAST_AREA:
        return 0.0
    now = angles[one] + angles[two]
    za, zb, zc, zd = unknown[next_corner(corner)], unknown[previous_corner(corner)], unknown[corner], unknown[other]
    then = sum_of_angles(
        vertices[c], vertices[a], vertices[d], zc, za, zd, normals, mask, frame, perspective
    ) + sum_of_angles(vertices[d], vertices[b], vertices[c], zd, zb, zc, normals, mask, frame, perspective)
    return now - then if then < goal(now, 0.5 * double_area, noise) else 0.0


@njit(cache=True, parallel=True, nogil=True)
def gains_of_flips(
    vertices, unknown, strain, faces, real_faces, opposite, flags, angles, noise, normals, mask, frame, perspective,
    gains,
):  # fmt: skip
    """Gains (3M,) of all edges, each at the smaller of its two corners."""
    for corner in prange(3 * real_faces):
        gains[corner] = 0.0
        if corner < opposite[corner]:
            gains[corner] = gain_of_flip(
                corner, vertices, unknown, strain, faces, real_faces, opposite, flags, angles, noise, normals, mask,
                frame, perspective,
            )  # fmt: skip


@njit(cache=True, nogil=True)
def flip_in_order(
    order, vertices, unknown, strain, faces, real_faces, opposite, corner_of, flags, angles, noise, normals, mask,
    frame, perspective,
):  # fmt: skip
    """Flip the edges across from the given corners that still gain by it; the number of flips."""
    flips = 0
    for corner in order:
        gain = gain_of_flip(
            corner, vertices, unknown, strain, faces, real_faces, opposite, flags, angles, noise, normals, mask, frame,
            perspective,
        )  # fmt: skip
        if gain <= 0.0:
            continue
        one, two = corner // 3, opposite[corner] // 3
        if are_neighbours(vertex_at(corner, faces), vertex_at(opposite[corner], faces), faces, opposite, corner_of):
            continue
        carry_corners(corner, opposite, unknown, strain)
        flip_edge(corner, faces, opposite, corner_of)
        for f in (one, two):
            angles[f] = face_angle(f, vertices, unknown, faces, normals, mask, frame, perspective)
        flips += 1
    return flips


@njit(cache=True, nogil=True)
def carry_corners(corner, opposite, unknown, strain):
    """Give corners the values that they will stand for once the edge across from one is flipped."""
    other = opposite[corner]
    unknown[previous_corner(corner)], unknown[previous_corner(other)] = unknown[other], unknown[corner]
    at_start, at_end = next_corner(corner), next_corner(other)
    strain[corner], strain[other] = strain[at_end], strain[at_start]
    strain[at_start] = strain[at_end] = 0.0


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
def star_of(vertex, faces, opposite, corner_of, strain):
    """The corners of a vertex, counter-clockwise; the first one comes after a cut edge if there is any."""
    first = corner_of[vertex]
    corner = first
    valence = 0
    while valence == 0 or corner != corner_of[vertex]:
        if strain[previous_corner(corner)] >= CUT:
            first = corner
        corner = turn(corner, opposite)
        valence += 1
    star = np.empty(valence, np.int32)
    for k in range(valence):
        star[k] = first
        first = turn(first, opposite)
    return star


@njit(cache=True, nogil=True)
def star_optima(star, place, vertices, unknown, strain, faces, normals, mask, frame, own):
    """Fill ``own`` with the unknown at each corner of a star that fits the mean gradients best, its neighbours fixed.

    Corners between two cut edges share one. False where a face would become too small. The functional of each face is
    area · m_f ‖∇z − ḡ_f‖².
    """
    bend = pull = 0.0
    begin = 0
    for k in range(star.size):
        at_b, at_c = next_corner(star[k]), previous_corner(star[k])
        b, c = vertices[vertex_at(at_b, faces)], vertices[vertex_at(at_c, faces)]
        bu, bv = b[0] - place[0], b[1] - place[1]
        cu, cv = c[0] - place[0], c[1] - place[1]
        double_area = bv * cu - bu * cv
        longest = max(bu * bu + bv * bv, cu * cu + cv * cv, (bu - cu) ** 2 + (bv - cv) ** 2)
        if double_area < 2.0 * LEAST_AREA or not is_fit(double_area, longest):
            return False
        count, slope_u, slope_v, inverse = gradient_sums(place, b, c, normals, mask, frame)
        if count > 0.0:
            # Gradients of the hat functions: of the vertex itself, and of b and c.
            hat_u, hat_v = (cv - bv) / double_area, (bu - cu) / double_area
            known_u = (bv * unknown[at_c] - cv * unknown[at_b]) / double_area
            known_v = (cu * unknown[at_b] - bu * unknown[at_c]) / double_area
            weight = double_area * count / inverse
            bend += weight * (hat_u * hat_u + hat_v * hat_v)
            pull += weight * (hat_u * (slope_u / count - known_u) + hat_v * (slope_v / count - known_v))
        if k == star.size - 1 or strain[at_b] >= CUT:
            if bend == 0.0:
                return False
            own[begin : k + 1] = pull / bend
            bend = pull = 0.0
            begin = k + 1
    return True


@njit(cache=True, nogil=True)
def star_angle(star, place, own, vertices, unknown, faces, normals, mask, frame, perspective):
    """Summed angle of the faces around a vertex, if it were at a place with unknowns of its own."""
    total = 0.0
    for k in range(star.size):
        at_b, at_c = next_corner(star[k]), previous_corner(star[k])
        b, c = vertices[vertex_at(at_b, faces)], vertices[vertex_at(at_c, faces)]
        total += sum_of_angles(place, b, c, own[k], unknown[at_b], unknown[at_c], normals, mask, frame, perspective)
    return total


@njit(cache=True, nogil=True)
def star_size(star, vertices, faces):
    """Mean length of the edges of a star, and its area."""
    length = area = 0.0
    for corner in star:
        here = vertices[vertex_at(corner, faces)]
        b, c = vertices[vertex_at(next_corner(corner), faces)], vertices[vertex_at(previous_corner(corner), faces)]
        bu, bv = b[0] - here[0], b[1] - here[1]
        length += math.hypot(bu, bv)
        area += 0.5 * (bv * (c[0] - here[0]) - bu * (c[1] - here[1]))
    return length / star.size, area


@njit(cache=True, parallel=True, nogil=True)
def move_vertices(
    chosen, reach, first, vertices, unknown, strain, faces, opposite, corner_of, noise, normals, mask, frame,
    perspective, moved,
):  # fmt: skip
    """Move vertices, no two of them neighbours, to the best of six places around, if that lowers the summed angle.

    The places lie at ``reach`` times the mean length of the vertex's edges; ``first`` turns them by a part of the angle
    between two.
    """
    for k in prange(chosen.size):
        vertex = chosen[k]
        star = star_of(vertex, faces, opposite, corner_of, strain)
        length, area = star_size(star, vertices, faces)
        here = vertices[vertex].copy()
        own, best_own = np.empty(star.size), unknown[star]
        now = star_angle(star, here, best_own, vertices, unknown, faces, normals, mask, frame, perspective)
        best = goal(now, area, noise)
        best_place = here
        moved[k] = False
        for direction in range(DIRECTIONS):
            angle_on_screen = 2.0 * math.pi * (direction + first) / DIRECTIONS
            place = np.empty(2)
            place[0] = here[0] + reach * length * math.cos(angle_on_screen)
            place[1] = here[1] + reach * length * math.sin(angle_on_screen)
            if not star_optima(star, place, vertices, unknown, strain, faces, normals, mask, frame, own):
                continue
            angle = star_angle(star, place, own, vertices, unknown, faces, normals, mask, frame, perspective)
            if angle < best:
                best, best_place = angle, place
                best_own[:] = own
                moved[k] = True
        if moved[k]:
            vertices[vertex, 0], vertices[vertex, 1] = best_place[0], best_place[1]
            for j in range(star.size):
                unknown[star[j]] = best_own[j]
