"""Kernels of :mod:`normalmesh.decimation.quadrics`: what the pixels of a face say about its vertices and edges.

A *face record* is 14 numbers: the normal n_f (3), the area on the surface A³_f (1), and the quadric around the
centroid, ``Q_f(δx) = ⟨δx, A δx⟩ + 2⟨b, δx⟩ + c``: A as xx, xy, xz, yy, yz, zz (6), b (3) and c (1).
A *screen quadric* is 6 numbers around a vertex, ``Q̃(δu) = ⟨δu, A δu⟩ + 2⟨b, δu⟩ + c``: A as uu, uv, vv (3), b (2), c.
"""

import math

import numpy as np

from normalmesh.mesh._closed_mesh import turn
from normalmesh.mesh._face_pixels import FAST, LISTED, ROOM, U, V, X, Y, Z, list_pixels
from normalmesh.mesh._raster import by_height, face_edges, first_row
from normalmesh.normals._normal_map import CLAMP_COSINE, CLAMP_SINE, ray, to_viewer
from normalmesh.runtime.kernels import inner, kernel


@inner(error_model="numpy")
def jacobian(nx, ny, nz, u, v, frame, scale):
    """J(n) at the screen position (u, v), eqs. (7) and (8), as six numbers: column ∂_u, then column ∂_v."""
    rx, ry, rz = ray(u, v, frame)
    # One division for both slopes.
    inverse = 1.0 / (nx * rx + ny * ry + nz * rz)
    slope_u = (nx * frame[0, 0] + ny * frame[0, 1] + nz * frame[0, 2]) * inverse
    slope_v = (nx * frame[1, 0] + ny * frame[1, 1] + nz * frame[1, 2]) * inverse
    return (
        (frame[0, 0] - slope_u * rx) * scale,
        (frame[0, 1] - slope_u * ry) * scale,
        (frame[0, 2] - slope_u * rz) * scale,
        (frame[1, 0] - slope_v * rx) * scale,
        (frame[1, 1] - slope_v * ry) * scale,
        (frame[1, 2] - slope_v * rz) * scale,
    )


@inner(error_model="numpy")
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


@inner(forceinline=True)
def normal_at(normals, row, column):
    """The normal of a pixel as three float64."""
    return np.float64(normals[row, column, 0]), np.float64(normals[row, column, 1]), np.float64(normals[row, column, 2])


@inner(error_model="numpy")
def face_record(a, b, c, vertices, normals, mask, frame, towards_viewer, scale, regularisation, pixels):
    """The record of the face abc from the pixels that it owns: eqs. (11) to (13), supplement B."""
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
        count, row, column = list_pixels(edges, row, column, middle_row, end_row, normals, mask, pixels)
        nx, ny, nz = _with_normals(nx, ny, nz, pixels, count)
        total += count
    if total == 0:
        return sample_record(at_a, at_b, at_c, normals, mask, frame, towards_viewer, scale, regularisation)
    nx, ny, nz = facing(nx, ny, nz, centre_u, centre_v, frame, towards_viewer)
    j = jacobian(nx, ny, nz, centre_u, centre_v, frame, scale)
    sums = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    if total == count:
        sums = _with_pixels(sums, pixels, count, centre_u, centre_v, j, regularisation)
    else:
        row, column = start_row, 0
        while row < end_row:
            count, row, column = list_pixels(edges, row, column, middle_row, end_row, normals, mask, pixels)
            sums = _with_pixels(sums, pixels, count, centre_u, centre_v, j, regularisation)
    return _finished_record(at_a, at_b, at_c, nx, ny, nz, j, sums, total)


@inner
def sample_record(at_a, at_b, at_c, normals, mask, frame, towards_viewer, scale, regularisation):
    """The record of a face that owns no pixel, from the one nearest to its centroid; (u, v) of its corners."""
    centre_u, centre_v = (at_a[0] + at_b[0] + at_c[0]) / 3.0, (at_a[1] + at_b[1] + at_c[1]) / 3.0
    row, column = sample_pixel(mask, centre_u, centre_v)
    sums = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    if row < 0:
        nx, ny, nz = facing(0.0, 0.0, 0.0, centre_u, centre_v, frame, towards_viewer)
        j = jacobian(nx, ny, nz, centre_u, centre_v, frame, scale)
        return _finished_record(at_a, at_b, at_c, nx, ny, nz, j, sums, 1)
    n = normal_at(normals, row, column)
    nx, ny, nz = facing(n[0], n[1], n[2], centre_u, centre_v, frame, towards_viewer)
    j = jacobian(nx, ny, nz, centre_u, centre_v, frame, scale)
    sums = _with_pixel(sums, n, centre_u - (column + 0.5), centre_v - (row + 0.5), j, regularisation)
    return _finished_record(at_a, at_b, at_c, nx, ny, nz, j, sums, 1)


@inner
def _finished_record(at_a, at_b, at_c, nx, ny, nz, j, sums, pixels):
    """Normal, area on the surface, and the sums over the pixels as a mean times that area."""
    area = 0.5 * ((at_b[1] - at_a[1]) * (at_c[0] - at_a[0]) - (at_b[0] - at_a[0]) * (at_c[1] - at_a[1]))
    metric_uu = j[0] * j[0] + j[1] * j[1] + j[2] * j[2]
    metric_uv = j[0] * j[3] + j[1] * j[4] + j[2] * j[5]
    metric_vv = j[3] * j[3] + j[4] * j[4] + j[5] * j[5]
    surface_area = math.sqrt(max(metric_uu * metric_vv - metric_uv * metric_uv, 0.0)) * area
    w = surface_area / pixels
    return (
        nx, ny, nz, surface_area, w * sums[0], w * sums[1], w * sums[2], w * sums[3], w * sums[4], w * sums[5],
        w * sums[6], w * sums[7], w * sums[8], w * sums[9],
    )  # fmt: skip


@inner(fastmath=FAST, error_model="numpy")
def _with_normals(sum_x, sum_y, sum_z, pixels, count):
    """A sum of normals with those of a list of pixels added to it."""
    for i in range(count):
        sum_x += pixels[X + i]
        sum_y += pixels[Y + i]
        sum_z += pixels[Z + i]
    return sum_x, sum_y, sum_z


@inner(fastmath=FAST, error_model="numpy")
def _with_pixels(sums, pixels, count, centre_u, centre_v, j, regularisation):
    """A record's quadric with those of a list of pixels added to it."""
    for i in range(count):
        n = np.float64(pixels[X + i]), np.float64(pixels[Y + i]), np.float64(pixels[Z + i])
        du, dv = centre_u - (np.float64(pixels[U + i]) + 0.5), centre_v - (np.float64(pixels[V + i]) + 0.5)
        sums = _with_pixel(sums, n, du, dv, j, regularisation)
    return sums


@inner(fastmath=FAST, error_model="numpy", forceinline=True)
def _with_pixel(sums, n, du, dv, j, regularisation):
    """A record's quadric with ‖J (c_f − u_p) + δx‖² in the metric M_p = n_p n_pᵀ + λ·1 added to it."""
    nx, ny, nz = n
    x, y, z = j[0] * du + j[3] * dv, j[1] * du + j[4] * dv, j[2] * du + j[5] * dv
    off = nx * x + ny * y + nz * z
    return (
        sums[0] + (nx * nx + regularisation),
        sums[1] + nx * ny,
        sums[2] + nx * nz,
        sums[3] + (ny * ny + regularisation),
        sums[4] + ny * nz,
        sums[5] + (nz * nz + regularisation),
        sums[6] + (off * nx + regularisation * x),
        sums[7] + (off * ny + regularisation * y),
        sums[8] + (off * nz + regularisation * z),
        sums[9] + (off * off + regularisation * (x * x + y * y + z * z)),
    )


@inner
def record_of(f, records):
    """A face's record as a tuple: views of arrays cost more than the arithmetic."""
    return (
        records[f, 0], records[f, 1], records[f, 2], records[f, 3], records[f, 4], records[f, 5], records[f, 6],
        records[f, 7], records[f, 8], records[f, 9], records[f, 10], records[f, 11], records[f, 12], records[f, 13],
    )  # fmt: skip


@inner(error_model="numpy", fastmath={"contract"}, forceinline=True)
def with_face(total, record, a, b, c, vertices, u, v, frame, scale):
    """A vertex's quadric in space, total (10), with that of the face abc, moved to the vertex at (u, v), added."""
    centre_u = (vertices[a, 0] + vertices[b, 0] + vertices[c, 0]) / 3.0
    centre_v = (vertices[a, 1] + vertices[b, 1] + vertices[c, 1]) / 3.0
    j = jacobian(record[0], record[1], record[2], centre_u, centre_v, frame, scale)
    du, dv = u - centre_u, v - centre_v
    x, y, z = j[0] * du + j[3] * dv, j[1] * du + j[4] * dv, j[2] * du + j[5] * dv
    ax = record[4] * x + record[5] * y + record[6] * z
    ay = record[5] * x + record[7] * y + record[8] * z
    az = record[6] * x + record[8] * y + record[9] * z
    return (
        total[0] + record[4],
        total[1] + record[5],
        total[2] + record[6],
        total[3] + record[7],
        total[4] + record[8],
        total[5] + record[9],
        total[6] + (record[10] + ax),
        total[7] + (record[11] + ay),
        total[8] + (record[12] + az),
        total[9] + (record[13] + 2.0 * (record[10] * x + record[11] * y + record[12] * z) + (ax * x + ay * y + az * z)),
    )


@inner
def restrict_to_screen(total, nx, ny, nz, u, v, frame, scale):
    """Q̃_v(δu) = Q_v(J_v δu), eq. (15), as six numbers."""
    j = jacobian(nx, ny, nz, u, v, frame, scale)
    ux = total[0] * j[0] + total[1] * j[1] + total[2] * j[2]
    uy = total[1] * j[0] + total[3] * j[1] + total[4] * j[2]
    uz = total[2] * j[0] + total[4] * j[1] + total[5] * j[2]
    vx = total[0] * j[3] + total[1] * j[4] + total[2] * j[5]
    vy = total[1] * j[3] + total[3] * j[4] + total[4] * j[5]
    vz = total[2] * j[3] + total[4] * j[4] + total[5] * j[5]
    return (
        j[0] * ux + j[1] * uy + j[2] * uz,
        j[3] * ux + j[4] * uy + j[5] * uz,
        j[3] * vx + j[4] * vy + j[5] * vz,
        j[0] * total[6] + j[1] * total[7] + j[2] * total[8],
        j[3] * total[6] + j[4] * total[7] + j[5] * total[8],
        total[9],
    )


@kernel(error_model="numpy")
def face_records(
    first, last, vertices, faces, changed, normals, mask, frame, towards_viewer, scale, regularisation, records
):  # fmt: skip
    """Renew the records (M, 14) of the faces that changed."""
    pixels = np.empty(LISTED * ROOM, np.float32)
    for f in range(first, last):
        if changed[f]:
            record = face_record(
                faces[f, 0], faces[f, 1], faces[f, 2], vertices, normals, mask, frame, towards_viewer, scale,
                regularisation, pixels,
            )  # fmt: skip
            for k in range(14):
                records[f, k] = record[k]


@kernel
def vertex_quadrics(
    first, last, vertices, faces, real_faces, opposite, corner_of, normals, mask, frame, towards_viewer, scale,
    regularisation, records, quadrics,
):  # fmt: skip
    """Fill the screen quadrics (N, 6) of vertices, eqs. (12), (14), (15).

    From the records of the faces, or straight from the pixels of a start mesh where ``records`` is empty: that is too
    large to keep them.
    """
    for vertex in range(first, last):
        start = np.int64(corner_of[vertex])
        if start < 0:
            continue
        u, v = vertices[vertex, 0], vertices[vertex, 1]
        total = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        nx = ny = nz = 0.0
        corner = start
        while True:
            f = corner // 3
            if f < real_faces:
                a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
                if records.shape[0] > 0:
                    own = record_of(f, records)
                else:
                    # The pixel in which the face lies is the one nearest to its centroid.
                    at_a, at_b = (vertices[a, 0], vertices[a, 1]), (vertices[b, 0], vertices[b, 1])
                    at_c = vertices[c, 0], vertices[c, 1]
                    own = sample_record(at_a, at_b, at_c, normals, mask, frame, towards_viewer, scale, regularisation)
                total = with_face(total, own, a, b, c, vertices, u, v, frame, scale)
                nx += own[3] * own[0]
                ny += own[3] * own[1]
                nz += own[3] * own[2]
            corner = turn(corner, opposite)
            if corner == start:
                break
        nx, ny, nz = facing(nx, ny, nz, u, v, frame, towards_viewer)
        quadric = restrict_to_screen(total, nx, ny, nz, u, v, frame, scale)
        for k in range(6):
            quadrics[vertex, k] = quadric[k]
