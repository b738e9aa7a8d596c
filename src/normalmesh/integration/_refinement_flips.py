"""Kernels of :mod:`.refinement`: flips that lower the angle between pixel and face normals.

``mesh``, ``normal_map`` and ``unknown`` are as in :mod:`._refinement`, tables of pixels as in :mod:`._patch`.
"""

import numpy as np

from normalmesh.integration._patch import (
    MIN_AREA,
    gather_face,
    goal,
    max_pixels,
    new_table,
    pad_block,
    reserve,
    sum_of_angles,
    unit_normal,
    vertex_point,
)
from normalmesh.mesh._closed_mesh import LOCKED, are_neighbours, flip_edge, vertex_at
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.mesh._validity import crossing
from normalmesh.runtime.kernels import inner, kernel


@inner(allocates=True)
def gather_pixels(f, mesh, normals, pixels):
    """Fill the table with the pixels of face f, relative to its first vertex; return the table and its size."""
    vertices = mesh.vertices
    i, j, k = mesh.faces[f, 0], mesh.faces[f, 1], mesh.faces[f, 2]
    a, b, c = (vertices[i, 0], vertices[i, 1]), (vertices[j, 0], vertices[j, 1]), (vertices[k, 0], vertices[k, 1])
    pixels = reserve(pixels, max_pixels(a, b, c))
    return pixels, pad_block(pixels, gather_face(a, b, c, a, 1, normals, pixels, 0))


@inner(forceinline=True)
def angle_now(f, mesh, unknown, camera, pixels, count):
    """Return the summed angle between face f and its pixels."""
    normal = unit_normal(
        vertex_point(mesh.faces[f, 0], mesh, unknown, camera),
        vertex_point(mesh.faces[f, 1], mesh, unknown, camera),
        vertex_point(mesh.faces[f, 2], mesh, unknown, camera),
    )
    return sum_of_angles((0.0, 0.0), (0.0, 0.0), normal, normal, pixels, count)


@inner(forceinline=True)
def angle_flipped(corner, mesh, unknown, camera, pixels, count):
    """Return the summed angle of the pixels of a corner's face if the edge across from the corner is flipped."""
    vertices, faces = mesh.vertices, mesh.faces
    start, end = vertex_at(corner, faces), vertex_at(mesh.opposite[corner], faces)
    a = vertex_point(vertex_at(next_corner(corner), faces), mesh, unknown, camera)
    b = vertex_point(vertex_at(previous_corner(corner), faces), mesh, unknown, camera)
    c = vertex_point(start, mesh, unknown, camera)
    d = vertex_point(end, mesh, unknown, camera)
    origin = faces[corner // 3, 0]
    u, v = vertices[start, 0] - vertices[origin, 0], vertices[start, 1] - vertices[origin, 1]
    du, dv = vertices[end, 0] - vertices[start, 0], vertices[end, 1] - vertices[start, 1]
    return sum_of_angles((u, v), (du, dv), unit_normal(d, b, c), unit_normal(c, a, d), pixels, count)


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
    s, _, double_area = crossing(a, b, vertex_at(corner, faces), vertex_at(other, faces), mesh.vertices)
    return 0.5 * double_area if min(s, 1.0 - s) * double_area >= 2.0 * MIN_AREA else 0.0


@kernel
def judge_faces(first, last, mesh, unknown, normal_map, angles, flipped):
    """Fill the summed angles (M,) of faces, and ``flipped`` (3M,): those of their pixels if the edge across is flipped.

    ``flipped`` is zero where the edge must not be flipped.
    """
    camera = normal_map.camera
    pixels = new_table(128)
    for f in range(first, last):
        pixels, count = gather_pixels(f, mesh, normal_map.normals, pixels)
        angles[f] = angle_now(f, mesh, unknown, camera, pixels, count)
        for corner in range(3 * f, 3 * f + 3):
            flipped[corner] = 0.0
            # Both corners of an edge must come to the same answer.
            one = min(corner, mesh.opposite[corner])
            if area_to_flip(one, mesh) > 0.0:
                flipped[corner] = angle_flipped(corner, mesh, unknown, camera, pixels, count)


@kernel
def fill_angle_gains(first, last, mesh, noise, angles, flipped, gains):
    """Fill ``gains`` (3M,): the decrease of the summed angle if an edge is flipped, at the smaller of its two corners.

    It is zero if the flip is forbidden or does not pay. ``angles`` (M,) and ``flipped`` (3M,) are as
    :func:`judge_faces` fills them.
    """
    for corner in range(first, last):
        gains[corner] = 0.0
        other = mesh.opposite[corner]
        if corner < other:
            area = area_to_flip(corner, mesh)
            if area > 0.0:
                now, then = angles[corner // 3] + angles[other // 3], flipped[corner] + flipped[other]
                gains[corner] = now - then if then < goal(now, area, noise) else 0.0


@inner(forceinline=True, allocates=True)
def still_lowers_angle(corner, mesh, unknown, normal_map, noise, pixels):
    """Return whether flipping the edge across from a corner lowers the summed angle."""
    camera = normal_map.camera
    area = area_to_flip(corner, mesh)
    now = then = 0.0
    if area > 0.0:
        for each in (corner, np.int64(mesh.opposite[corner])):
            pixels, count = gather_pixels(each // 3, mesh, normal_map.normals, pixels)
            now += angle_now(each // 3, mesh, unknown, camera, pixels, count)
            then += angle_flipped(each, mesh, unknown, camera, pixels, count)
    return area > 0.0 and then < goal(now, area, noise)


@kernel
def flip_to_lower_angles(order, mesh, unknown, normal_map, noise):
    """Flip the edges across from the given corners if that still lowers the summed angle; return the number of flips.

    Each flip lowers the angle in the mesh as it is given; edges beside an earlier flip are judged again.
    """
    faces, opposite = mesh.faces, mesh.opposite
    flips = 0
    changed = np.zeros(mesh.real_faces, np.bool_)
    pixels = new_table(1024)
    for corner in order:
        one, two = corner // 3, opposite[corner] // 3
        if (changed[one] or changed[two]) and not still_lowers_angle(corner, mesh, unknown, normal_map, noise, pixels):
            continue
        if are_neighbours(vertex_at(corner, faces), vertex_at(opposite[corner], faces), mesh):
            continue
        flip_edge(corner, mesh)
        changed[one] = changed[two] = True
        flips += 1
    return flips
