"""Kernels of :mod:`normalmesh.integration.refinement`: moves that lower the angle between pixel and face normals.

``mesh`` and ``normal_map`` are the arrays of a closed mesh and of a normal map, ``values`` are :class:`CornerValues`.
Tables of pixels are those of :mod:`normalmesh.integration._patch`.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from normalmesh.facets._face_means import sampled_gradient
from normalmesh.integration._patch import (
    MANY_PIXELS,
    MIN_AREA,
    corner_point,
    fill_chords,
    fill_slopes,
    gather_face,
    goal,
    mark_sector,
    max_pixels,
    new_table,
    pad_block,
    reserve,
    sector_sums,
    sum_of_chords,
    unit_normal,
)
from normalmesh.mesh._closed_mesh import turn, vertex_at
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.mesh._validity import is_well_shaped
from normalmesh.mesh.cut_mesh import CUT
from normalmesh.normals._camera import space_point
from normalmesh.runtime.kernels import inner, kernel

#: Directions in which better places of a vertex are searched.
DIRECTIONS = 4
#: Maximum distance, in steps, of the place that the bowl through these directions predicts.
MAX_STEPS = 2.0
#: Vertices with more faces stay: the time for one vertex grows with the number of its faces times that of its pixels.
MAX_FACES = 64

#: Columns of the table of a ring, one row for each face (vertex, b, c) of a star: b and c on the screen, relative to
#: the vertex; the unknown and the point in space of both; 1 if the next face is beyond a cut edge or there is none.
BU, BV, CU, CV, AT_B, AT_C, B_SPACE, C_SPACE, IS_LAST = 0, 1, 2, 3, 4, 5, 6, 9, 12
RING = 13


class CornerValues(NamedTuple):
    """Values (3M,) at the corners of the real faces.

    ``unknown`` is the same in all faces around a vertex that no cut edge separates. ``strain`` is that of the edge
    across from the corner, which is cut from a strain of :data:`.cut_mesh.CUT` on.
    """

    unknown: NDArray[np.float64]
    strain: NDArray[np.float64]


class Search(NamedTuple):
    """Where vertices look for better places, and what counts as better.

    ``reach`` is the distance of the places as a share of the mean length of the vertex's edges. ``rotation`` turns the
    directions by this share of the angle between two. ``noise`` is the deviation of the normals in radians.
    """

    reach: float
    rotation: float
    noise: float


class Star(NamedTuple):
    """The faces around a vertex.

    ``here`` is the position of the vertex on the screen, ``step`` the distance at which it looks for better places, in
    pixels. ``area`` is the area of its faces (px²) for each pixel in the table, ``ring`` (valence, RING) their table.
    """

    here: tuple[float, float]
    step: float
    area: float
    valence: int
    ring: NDArray[np.float64]


@kernel
def fill_colours(mesh, colour, taken):
    """Fill ``colour`` (N,): each vertex, in order, gets the smallest one that differs from those of its neighbours.

    Both ``colour`` and the work array ``taken`` must be −1 before.
    """
    faces, opposite, corner_of = mesh.faces, mesh.opposite, mesh.corner_of
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
def fill_star(vertex, mesh, strain, corners):
    """Fill ``corners`` with the corners of a vertex, counter-clockwise, beginning after a cut edge if there is any.

    Return their number, or 0 if there are more than ``corners`` can hold.
    """
    opposite, corner_of = mesh.opposite, mesh.corner_of
    first = corner_of[vertex]
    corner = first
    valence = 0
    while valence == 0 or corner != corner_of[vertex]:
        if strain[previous_corner(corner)] >= CUT:
            first = corner
        corner = turn(corner, opposite)
        valence += 1
    if valence > corners.size:
        return 0
    for k in range(valence):
        corners[k] = first
        first = turn(first, opposite)
    return valence


@inner(forceinline=True)
def fill_ring(corners, valence, mesh, values, camera, ring):
    """Fill the table of a ring; return the mean length of the vertex's edges, and the area of its faces."""
    vertices, faces, unknown = mesh.vertices, mesh.faces, values.unknown
    vertex = vertex_at(corners[0], faces)
    length = area = 0.0
    for k in range(valence):
        at_b, at_c = next_corner(corners[k]), previous_corner(corners[k])
        b, c = vertex_at(at_b, faces), vertex_at(at_c, faces)
        bu, bv = vertices[b, 0] - vertices[vertex, 0], vertices[b, 1] - vertices[vertex, 1]
        cu, cv = vertices[c, 0] - vertices[vertex, 0], vertices[c, 1] - vertices[vertex, 1]
        ring[k, BU], ring[k, BV], ring[k, CU], ring[k, CV] = bu, bv, cu, cv
        ring[k, AT_B], ring[k, AT_C] = unknown[at_b], unknown[at_c]
        point = corner_point(at_b, mesh, unknown, camera)
        ring[k, B_SPACE], ring[k, B_SPACE + 1], ring[k, B_SPACE + 2] = point
        point = corner_point(at_c, mesh, unknown, camera)
        ring[k, C_SPACE], ring[k, C_SPACE + 1], ring[k, C_SPACE + 2] = point
        ring[k, IS_LAST] = 1.0 if k == valence - 1 or values.strain[at_b] >= CUT else 0.0
        length += math.hypot(bu, bv)
        area += 0.5 * (bv * cu - bu * cv)
    return length / valence, area


@inner(forceinline=True, allocates=True)
def gather_star(star, stride, normals, pixels):
    """Fill the table with the pixels around a vertex, relative to it, and their sectors; return the table and its size.

    The table is a new one if ``pixels`` is too small.
    """
    here, ring = star.here, star.ring
    most = 1
    for k in range(star.valence):
        most += max_pixels((0.0, 0.0), (ring[k, BU], ring[k, BV]), (ring[k, CU], ring[k, CV]))
    pixels = reserve(pixels, most)
    count = 0
    for k in range(star.valence):
        b, c = (here[0] + ring[k, BU], here[1] + ring[k, BV]), (here[0] + ring[k, CU], here[1] + ring[k, CV])
        begin = count
        count = gather_face(here, b, c, here, stride, normals, pixels, count)
        mark_sector(k, pixels, begin, count)
    end = pad_block(pixels, count)
    mark_sector(0, pixels, count, end)
    return pixels, end


@inner(forceinline=True)
def stays_upright(u, v, star):
    """Return whether all faces keep a sufficient size and shape if their vertex moves by (u, v)."""
    ring = star.ring
    for k in range(star.valence):
        bu, bv, cu, cv = ring[k, BU] - u, ring[k, BV] - v, ring[k, CU] - u, ring[k, CV] - v
        double_area = bv * cu - bu * cv
        longest = max(bu * bu + bv * bv, cu * cu + cv * cv, (bu - cu) ** 2 + (bv - cv) ** 2)
        # Written so that NaN does not pass.
        if not (double_area >= 2.0 * MIN_AREA and is_well_shaped(double_area, longest)):
            return False
    return True


@inner
def star_optima(u, v, star, normal_map, pixels, count, own):
    """Fill ``own`` with the unknown at each corner of a star that fits the mean gradients best, its neighbours fixed.

    The vertex moves by (u, v). Corners between two cut edges share one unknown. The functional of each face is
    area · m_f ‖∇z − ḡ_f‖². Return False if no pixel determines one of the unknowns.
    """
    here, ring, central = star.here, star.ring, normal_map.camera.is_central
    bend = pull = 0.0
    begin = 0
    for k in range(star.valence):
        bu, bv, cu, cv = ring[k, BU] - u, ring[k, BV] - v, ring[k, CU] - u, ring[k, CV] - v
        double_area = bv * cu - bu * cv
        sums = sector_sums(k, (u, v), (bu, bv), (cu, cv), central, pixels, count)
        if sums[0] == 0.0:
            sums = sampled_gradient(here[0] + u + (bu + cu) / 3.0, here[1] + v + (bv + cv) / 3.0, normal_map)
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
def star_normal(place, k, own, ring, camera):
    """Return the normal of face k of the star if its vertex is at a place on the screen."""
    b = ring[k, B_SPACE], ring[k, B_SPACE + 1], ring[k, B_SPACE + 2]
    c = ring[k, C_SPACE], ring[k, C_SPACE + 1], ring[k, C_SPACE + 2]
    return unit_normal(space_point(place[0], place[1], own[k], camera), b, c)


@inner
def star_angle(place, own, star, camera, pixels, count):
    """Return the summed angle of the faces around a vertex at a place on the screen, with its unknowns ``own``."""
    ring, valence = star.ring, star.valence
    for k in range(0, valence, 3):
        p = star_normal(place, k, own, ring, camera)
        q = star_normal(place, min(k + 1, valence - 1), own, ring, camera)
        r = star_normal(place, min(k + 2, valence - 1), own, ring, camera)
        fill_chords(k, p, q, r, pixels, count)
    return sum_of_chords(pixels, count)


@inner(forceinline=True)
def lowest_point(rise, slope_u, slope_v):
    """Return the lowest point of a round bowl, at most MAX_STEPS away; NaN if it has no slope or ``rise`` is infinite.

    The mean of the bowl over the unit circle is ``rise`` above its middle, and it has the given slopes there.
    """
    slope = math.hypot(slope_u, slope_v)
    if not 0.0 < slope < np.inf:
        return np.nan, np.nan
    far = min(0.5 * slope / rise, MAX_STEPS) if rise > 0.0 else MAX_STEPS
    return -far * slope_u / slope, -far * slope_v / slope


@inner(forceinline=True)
def best_place(star, search, normal_map, pixels, count, own, best_own):
    """Return where a vertex should move to, in steps on the screen, (0, 0) to stay.

    Fill ``best_own`` with its unknowns there. ``own`` are its unknowns now, and are overwritten.
    """
    here, step, camera = star.here, star.step, normal_map.camera
    now = star_angle(here, own, star, camera, pixels, count)
    best, best_u, best_v = goal(now, star.area, search.noise), 0.0, 0.0
    rise = slope_u = slope_v = 0.0
    for direction in range(DIRECTIONS + 1):
        around = 2.0 * math.pi * (direction + search.rotation) / DIRECTIONS
        u, v = (math.cos(around), math.sin(around)) if direction < DIRECTIONS else lowest_point(rise, slope_u, slope_v)
        angle = np.inf
        if stays_upright(step * u, step * v, star) and star_optima(
            step * u, step * v, star, normal_map, pixels, count, own
        ):
            place = here[0] + step * u, here[1] + step * v
            angle = star_angle(place, own, star, camera, pixels, count)
        rise += (angle - now) / DIRECTIONS
        slope_u += 2.0 / DIRECTIONS * angle * u
        slope_v += 2.0 / DIRECTIONS * angle * v
        if angle < best:
            best, best_u, best_v = angle, u, v
            for k in range(star.valence):
                best_own[k] = own[k]
    return best_u, best_v


@kernel
def move_vertices(first, last, chosen, search, mesh, values, normal_map, moved):
    """Move vertices ``chosen[first:last]`` to the best of some places around them if that lowers the summed angle.

    No two of the vertices ``chosen`` (K,) are neighbours. ``search`` describes the places around a vertex; the last one
    is the lowest point of the bowl through the others. Write positions and unknowns in place, and set ``moved``
    (K,), False before, for the vertices that moved.
    """
    vertices, unknown = mesh.vertices, values.unknown
    corners = np.empty(MAX_FACES, np.int32)
    ring = np.empty((MAX_FACES, RING))
    own, best_own = np.empty(MAX_FACES), np.empty(MAX_FACES)
    pixels = new_table(1024)
    for i in range(first, last):
        vertex = chosen[i]
        valence = fill_star(vertex, mesh, values.strain, corners)
        if valence == 0:
            continue
        length, area = fill_ring(corners, valence, mesh, values, normal_map.camera, ring)
        here, step = (vertices[vertex, 0], vertices[vertex, 1]), search.reach * length
        stride = 1 if area < MANY_PIXELS else 2
        star = Star(here, step, area / stride, valence, ring)
        pixels, count = gather_star(star, stride, normal_map.normals, pixels)
        fill_slopes(here, normal_map.camera, pixels, count)
        for k in range(valence):
            own[k] = unknown[corners[k]]
        u, v = best_place(star, search, normal_map, pixels, count, own, best_own)
        if u != 0.0 or v != 0.0:
            moved[i] = True
            vertices[vertex, 0], vertices[vertex, 1] = here[0] + step * u, here[1] + step * v
            for k in range(valence):
                unknown[corners[k]] = best_own[k]
