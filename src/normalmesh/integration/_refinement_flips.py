"""Kernels of :mod:`.refinement`: flips that lower the angle between pixel and face normals.

``mesh``, ``normal_map`` and ``unknown`` are as in :mod:`._refinement`, tables of pixels as in :mod:`._patch`.
"""

from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Float
from normalmesh.integration._patch import (
    face_places,
    gather_face,
    goal,
    is_fit,
    larger_size,
    max_face_pixels,
    pad_block,
    sum_of_angles,
    table_size,
    unit_normal,
    vertex_point,
)
from normalmesh.mesh._closed_mesh import LOCKED, are_neighbours, flip_edge, vertex_at
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.mesh._validity import crossing
from normalmesh.runtime.kernels import inner, kernel


class JudgedFaces(NamedTuple):
    """Faces, as they are and if one of their edges is flipped.

    Attributes
    ----------
    angles : (M,) float64
        Summed angles between faces and their pixels.
    numbers : (M,) float64
        Numbers of their pixels.
    flipped : (3M,) float64
        Summed angle of a face's pixels if the edge across from the corner is flipped; 0 if it must not be.
    left : (3M,) float64
        Number of the face's pixels on the left of the new edge, seen from the corner.
    """

    angles: Float
    numbers: Float
    flipped: Float
    left: Float


@inner
def gather_pixels(f, mesh, normals, pixels):
    """Fill the table with the pixels of face f, relative to its first vertex; return their padded number."""
    a, b, c = face_places(mesh.faces[f], mesh.vertices)
    return pad_block(pixels, gather_face(a, b, c, a, 1, normals, pixels, 0))


@inner(forceinline=True)
def angle_now(f, mesh, unknown, camera, pixels, count):
    """Return the summed angle between face f and its pixels, and their number."""
    normal = unit_normal(
        vertex_point(mesh.faces[f, 0], mesh, unknown, camera),
        vertex_point(mesh.faces[f, 1], mesh, unknown, camera),
        vertex_point(mesh.faces[f, 2], mesh, unknown, camera),
    )
    angle, number, _ = sum_of_angles((0.0, 0.0), (0.0, 0.0), normal, normal, pixels, count)
    return angle, number


@inner(forceinline=True)
def angle_flipped(corner, mesh, unknown, camera, pixels, count):
    """Return the summed angle of the pixels of a corner's face if the edge across from the corner is flipped.

    Return also how many of the pixels are on the left of the new edge.
    """
    vertices, faces = mesh.vertices, mesh.faces
    start, end = vertex_at(corner, faces), vertex_at(mesh.opposite[corner], faces)
    a = vertex_point(vertex_at(next_corner(corner), faces), mesh, unknown, camera)
    b = vertex_point(vertex_at(previous_corner(corner), faces), mesh, unknown, camera)
    c = vertex_point(start, mesh, unknown, camera)
    d = vertex_point(end, mesh, unknown, camera)
    origin = faces[corner // 3, 0]
    u, v = vertices[start, 0] - vertices[origin, 0], vertices[start, 1] - vertices[origin, 1]
    du, dv = vertices[end, 0] - vertices[start, 0], vertices[end, 1] - vertices[start, 1]
    angle, _, left = sum_of_angles((u, v), (du, dv), unit_normal(d, b, c), unit_normal(c, a, d), pixels, count)
    return angle, left


@inner(forceinline=True)
def area_to_flip(corner, mesh):
    """Return the area of the two faces of the edge across from a corner, or 0 if the edge must not be flipped."""
    faces, flags, end = mesh.faces, mesh.flags, 3 * mesh.real_faces
    other = mesh.opposite[corner]
    if corner >= end or other >= end:
        return 0.0
    a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    if flags[a] & flags[b] & LOCKED:
        return 0.0
    c, d = vertex_at(corner, faces), vertex_at(other, faces)
    _, _, double_area = crossing(a, b, c, d, mesh.vertices)
    return 0.5 * double_area if is_fit_face(c, a, d, mesh.vertices) and is_fit_face(d, b, c, mesh.vertices) else 0.0


@inner
def is_fit_face(a, b, c, vertices):
    """Return whether the face abc is neither small nor a needle."""
    u, v = vertices[a, 0], vertices[a, 1]
    return is_fit(vertices[b, 0] - u, vertices[b, 1] - v, vertices[c, 0] - u, vertices[c, 1] - v)


@kernel
def judge_faces(first, last, mesh, unknown, normal_map, judged):
    """Fill the :class:`JudgedFaces` ``judged``."""
    camera = normal_map.camera
    pixels = np.empty(table_size(128), np.float32)
    for f in range(first, last):
        size = larger_size(pixels, max_face_pixels(f, mesh))
        if size > 0:
            pixels = np.empty(size, np.float32)
        count = gather_pixels(f, mesh, normal_map.normals, pixels)
        judged.angles[f], judged.numbers[f] = angle_now(f, mesh, unknown, camera, pixels, count)
        for corner in range(3 * f, 3 * f + 3):
            judged.flipped[corner] = judged.left[corner] = 0.0
            # Both corners of an edge must come to the same answer.
            if area_to_flip(min(corner, mesh.opposite[corner]), mesh) > 0.0:
                angle, left = angle_flipped(corner, mesh, unknown, camera, pixels, count)
                judged.flipped[corner], judged.left[corner] = angle, left


@kernel
def fill_angle_gains(first, last, mesh, noise, judged, gains):
    """Fill ``gains`` (3M,): the decrease of the summed angle if an edge is flipped, at the smaller of its two corners.

    It is zero if the flip is forbidden or does not pay. ``judged`` is filled by :func:`judge_faces`; ``noise`` (N,) is
    the deviation of the normals around each vertex in radians.
    """
    angles, numbers, flipped, left = judged.angles, judged.numbers, judged.flipped, judged.left
    for corner in range(first, last):
        gains[corner] = 0.0
        other = mesh.opposite[corner]
        if corner < other:
            area = area_to_flip(corner, mesh)
            if area > 0.0:
                one = angles[corner // 3], numbers[corner // 3], flipped[corner], left[corner]
                two = angles[other // 3], numbers[other // 3], flipped[other], left[other]
                gains[corner] = angle_gain(one, two, area, noise[vertex_at(corner, mesh.faces)])


@inner(forceinline=True)
def angle_gain(one, two, area, noise):
    """Return the decrease of the summed angle of two faces by a flip, 0 if it does not pay or strips a face of pixels.

    ``one`` and ``two`` are, of both faces: the angle, the number of pixels, the angle after the flip, and the number of
    pixels on the left of the new edge.
    """
    now, then = one[0] + two[0], one[2] + two[2]
    bare = int(one[1] == 0.0) + int(two[1] == 0.0)
    bare_then = int(one[3] + two[1] - two[3] == 0.0) + int(two[3] + one[1] - one[3] == 0.0)
    return now - then if then < goal(now, area, noise) and bare_then <= bare else 0.0


@inner(forceinline=True)
def still_lowers_angle(corner, mesh, unknown, normal_map, noise, pixels):
    """Return whether flipping the edge across from a corner lowers the summed angle."""
    area = area_to_flip(corner, mesh)
    if area == 0.0:
        return False
    one = judged_corner(corner, mesh, unknown, normal_map, pixels)
    two = judged_corner(mesh.opposite[corner], mesh, unknown, normal_map, pixels)
    return angle_gain(one, two, area, noise[vertex_at(corner, mesh.faces)]) > 0.0


@inner
def judged_corner(corner, mesh, unknown, normal_map, pixels):
    """Return what :func:`angle_gain` takes for the face of a corner if the edge across from it is flipped."""
    camera = normal_map.camera
    count = gather_pixels(corner // 3, mesh, normal_map.normals, pixels)
    angle, number = angle_now(corner // 3, mesh, unknown, camera, pixels, count)
    flipped, left = angle_flipped(corner, mesh, unknown, camera, pixels, count)
    return angle, number, flipped, left


@kernel
def flip_to_lower_angles(order, mesh, unknown, normal_map, noise, flips):
    """Flip the edges across from the given corners if that still lowers the summed angle.

    Each flip lowers the angle in the mesh as it is given; edges beside an earlier flip are judged again. Each is
    counted in ``flips`` (N,), at one of its vertices.
    """
    faces, opposite = mesh.faces, mesh.opposite
    changed = np.zeros(mesh.real_faces, np.bool_)
    pixels = np.empty(table_size(1024), np.float32)
    for corner in order:
        one, two = corner // 3, opposite[corner] // 3
        size = larger_size(pixels, max(max_face_pixels(one, mesh), max_face_pixels(two, mesh)))
        if size > 0:
            pixels = np.empty(size, np.float32)
        if (changed[one] or changed[two]) and not still_lowers_angle(corner, mesh, unknown, normal_map, noise, pixels):
            continue
        if are_neighbours(vertex_at(corner, faces), vertex_at(opposite[corner], faces), mesh):
            continue
        flips[vertex_at(corner, faces)] += 1
        flip_edge(corner, mesh)
        changed[one] = changed[two] = True
