"""Kernel of :mod:`normalmesh.facemeans`."""

import numpy as np
from numba import njit, prange

from normalmesh._quadrics import sample_pixel
from normalmesh._raster import by_height, first_row, row_span

#: Numbers that are summed over the pixels of a face: 1; n; slopes ∂_u z, ∂_v z of the pixel's plane at the face's
#: centroid; ⟨r,n⟩⁻²; ⟨r,n⟩², ⟨r,n⟩⟨n,τ_u⟩, ⟨r,n⟩⟨n,τ_v⟩.
SUMS = 10
#: Faces below this many pixels are sampled more finely than at pixel centres: few centres say little about an area.
SMALL_FACE = 64.0
#: Share of ⟨r,n⟩ at a pixel that must be left at the centroid: beyond it the pixel's plane is seen from behind.
LEAST_FACING = 0.2


@njit(cache=True, nogil=True)
def along_ray(nx, ny, nz, u, v, frame):
    """⟨n, r(u, v)⟩."""
    return (
        nx * (frame[2, 0] + u * frame[3, 0] + v * frame[4, 0])
        + ny * (frame[2, 1] + u * frame[3, 1] + v * frame[4, 1])
        + nz * (frame[2, 2] + u * frame[3, 2] + v * frame[4, 2])
    )


@njit(cache=True, nogil=True)
def pixel_plane(normals, row, column, centre_u, centre_v, frame):
    """What a pixel says at the centroid of its face: ⟨n,τ_u⟩, ⟨n,τ_v⟩, ⟨r,n⟩ there, and ⟨r,n⟩ at the pixel."""
    nx = np.float64(normals[row, column, 0])
    ny = np.float64(normals[row, column, 1])
    nz = np.float64(normals[row, column, 2])
    w = along_ray(nx, ny, nz, column + 0.5, row + 0.5, frame)
    at_centre = along_ray(nx, ny, nz, centre_u, centre_v, frame)
    if at_centre / w < LEAST_FACING:
        at_centre = w
    along_u = nx * frame[0, 0] + ny * frame[0, 1] + nz * frame[0, 2]
    along_v = nx * frame[1, 0] + ny * frame[1, 1] + nz * frame[1, 2]
    return along_u, along_v, at_centre, w


@njit(cache=True, nogil=True)
def sampled_gradient(centre_u, centre_v, normals, mask, frame):
    """What the pixel nearest to the centroid says of a face without pixels: 1, the slopes ∂_u z and ∂_v z, and ⟨r,n⟩⁻².

    All zero where there is none.
    """
    row, column = sample_pixel(mask, centre_u, centre_v)
    if row < 0:
        return 0.0, 0.0, 0.0, 0.0
    along_u, along_v, at_centre, w = pixel_plane(normals, row, column, centre_u, centre_v, frame)
    return 1.0, -along_u / at_centre, -along_v / at_centre, 1.0 / (w * w)


@njit(cache=True, nogil=True)
def add_pixel(normals, row, column, centre_u, centre_v, frame, sums):
    """Add one pixel to the sums of a face with this centroid."""
    nx = np.float64(normals[row, column, 0])
    ny = np.float64(normals[row, column, 1])
    nz = np.float64(normals[row, column, 2])
    along_u, along_v, at_centre, w = pixel_plane(normals, row, column, centre_u, centre_v, frame)
    sums[0] += 1.0
    sums[1] += nx
    sums[2] += ny
    sums[3] += nz
    sums[4] -= along_u / at_centre
    sums[5] -= along_v / at_centre
    sums[6] += 1.0 / (w * w)
    sums[7] += w * w
    sums[8] += w * along_u
    sums[9] += w * along_v


@njit(cache=True, nogil=True)
def add_face(a, b, c, fine, normals, mask, frame, sums):
    """Add the foreground pixels of the face abc, or the one nearest to its centroid if it owns none.

    ``fine`` × ``fine`` samples a pixel; the corners are given in samples.
    """
    rows, columns = fine * mask.shape[0], fine * mask.shape[1]
    top, middle, bottom = by_height(a, b, c)
    middle_row = first_row(middle[1], rows)
    centre_u, centre_v = (a[0] + b[0] + c[0]) / (3.0 * fine), (a[1] + b[1] + c[1]) / (3.0 * fine)
    before = sums[0]
    for row in range(first_row(top[1], rows), first_row(bottom[1], rows)):
        start, end = row_span(top, middle, bottom, row, middle_row, columns)
        for column in range(start, end):
            if mask[row // fine, column // fine]:
                add_pixel(normals, row // fine, column // fine, centre_u, centre_v, frame, sums)
    if sums[0] == before:
        row, column = sample_pixel(mask, centre_u, centre_v)
        if row >= 0:
            add_pixel(normals, row, column, centre_u, centre_v, frame, sums)


@njit(cache=True, parallel=True, nogil=True)
def face_means(vertices, faces, areas, samples, normals, mask, frame, means):
    """Means (M, 10) over the foreground pixels of each face; the first number becomes the count of what was summed.

    Small faces take ``samples`` × ``samples`` samples of each pixel.
    """
    for f in prange(faces.shape[0]):
        sums = np.zeros(SUMS)
        fine = samples if areas[f] < SMALL_FACE else 1
        a, b, c = fine * vertices[faces[f, 0]], fine * vertices[faces[f, 1]], fine * vertices[faces[f, 2]]
        add_face(a, b, c, fine, normals, mask, frame, sums)
        means[f, 0] = sums[0]
        for k in range(1, SUMS):
            means[f, k] = sums[k] / max(sums[0], 1.0)
