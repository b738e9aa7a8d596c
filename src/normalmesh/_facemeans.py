"""Kernel of :mod:`normalmesh.facemeans`."""

import numpy as np

from normalmesh._kernels import inner, kernel
from normalmesh._quadrics import sample_pixel
from normalmesh._raster import by_height, first_row, row_span

#: Numbers that are summed over the pixels of a face: 1; n; slopes ∂_u z, ∂_v z of the pixel's plane at the face's
#: centroid; ⟨r,n⟩⁻²; ⟨r,n⟩², ⟨r,n⟩⟨n,τ_u⟩, ⟨r,n⟩⟨n,τ_v⟩.
SUMS = 10
#: Faces below this many pixels are sampled more finely than at pixel centres: few centres say little about an area.
SMALL_FACE = 64.0
#: Share of ⟨r,n⟩ at a pixel that must be left at the centroid: beyond it the pixel's plane is seen from behind.
LEAST_FACING = 0.2


@inner(forceinline=True)
def along_ray(nx, ny, nz, u, v, frame):
    """⟨n, r(u, v)⟩."""
    return (
        nx * (frame[2, 0] + u * frame[3, 0] + v * frame[4, 0])
        + ny * (frame[2, 1] + u * frame[3, 1] + v * frame[4, 1])
        + nz * (frame[2, 2] + u * frame[3, 2] + v * frame[4, 2])
    )


@inner(forceinline=True)
def pixel_plane(normals, row, column, centre_u, centre_v, frame):
    """What a pixel says at the centroid of its face: ⟨n,τ_u⟩, ⟨n,τ_v⟩, ⟨r,n⟩ there, and ⟨r,n⟩ at the pixel."""
    nx = np.float64(normals[row, column, 0])
    ny = np.float64(normals[row, column, 1])
    nz = np.float64(normals[row, column, 2])
    w = along_ray(nx, ny, nz, column + 0.5, row + 0.5, frame)
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
    along_u, along_v, at_centre, w = pixel_plane(normals, row, column, centre_u, centre_v, frame)
    return 1.0, -along_u / at_centre, -along_v / at_centre, 1.0 / (w * w)


@inner(forceinline=True)
def overlap(start, end, first, last):
    """How many of the columns start … end − 1 are among first … last − 1."""
    return max(min(end, last) - max(start, first), 0)


@inner(error_model="numpy", forceinline=True)
def weighted_pixel(weight, normals, row, column, centre_u, centre_v, frame):
    """What a pixel adds to the sums of a face with this centroid, as a tuple."""
    nx = np.float64(normals[row, column, 0])
    ny = np.float64(normals[row, column, 1])
    nz = np.float64(normals[row, column, 2])
    along_u, along_v, at_centre, w = pixel_plane(normals, row, column, centre_u, centre_v, frame)
    # One division for both reciprocals.
    both = 1.0 / (w * at_centre)
    slope = -weight * w * both
    inverse = at_centre * both
    facing = weight * w
    return (
        weight,
        weight * nx,
        weight * ny,
        weight * nz,
        slope * along_u,
        slope * along_v,
        weight * inverse * inverse,
        facing * w,
        facing * along_u,
        facing * along_v,
    )


@inner(forceinline=True)
def add(s, t):
    """Sum of two tuples of ten."""
    return (
        s[0] + t[0], s[1] + t[1], s[2] + t[2], s[3] + t[3], s[4] + t[4],
        s[5] + t[5], s[6] + t[6], s[7] + t[7], s[8] + t[8], s[9] + t[9],
    )  # fmt: skip


@inner(error_model="numpy")
def face_sums(a, b, c, fine, normals, mask, frame):
    """Sums over the foreground pixels of the face abc, or of the one nearest to its centroid if it owns none.

    ``fine`` × ``fine`` samples a pixel, 1 or 2; the corners are given in samples. Each pixel is looked at once, and
    counts as many times as the face owns samples of it.
    """
    rows, columns = fine * mask.shape[0], fine * mask.shape[1]
    top, middle, bottom = by_height(a, b, c)
    start_row, middle_row, end_row = first_row(top[1], rows), first_row(middle[1], rows), first_row(bottom[1], rows)
    centre_u, centre_v = (a[0] + b[0] + c[0]) / (3.0 * fine), (a[1] + b[1] + c[1]) / (3.0 * fine)
    sums = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for row in range(start_row // fine, (end_row + fine - 1) // fine):
        # The samples of this row of pixels that the face owns: two spans, or one where it begins or ends in between.
        first, last = max(fine * row, start_row), min(fine * row + fine, end_row) - 1
        # A sliver between two rows of samples owns none.
        if first > last:
            continue
        start, end = row_span(top, middle, bottom, first, middle_row, columns)
        other_start, other_end = end, end
        if last > first:
            other_start, other_end = row_span(top, middle, bottom, last, middle_row, columns)
        begin = min(start, other_start) // fine
        for column in range(begin, (max(end, other_end) + fine - 1) // fine):
            if mask[row, column]:
                left, right = fine * column, fine * column + fine
                owned = overlap(start, end, left, right) + overlap(other_start, other_end, left, right)
                if owned > 0:
                    sums = add(sums, weighted_pixel(float(owned), normals, row, column, centre_u, centre_v, frame))
    if sums[0] == 0.0:
        row, column = sample_pixel(mask, centre_u, centre_v)
        if row >= 0:
            sums = weighted_pixel(1.0, normals, row, column, centre_u, centre_v, frame)
    return sums


@kernel(error_model="numpy")
def face_means(first, last, vertices, faces, areas, samples, normals, mask, frame, means):
    """Fill the means (M, 10) over the foreground pixels of faces; the first number is the count of what was summed.

    Small faces take ``samples`` × ``samples`` samples of each pixel, 1 or 2.
    """
    for f in range(first, last):
        fine = samples if areas[f] < SMALL_FACE else 1
        i, j, k = faces[f, 0], faces[f, 1], faces[f, 2]
        a = fine * vertices[i, 0], fine * vertices[i, 1]
        b = fine * vertices[j, 0], fine * vertices[j, 1]
        c = fine * vertices[k, 0], fine * vertices[k, 1]
        sums = face_sums(a, b, c, fine, normals, mask, frame)
        scale = 1.0 / max(sums[0], 1.0)
        means[f, 0] = sums[0]
        for n in range(1, SUMS):
            means[f, n] = sums[n] * scale
