"""Kernels of :mod:`.refinement`: flips judged by the angle between pixel and face normals.

``unknown`` and ``strain`` are as in :mod:`._refinement`, tables of pixels as in :mod:`._patch`.
"""

import numpy as np

from normalmesh.integration._patch import (
    MIN_AREA,
    ROWS,
    corner_point,
    face_normal,
    gather_face,
    goal,
    max_pixels,
    pad_columns,
    reserve,
    sum_of_angles,
)
from normalmesh.mesh._closed_mesh import LOCKED, are_neighbours, flip_edge, vertex_at
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.mesh._validity import crossing
from normalmesh.mesh.cut_mesh import CUT
from normalmesh.runtime.kernels import inner, kernel


@inner(allocates=True)
def gather(f, vertices, faces, normals, pixels):
    """Fill the table with the pixels of a face, seen from its first vertex; the table and their number."""
    a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
    here = vertices[a, 0], vertices[a, 1]
    there, yonder = (vertices[b, 0], vertices[b, 1]), (vertices[c, 0], vertices[c, 1])
    pixels = reserve(pixels, max_pixels(here, there, yonder))
    return pixels, pad_columns(pixels, gather_face(here, there, yonder, here, 1, normals, pixels, 0))


@inner
def angle_now(f, vertices, unknown, faces, frame, perspective, pixels, count):
    """Summed angle between a face and the pixels that it has."""
    normal = face_normal(
        corner_point(3 * f, vertices, unknown, faces, frame, perspective),
        corner_point(3 * f + 1, vertices, unknown, faces, frame, perspective),
        corner_point(3 * f + 2, vertices, unknown, faces, frame, perspective),
    )
    return sum_of_angles((0.0, 0.0), (0.0, 0.0), normal, normal, pixels, count)


@inner
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
    return sum_of_angles((u, v), (du, dv), face_normal(d, b, c), face_normal(c, a, d), pixels, count)


@inner
def area_to_flip(corner, vertices, strain, faces, real_faces, opposite, flags):
    """Area of the two faces of the edge across from a corner, 0 where it must not be flipped."""
    other = opposite[corner]
    if corner >= 3 * real_faces or other >= 3 * real_faces or strain[corner] >= CUT:
        return 0.0
    a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    if flags[a] & flags[b] & LOCKED:
        return 0.0
    s, _, double_area = crossing(a, b, vertex_at(corner, faces), vertex_at(other, faces), vertices)
    return 0.5 * double_area if min(s, 1.0 - s) * double_area >= 2.0 * MIN_AREA else 0.0


@kernel
def judge_faces(
    first, last, vertices, unknown, strain, faces, real_faces, opposite, flags, normals, mask, frame, perspective,
    angles, flipped,
):  # fmt: skip
    """Fill the summed angles (M,) of faces, and (3M,) of their pixels once the edge across is flipped."""
    pixels = np.empty((ROWS, 128), np.float32)
    for f in range(first, last):
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


@kernel
def gains_of_flips(
    first, last, vertices, strain, faces, real_faces, opposite, flags, noise, angles, flipped, gains
):  # fmt: skip
    """Fill ``gains`` (3M,): by how much the summed angle falls when an edge is flipped, at the smaller of its corners.

    0 where it does not. ``angles`` (M,) and ``flipped`` (3M,) are as :func:`judge_faces` fills them.
    """
    for corner in range(first, last):
        gains[corner] = 0.0
        other = opposite[corner]
        if corner < other:
            area = area_to_flip(corner, vertices, strain, faces, real_faces, opposite, flags)
            if area > 0.0:
                now, then = angles[corner // 3] + angles[other // 3], flipped[corner] + flipped[other]
                gains[corner] = now - then if then < goal(now, area, noise) else 0.0


@inner(forceinline=True, allocates=True)
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


@kernel
def flip_in_order(order, mesh, unknown, strain, noise, normals, mask, frame, perspective):
    """Flip the edges across from the given corners, all of which gain by it, if they still do; the number of flips."""
    vertices, faces, opposite = mesh.vertices, mesh.faces, mesh.opposite
    flips = 0
    changed = np.zeros(mesh.real_faces, np.bool_)
    pixels = np.empty((ROWS, 1024), np.float32)
    for corner in order:
        one, two = corner // 3, opposite[corner] // 3
        if (changed[one] or changed[two]) and not still_gains(
            corner, vertices, unknown, strain, faces, mesh.real_faces, opposite, mesh.flags, noise, normals, mask,
            frame, perspective, pixels,
        ):  # fmt: skip
            continue
        if are_neighbours(vertex_at(corner, faces), vertex_at(opposite[corner], faces), mesh):
            continue
        carry_corners(corner, opposite, unknown, strain)
        flip_edge(corner, mesh)
        changed[one] = changed[two] = True
        flips += 1
    return flips


@inner(forceinline=True)
def carry_corners(corner, opposite, unknown, strain):
    """Give corners the values that they will stand for once the edge across from one is flipped."""
    other = opposite[corner]
    unknown[previous_corner(corner)], unknown[previous_corner(other)] = unknown[other], unknown[corner]
    at_start, at_end = next_corner(corner), next_corner(other)
    strain[corner], strain[other] = strain[at_end], strain[at_start]
    strain[at_start] = strain[at_end] = 0.0
