"""Kernels of :mod:`normalmesh.refinement`: flips and moves judged by the angle between pixel and face normals.

``unknown`` and ``strain`` are (3M,), for each corner: the value there, the same in all faces around a vertex that no
cut edge parts, and the strain of the edge across, which is cut from a strain of :data:`normalmesh.cutting.CUT` on.
Tables of pixels are those of :mod:`normalmesh._patch`.
"""

import math

import numpy as np
from numba import njit, prange

from normalmesh._closedmesh import LOCKED, are_neighbours, flip_edge, turn, vertex_at
from normalmesh._facemeans import sampled_gradient
from normalmesh._patch import (
    ROWS,
    fill_chords,
    fill_slopes,
    fill_up,
    gather_face,
    room_for,
    sector_sums,
    sum_of_angles,
    sum_of_chords,
    with_room,
)
from normalmesh._topology import next_corner, previous_corner
from normalmesh._validity import crossing, is_fit
from normalmesh.cutting import CUT

#: Directions in which a vertex looks for a better place, and how many steps away it may look at the place that they
#: together point to.
DIRECTIONS = 6
FARTHEST = 1.5
#: A change must lower the summed angle by this share, by this part of what noise does to it, and by this much (radians)
#: for each px²: float32 says no more.
LEAST_GAIN = 1e-3
NOISE_GAIN = 0.25
LEAST_ANGLE = 1e-6
#: No face becomes smaller than this by a move (px²): below it the pixels say nothing.
LEAST_AREA = 0.3
#: Vertices with more faces stay: the time that one takes grows with its faces times its pixels.
MOST_FACES = 64
#: Faces or vertices that share one table of pixels.
CHUNK = 64

#: Columns of the table of a ring, one row for each face of a star (vertex, b, c): b and c on the screen, counted from
#: the vertex; the unknown and the point in space of both; 1 if a cut edge, or no face, follows.
BU, BV, CU, CV, AT_B, AT_C, B_SPACE, C_SPACE, IS_LAST = 0, 1, 2, 3, 4, 5, 6, 9, 12
RING = 13


@njit(cache=True, nogil=True)
def space_point(u, v, unknown, frame, perspective):
    """The point in space of a screen position and the unknown there."""
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
def face_normal(p, q, r):
    """Unit normal of a face in space, NaN if it has none."""
    ux, uy, uz = q[0] - p[0], q[1] - p[1], q[2] - p[2]
    vx, vy, vz = r[0] - p[0], r[1] - p[1], r[2] - p[2]
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    length = math.sqrt(nx * nx + ny * ny + nz * nz)
    return (nx / length, ny / length, nz / length) if length > 0.0 else (np.nan, np.nan, np.nan)


@njit(cache=True, nogil=True)
def goal(angle, area, noise):
    """The summed angle (radians) that a change must reach. Noise adds its deviation times √pixels to such a sum."""
    return (1.0 - LEAST_GAIN) * angle - NOISE_GAIN * noise * math.sqrt(area) - LEAST_ANGLE * area


@njit(cache=True, nogil=True)
def corner_point(corner, vertices, unknown, faces, frame, perspective):
    """The point in space of a corner."""
    vertex = vertex_at(corner, faces)
    return space_point(vertices[vertex, 0], vertices[vertex, 1], unknown[corner], frame, perspective)


@njit(cache=True, nogil=True)
def gather(f, vertices, faces, normals, pixels):
    """Fill the table with the pixels of a face, seen from its first vertex; the table and their number."""
    a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
    here = vertices[a, 0], vertices[a, 1]
    there, yonder = (vertices[b, 0], vertices[b, 1]), (vertices[c, 0], vertices[c, 1])
    pixels = with_room(pixels, room_for(here, there, yonder))
    return pixels, fill_up(pixels, gather_face(here, there, yonder, here[0], here[1], normals, pixels, 0))


@njit(cache=True, nogil=True)
def angle_now(f, vertices, unknown, faces, frame, perspective, pixels, count):
    """Summed angle between a face and the pixels that it has."""
    normal = face_normal(
        corner_point(3 * f, vertices, unknown, faces, frame, perspective),
        corner_point(3 * f + 1, vertices, unknown, faces, frame, perspective),
        corner_point(3 * f + 2, vertices, unknown, faces, frame, perspective),
    )
    return sum_of_angles(0.0, 0.0, 0.0, 0.0, normal, normal, pixels, count)


@njit(cache=True, nogil=True)
def angle_flipped(corner, vertices, unknown, faces, opposite, frame, perspective, pixels, count):
    """Summed angle of the pixels of a corner's face, once the edge across from the corner is flipped."""
    other = opposite[corner]
    a = corner_point(next_corner(corner), vertices, unknown, faces, frame, perspective)
    b = corner_point(previous_corner(corner), vertices, unknown, faces, frame, perspective)
    c = corner_point(corner, vertices, unknown, faces, frame, perspective)
    d = corner_point(other, vertices, unknown, faces, frame, perspective)
    start, end = vertex_at(corner, faces), vertex_at(other, faces)
    origin = faces[corner // 3, 0]
    u, v = vertices[start, 0] - vertices[origin, 0], vertices[start, 1] - vertices[origin, 1]
    du, dv = vertices[end, 0] - vertices[start, 0], vertices[end, 1] - vertices[start, 1]
    return sum_of_angles(u, v, du, dv, face_normal(d, b, c), face_normal(c, a, d), pixels, count)


@njit(cache=True, nogil=True)
def area_to_flip(corner, vertices, strain, faces, real_faces, opposite, flags):
    """Area of the two faces of the edge across from a corner, 0 where it must not be flipped."""
    other = opposite[corner]
    if corner >= 3 * real_faces or other >= 3 * real_faces or strain[corner] >= CUT:
        return 0.0
    a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    if flags[a] & flags[b] & LOCKED:
        return 0.0
    s, _, double_area = crossing(a, b, vertex_at(corner, faces), vertex_at(other, faces), vertices)
    return 0.5 * double_area if min(s, 1.0 - s) * double_area >= 2.0 * LEAST_AREA else 0.0


@njit(cache=True, nogil=True)
def judge_faces(
    begin, end, vertices, unknown, strain, faces, real_faces, opposite, flags, normals, mask, frame, perspective,
    angles, flipped,
):  # fmt: skip
    """Summed angles (M,) of faces begin … end − 1, and (3M,) of their pixels once the edge across is flipped."""
    pixels = np.empty((ROWS, 128), np.float32)
    for f in range(begin, end):
        pixels, count = gather(f, vertices, faces, normals, pixels)
        angles[f] = angle_now(f, vertices, unknown, faces, frame, perspective, pixels, count)
        for corner in range(3 * f, 3 * f + 3):
            flipped[corner] = 0.0
            # Both corners of an edge must come to the same answer.
            one = min(corner, opposite[corner])
            if area_to_flip(one, vertices, strain, faces, real_faces, opposite, flags) > 0.0:
                flipped[corner] = angle_flipped(
                    corner, vertices, unknown, faces, opposite, frame, perspective, pixels, count
                )


@njit(cache=True, parallel=True, nogil=True)
def gains_of_flips(
    vertices, unknown, strain, faces, real_faces, opposite, flags, noise, normals, mask, frame, perspective, angles,
    flipped, gains,
):  # fmt: skip
    """By how much the summed angle falls when an edge is flipped, (3M,) at the smaller of its two corners, or 0.

    ``angles`` (M,) and ``flipped`` (3M,) are filled as :func:`judge_faces` says.
    """
    for chunk in prange((real_faces + CHUNK - 1) // CHUNK):
        begin = np.int64(chunk) * CHUNK
        judge_faces(
            begin, min(begin + CHUNK, real_faces), vertices, unknown, strain, faces, real_faces, opposite, flags,
            normals, mask, frame, perspective, angles, flipped,
        )  # fmt: skip
    for corner in prange(3 * real_faces):
        gains[corner] = 0.0
        other = opposite[corner]
        if corner < other:
            area = area_to_flip(corner, vertices, strain, faces, real_faces, opposite, flags)
            if area > 0.0:
                now, then = angles[corner // 3] + angles[other // 3], flipped[corner] + flipped[other]
                gains[corner] = now - then if then < goal(now, area, noise) else 0.0


@njit(cache=True, nogil=True)
def still_gains(
    corner, vertices, unknown, strain, faces, real_faces, opposite, flags, noise, normals, mask, frame, perspective,
    pixels,
):  # fmt: skip
    """Whether the edge across from a corner should be flipped."""
    area = area_to_flip(corner, vertices, strain, faces, real_faces, opposite, flags)
    now = then = 0.0
    if area > 0.0:
        for each in (corner, np.int64(opposite[corner])):
            pixels, count = gather(each // 3, vertices, faces, normals, pixels)
            now += angle_now(each // 3, vertices, unknown, faces, frame, perspective, pixels, count)
            then += angle_flipped(each, vertices, unknown, faces, opposite, frame, perspective, pixels, count)
    return area > 0.0 and then < goal(now, area, noise)


@njit(cache=True, nogil=True)
def flip_in_order(
    order, vertices, unknown, strain, faces, real_faces, opposite, corner_of, flags, noise, normals, mask, frame,
    perspective,
):  # fmt: skip
    """Flip the edges across from the given corners, all of which gain by it, if they still do; the number of flips."""
    flips = 0
    changed = np.zeros(real_faces, np.bool_)
    pixels = np.empty((ROWS, 1024), np.float32)
    for corner in order:
        one, two = corner // 3, opposite[corner] // 3
        if (changed[one] or changed[two]) and not still_gains(
            corner, vertices, unknown, strain, faces, real_faces, opposite, flags, noise, normals, mask, frame,
            perspective, pixels,
        ):  # fmt: skip
            continue
        if are_neighbours(vertex_at(corner, faces), vertex_at(opposite[corner], faces), faces, opposite, corner_of):
            continue
        carry_corners(corner, opposite, unknown, strain)
        flip_edge(corner, faces, opposite, corner_of)
        changed[one] = changed[two] = True
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
def fill_star(vertex, faces, opposite, corner_of, strain, star):
    """Fill ``star`` with the corners of a vertex, counter-clockwise, the first after a cut edge if there is any.

    Returns their number, or 0 if there are too many.
    """
    first = corner_of[vertex]
    corner = first
    valence = 0
    while valence == 0 or corner != corner_of[vertex]:
        if strain[previous_corner(corner)] >= CUT:
            first = corner
        corner = turn(corner, opposite)
        valence += 1
    if valence > star.size:
        return 0
    for k in range(valence):
        star[k] = first
        first = turn(first, opposite)
    return valence


@njit(cache=True, nogil=True)
def fill_ring(star, valence, vertices, unknown, strain, faces, frame, perspective, ring):
    """Fill the table of a ring (valence, RING); the mean length of the vertex's edges, and the area of its faces."""
    vertex = vertex_at(star[0], faces)
    length = area = 0.0
    for k in range(valence):
        at_b, at_c = next_corner(star[k]), previous_corner(star[k])
        b, c = vertex_at(at_b, faces), vertex_at(at_c, faces)
        bu, bv = vertices[b, 0] - vertices[vertex, 0], vertices[b, 1] - vertices[vertex, 1]
        cu, cv = vertices[c, 0] - vertices[vertex, 0], vertices[c, 1] - vertices[vertex, 1]
        ring[k, BU], ring[k, BV], ring[k, CU], ring[k, CV] = bu, bv, cu, cv
        ring[k, AT_B], ring[k, AT_C] = unknown[at_b], unknown[at_c]
        point = corner_point(at_b, vertices, unknown, faces, frame, perspective)
        ring[k, B_SPACE], ring[k, B_SPACE + 1], ring[k, B_SPACE + 2] = point
        point = corner_point(at_c, vertices, unknown, faces, frame, perspective)
        ring[k, C_SPACE], ring[k, C_SPACE + 1], ring[k, C_SPACE + 2] = point
        ring[k, IS_LAST] = 1.0 if k == valence - 1 or strain[at_b] >= CUT else 0.0
        length += math.hypot(bu, bv)
        area += 0.5 * (bv * cu - bu * cv)
    return length / valence, area


@njit(cache=True, nogil=True)
def gather_star(here, valence, ring, normals, pixels):
    """Fill the table with the pixels around a vertex, seen from it; the table and their number."""
    room = 1
    for k in range(valence):
        room += room_for((0.0, 0.0), (ring[k, BU], ring[k, BV]), (ring[k, CU], ring[k, CV]))
    pixels = with_room(pixels, room)
    count = 0
    for k in range(valence):
        b, c = (here[0] + ring[k, BU], here[1] + ring[k, BV]), (here[0] + ring[k, CU], here[1] + ring[k, CV])
        count = gather_face(here, b, c, here[0], here[1], normals, pixels, count)
    return pixels, fill_up(pixels, count)


@njit(cache=True, nogil=True)
def stays_upright(u, v, valence, ring):
    """Whether all faces keep a fair size and shape if their vertex moves by (u, v)."""
    for k in range(valence):
        bu, bv, cu, cv = ring[k, BU] - u, ring[k, BV] - v, ring[k, CU] - u, ring[k, CV] - v
        double_area = bv * cu - bu * cv
        longest = max(bu * bu + bv * bv, cu * cu + cv * cv, (bu - cu) ** 2 + (bv - cv) ** 2)
        # Written so that NaN does not pass.
        if not (double_area >= 2.0 * LEAST_AREA and is_fit(double_area, longest)):
            return False
    return True


@njit(cache=True, nogil=True)
def star_optima(u, v, here, valence, ring, normals, mask, frame, perspective, pixels, count, own):
    """Fill ``own`` with the unknown at each corner of a star that fits the mean gradients best, its neighbours fixed.

    The vertex, of old at ``here``, moves by (u, v). Corners between two cut edges share one unknown. False where
    nothing is known. The functional of each face is area · m_f ‖∇z − ḡ_f‖².
    """
    bend = pull = 0.0
    begin = 0
    for k in range(valence):
        bu, bv, cu, cv = ring[k, BU] - u, ring[k, BV] - v, ring[k, CU] - u, ring[k, CV] - v
        double_area = bv * cu - bu * cv
        sums = sector_sums(k, u, v, bu, bv, cu, cv, perspective, pixels, count)
        if sums[0] == 0.0:
            sums = sampled_gradient(here[0] + u + (bu + cu) / 3.0, here[1] + v + (bv + cv) / 3.0, normals, mask, frame)
        number, slope_u, slope_v, inverse = sums
        if number > 0.0:
            # Gradients of the hat functions: of the vertex itself, and of b and c.
            hat_u, hat_v = (cv - bv) / double_area, (bu - cu) / double_area
            known_u = (bv * ring[k, AT_C] - cv * ring[k, AT_B]) / double_area
            known_v = (cu * ring[k, AT_B] - bu * ring[k, AT_C]) / double_area
            weight = double_area * number / inverse
            bend += weight * (hat_u * hat_u + hat_v * hat_v)
            pull += weight * (hat_u * (slope_u / number - known_u) + hat_v * (slope_v / number - known_v))
        if ring[k, IS_LAST] > 0.0:
            if bend == 0.0:
                return False
            for j in range(begin, k + 1):
                own[j] = pull / bend
            bend = pull = 0.0
            begin = k + 1
    return True


@njit(cache=True, nogil=True)
def star_angle(u, v, own, valence, ring, frame, perspective, pixels, count):
    """Summed angle of the faces around a vertex at (u, v) on the screen, with unknowns of its own."""
    for k in range(valence):
        place = space_point(u, v, own[k], frame, perspective)
        b = ring[k, B_SPACE], ring[k, B_SPACE + 1], ring[k, B_SPACE + 2]
        c = ring[k, C_SPACE], ring[k, C_SPACE + 1], ring[k, C_SPACE + 2]
        fill_chords(k, face_normal(place, b, c), pixels, count)
    return sum_of_chords(pixels, count)


@njit(cache=True, nogil=True)
def lowest_point(rise, slope_u, slope_v):
    """Where a round bowl is lowest: its mean over the unit circle is ``rise`` above its middle, with the slopes there.

    No farther away than FARTHEST; NaN where there is no slope or no circle.
    """
    slope = math.hypot(slope_u, slope_v)
    if not 0.0 < slope < np.inf:
        return np.nan, np.nan
    far = min(0.5 * slope / rise, FARTHEST) if rise > 0.0 else FARTHEST
    return -far * slope_u / slope, -far * slope_v / slope


@njit(cache=True, nogil=True)
def best_place(
    step, first, here, area, valence, ring, noise, normals, mask, frame, perspective, pixels, count, own, best_own
):  # fmt: skip
    """Where a vertex should move to, as steps on the screen, (0, 0) to stay; ``best_own`` becomes its unknowns there.

    ``own`` are its unknowns now, and scratch space from then on.
    """
    # For the sectors as they are; the optima themselves do not matter.
    star_optima(0.0, 0.0, here, valence, ring, normals, mask, frame, perspective, pixels, count, best_own)
    now = star_angle(here[0], here[1], own, valence, ring, frame, perspective, pixels, count)
    best, best_u, best_v = goal(now, area, noise), 0.0, 0.0
    rise = slope_u = slope_v = 0.0
    for direction in range(DIRECTIONS + 1):
        around = 2.0 * math.pi * (direction + first) / DIRECTIONS
        u, v = (math.cos(around), math.sin(around)) if direction < DIRECTIONS else lowest_point(rise, slope_u, slope_v)
        angle = np.inf
        if stays_upright(step * u, step * v, valence, ring) and star_optima(
            step * u, step * v, here, valence, ring, normals, mask, frame, perspective, pixels, count, own
        ):
            place_u, place_v = here[0] + step * u, here[1] + step * v
            angle = star_angle(place_u, place_v, own, valence, ring, frame, perspective, pixels, count)
        rise += (angle - now) / DIRECTIONS
        slope_u += 2.0 / DIRECTIONS * angle * u
        slope_v += 2.0 / DIRECTIONS * angle * v
        if angle < best:
            best, best_u, best_v = angle, u, v
            for k in range(valence):
                best_own[k] = own[k]
    return best_u, best_v


@njit(cache=True, nogil=True)
def move_some(
    chosen, begin, end, reach, first, vertices, unknown, strain, faces, opposite, corner_of, noise, normals, mask,
    frame, perspective, moved,
):  # fmt: skip
    """:func:`move_vertices` for those from begin to end − 1, with scratch space that they share."""
    star = np.empty(MOST_FACES, np.int32)
    ring = np.empty((MOST_FACES, RING))
    own, best_own = np.empty(MOST_FACES), np.empty(MOST_FACES)
    pixels = np.empty((ROWS, 1024), np.float32)
    for i in range(begin, end):
        vertex = chosen[i]
        valence = fill_star(vertex, faces, opposite, corner_of, strain, star)
        if valence == 0:
            continue
        length, area = fill_ring(star, valence, vertices, unknown, strain, faces, frame, perspective, ring)
        here = vertices[vertex, 0], vertices[vertex, 1]
        pixels, count = gather_star(here, valence, ring, normals, pixels)
        fill_slopes(here[0], here[1], frame, pixels, count)
        for k in range(valence):
            own[k] = unknown[star[k]]
        u, v = best_place(
            reach * length, first, here, area, valence, ring, noise, normals, mask, frame, perspective, pixels, count,
            own, best_own,
        )  # fmt: skip
        if u != 0.0 or v != 0.0:
            moved[i] = True
            vertices[vertex, 0], vertices[vertex, 1] = here[0] + reach * length * u, here[1] + reach * length * v
            for k in range(valence):
                unknown[star[k]] = best_own[k]


@njit(cache=True, parallel=True, nogil=True)
def move_vertices(
    chosen, reach, first, vertices, unknown, strain, faces, opposite, corner_of, noise, normals, mask, frame,
    perspective, moved,
):  # fmt: skip
    """Move vertices, no two of them neighbours, to the best of some places around, if that lowers the summed angle.

    The places lie at ``reach`` times the mean length of the vertex's edges; ``first`` turns them by a part of the angle
    between two. The last one is the lowest point of the bowl through the others. ``moved`` (K,), False before, says
    which ones moved.
    """
    for chunk in prange((chosen.size + CHUNK - 1) // CHUNK):
        begin = np.int64(chunk) * CHUNK
        move_some(
            chosen, begin, min(begin + CHUNK, chosen.size), reach, first, vertices, unknown, strain, faces, opposite,
            corner_of, noise, normals, mask, frame, perspective, moved,
        )  # fmt: skip
