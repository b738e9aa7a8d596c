"""Kernel of :mod:`normalmesh.integration.face_means`."""

import math

import numpy as np

from normalmesh.decimation._quadrics import normal_at, sample_pixel
from normalmesh.mesh._face_pixels import FAST, LISTED, ROOM, U, V, X, Y, Z, list_pixel
from normalmesh.mesh._raster import by_height, face_edges, first_row, row_span
from normalmesh.normals._normal_map import ray
from normalmesh.runtime.kernels import inner, kernel

#: Numbers that are summed over the pixels of a face: 1; n; slopes ∂_u z, ∂_v z of the pixel's plane at the face's
#: centroid; ⟨r,n⟩⁻²; ⟨r,n⟩², ⟨r,n⟩⟨n,τ_u⟩, ⟨r,n⟩⟨n,τ_v⟩.
SUMS = 10
#: What a row of the table holds beside the means: area, centroid, and cosine between mean normal and viewing ray there.
AREA, CENTRE_U, CENTRE_V, COSINE = 10, 11, 12, 13
COLUMNS = 14
#: Faces below this many pixels are sampled more finely than at pixel centres: few centres say little about an area.
SMALL_FACE = 64.0
#: Share of ⟨r,n⟩ at a pixel that must be left at the centroid: beyond it the pixel's plane is seen from behind.
LEAST_FACING = 0.2
#: Where a list of pixels says how many samples of each the face owns.
SHARE = LISTED * ROOM


@inner(forceinline=True, fastmath=FAST)
def along_ray(nx, ny, nz, u, v, frame):
    """⟨n, r(u, v)⟩."""
    rx, ry, rz = ray(u, v, frame)
    return nx * rx + ny * ry + nz * rz


@inner(forceinline=True, fastmath=FAST)
def pixel_plane(n, u, v, centre_u, centre_v, frame):
    """What a pixel at (u, v) says at the centroid of its face: ⟨n,τ_u⟩, ⟨n,τ_v⟩, ⟨r,n⟩ there, and ⟨r,n⟩ at (u, v)."""
    nx, ny, nz = n
    w = along_ray(nx, ny, nz, u, v, frame)
    at_centre = along_ray(nx, ny, nz, centre_u, centre_v, frame)
    if at_centre * w < LEAST_FACING * w * w:
        at_centre = w
    along_u = nx * frame[0, 0] + ny * frame[0, 1] + nz * frame[0, 2]
    along_v = nx * frame[1, 0] + ny * frame[1, 1] + nz * frame[1, 2]
    return along_u, along_v, at_centre, w


@inner(forceinline=True)
def sampled_gradient(centre_u, centre_v, normals, mask, frame):
    """What the pixel nearest to the centroid says of a face without pixels: 1, the slopes ∂_u z and ∂_v z, and ⟨r,n⟩⁻².

    All zero where there is none.
    """
    row, column = sample_pixel(mask, centre_u, centre_v)
    if row < 0:
        return 0.0, 0.0, 0.0, 0.0
    n = normal_at(normals, row, column)
    along_u, along_v, at_centre, w = pixel_plane(n, column + 0.5, row + 0.5, centre_u, centre_v, frame)
    return 1.0, -along_u / at_centre, -along_v / at_centre, 1.0 / (w * w)


@inner(forceinline=True)
def overlap(start, end, first, last):
    """How many of the columns start … end − 1 are among first … last − 1."""
    return max(min(end, last) - max(start, first), 0)


@inner(error_model="numpy", forceinline=True, fastmath=FAST)
def with_pixel(sums, weight, n, u, v, centre_u, centre_v, frame):
    """The sums of a face with this centroid, with a pixel added to them."""
    nx, ny, nz = n
    along_u, along_v, at_centre, w = pixel_plane(n, u, v, centre_u, centre_v, frame)
    # One division for both reciprocals.
    both = 1.0 / (w * at_centre)
    slope = -weight * w * both
    inverse = at_centre * both
    facing = weight * w
    return (
        sums[0] + weight,
        sums[1] + weight * nx,
        sums[2] + weight * ny,
        sums[3] + weight * nz,
        sums[4] + slope * along_u,
        sums[5] + slope * along_v,
        sums[6] + weight * inverse * inverse,
        sums[7] + facing * w,
        sums[8] + facing * along_u,
        sums[9] + facing * along_v,
    )


@inner(error_model="numpy", fastmath=FAST)
def with_pixels(sums, pixels, count, centre_u, centre_v, frame):
    """The sums of a face with a list of pixels added to them."""
    for i in range(count):
        n = np.float64(pixels[X + i]), np.float64(pixels[Y + i]), np.float64(pixels[Z + i])
        u, v = np.float64(pixels[U + i]) + 0.5, np.float64(pixels[V + i]) + 0.5
        sums = with_pixel(sums, np.float64(pixels[SHARE + i]), n, u, v, centre_u, centre_v, frame)
    return sums


@inner(error_model="numpy")
def face_sums(a, b, c, fine, normals, mask, frame, pixels):
    """Sums over the foreground pixels of the face abc, or of the one nearest to its centroid if it owns none.

    ``fine`` × ``fine`` samples a pixel, 1 or 2; the corners are given in samples. Each pixel is looked at once, and
    counts as many times as the face owns samples of it.
    """
    rows, columns = fine * mask.shape[0], fine * mask.shape[1]
    top, middle, bottom = by_height(a, b, c)
    edges = face_edges(top, middle, bottom)
    start_row, middle_row, end_row = first_row(top[1], rows), first_row(middle[1], rows), first_row(bottom[1], rows)
    centre_u, centre_v = (a[0] + b[0] + c[0]) / (3.0 * fine), (a[1] + b[1] + c[1]) / (3.0 * fine)
    sums = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    count = 0
    for row in range(start_row // fine, (end_row + fine - 1) // fine):
        # The samples of this row of pixels that the face owns: two spans, or one where it begins or ends in between.
        first, last = max(fine * row, start_row), min(fine * row + fine, end_row) - 1
        # A sliver between two rows of samples owns none.
        if first > last:
            continue
        start, end = row_span(edges, first, middle_row, columns)
        other_start, other_end = end, end
        if last > first:
            other_start, other_end = row_span(edges, last, middle_row, columns)
        begin = min(start, other_start) // fine
        for column in range(begin, (max(end, other_end) + fine - 1) // fine):
            left, right = fine * column, fine * column + fine
            owned = overlap(start, end, left, right) + overlap(other_start, other_end, left, right)
            if count == ROOM:
                sums = with_pixels(sums, pixels, count, centre_u, centre_v, frame)
                count = 0
            pixels[SHARE + count] = owned
            count = list_pixel(row, column, normals, mask, pixels, count)
    sums = with_pixels(sums, pixels, count, centre_u, centre_v, frame)
    if sums[0] == 0.0:
        row, column = sample_pixel(mask, centre_u, centre_v)
        if row >= 0:
            n = normal_at(normals, row, column)
            sums = with_pixel(sums, 1.0, n, column + 0.5, row + 0.5, centre_u, centre_v, frame)
    return sums


@kernel(error_model="numpy")
def face_means(first, last, vertices, faces, samples, normals, mask, frame, table):
    """Fill rows of the table (M, COLUMNS): means over the foreground pixels of faces, and how they lie.

    The first number of a row is the count of what was summed. Small faces take ``samples`` × ``samples`` samples of
    each pixel, 1 or 2.
    """
    pixels = np.empty((LISTED + 1) * ROOM, np.float32)
    for f in range(first, last):
        i, j, k = faces[f, 0], faces[f, 1], faces[f, 2]
        a, b, c = (vertices[i, 0], vertices[i, 1]), (vertices[j, 0], vertices[j, 1]), (vertices[k, 0], vertices[k, 1])
        area = 0.5 * ((b[1] - a[1]) * (c[0] - a[0]) - (b[0] - a[0]) * (c[1] - a[1]))
        u, v = (a[0] + b[0] + c[0]) / 3.0, (a[1] + b[1] + c[1]) / 3.0
        fine = samples if area < SMALL_FACE else 1
        a, b, c = (fine * a[0], fine * a[1]), (fine * b[0], fine * b[1]), (fine * c[0], fine * c[1])
        sums = face_sums(a, b, c, fine, normals, mask, frame, pixels)
        scale = 1.0 / max(sums[0], 1.0)
        table[f, 0] = sums[0]
        for n in range(1, SUMS):
            table[f, n] = sums[n] * scale
        rx, ry, rz = ray(u, v, frame)
        lengths = (sums[1] ** 2 + sums[2] ** 2 + sums[3] ** 2) * (rx * rx + ry * ry + rz * rz)
        cosine = abs(sums[1] * rx + sums[2] * ry + sums[3] * rz) / math.sqrt(max(lengths, 1e-300))
        table[f, AREA], table[f, CENTRE_U], table[f, CENTRE_V], table[f, COSINE] = area, u, v, cosine
