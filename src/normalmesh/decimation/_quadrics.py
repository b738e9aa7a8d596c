"""Kernels of :mod:`normalmesh.decimation.quadrics`: quadrics of faces from their pixels, and of vertices from faces.

A table of face records (M, RECORD) has one :class:`FaceRecord` in each row. A table of screen quadrics (N, QUADRIC) has
one quadric ``Q̃(δu) = ⟨δu, A δu⟩ + 2⟨b, δu⟩ + c`` around each vertex in the columns UU, UV, VV, BU, BV and CONSTANT.
"""

import math
from typing import NamedTuple

import numpy as np

from normalmesh.mesh._closed_mesh import turn
from normalmesh.mesh._face_pixels import LIST_SIZE, U, V, X, Y, Z, list_pixels
from normalmesh.mesh._raster import by_height, face_edges, first_row
from normalmesh.normals._camera import facing, jacobian
from normalmesh.normals._normal_map import nearest_pixel, normal_at
from normalmesh.runtime.kernels import inner, kernel


class FaceRecord(NamedTuple):
    """A face as its pixels describe it: n_f, the area A³_f on the surface (px²), and the quadric around the centroid.

    The quadric is ``Q_f(δx) = ⟨δx, A δx⟩ + 2⟨b, δx⟩ + c`` with A as xx, xy, xz, yy, yz, zz and b as bx, by, bz.
    """

    nx: float
    ny: float
    nz: float
    area: float
    xx: float
    xy: float
    xz: float
    yy: float
    yz: float
    zz: float
    bx: float
    by: float
    bz: float
    constant: float


class SpaceQuadric(NamedTuple):
    """A quadric in space, ``Q(δx) = ⟨δx, A δx⟩ + 2⟨b, δx⟩ + c``, in the numbers of a :class:`FaceRecord`."""

    xx: float
    xy: float
    xz: float
    yy: float
    yz: float
    zz: float
    bx: float
    by: float
    bz: float
    constant: float


#: Numbers in a row of a table of face records, and of screen quadrics.
RECORD, QUADRIC = 14, 6
#: Columns of a table of screen quadrics: A, b and c.
UU, UV, VV, BU, BV, CONSTANT = range(QUADRIC)

ZERO = SpaceQuadric(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@inner(forceinline=True)
def face_record(a, b, c, vertices, normal_map, regularisation, buffer):
    """Compute the record of the face abc from the pixels that it owns: eqs. (11) to (13), supplement B.

    ``buffer`` is a list of pixels (:mod:`normalmesh.mesh._face_pixels`), which is overwritten.
    """
    normals, mask, camera = normal_map.normals, normal_map.mask, normal_map.camera
    rows = mask.shape[0]
    at_a, at_b, at_c = (
        (vertices[a, 0], vertices[a, 1]),
        (vertices[b, 0], vertices[b, 1]),
        (vertices[c, 0], vertices[c, 1]),
    )
    top, middle, bottom = by_height(at_a, at_b, at_c)
    edges = face_edges(top, middle, bottom)
    start_row, middle_row, end_row = first_row(top[1], rows), first_row(middle[1], rows), first_row(bottom[1], rows)
    centre_u, centre_v = (at_a[0] + at_b[0] + at_c[0]) / 3.0, (at_a[1] + at_b[1] + at_c[1]) / 3.0
    nx = ny = nz = 0.0
    total = count = 0
    row, column = start_row, 0
    while row < end_row:
        count, row, column = list_pixels(edges, row, column, middle_row, end_row, normals, mask, buffer)
        nx, ny, nz = _with_normals(nx, ny, nz, buffer, count)
        total += count
    if total == 0:
        return sample_record(at_a, at_b, at_c, normal_map, regularisation)
    normal = facing(nx, ny, nz, centre_u, centre_v, camera)
    j = jacobian(normal[0], normal[1], normal[2], centre_u, centre_v, camera)
    sums = ZERO
    if total == count:
        sums = _with_pixels(sums, buffer, count, centre_u, centre_v, j, regularisation)
    else:
        row, column = start_row, 0
        while row < end_row:
            count, row, column = list_pixels(edges, row, column, middle_row, end_row, normals, mask, buffer)
            sums = _with_pixels(sums, buffer, count, centre_u, centre_v, j, regularisation)
    return _finished_record(at_a, at_b, at_c, normal, j, sums, total)


@inner
def sample_record(at_a, at_b, at_c, normal_map, regularisation):
    """Compute the record of a face that owns no pixel from the pixel nearest to its centroid.

    ``at_a``, ``at_b`` and ``at_c`` are the screen positions (u, v) of its corners.
    """
    camera = normal_map.camera
    centre_u, centre_v = (at_a[0] + at_b[0] + at_c[0]) / 3.0, (at_a[1] + at_b[1] + at_c[1]) / 3.0
    row, column = nearest_pixel(normal_map.mask, centre_u, centre_v)
    if row < 0:
        normal = facing(0.0, 0.0, 0.0, centre_u, centre_v, camera)
        j = jacobian(normal[0], normal[1], normal[2], centre_u, centre_v, camera)
        return _finished_record(at_a, at_b, at_c, normal, j, ZERO, 1)
    n = normal_at(normal_map.normals, row, column)
    normal = facing(n[0], n[1], n[2], centre_u, centre_v, camera)
    j = jacobian(normal[0], normal[1], normal[2], centre_u, centre_v, camera)
    sums = _with_pixel(ZERO, n, centre_u - (column + 0.5), centre_v - (row + 0.5), j, regularisation)
    return _finished_record(at_a, at_b, at_c, normal, j, sums, 1)


@inner
def _finished_record(at_a, at_b, at_c, normal, j, sums, pixels):
    """Return normal, area on the surface, and the sums over ``pixels`` pixels as a mean times that area."""
    area = 0.5 * ((at_b[1] - at_a[1]) * (at_c[0] - at_a[0]) - (at_b[0] - at_a[0]) * (at_c[1] - at_a[1]))
    metric_uu = j.ux * j.ux + j.uy * j.uy + j.uz * j.uz
    metric_uv = j.ux * j.vx + j.uy * j.vy + j.uz * j.vz
    metric_vv = j.vx * j.vx + j.vy * j.vy + j.vz * j.vz
    surface_area = math.sqrt(max(metric_uu * metric_vv - metric_uv * metric_uv, 0.0)) * area
    w = surface_area / pixels
    return FaceRecord(
        normal[0], normal[1], normal[2], surface_area,
        w * sums.xx, w * sums.xy, w * sums.xz, w * sums.yy, w * sums.yz, w * sums.zz,
        w * sums.bx, w * sums.by, w * sums.bz, w * sums.constant,
    )  # fmt: skip


@inner
def _with_normals(sum_x, sum_y, sum_z, buffer, count):
    """Add the normals of a list of pixels to a sum of normals."""
    for i in range(count):
        sum_x += buffer[X + i]
        sum_y += buffer[Y + i]
        sum_z += buffer[Z + i]
    return sum_x, sum_y, sum_z


@inner
def _with_pixels(sums, buffer, count, centre_u, centre_v, j, regularisation):
    """Add the quadrics of a list of pixels to the quadric of a face."""
    for i in range(count):
        n = np.float64(buffer[X + i]), np.float64(buffer[Y + i]), np.float64(buffer[Z + i])
        du, dv = centre_u - (np.float64(buffer[U + i]) + 0.5), centre_v - (np.float64(buffer[V + i]) + 0.5)
        sums = _with_pixel(sums, n, du, dv, j, regularisation)
    return sums


@inner(forceinline=True)
def _with_pixel(sums, n, du, dv, j, regularisation):
    """Add ‖J (c_f − u_p) + δx‖² in the metric M_p = n_p n_pᵀ + λ·1 to the quadric of a face."""
    nx, ny, nz = n
    x, y, z = j.ux * du + j.vx * dv, j.uy * du + j.vy * dv, j.uz * du + j.vz * dv
    off = nx * x + ny * y + nz * z
    return SpaceQuadric(
        sums.xx + (nx * nx + regularisation),
        sums.xy + nx * ny,
        sums.xz + nx * nz,
        sums.yy + (ny * ny + regularisation),
        sums.yz + ny * nz,
        sums.zz + (nz * nz + regularisation),
        sums.bx + (off * nx + regularisation * x),
        sums.by + (off * ny + regularisation * y),
        sums.bz + (off * nz + regularisation * z),
        sums.constant + (off * off + regularisation * (x * x + y * y + z * z)),
    )


@inner
def record_of(f, records):
    """Return the record of a face as a tuple: views of arrays cost more than the arithmetic."""
    return FaceRecord(
        records[f, 0], records[f, 1], records[f, 2], records[f, 3], records[f, 4], records[f, 5], records[f, 6],
        records[f, 7], records[f, 8], records[f, 9], records[f, 10], records[f, 11], records[f, 12], records[f, 13],
    )  # fmt: skip


@inner
def store_record(record, f, records):
    """Write the record of a face into the table."""
    for k in range(RECORD):
        records[f, k] = record[k]


@inner(forceinline=True)
def with_face(total, record, centre_u, centre_v, u, v, camera):
    """Add the quadric of a face, moved from its centroid to the vertex at (u, v), to the vertex's quadric in space."""
    j = jacobian(record.nx, record.ny, record.nz, centre_u, centre_v, camera)
    du, dv = u - centre_u, v - centre_v
    x, y, z = j.ux * du + j.vx * dv, j.uy * du + j.vy * dv, j.uz * du + j.vz * dv
    ax = record.xx * x + record.xy * y + record.xz * z
    ay = record.xy * x + record.yy * y + record.yz * z
    az = record.xz * x + record.yz * y + record.zz * z
    linear = record.bx * x + record.by * y + record.bz * z
    return SpaceQuadric(
        total.xx + record.xx,
        total.xy + record.xy,
        total.xz + record.xz,
        total.yy + record.yy,
        total.yz + record.yz,
        total.zz + record.zz,
        total.bx + (record.bx + ax),
        total.by + (record.by + ay),
        total.bz + (record.bz + az),
        total.constant + (record.constant + 2.0 * linear + (ax * x + ay * y + az * z)),
    )


@inner
def restrict_to_screen(total, normal, u, v, camera):
    """Return Q̃_v(δu) = Q_v(J_v δu), eq. (15), as the six numbers of a screen quadric."""
    j = jacobian(normal[0], normal[1], normal[2], u, v, camera)
    ux = total.xx * j.ux + total.xy * j.uy + total.xz * j.uz
    uy = total.xy * j.ux + total.yy * j.uy + total.yz * j.uz
    uz = total.xz * j.ux + total.yz * j.uy + total.zz * j.uz
    vx = total.xx * j.vx + total.xy * j.vy + total.xz * j.vz
    vy = total.xy * j.vx + total.yy * j.vy + total.yz * j.vz
    vz = total.xz * j.vx + total.yz * j.vy + total.zz * j.vz
    return (
        j.ux * ux + j.uy * uy + j.uz * uz,
        j.vx * ux + j.vy * uy + j.vz * uz,
        j.vx * vx + j.vy * vy + j.vz * vz,
        j.ux * total.bx + j.uy * total.by + j.uz * total.bz,
        j.vx * total.bx + j.vy * total.by + j.vz * total.bz,
        total.constant,
    )


@kernel
def face_records(first, last, mesh, changed, normal_map, regularisation, records):
    """Fill the records (M, RECORD) of the faces that changed."""
    buffer = np.empty(LIST_SIZE, np.float32)
    faces = mesh.faces
    for f in range(first, last):
        if changed[f]:
            a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
            store_record(face_record(a, b, c, mesh.vertices, normal_map, regularisation, buffer), f, records)


@kernel
def vertex_quadrics(first, last, mesh, normal_map, regularisation, records, quadrics):
    """Fill the screen quadrics (N, QUADRIC) of vertices, eqs. (12), (14), (15).

    They are computed from the records of the faces. If ``records`` is empty, as for a start mesh, which is too large
    to keep them, they are computed from the pixels in which the faces lie.
    """
    vertices, faces, camera = mesh.vertices, mesh.faces, normal_map.camera
    for vertex in range(first, last):
        start = np.int64(mesh.corner_of[vertex])
        if start < 0:
            continue
        u, v = vertices[vertex, 0], vertices[vertex, 1]
        total = ZERO
        nx = ny = nz = 0.0
        corner = start
        while True:
            f = corner // 3
            if f < mesh.real_faces:
                a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
                if records.shape[0] > 0:
                    own = record_of(f, records)
                else:
                    # The pixel in which the face lies is the one nearest to its centroid.
                    at_a, at_b = (vertices[a, 0], vertices[a, 1]), (vertices[b, 0], vertices[b, 1])
                    at_c = vertices[c, 0], vertices[c, 1]
                    own = sample_record(at_a, at_b, at_c, normal_map, regularisation)
                centre_u = (vertices[a, 0] + vertices[b, 0] + vertices[c, 0]) / 3.0
                centre_v = (vertices[a, 1] + vertices[b, 1] + vertices[c, 1]) / 3.0
                total = with_face(total, own, centre_u, centre_v, u, v, camera)
                nx += own.area * own.nx
                ny += own.area * own.ny
                nz += own.area * own.nz
            corner = turn(corner, mesh.opposite)
            if corner == start:
                break
        quadric = restrict_to_screen(total, facing(nx, ny, nz, u, v, camera), u, v, camera)
        for k in range(QUADRIC):
            quadrics[vertex, k] = quadric[k]
