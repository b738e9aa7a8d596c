"""Kernels of :mod:`normalmesh.integration.refinement`: moves that lower the angle between pixel and face normals.

``mesh`` and ``normal_map`` are the arrays of a closed mesh and of a normal map, ``unknown`` (N,) is the height, or the
logarithm of the depth, at its vertices. Tables of pixels are those of :mod:`normalmesh.integration._patch`.
"""

import math
from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Float, Int
from normalmesh.facets._face_means import sampled_gradient
from normalmesh.integration._patch import (
    MANY_PIXELS,
    VERY_MANY_PIXELS,
    fill_chords,
    fill_slopes,
    gather_face,
    goal,
    is_fit,
    larger_size,
    mark_sector,
    max_pixels,
    pad_block,
    sector_sums,
    sum_of_chords,
    table_size,
    unit_normal,
    vertex_point,
)
from normalmesh.mesh._closed_mesh import turn, vertex_at
from normalmesh.mesh._topology import next_corner
from normalmesh.normals._camera import space_point
from normalmesh.runtime.kernels import inner, kernel

#: Directions in which better places of a vertex are searched.
DIRECTIONS = 4
#: Maximum distance, in steps, of the place that the bowl through these directions predicts.
MAX_STEPS = 2.0
#: Vertices with more faces stay: the time for one vertex grows with the number of its faces times that of its pixels.
MAX_FACES = 64

#: Columns of the table of a ring, one row for each neighbour of a vertex, counter-clockwise, and the first one again:
#: its position on the screen, relative to the vertex; its unknown; its point in space. Face k of the star lies between
#: neighbours k and k + 1; the last column is the number of its pixels in the table.
RING_U, RING_V, RING_UNKNOWN, RING_SPACE, RING_PIXELS = 0, 1, 2, 3, 6
RING = 7


class Search(NamedTuple):
    """Where vertices look for better places, and what counts as better.

    ``reach`` is the distance of the places as a share of the mean length of the vertex's edges. ``rotation`` turns the
    directions by this share of the angle between two. ``noise`` (N,) is the deviation of the normals around each vertex
    in radians.
    """

    reach: float
    rotation: float
    noise: Float


class Star(NamedTuple):
    """The faces around a vertex.

    ``here`` is the position of the vertex on the screen, ``step`` the distance at which it looks for better places, in
    pixels. ``area`` is the area of its faces (px²) for each pixel in the table, ``ring`` (valence + 1, RING) the table
    of its neighbours.
    """

    here: tuple[float, float]
    step: float
    area: float
    valence: int
    ring: Float


class Batches(NamedTuple):
    """Vertices in batches: batch b consists of ``vertices[starts[b]:starts[b + 1]]``."""

    starts: Int
    vertices: Int


@kernel
def find_enclosed(first, last, mesh, length, enclosed):
    """Set ``enclosed`` (N,) for the vertices first … last − 1: free ones all of whose neighbours have close numbers.

    These have the same quotient by ``length``.
    """
    for vertex in range(first, last):
        start = mesh.corner_of[vertex]
        enclosed[vertex] = start >= 0 and mesh.flags[vertex] == 0
        corner = start
        while enclosed[vertex]:
            enclosed[vertex] = vertex_at(next_corner(corner), mesh.faces) // length == vertex // length
            corner = turn(corner, mesh.opposite)
            if corner == start:
                break


@kernel
def fill_colours(mesh, chosen, colour, taken):
    """Fill ``colour`` (N,): each chosen vertex gets the smallest one that differs from those of its neighbours.

    ``chosen`` (K,) are the vertices, in order. Both ``colour`` and the work array ``taken`` must be −1 before.
    """
    faces, opposite, corner_of = mesh.faces, mesh.opposite, mesh.corner_of
    for vertex in chosen:
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
def fill_ring(vertex, mesh, unknown, camera, ring):
    """Fill the table of a ring; return the valence, the mean length of the vertex's edges, and the area of its faces.

    The valence is 0 if there are more neighbours than the table can hold.
    """
    vertices, faces = mesh.vertices, mesh.faces
    start = mesh.corner_of[vertex]
    corner = start
    valence = 0
    length = area = 0.0
    while valence == 0 or corner != start:
        if valence + 1 == ring.shape[0]:
            return 0, 0.0, 0.0
        other = vertex_at(next_corner(corner), faces)
        u, v = vertices[other, 0] - vertices[vertex, 0], vertices[other, 1] - vertices[vertex, 1]
        ring[valence, RING_U], ring[valence, RING_V], ring[valence, RING_UNKNOWN] = u, v, unknown[other]
        point = vertex_point(other, mesh, unknown, camera)
        ring[valence, RING_SPACE], ring[valence, RING_SPACE + 1], ring[valence, RING_SPACE + 2] = point
        length += math.sqrt(u * u + v * v)
        corner = turn(corner, mesh.opposite)
        valence += 1
    for column in range(RING):
        ring[valence, column] = ring[0, column]
    for k in range(valence):
        bu, bv, cu, cv = sides_of(k, 0.0, 0.0, ring)
        area += 0.5 * (bv * cu - bu * cv)
    return valence, length / valence, area


@inner(forceinline=True)
def sides_of(k, u, v, ring):
    """Return the sides of face k of a star, bu, bv, cu and cv, from its vertex if that moves by (u, v)."""
    return ring[k, RING_U] - u, ring[k, RING_V] - v, ring[k + 1, RING_U] - u, ring[k + 1, RING_V] - v


@inner(forceinline=True)
def most_pixels(star):
    """Return an upper bound of the pixels around a vertex."""
    most = 1
    for k in range(star.valence):
        bu, bv, cu, cv = sides_of(k, 0.0, 0.0, star.ring)
        most += max_pixels((0.0, 0.0), (bu, bv), (cu, cv))
    return most


@inner(forceinline=True)
def gather_star(star, stride, normals, pixels):
    """Fill the table with the pixels around a vertex, relative to it, and their sectors; return their padded number."""
    here, ring = star.here, star.ring
    count = 0
    for k in range(star.valence):
        bu, bv, cu, cv = sides_of(k, 0.0, 0.0, ring)
        b, c = (here[0] + bu, here[1] + bv), (here[0] + cu, here[1] + cv)
        begin = count
        count = gather_face(here, b, c, here, stride, normals, pixels, count)
        mark_sector(k, pixels, begin, count)
        ring[k, RING_PIXELS] = count - begin
    end = pad_block(pixels, count)
    mark_sector(0, pixels, count, end)
    return end


@inner(forceinline=True)
def stays_upright(u, v, star):
    """Return whether all faces keep a sufficient size and shape if their vertex moves by (u, v)."""
    for k in range(star.valence):
        bu, bv, cu, cv = sides_of(k, u, v, star.ring)
        if not is_fit(bu, bv, cu, cv):
            return False
    return True


@inner
def star_optimum(u, v, star, normal_map, pixels, count):
    """Return the unknown of a vertex that fits the mean gradients of its faces best if it moves by (u, v), or NaN.

    Its neighbours are fixed. The functional of each face is area · m_f ‖∇z − ḡ_f‖². It is NaN if no pixel determines
    the unknown, or if a face loses all of its pixels, so that none would hold it.
    """
    here, ring = star.here, star.ring
    bend = pull = 0.0
    for k in range(star.valence):
        bu, bv, cu, cv = sides_of(k, u, v, ring)
        double_area = bv * cu - bu * cv
        sums = sector_sums(k, (u, v), (bu, bv), (cu, cv), normal_map.camera, pixels, count)
        if sums[0] == 0.0:
            if ring[k, RING_PIXELS] > 0.0:
                return np.nan
            sums = sampled_gradient(here[0] + u + (bu + cu) / 3.0, here[1] + v + (bv + cv) / 3.0, normal_map)
        number, slope_u, slope_v, inverse = sums
        if number > 0.0:
            # Gradients of the hat functions, times twice the area: of the vertex itself, and of b and c.
            hat_u, hat_v = cv - bv, bu - cu
            at_b, at_c = ring[k, RING_UNKNOWN], ring[k + 1, RING_UNKNOWN]
            known_u, known_v = bv * at_c - cv * at_b, cu * at_b - bu * at_c
            weight, each = number / (inverse * double_area), double_area / number
            bend += weight * (hat_u * hat_u + hat_v * hat_v)
            pull += weight * (hat_u * (slope_u * each - known_u) + hat_v * (slope_v * each - known_v))
    return pull / bend


@inner(forceinline=True)
def star_normal(point, k, ring):
    """Return the normal of face k of the star if its vertex is at a point in space."""
    b = ring[k, RING_SPACE], ring[k, RING_SPACE + 1], ring[k, RING_SPACE + 2]
    c = ring[k + 1, RING_SPACE], ring[k + 1, RING_SPACE + 1], ring[k + 1, RING_SPACE + 2]
    return unit_normal(point, b, c)


@inner
def star_angle(place, own, star, camera, pixels, count):
    """Return the summed angle of the faces around a vertex at a place on the screen, with its unknown ``own``."""
    ring, valence = star.ring, star.valence
    point = space_point(place[0], place[1], own, camera)
    for k in range(0, valence, 3):
        p = star_normal(point, k, ring)
        q = star_normal(point, min(k + 1, valence - 1), ring)
        r = star_normal(point, min(k + 2, valence - 1), ring)
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
def best_place(star, own, rotation, noise, normal_map, pixels, count):
    """Return where a vertex should move to, in steps on the screen, (0, 0) to stay, and its unknown there.

    ``own`` is its unknown now; ``rotation`` and ``noise`` are those of :class:`Search`.
    """
    here, step, camera = star.here, star.step, normal_map.camera
    now = star_angle(here, own, star, camera, pixels, count)
    best, best_u, best_v, best_own = goal(now, star.area, noise), 0.0, 0.0, own
    rise = slope_u = slope_v = 0.0
    for direction in range(DIRECTIONS + 1):
        around = 2.0 * math.pi * (direction + rotation) / DIRECTIONS
        u, v = (math.cos(around), math.sin(around)) if direction < DIRECTIONS else lowest_point(rise, slope_u, slope_v)
        angle = np.inf
        if stays_upright(step * u, step * v, star):
            own = star_optimum(step * u, step * v, star, normal_map, pixels, count)
            if not math.isnan(own):
                angle = star_angle((here[0] + step * u, here[1] + step * v), own, star, camera, pixels, count)
        rise += (angle - now) / DIRECTIONS
        slope_u += 2.0 / DIRECTIONS * angle * u
        slope_v += 2.0 / DIRECTIONS * angle * v
        if angle < best:
            best, best_u, best_v, best_own = angle, u, v, own
    return best_u, best_v, best_own


@kernel
def move_batches(first, last, batches, search, mesh, unknown, normal_map, moves):
    """Move the vertices of batches first … last − 1 to better places around them if that lowers the summed angle.

    No two vertices of different ``batches`` are neighbours. ``search`` describes the places around a vertex; the last
    one is the lowest point of the bowl through the others. Write positions and unknowns in place, and count the moves
    of each vertex in ``moves`` (N,).
    """
    vertices = mesh.vertices
    ring = np.empty((MAX_FACES + 1, RING))
    pixels = np.empty(table_size(1024), np.float32)
    for i in range(batches.starts[first], batches.starts[last]):
        vertex = batches.vertices[i]
        valence, length, area = fill_ring(vertex, mesh, unknown, normal_map.camera, ring)
        if valence == 0:
            continue
        here, step = (vertices[vertex, 0], vertices[vertex, 1]), search.reach * length
        stride = 1 if area < MANY_PIXELS else (2 if area < VERY_MANY_PIXELS else 4)
        star = Star(here, step, area / stride, valence, ring)
        size = larger_size(pixels, most_pixels(star))
        if size > 0:
            pixels = np.empty(size, np.float32)
        count = gather_star(star, stride, normal_map.normals, pixels)
        fill_slopes(here, normal_map.camera, pixels, count)
        u, v, own = best_place(star, unknown[vertex], search.rotation, search.noise[vertex], normal_map, pixels, count)
        if u != 0.0 or v != 0.0:
            moves[vertex] += 1
            vertices[vertex, 0], vertices[vertex, 1] = here[0] + step * u, here[1] + step * v
            unknown[vertex] = own
