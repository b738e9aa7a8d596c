"""Kernels of :mod:`normalmesh.integration.refinement`: moves judged by the angle between pixel and face normals.

``unknown`` and ``strain`` are (3M,), for each corner: the value there, the same in all faces around a vertex that no
cut edge parts, and the strain of the edge across, which is cut from a strain of :data:`.cut_mesh.CUT` on.
Tables of pixels are those of :mod:`normalmesh.integration._patch`.
"""

import math

import numpy as np

from normalmesh.integration._face_means import sampled_gradient
from normalmesh.integration._patch import (
    CHUNK,
    MANY_PIXELS,
    MIN_AREA,
    ROWS,
    corner_point,
    face_normal,
    fill_chords,
    fill_slopes,
    gather_face,
    goal,
    mark_sector,
    max_pixels,
    pad_columns,
    reserve,
    sector_sums,
    space_point,
    sum_of_chords,
)
from normalmesh.mesh._closed_mesh import turn, vertex_at
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.mesh._validity import is_fit
from normalmesh.mesh.cut_mesh import CUT
from normalmesh.runtime.kernels import inner, kernel

#: Directions in which a vertex looks for a better place, and how many steps away it may look at the place that they
#: together point to.
DIRECTIONS = 4
FARTHEST = 2.0
#: Vertices with more faces stay: the time that one takes grows with its faces times its pixels.
MOST_FACES = 64

#: Columns of the table of a ring, one row for each face of a star (vertex, b, c): b and c on the screen, counted from
#: the vertex; the unknown and the point in space of both; 1 if a cut edge, or no face, follows.
BU, BV, CU, CV, AT_B, AT_C, B_SPACE, C_SPACE, IS_LAST = 0, 1, 2, 3, 4, 5, 6, 9, 12
RING = 13


@kernel
def fill_colours(faces, opposite, corner_of, colour, taken):
    """Fill a colour (N,) for each vertex, different from all its neighbours'; the smallest that is free, in order.

    Both ``colour`` and ``taken``, which is room for many colours, must be −1.
    """
    for vertex in range(colour.size):
        start = corner_of[vertex]
        if start < 0:
            continue
        corner = start
        while True:
            other = vertex_at(next_corner(corner), faces)
            if other < colour.size and 0 <= colour[other] < taken.size:
                taken[colour[other]] = vertex
            corner = turn(corner, opposite)
            if corner == start:
                break
        free = 0
        while taken[free] == vertex:
            free += 1
        colour[vertex] = free


@inner(forceinline=True)
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


@inner(forceinline=True)
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


@inner(forceinline=True, allocates=True)
def gather_star(here, valence, ring, stride, normals, pixels):
    """Fill the table with the pixels around a vertex, seen from it, and their sectors; the table and their number."""
    room = 1
    for k in range(valence):
        room += max_pixels((0.0, 0.0), (ring[k, BU], ring[k, BV]), (ring[k, CU], ring[k, CV]))
    pixels = reserve(pixels, room)
    count = 0
    for k in range(valence):
        b, c = (here[0] + ring[k, BU], here[1] + ring[k, BV]), (here[0] + ring[k, CU], here[1] + ring[k, CV])
        begin = count
        count = gather_face(here, b, c, here, stride, normals, pixels, count)
        mark_sector(k, pixels, begin, count)
    end = pad_columns(pixels, count)
    mark_sector(0, pixels, count, end)
    return pixels, end


@inner(forceinline=True)
def stays_upright(u, v, valence, ring):
    """Whether all faces keep a fair size and shape if their vertex moves by (u, v)."""
    for k in range(valence):
        bu, bv, cu, cv = ring[k, BU] - u, ring[k, BV] - v, ring[k, CU] - u, ring[k, CV] - v
        double_area = bv * cu - bu * cv
        longest = max(bu * bu + bv * bv, cu * cu + cv * cv, (bu - cu) ** 2 + (bv - cv) ** 2)
        # Written so that NaN does not pass.
        if not (double_area >= 2.0 * MIN_AREA and is_fit(double_area, longest)):
            return False
    return True


@inner(error_model="numpy")
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
        sums = sector_sums(k, (u, v), (bu, bv), (cu, cv), perspective, pixels, count)
        if sums[0] == 0.0:
            sums = sampled_gradient(here[0] + u + (bu + cu) / 3.0, here[1] + v + (bv + cv) / 3.0, normals, mask, frame)
        number, slope_u, slope_v, inverse = sums
        if number > 0.0:
            # Gradients of the hat functions, times twice the area: of the vertex itself, and of b and c.
            hat_u, hat_v = cv - bv, bu - cu
            known_u = bv * ring[k, AT_C] - cv * ring[k, AT_B]
            known_v = cu * ring[k, AT_B] - bu * ring[k, AT_C]
            weight, each = number / (inverse * double_area), double_area / number
            bend += weight * (hat_u * hat_u + hat_v * hat_v)
            pull += weight * (hat_u * (slope_u * each - known_u) + hat_v * (slope_v * each - known_v))
        if ring[k, IS_LAST] > 0.0:
            if bend == 0.0:
                return False
            for j in range(begin, k + 1):
                own[j] = pull / bend
            bend = pull = 0.0
            begin = k + 1
    return True


@inner(forceinline=True)
def star_normal(place, k, own, ring, frame, perspective):
    """Normal of a face of the star once its vertex is at a place on the screen."""
    b = ring[k, B_SPACE], ring[k, B_SPACE + 1], ring[k, B_SPACE + 2]
    c = ring[k, C_SPACE], ring[k, C_SPACE + 1], ring[k, C_SPACE + 2]
    return face_normal(space_point(place[0], place[1], own[k], frame, perspective), b, c)


@inner
def star_angle(place, own, valence, ring, frame, perspective, pixels, count):
    """Summed angle of the faces around a vertex at a place on the screen, with unknowns of its own."""
    for k in range(0, valence, 3):
        p = star_normal(place, k, own, ring, frame, perspective)
        q = star_normal(place, min(k + 1, valence - 1), own, ring, frame, perspective)
        r = star_normal(place, min(k + 2, valence - 1), own, ring, frame, perspective)
        fill_chords(k, p, q, r, pixels, count)
    return sum_of_chords(pixels, count)


@inner(forceinline=True)
def lowest_point(rise, slope_u, slope_v):
    """Where a round bowl is lowest: its mean over the unit circle is ``rise`` above its middle, with the slopes there.

    No farther away than FARTHEST; NaN where there is no slope or no circle.
    """
    slope = math.hypot(slope_u, slope_v)
    if not 0.0 < slope < np.inf:
        return np.nan, np.nan
    far = min(0.5 * slope / rise, FARTHEST) if rise > 0.0 else FARTHEST
    return -far * slope_u / slope, -far * slope_v / slope


@inner(forceinline=True)
def best_place(
    step, first, here, area, valence, ring, noise, normals, mask, frame, perspective, pixels, count, own, best_own
):  # fmt: skip
    """Where a vertex should move to, as steps on the screen, (0, 0) to stay; ``best_own`` becomes its unknowns there.

    ``own`` are its unknowns now, and scratch space from then on.
    """
    now = star_angle(here, own, valence, ring, frame, perspective, pixels, count)
    best, best_u, best_v = goal(now, area, noise), 0.0, 0.0
    rise = slope_u = slope_v = 0.0
    for direction in range(DIRECTIONS + 1):
        around = 2.0 * math.pi * (direction + first) / DIRECTIONS
        u, v = (math.cos(around), math.sin(around)) if direction < DIRECTIONS else lowest_point(rise, slope_u, slope_v)
        angle = np.inf
        if stays_upright(step * u, step * v, valence, ring) and star_optima(
            step * u, step * v, here, valence, ring, normals, mask, frame, perspective, pixels, count, own
        ):
            place = here[0] + step * u, here[1] + step * v
            angle = star_angle(place, own, valence, ring, frame, perspective, pixels, count)
        rise += (angle - now) / DIRECTIONS
        slope_u += 2.0 / DIRECTIONS * angle * u
        slope_v += 2.0 / DIRECTIONS * angle * v
        if angle < best:
            best, best_u, best_v = angle, u, v
            for k in range(valence):
                best_own[k] = own[k]
    return best_u, best_v


@inner(forceinline=True, allocates=True)
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
        stride = 1 if area < MANY_PIXELS else 2
        pixels, count = gather_star(here, valence, ring, stride, normals, pixels)
        fill_slopes(here[0], here[1], frame, pixels, count)
        for k in range(valence):
            own[k] = unknown[star[k]]
        u, v = best_place(
            reach * length, first, here, area / stride, valence, ring, noise, normals, mask, frame, perspective, pixels,
            count, own, best_own,
        )  # fmt: skip
        if u != 0.0 or v != 0.0:
            moved[i] = True
            vertices[vertex, 0], vertices[vertex, 1] = here[0] + reach * length * u, here[1] + reach * length * v
            for k in range(valence):
                unknown[star[k]] = best_own[k]


@kernel
def move_vertices(
    first_chunk, last_chunk, chosen, reach, first, vertices, unknown, strain, faces, opposite, corner_of, noise,
    normals, mask, frame, perspective, moved,
):  # fmt: skip
    """Move chunks of vertices, no two neighbours, to the best of some places around, if that lowers the summed angle.

    The places lie at ``reach`` times the mean length of the vertex's edges; ``first`` turns them by a part of the angle
    between two. The last one is the lowest point of the bowl through the others. ``moved`` (K,), False before, says
    which ones moved.
    """
    for chunk in range(first_chunk, last_chunk):
        begin = chunk * CHUNK
        move_some(
            chosen, begin, min(begin + CHUNK, chosen.size), reach, first, vertices, unknown, strain, faces, opposite,
            corner_of, noise, normals, mask, frame, perspective, moved,
        )  # fmt: skip
