"""Kernels of :mod:`normalmesh.decimation.flip`: the in-circle test in the metric of the normals."""

import numpy as np

from normalmesh.decimation._quadrics import face_record, facing, jacobian, record_of
from normalmesh.mesh._closed_mesh import LOCKED, are_neighbours, flip_edge, vertex_at
from normalmesh.mesh._face_pixels import LISTED, ROOM
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.mesh._validity import crossing
from normalmesh.runtime.kernels import inner, kernel

#: A flip must lower the lifted diagonal by this share of its height: equal diagonals stay, and flipping ends.
LEAST_GAIN = 1e-3


@inner(forceinline=True)
def edge_metric(p, q, u, v, frame, towards_viewer, scale):
    """G_e = J_eᵀ M_e J_e of the patch of two faces, from their records: eqs. (17) and (18), as uu, uv, vv."""
    nx, ny, nz = facing(
        p[3] * p[0] + q[3] * q[0], p[3] * p[1] + q[3] * q[1], p[3] * p[2] + q[3] * q[2], u, v, frame, towards_viewer
    )
    j = jacobian(nx, ny, nz, u, v, frame, scale)
    xx, xy, xz = p[4] + q[4], p[5] + q[5], p[6] + q[6]
    yy, yz, zz = p[7] + q[7], p[8] + q[8], p[9] + q[9]
    ux, uy, uz = xx * j[0] + xy * j[1] + xz * j[2], xy * j[0] + yy * j[1] + yz * j[2], xz * j[0] + yz * j[1] + zz * j[2]
    vx, vy, vz = xx * j[3] + xy * j[4] + xz * j[5], xy * j[3] + yy * j[4] + yz * j[5], xz * j[3] + yz * j[4] + zz * j[5]
    return (
        j[0] * ux + j[1] * uy + j[2] * uz,
        j[3] * ux + j[4] * uy + j[5] * uz,
        j[3] * vx + j[4] * vy + j[5] * vz,
    )


@inner
def gain_of_diagonal(a, b, c, d, p, q, vertices, frame, towards_viewer, scale):
    """How much lower the diagonal cd of a patch lies than ab where the two cross; 0 where it cannot be taken.

    The patch is lifted by x ↦ xᵀ G_e x: the height of a diagonal over the paraboloid at a + s(b − a) is then
    s(1 − s)‖b − a‖² in the metric. p and q are the records of the two faces, which share ab.
    """
    s, t, double_area = crossing(a, b, c, d, vertices)
    if double_area == 0.0:
        return 0.0
    au, av = vertices[a, 0], vertices[a, 1]
    bu, bv = vertices[b, 0] - au, vertices[b, 1] - av
    du, dv = vertices[d, 0] - vertices[c, 0], vertices[d, 1] - vertices[c, 1]
    uu, uv, vv = edge_metric(p, q, au + s * bu, av + s * bv, frame, towards_viewer, scale)
    now = s * (1.0 - s) * (uu * bu * bu + 2.0 * uv * bu * bv + vv * bv * bv)
    then = t * (1.0 - t) * (uu * du * du + 2.0 * uv * du * dv + vv * dv * dv)
    if then < (1.0 - LEAST_GAIN) * now:
        return now - then
    return 0.0


@inner
def gain_of_flip(corner, vertices, faces, real_faces, opposite, flags, records, frame, towards_viewer, scale):
    """The gain by flipping the edge across from a corner; 0 at the outline and between locked vertices."""
    other = opposite[corner]
    one, two = corner // 3, other // 3
    if one >= real_faces or two >= real_faces:
        return 0.0
    a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    if flags[a] & flags[b] & LOCKED:
        return 0.0
    c, d = vertex_at(corner, faces), vertex_at(other, faces)
    p, q = record_of(one, records), record_of(two, records)
    return gain_of_diagonal(a, b, c, d, p, q, vertices, frame, towards_viewer, scale)


@kernel
def gains_of_flips(
    first, last, vertices, faces, real_faces, opposite, flags, records, active, frame, towards_viewer, scale, gains
):  # fmt: skip
    """Fill the gains (3M,) of edges of active faces, each at one of its two corners; zero elsewhere."""
    for corner in range(first, last):
        gains[corner] = 0.0
        if active[corner // 3] and (corner < opposite[corner] or not active[opposite[corner] // 3]):
            gains[corner] = gain_of_flip(
                corner, vertices, faces, real_faces, opposite, flags, records, frame, towards_viewer, scale
            )


@kernel
def flip_in_order(
    order, vertices, faces, real_faces, opposite, corner_of, flags, records, normals, mask, frame, towards_viewer,
    scale, regularisation, active,
):  # fmt: skip
    """Flip the edges across from the given corners that still gain by it; the number of flips.

    Flips change the records of their two faces. One that these would reverse is not made: such edges would turn for
    ever. ``active`` (F,) becomes the faces that flips changed.
    """
    active[:] = False
    pixels = np.empty(LISTED * ROOM, np.float32)
    flips = 0
    for corner in order:
        gain = gain_of_flip(corner, vertices, faces, real_faces, opposite, flags, records, frame, towards_viewer, scale)
        if gain <= 0.0:
            continue
        a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
        c, d = vertex_at(corner, faces), vertex_at(opposite[corner], faces)
        if are_neighbours(c, d, faces, opposite, corner_of):
            continue
        looking = (normals, mask, frame, towards_viewer, scale, regularisation, pixels)
        first, second = face_record(c, a, d, vertices, *looking), face_record(d, b, c, vertices, *looking)
        if gain_of_diagonal(d, c, a, b, first, second, vertices, frame, towards_viewer, scale) > 0.0:
            continue
        one, two = corner // 3, opposite[corner] // 3
        flip_edge(corner, faces, opposite, corner_of)
        for k in range(14):
            records[one, k], records[two, k] = first[k], second[k]
        active[one] = active[two] = True
        flips += 1
    return flips
