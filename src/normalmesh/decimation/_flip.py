"""Kernels of :mod:`normalmesh.decimation.flip`: the in-circle test in the metric of the normals."""

from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Bool, Float
from normalmesh.decimation._quadrics import face_record, record_of, store_record
from normalmesh.mesh._closed_mesh import LOCKED, are_neighbours, flip_edge, vertex_at
from normalmesh.mesh._face_pixels import LIST_SIZE
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.mesh._validity import crossing
from normalmesh.normals._camera import facing, jacobian
from normalmesh.runtime.kernels import inner, kernel

#: A flip must lower the lifted diagonal by this share of its height: equal diagonals stay, and flipping ends.
MIN_GAIN = 1e-3


class JudgedFlips(NamedTuple):
    """What flips would lead to.

    Attributes
    ----------
    records : (2K, RECORD) float64
        Records of the two faces that each flip makes.
    lasts : (K,) bool
        Whether these would not reverse the flip.
    """

    records: Float
    lasts: Bool


@inner(forceinline=True)
def edge_metric(p, q, u, v, camera):
    """Return G_e = J_eᵀ M_e J_e of the patch of two faces, eqs. (17) and (18), as uu, uv, vv.

    ``p`` and ``q`` are the records of the faces.
    """
    nx, ny, nz = facing(
        p.area * p.nx + q.area * q.nx, p.area * p.ny + q.area * q.ny, p.area * p.nz + q.area * q.nz, u, v, camera
    )
    j = jacobian(nx, ny, nz, u, v, camera)
    xx, xy, xz = p.xx + q.xx, p.xy + q.xy, p.xz + q.xz
    yy, yz, zz = p.yy + q.yy, p.yz + q.yz, p.zz + q.zz
    ux, uy, uz = xx * j.ux + xy * j.uy + xz * j.uz, xy * j.ux + yy * j.uy + yz * j.uz, xz * j.ux + yz * j.uy + zz * j.uz
    vx, vy, vz = xx * j.vx + xy * j.vy + xz * j.vz, xy * j.vx + yy * j.vy + yz * j.vz, xz * j.vx + yz * j.vy + zz * j.vz
    return (
        j.ux * ux + j.uy * uy + j.uz * uz,
        j.vx * ux + j.vy * uy + j.vz * uz,
        j.vx * vx + j.vy * vy + j.vz * vz,
    )


@inner
def gain_of_diagonal(a, b, c, d, p, q, vertices, camera):
    """Compute how much lower the diagonal cd of a patch lies than ab where the two cross.

    The patch is lifted by x ↦ xᵀ G_e x: the height of a diagonal over the paraboloid at a + s(b − a) is then
    s(1 − s)‖b − a‖² in the metric. ``p`` and ``q`` are the records of the two faces, which share ab. The gain is 0 if
    the diagonal cd is not possible or hardly lower.
    """
    s, t, double_area = crossing(a, b, c, d, vertices)
    if double_area == 0.0:
        return 0.0
    au, av = vertices[a, 0], vertices[a, 1]
    bu, bv = vertices[b, 0] - au, vertices[b, 1] - av
    du, dv = vertices[d, 0] - vertices[c, 0], vertices[d, 1] - vertices[c, 1]
    uu, uv, vv = edge_metric(p, q, au + s * bu, av + s * bv, camera)
    now = s * (1.0 - s) * (uu * bu * bu + 2.0 * uv * bu * bv + vv * bv * bv)
    then = t * (1.0 - t) * (uu * du * du + 2.0 * uv * du * dv + vv * dv * dv)
    if then < (1.0 - MIN_GAIN) * now:
        return now - then
    return 0.0


@inner
def gain_of_flip(corner, mesh, records, camera):
    """Compute the gain by flipping the edge across from a corner; 0 at the outline and between locked vertices."""
    faces, flags = mesh.faces, mesh.flags
    other = mesh.opposite[corner]
    one, two = corner // 3, other // 3
    if one >= mesh.real_faces or two >= mesh.real_faces:
        return 0.0
    a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    if flags[a] & flags[b] & LOCKED:
        return 0.0
    c, d = vertex_at(corner, faces), vertex_at(other, faces)
    return gain_of_diagonal(a, b, c, d, record_of(one, records), record_of(two, records), mesh.vertices, camera)


@kernel
def gains_of_flips(first, last, mesh, records, active, camera, gains):
    """Fill the gains (3M,) of edges of active faces, each at one of its two corners; zero elsewhere."""
    opposite = mesh.opposite
    for corner in range(first, last):
        gains[corner] = 0.0
        if active[corner // 3] and (corner < opposite[corner] or not active[opposite[corner] // 3]):
            gains[corner] = gain_of_flip(corner, mesh, records, camera)


@kernel
def judge_flips(first, last, order, mesh, normal_map, regularisation, judged):
    """Fill the :class:`JudgedFlips` of the edges across from the corners ``order[first:last]``."""
    buffer = np.empty(LIST_SIZE, np.float32)
    for k in range(first, last):
        one, two, judged.lasts[k] = records_after(order[k], mesh, normal_map, regularisation, buffer)
        store_record(one, 2 * k, judged.records)
        store_record(two, 2 * k + 1, judged.records)


@inner(forceinline=True)
def records_after(corner, mesh, normal_map, regularisation, buffer):
    """Return the records of the two faces that a flip would make, and whether they would not reverse it."""
    vertices, faces = mesh.vertices, mesh.faces
    a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    c, d = vertex_at(corner, faces), vertex_at(mesh.opposite[corner], faces)
    one = face_record(c, a, d, vertices, normal_map, regularisation, buffer)
    two = face_record(d, b, c, vertices, normal_map, regularisation, buffer)
    return one, two, gain_of_diagonal(d, c, a, b, one, two, vertices, normal_map.camera) <= 0.0


@kernel
def flip_in_order(order, mesh, records, normal_map, regularisation, judged, active):
    """Flip the edges across from the given corners if the flip still has a gain; return the number of flips.

    Flips change the records of their two faces. A flip that the new records would reverse is not made: such edges
    would turn for ever. ``judged`` are the :class:`JudgedFlips` in the mesh as it is given; edges beside an earlier
    flip are judged again. ``active`` (F,) becomes the faces that flips changed.
    """
    faces, opposite = mesh.faces, mesh.opposite
    active[:] = False
    buffer = np.empty(LIST_SIZE, np.float32)
    flips = 0
    for k in range(order.size):
        corner = order[k]
        one, two = corner // 3, opposite[corner] // 3
        changed = active[one] or active[two]
        if changed and gain_of_flip(corner, mesh, records, normal_map.camera) <= 0.0:
            continue
        if are_neighbours(vertex_at(corner, faces), vertex_at(opposite[corner], faces), mesh):
            continue
        first, second, lasts = record_of(2 * k, judged.records), record_of(2 * k + 1, judged.records), judged.lasts[k]
        if changed:
            first, second, lasts = records_after(corner, mesh, normal_map, regularisation, buffer)
        if not lasts:
            continue
        flip_edge(corner, mesh)
        store_record(first, one, records)
        store_record(second, two, records)
        active[one] = active[two] = True
        flips += 1
    return flips
