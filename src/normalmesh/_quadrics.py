"""Kernels of :mod:`normalmesh.quadrics`: what the pixels of a face say about its vertices and edges.

A *face record* is 14 numbers: the normal n_f (3), the area on the surface A³_f (1), and the quadric around the
centroid, ``Q_f(δx) = ⟨δx, A δx⟩ + 2⟨b, δx⟩ + c``: A as xx, xy, xz, yy, yz, zz (6), b (3) and c (1).
A *screen quadric* is 6 numbers around a vertex, ``Q̃(δu) = ⟨δu, A δu⟩ + 2⟨b, δu⟩ + c``: A as uu, uv, vv (3), b (2), c.
"""

import math

import numpy as np
from numba import njit

from normalmesh._closedmesh import turn
from normalmesh._inner import inner
from normalmesh._normalmap import CLAMP_COSINE, CLAMP_SINE, to_viewer
from normalmesh._raster import by_height, first_row, row_span


@inner
def jacobian(nx, ny, nz, u, v, frame, scale):
    """J(n) at the screen position (u, v), eqs. (7) and (8), as six numbers: column ∂_u, then column ∂_v."""
    rx = frame[2, 0] + u * frame[3, 0] + v * frame[4, 0]
    ry = frame[2, 1] + u * frame[3, 1] + v * frame[4, 1]
    rz = frame[2, 2] + u * frame[3, 2] + v * frame[4, 2]
    along = nx * rx + ny * ry + nz * rz
    slope_u = (nx * frame[0, 0] + ny * frame[0, 1] + nz * frame[0, 2]) / along
    slope_v = (nx * frame[1, 0] + ny * frame[1, 1] + nz * frame[1, 2]) / along
    return (
        (frame[0, 0] - slope_u * rx) * scale,
        (frame[0, 1] - slope_u * ry) * scale,
        (frame[0, 2] - slope_u * rz) * scale,
        (frame[1, 0] - slope_v * rx) * scale,
        (frame[1, 1] - slope_v * ry) * scale,
        (frame[1, 2] - slope_v * rz) * scale,
    )


@inner
def facing(nx, ny, nz, u, v, frame, towards_viewer):
    """A sum of normals as a unit normal, at most 85° from the viewing ray."""
    rx, ry, rz = to_viewer(u, v, frame, towards_viewer)
    length = math.sqrt(nx * nx + ny * ny + nz * nz)
    if length < 1e-12:
        return rx, ry, rz
    nx, ny, nz = nx / length, ny / length, nz / length
    cosine = nx * rx + ny * ry + nz * rz
    if cosine < CLAMP_COSINE:
        nx, ny, nz = nx - cosine * rx, ny - cosine * ry, nz - cosine * rz
        length = math.sqrt(nx * nx + ny * ny + nz * nz)
        if length < 1e-12:
            return rx, ry, rz
        scale = CLAMP_SINE / length
        nx, ny, nz = CLAMP_COSINE * rx + scale * nx, CLAMP_COSINE * ry + scale * ny, CLAMP_COSINE * rz + scale * nz
    return nx, ny, nz


@inner
def sample_pixel(mask, u, v):
    """The foreground pixel nearest to the one under (u, v), within two pixels; (−1, −1) where there is none."""
    row, column = math.floor(v), math.floor(u)
    for reach in range(3):
        for i in range(row - reach, row + reach + 1):
            for j in range(column - reach, column + reach + 1):
                if 0 <= i < mask.shape[0] and 0 <= j < mask.shape[1] and mask[i, j]:
                    return i, j
    return -1, -1


@inner
def face_record(vertices, faces, f, normals, mask, frame, towards_viewer, scale, regularisation, record):
    """Fill the record of face f from the pixels that it owns: eqs. (11) to (13), supplement B."""
    rows, columns = mask.shape
    a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
    top, middle, bottom = by_height(
        (vertices[a, 0], vertices[a, 1]), (vertices[b, 0], vertices[b, 1]), (vertices[c, 0], vertices[c, 1])
    )
    start_row, middle_row, end_row = first_row(top[1], rows), first_row(middle[1], rows), first_row(bottom[1], rows)
    sum_x, sum_y, sum_z = 0.0, 0.0, 0.0
    pixels = 0
    for row in range(start_row, end_row):
        start, end = row_span(top, middle, bottom, row, middle_row, columns)
        for column in range(start, end):
            # Normals are zero outside the mask.
            pixels += mask[row, column]
            sum_x += normals[row, column, 0]
            sum_y += normals[row, column, 1]
            sum_z += normals[row, column, 2]

    centre_u = (vertices[a, 0] + vertices[b, 0] + vertices[c, 0]) / 3.0
    centre_v = (vertices[a, 1] + vertices[b, 1] + vertices[c, 1]) / 3.0
    sampled_row, sampled_column = -1, -1
    if pixels == 0:
        sampled_row, sampled_column = sample_pixel(mask, centre_u, centre_v)
        if sampled_row >= 0:
            sum_x, sum_y, sum_z = (
                np.float64(normals[sampled_row, sampled_column, 0]),
                np.float64(normals[sampled_row, sampled_column, 1]),
                np.float64(normals[sampled_row, sampled_column, 2]),
            )
    nx, ny, nz = facing(sum_x, sum_y, sum_z, centre_u, centre_v, frame, towards_viewer)
    j = jacobian(nx, ny, nz, centre_u, centre_v, frame, scale)
    record[:] = 0.0
    if pixels == 0:
        if sampled_row >= 0:
            _add_pixel(normals, sampled_row, sampled_column, centre_u, centre_v, j, regularisation, record)
            pixels = 1
    else:
        for row in range(start_row, end_row):
            start, end = row_span(top, middle, bottom, row, middle_row, columns)
            for column in range(start, end):
                if mask[row, column]:
                    _add_pixel(normals, row, column, centre_u, centre_v, j, regularisation, record)

    _finish_record(vertices, a, b, c, nx, ny, nz, j, pixels, record)


@inner(inline="always")
def start_record(vertices, faces, f, normals, frame, towards_viewer, scale, regularisation, record):
    """The record of a face that lies within one foreground pixel, as all faces of a start mesh do."""
    a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
    centre_u = (vertices[a, 0] + vertices[b, 0] + vertices[c, 0]) / 3.0
    centre_v = (vertices[a, 1] + vertices[b, 1] + vertices[c, 1]) / 3.0
    row, column = math.floor(centre_v), math.floor(centre_u)
    nx = np.float64(normals[row, column, 0])
    ny = np.float64(normals[row, column, 1])
    nz = np.float64(normals[row, column, 2])
    nx, ny, nz = facing(nx, ny, nz, centre_u, centre_v, frame, towards_viewer)
    j = jacobian(nx, ny, nz, centre_u, centre_v, frame, scale)
    record[:] = 0.0
    _add_pixel(normals, row, column, centre_u, centre_v, j, regularisation, record)
    _finish_record(vertices, a, b, c, nx, ny, nz, j, 1, record)


@inner
def _finish_record(vertices, a, b, c, nx, ny, nz, j, pixels, record):
    """Turn the sums over the pixels into a mean, times the area on the surface; normal and area in front."""
    area = 0.5 * (
        (vertices[b, 1] - vertices[a, 1]) * (vertices[c, 0] - vertices[a, 0])
        - (vertices[b, 0] - vertices[a, 0]) * (vertices[c, 1] - vertices[a, 1])
    )
    metric_uu = j[0] * j[0] + j[1] * j[1] + j[2] * j[2]
    metric_uv = j[0] * j[3] + j[1] * j[4] + j[2] * j[5]
    metric_vv = j[3] * j[3] + j[4] * j[4] + j[5] * j[5]
    surface_area = math.sqrt(max(metric_uu * metric_vv - metric_uv * metric_uv, 0.0)) * area
    if pixels > 0:
        weight = surface_area / pixels
        for k in range(4, 14):
            record[k] *= weight
    record[0], record[1], record[2], record[3] = nx, ny, nz, surface_area


@inner
def _add_pixel(normals, row, column, centre_u, centre_v, j, regularisation, record):
    """Add ‖J (c_f − u_p) + δx‖² in the metric M_p = n_p n_pᵀ + λ·1 to a record's quadric."""
    nx = np.float64(normals[row, column, 0])
    ny = np.float64(normals[row, column, 1])
    nz = np.float64(normals[row, column, 2])
    du, dv = centre_u - (column + 0.5), centre_v - (row + 0.5)
    x, y, z = j[0] * du + j[3] * dv, j[1] * du + j[4] * dv, j[2] * du + j[5] * dv
    off = nx * x + ny * y + nz * z
    record[4] += nx * nx + regularisation
    record[5] += nx * ny
    record[6] += nx * nz
    record[7] += ny * ny + regularisation
    record[8] += ny * nz
    record[9] += nz * nz + regularisation
    record[10] += off * nx + regularisation * x
    record[11] += off * ny + regularisation * y
    record[12] += off * nz + regularisation * z
    record[13] += off * off + regularisation * (x * x + y * y + z * z)


@inner(inline="always")
def add_to_vertex(record, vertices, faces, f, u, v, frame, scale, total):
    """Add a face's quadric, moved to the vertex at (u, v), to the vertex's quadric in space, total (10)."""
    a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
    centre_u = (vertices[a, 0] + vertices[b, 0] + vertices[c, 0]) / 3.0
    centre_v = (vertices[a, 1] + vertices[b, 1] + vertices[c, 1]) / 3.0
    j = jacobian(record[0], record[1], record[2], centre_u, centre_v, frame, scale)
    du, dv = u - centre_u, v - centre_v
    x, y, z = j[0] * du + j[3] * dv, j[1] * du + j[4] * dv, j[2] * du + j[5] * dv
    ax = record[4] * x + record[5] * y + record[6] * z
    ay = record[5] * x + record[7] * y + record[8] * z
    az = record[6] * x + record[8] * y + record[9] * z
    for k in range(6):
        total[k] += record[4 + k]
    total[6] += record[10] + ax
    total[7] += record[11] + ay
    total[8] += record[12] + az
    total[9] += record[13] + 2.0 * (record[10] * x + record[11] * y + record[12] * z) + (ax * x + ay * y + az * z)


@inner(inline="always")
def restrict_to_screen(total, nx, ny, nz, u, v, frame, scale, quadric):
    """Q̃_v(δu) = Q_v(J_v δu), eq. (15)."""
    j = jacobian(nx, ny, nz, u, v, frame, scale)
    ux = total[0] * j[0] + total[1] * j[1] + total[2] * j[2]
    uy = total[1] * j[0] + total[3] * j[1] + total[4] * j[2]
    uz = total[2] * j[0] + total[4] * j[1] + total[5] * j[2]
    vx = total[0] * j[3] + total[1] * j[4] + total[2] * j[5]
    vy = total[1] * j[3] + total[3] * j[4] + total[4] * j[5]
    vz = total[2] * j[3] + total[4] * j[4] + total[5] * j[5]
    quadric[0] = j[0] * ux + j[1] * uy + j[2] * uz
    quadric[1] = j[3] * ux + j[4] * uy + j[5] * uz
    quadric[2] = j[3] * vx + j[4] * vy + j[5] * vz
    quadric[3] = j[0] * total[6] + j[1] * total[7] + j[2] * total[8]
    quadric[4] = j[3] * total[6] + j[4] * total[7] + j[5] * total[8]
    quadric[5] = total[9]


@njit(cache=True, nogil=True)
def face_records(
    first, last, vertices, faces, changed, normals, mask, frame, towards_viewer, scale, regularisation, records
):  # fmt: skip
    """Renew the records (M, 14) of the faces that changed."""
    for f in range(first, last):
        if changed[f]:
            face_record(vertices, faces, f, normals, mask, frame, towards_viewer, scale, regularisation, records[f])


@njit(cache=True, nogil=True)
def vertex_quadrics(
    first, last, vertices, faces, real_faces, opposite, corner_of, normals, mask, frame, towards_viewer, scale,
    regularisation, records, quadrics,
):  # fmt: skip
    """Fill the screen quadrics (N, 6) of vertices, eqs. (12), (14), (15).

    From the records of the faces, or straight from the pixels of a start mesh where ``records`` is empty: that is too
    large to keep them.
    """
    total, own = np.empty(10), np.empty(14)
    for vertex in range(first, last):
        start = np.int64(corner_of[vertex])
        if start < 0:
            continue
        u, v = vertices[vertex, 0], vertices[vertex, 1]
        for k in range(10):
            total[k] = 0.0
        nx = ny = nz = 0.0
        corner = start
        while True:
            f = corner // 3
            if f < real_faces:
                if records.shape[0] > 0:
                    for k in range(14):
                        own[k] = records[f, k]
                else:
                    start_record(vertices, faces, f, normals, frame, towards_viewer, scale, regularisation, own)
                add_to_vertex(own, vertices, faces, f, u, v, frame, scale, total)
                nx += own[3] * own[0]
                ny += own[3] * own[1]
                nz += own[3] * own[2]
            corner = turn(corner, opposite)
            if corner == start:
                break
        nx, ny, nz = facing(nx, ny, nz, u, v, frame, towards_viewer)
        restrict_to_screen(total, nx, ny, nz, u, v, frame, scale, quadrics[vertex])
