"""Kernels of :mod:`normalmesh.integration.tidying`: which faces are bad, and changes that remove them.

Tables of pixels are those of :mod:`normalmesh.integration._patch`.
"""

import math
from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Float
from normalmesh.integration._patch import (
    MAX_ASPECT,
    face_places,
    gather_face,
    larger_size,
    max_face_pixels,
    max_pixels,
    pad_block,
    sum_of_angles,
    sum_of_normals,
    table_size,
    unit_normal,
    vertex_point,
)
from normalmesh.mesh._closed_mesh import (
    LOCKED,
    MeshArrays,
    are_neighbours,
    collapse_edge,
    flip_edge,
    turn,
    vertex_at,
)
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.mesh._validity import crossing, link_is_simple
from normalmesh.normals._camera import pixels_per_length
from normalmesh.normals._normal_map import NormalMapArrays
from normalmesh.runtime.kernels import inner, kernel

#: A face this far (radians) off the mean normal of its pixels is bad: each pixel's worth of its area costs the angle
#: that it is off, and this one if it owns no pixel.
BAD_ANGLE = math.radians(30)
#: The same between rounds, before bad faces are cut off beside jumps: those that are less bad bend into the jump.
EARLY_BAD_ANGLE = math.radians(45)
#: Bad area, in pixels, below which a face is left alone.
MIN_BAD = 0.02
#: A change must lower the cost by this (radians).
MIN_GAIN = math.radians(0.5)
#: Flips and collapses make no face smaller than this (px²).
MIN_AREA = 0.1


class TidyArrays(NamedTuple):
    """A mesh that is being tidied.

    Attributes
    ----------
    mesh : MeshArrays
    unknown : (N,) float64
        Height, or logarithm of the depth, at the vertices.
    normal_map : NormalMapArrays
    bad_angle : float
        Angle (radians) off the mean normal of its pixels from which a face is bad.
    costs : (M,) float64
        Cost of each real face: the summed angle between its normal and those of its pixels, and the angle that it is
        off, at least ``bad_angle``, for each pixel's worth of bad area.
    bad : (M,) float64
        Bad area: the area in space of a bad face, in units of a pixel that faces the viewer at its depth; else 0.
    """

    mesh: MeshArrays
    unknown: Float
    normal_map: NormalMapArrays
    bad_angle: float
    costs: Float
    bad: Float


@inner
def shape_of(a, b, c, vertices):
    """Return twice the area of the face abc, negative if it is inverted, and the square of its longest side."""
    bu, bv = vertices[b, 0] - vertices[a, 0], vertices[b, 1] - vertices[a, 1]
    cu, cv = vertices[c, 0] - vertices[a, 0], vertices[c, 1] - vertices[a, 1]
    longest_squared = max(bu * bu + bv * bv, cu * cu + cv * cv, (bu - cu) ** 2 + (bv - cv) ** 2)
    return bv * cu - bu * cv, longest_squared


@inner
def is_needle(a, b, c, vertices):
    """Return whether the face abc is longer than it should be for its width, or inverted."""
    double_area, longest_squared = shape_of(a, b, c, vertices)
    return MAX_ASPECT * double_area < longest_squared


@inner
def is_sound(a, b, c, vertices):
    """Return whether the face abc may be made: it is neither inverted nor tiny nor a needle."""
    return shape_of(a, b, c, vertices)[0] >= 2.0 * MIN_AREA and not is_needle(a, b, c, vertices)


@inner
def area_in_pixels(a, b, c, state):
    """Return the area in space of the face abc, in units of a pixel that faces the viewer at its depth."""
    unknown, camera = state.unknown, state.normal_map.camera
    p = vertex_point(a, state.mesh, unknown, camera)
    q = vertex_point(b, state.mesh, unknown, camera)
    r = vertex_point(c, state.mesh, unknown, camera)
    ux, uy, uz = q[0] - p[0], q[1] - p[1], q[2] - p[2]
    vx, vy, vz = r[0] - p[0], r[1] - p[1], r[2] - p[2]
    x, y, z = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    scale = pixels_per_length((unknown[a] + unknown[b] + unknown[c]) / 3.0, camera)
    return 0.5 * scale * scale * math.sqrt(x * x + y * y + z * z)


@inner
def most_around(vertex, mesh):
    """Return an upper bound of the pixels of any face between a vertex and its neighbours."""
    vertices = mesh.vertices
    left, top = vertices[vertex, 0], vertices[vertex, 1]
    right, bottom = left, top
    start = mesh.corner_of[vertex]
    corner = start
    while True:
        other = vertex_at(next_corner(corner), mesh.faces)
        if other != mesh.ghost:
            left, right = min(left, vertices[other, 0]), max(right, vertices[other, 0])
            top, bottom = min(top, vertices[other, 1]), max(bottom, vertices[other, 1])
        corner = turn(corner, mesh.opposite)
        if corner == start:
            return max_pixels((left, top), (right, top), (left, bottom))


@inner
def most_beside(f, mesh):
    """Return an upper bound of the pixels of any face that a change of face f makes."""
    faces = mesh.faces
    return max(most_around(faces[f, 0], mesh), most_around(faces[f, 1], mesh), most_around(faces[f, 2], mesh))


@inner
def judged_face(a, b, c, state, pixels):
    """Return the cost of the face abc, and its bad area.

    A face is bad if it owns no pixel, is a needle, or stands too far off the mean normal of its pixels; but the latter
    does not count if these scatter as far around their mean, as across a crease: no face would fit them.
    """
    vertices, camera = state.mesh.vertices, state.normal_map.camera
    p, q, r = face_places((a, b, c), vertices)
    count = pad_block(pixels, gather_face(p, q, r, p, 1, state.normal_map.normals, pixels, 0))
    if count == 0:
        area = area_in_pixels(a, b, c, state)
        return state.bad_angle * area, area
    normal = unit_normal(
        vertex_point(a, state.mesh, state.unknown, camera),
        vertex_point(b, state.mesh, state.unknown, camera),
        vertex_point(c, state.mesh, state.unknown, camera),
    )
    angle, number, _ = sum_of_angles((0.0, 0.0), (0.0, 0.0), normal, normal, pixels, count)
    x, y, z = sum_of_normals(pixels, count)
    length = math.sqrt(x * x + y * y + z * z)
    along = normal[0] * x + normal[1] * y + normal[2] * z
    fits = along >= math.cos(state.bad_angle) * length or along * number >= length * length
    if fits and not is_needle(a, b, c, vertices):
        return angle, 0.0
    area = area_in_pixels(a, b, c, state)
    off = math.acos(min(max(along / length, -1.0), 1.0)) if length > 0.0 else 0.0
    return angle + max(off, state.bad_angle) * area, area


@inner
def judge_again(f, state, pixels):
    """Write cost and bad area of face f."""
    a, b, c = state.mesh.faces[f, 0], state.mesh.faces[f, 1], state.mesh.faces[f, 2]
    state.costs[f], state.bad[f] = judged_face(a, b, c, state, pixels)


@kernel
def fill_costs(first, last, state):
    """Fill costs and bad areas of the faces first … last − 1."""
    pixels = np.empty(table_size(1024), np.float32)
    for f in range(first, last):
        size = larger_size(pixels, max_face_pixels(f, state.mesh))
        if size > 0:
            pixels = np.empty(size, np.float32)
        judge_again(f, state, pixels)


@inner
def may_be_flipped(corner, mesh):
    """Return whether the edge across from a corner may be flipped."""
    faces, flags = mesh.faces, mesh.flags
    other = mesh.opposite[corner]
    if other >= 3 * mesh.real_faces:
        return False
    a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    c, d = vertex_at(corner, faces), vertex_at(other, faces)
    if flags[a] & flags[b] & LOCKED or crossing(a, b, c, d, mesh.vertices)[2] == 0.0:
        return False
    if not (is_sound(c, a, d, mesh.vertices) and is_sound(d, b, c, mesh.vertices)):
        return False
    return not are_neighbours(c, d, mesh)


@inner
def flip_bad_face(f, state, pixels):
    """Flip the edge of face f that lowers the cost most; return whether there is one."""
    mesh = state.mesh
    faces, opposite = mesh.faces, mesh.opposite
    best, chosen = MIN_GAIN, -1
    for corner in range(3 * f, 3 * f + 3):
        if not may_be_flipped(corner, mesh):
            continue
        other = opposite[corner]
        a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
        c, d = vertex_at(corner, faces), vertex_at(other, faces)
        gain = state.costs[f] + state.costs[other // 3]
        gain -= judged_face(c, a, d, state, pixels)[0]
        if gain > best:
            gain -= judged_face(d, b, c, state, pixels)[0]
        if gain > best:
            best, chosen = gain, corner
    if chosen < 0:
        return False
    flip_edge(chosen, mesh)
    judge_again(f, state, pixels)
    # The new edge is the one across from the corner after the chosen one.
    judge_again(opposite[next_corner(chosen)] // 3, state, pixels)
    return True


@inner
def star_cost(vertex, state):
    """Return the cost of the faces around an inner vertex."""
    start = state.mesh.corner_of[vertex]
    corner = start
    total = 0.0
    while True:
        total += state.costs[corner // 3]
        corner = turn(corner, state.mesh.opposite)
        if corner == start:
            return total


@inner
def collapse_gain(vertex, other, before, least, state, pixels):
    """Return by how much the cost falls if an inner vertex collapses into a neighbour.

    ``before`` is the cost of its faces now. Return 0 if the collapse makes a face that is not sound, or if the gain
    does not exceed ``least``.
    """
    mesh = state.mesh
    start = mesh.corner_of[vertex]
    corner = start
    gain = before
    while True:
        b, c = vertex_at(next_corner(corner), mesh.faces), vertex_at(previous_corner(corner), mesh.faces)
        if other not in (b, c):
            if not is_sound(other, b, c, mesh.vertices):
                return 0.0
            gain -= judged_face(other, b, c, state, pixels)[0]
            if not gain > least:
                return 0.0
        corner = turn(corner, mesh.opposite)
        if corner == start:
            return gain


@inner
def best_collapse(vertex, least, state, mark, pixels):
    """Find the neighbour into which an inner vertex should collapse.

    Return the gain, and the corner across from the edge whose start is the neighbour and whose end is the vertex; −1 if
    no gain exceeds ``least``. ``mark`` (N + 1,) is a work array, whose last element counts how often it was used.
    """
    mesh = state.mesh
    before = star_cost(vertex, state)
    best, chosen = least, -1
    start = mesh.corner_of[vertex]
    corner = start
    while True:
        other = vertex_at(next_corner(corner), mesh.faces)
        mark[-1] += 1
        if link_is_simple(vertex, other, mesh, mark, mark[-1]):
            gain = collapse_gain(vertex, other, before, best, state, pixels)
            if gain > best:
                best, chosen = gain, mesh.opposite[previous_corner(corner)]
        corner = turn(corner, mesh.opposite)
        if corner == start:
            return best, chosen


@inner
def collapse_bad_face(f, state, mark, pixels):
    """Collapse the inner vertex of face f that lowers the cost most into a neighbour; return this, −1 if there is none.

    The faces around the neighbour must then be judged again.
    """
    mesh = state.mesh
    best, chosen = MIN_GAIN, -1
    for k in range(3):
        vertex = mesh.faces[f, k]
        if mesh.flags[vertex] == 0:
            gain, corner = best_collapse(vertex, best, state, mark, pixels)
            if corner >= 0:
                best, chosen = gain, corner
    if chosen < 0:
        return -1
    keep = vertex_at(next_corner(chosen), mesh.faces)
    state.bad[chosen // 3] = state.bad[mesh.opposite[chosen] // 3] = 0.0
    collapse_edge(chosen, mesh)
    return keep


@inner
def judge_around(vertex, state, pixels):
    """Write cost and bad area of the real faces around a vertex."""
    mesh = state.mesh
    start = mesh.corner_of[vertex]
    corner = start
    while True:
        if corner < 3 * mesh.real_faces:
            judge_again(corner // 3, state, pixels)
        corner = turn(corner, mesh.opposite)
        if corner == start:
            break


@kernel
def tidy_bad_faces(order, state):
    """Flip an edge of each bad face in the given order, or collapse one of its inner vertices, if the cost falls.

    Return the numbers of flips and collapses.
    """
    pixels = np.empty(table_size(1024), np.float32)
    mark = np.zeros(state.unknown.size + 1, np.int64)
    flips = collapses = 0
    for f in order:
        if not state.bad[f] > MIN_BAD:
            continue
        size = larger_size(pixels, most_beside(f, state.mesh))
        if size > 0:
            pixels = np.empty(size, np.float32)
        if flip_bad_face(f, state, pixels):
            flips += 1
            continue
        keep = collapse_bad_face(f, state, mark, pixels)
        if keep >= 0:
            collapses += 1
            size = larger_size(pixels, most_around(keep, state.mesh))
            if size > 0:
                pixels = np.empty(size, np.float32)
            judge_around(keep, state, pixels)
    return flips, collapses
