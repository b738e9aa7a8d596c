"""Kernel of :mod:`normalmesh.facets.face_means`."""

import math
from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Float, Int32
from normalmesh.mesh._face_pixels import CAPACITY, LIST_SIZE, U, V, X, Y, Z, list_pixel
from normalmesh.mesh._raster import by_height, face_edges, first_row, row_span
from normalmesh.normals._camera import MIN_FACING, products, ray
from normalmesh.normals._normal_map import nearest_pixel, normal_at
from normalmesh.runtime.kernels import inner, kernel

#: Columns of the table of means. First those that determine the plane of a face: means over its samples of the slopes
#: ∂_u z, ∂_v z of the pixel's plane at the face's centroid, and of ⟨r,n⟩⁻²; the bulge, the area and the centroid.
SLOPE_U, SLOPE_V, INVERSE, BULGE, AREA, CENTRE_U, CENTRE_V = range(7)
#: The cosine between mean normal and viewing ray at the centroid, the number of samples, and further means: of n; of
#: ⟨r,n⟩², ⟨r,n⟩⟨n,τ_u⟩, ⟨r,n⟩⟨n,τ_v⟩.
COSINE, COUNT, NORMAL_X, NORMAL_Y, NORMAL_Z, TIGHT, TIGHT_U, TIGHT_V = range(7, 15)
PLANE_COLUMNS, COLUMNS = 7, 15
#: Faces below this area (px²) are sampled more finely than at pixel centres, which are too few there.
SMALL_FACE = 64.0
#: Offset of the number of samples that the face owns of each pixel, in a list of pixels.
SHARE = LIST_SIZE


class Triangles(NamedTuple):
    """Vertices (N, 2) on the screen, in pixels, and faces (M, 3)."""

    vertices: Float
    faces: Int32


class FaceSums(NamedTuple):
    """Sums over the samples of a face: those whose means the table has, then of the position (u, v), and of its product
    with the slopes.
    """

    number: float
    normal_x: float
    normal_y: float
    normal_z: float
    slope_u: float
    slope_v: float
    inverse: float
    tight: float
    tight_u: float
    tight_v: float
    place_u: float
    place_v: float
    moment: float


ZERO = FaceSums(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@inner(forceinline=True)
def pixel_plane(n, u, v, centre_u, centre_v, camera):
    """Return ⟨n,τ_u⟩, ⟨n,τ_v⟩ and ⟨r,n⟩ of a pixel at the centroid of its face, and ⟨r,n⟩ at the pixel (u, v)."""
    nx, ny, nz = n
    along_u, along_v, w = products(nx, ny, nz, u, v, camera)
    _, _, at_centre = products(nx, ny, nz, centre_u, centre_v, camera)
    if at_centre * w < MIN_FACING * w * w:
        at_centre = w
    return along_u, along_v, at_centre, w


@inner(forceinline=True)
def sampled_gradient(centre_u, centre_v, normal_map):
    """Return the sums of a face without pixels, from the pixel nearest to its centroid: 1, the slopes, and ⟨r,n⟩⁻².

    All are zero if there is no pixel nearby.
    """
    row, column = nearest_pixel(normal_map.mask, centre_u, centre_v)
    if row < 0:
        return 0.0, 0.0, 0.0, 0.0
    n = normal_at(normal_map.normals, row, column)
    along_u, along_v, at_centre, w = pixel_plane(n, column + 0.5, row + 0.5, centre_u, centre_v, normal_map.camera)
    return 1.0, -along_u / at_centre, -along_v / at_centre, 1.0 / (w * w)


@inner(forceinline=True)
def overlap(start, end, first, last):
    """Return the number of columns start … end − 1 that are among first … last − 1."""
    return max(min(end, last) - max(start, first), 0)


@inner(forceinline=True)
def with_pixel(sums, weight, n, u, v, centre_u, centre_v, camera):
    """Add a pixel to the sums of a face with this centroid."""
    nx, ny, nz = n
    along_u, along_v, at_centre, w = pixel_plane(n, u, v, centre_u, centre_v, camera)
    # One division for both reciprocals.
    both = 1.0 / (w * at_centre)
    slope = -weight * w * both
    slope_u, slope_v = slope * along_u, slope * along_v
    inverse = at_centre * both
    facing = weight * w
    return FaceSums(
        sums.number + weight,
        sums.normal_x + weight * nx,
        sums.normal_y + weight * ny,
        sums.normal_z + weight * nz,
        sums.slope_u + slope_u,
        sums.slope_v + slope_v,
        sums.inverse + weight * inverse * inverse,
        sums.tight + facing * w,
        sums.tight_u + facing * along_u,
        sums.tight_v + facing * along_v,
        sums.place_u + weight * u,
        sums.place_v + weight * v,
        sums.moment + (slope_u * u + slope_v * v),
    )


@inner
def with_pixels(sums, pixels, count, centre_u, centre_v, camera):
    """Add a list of pixels to the sums of a face."""
    for i in range(count):
        n = np.float64(pixels[X + i]), np.float64(pixels[Y + i]), np.float64(pixels[Z + i])
        u, v = np.float64(pixels[U + i]) + 0.5, np.float64(pixels[V + i]) + 0.5
        sums = with_pixel(sums, np.float64(pixels[SHARE + i]), n, u, v, centre_u, centre_v, camera)
    return sums


@inner
def face_sums(a, b, c, fine, normal_map, pixels):
    """Sum over the foreground pixels of the face abc, or take the pixel nearest to its centroid if it owns none.

    Each pixel has ``fine`` × ``fine`` samples, ``fine`` being 1 or 2, and is weighted by the number of its samples that
    the face owns. The corners a, b, c are given in samples. ``pixels`` is a work array.
    """
    normals, mask, camera = normal_map.normals, normal_map.mask, normal_map.camera
    rows, columns = fine * mask.shape[0], fine * mask.shape[1]
    top, middle, bottom = by_height(a, b, c)
    edges = face_edges(top, middle, bottom)
    start_row, middle_row, end_row = first_row(top[1], rows), first_row(middle[1], rows), first_row(bottom[1], rows)
    centre_u, centre_v = (a[0] + b[0] + c[0]) / (3.0 * fine), (a[1] + b[1] + c[1]) / (3.0 * fine)
    sums = ZERO
    count = 0
    for row in range(start_row // fine, (end_row + fine - 1) // fine):
        # The samples of this row of pixels that the face owns form two spans, or one if it begins or ends in between.
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
            if count == CAPACITY:
                sums = with_pixels(sums, pixels, count, centre_u, centre_v, camera)
                count = 0
            pixels[SHARE + count] = owned
            count = list_pixel(row, column, normals, mask, pixels, count)
    sums = with_pixels(sums, pixels, count, centre_u, centre_v, camera)
    if sums.number == 0.0:
        row, column = nearest_pixel(mask, centre_u, centre_v)
        if row >= 0:
            n = normal_at(normals, row, column)
            sums = with_pixel(sums, 1.0, n, column + 0.5, row + 0.5, centre_u, centre_v, camera)
    return sums


@inner(forceinline=True)
def bulge(sums, scale):
    """Return −½ of the covariance of position and slopes over the samples of a face; ``scale`` is 1 / their number."""
    product = sums.slope_u * sums.place_u + sums.slope_v * sums.place_v
    return -0.5 * scale * (sums.moment - scale * product)


@inner(forceinline=True)
def fill_means(row, sums, scale, u, v, camera):
    """Fill the columns of a face that do not belong to its plane; ``scale`` is 1 / the number of its samples."""
    row[COUNT] = sums.number
    row[NORMAL_X], row[NORMAL_Y], row[NORMAL_Z] = sums.normal_x * scale, sums.normal_y * scale, sums.normal_z * scale
    row[TIGHT], row[TIGHT_U], row[TIGHT_V] = sums.tight * scale, sums.tight_u * scale, sums.tight_v * scale
    rx, ry, rz = ray(u, v, camera)
    nx, ny, nz = sums.normal_x, sums.normal_y, sums.normal_z
    lengths = (nx**2 + ny**2 + nz**2) * (rx * rx + ry * ry + rz * rz)
    row[COSINE] = abs(nx * rx + ny * ry + nz * rz) / math.sqrt(max(lengths, 1e-300))


@kernel
def face_means(first, last, mesh, samples, normal_map, table):
    """Fill rows of the table (M, COLUMNS), or (M, PLANE_COLUMNS), of means over the foreground pixels of faces.

    Small faces take ``samples`` × ``samples`` samples of each pixel, 1 or 2; larger ones take pixel centres. Faces
    without a mean normal have zero as ``INVERSE``.
    """
    vertices, faces = mesh.vertices, mesh.faces
    pixels = np.empty(LIST_SIZE + CAPACITY, np.float32)
    for f in range(first, last):
        i, j, k = faces[f, 0], faces[f, 1], faces[f, 2]
        a, b, c = (vertices[i, 0], vertices[i, 1]), (vertices[j, 0], vertices[j, 1]), (vertices[k, 0], vertices[k, 1])
        area = 0.5 * ((b[1] - a[1]) * (c[0] - a[0]) - (b[0] - a[0]) * (c[1] - a[1]))
        u, v = (a[0] + b[0] + c[0]) / 3.0, (a[1] + b[1] + c[1]) / 3.0
        fine = samples if area < SMALL_FACE else 1
        a, b, c = (fine * a[0], fine * a[1]), (fine * b[0], fine * b[1]), (fine * c[0], fine * c[1])
        sums = face_sums(a, b, c, fine, normal_map, pixels)
        scale = 1.0 / max(sums.number, 1.0)
        row = table[f]
        row[SLOPE_U], row[SLOPE_V] = sums.slope_u * scale, sums.slope_v * scale
        has_normal = sums.normal_x != 0 or sums.normal_y != 0 or sums.normal_z != 0
        row[INVERSE] = sums.inverse * scale if has_normal else 0.0
        row[BULGE], row[AREA], row[CENTRE_U], row[CENTRE_V] = bulge(sums, scale), area, u, v
        if row.size > PLANE_COLUMNS:
            fill_means(row, sums, scale, u, v, normal_map.camera)
