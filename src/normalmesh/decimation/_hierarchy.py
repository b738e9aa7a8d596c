"""Kernels of :mod:`normalmesh.decimation.hierarchy`: right triangles that halve each other, from single pixels upwards.

The screen is divided into squares of side s = 1, 2, 4, … A square has two *halves*, on both sides of the diagonal that
runs through the middle of the square of side 2s around it; it has four *quarters*, between its middle and its sides.
Halves of four squares make the quarters of the square of twice the side, and two quarters make one of its halves. Each
pixel corner but the last ones is the middle of a square or of a square's side, once: leaving it out makes two triangles
of four. ``errors`` holds for each corner what that costs, and what its finer neighbours cost that would have to go,
too: so the corners above any level of cost make a mesh without gaps.
"""

import numpy as np

from normalmesh.mesh._topology import vertices_at
from normalmesh.normals._camera import to_viewer
from normalmesh.runtime.kernels import inner, kernel

#: Least cosine between a normal and the ray to the viewer that is taken into account.
LEAST_COSINE = 0.1
#: Bins of the histogram of errors: the leading bits of their float32 representation.
BINS = 4096


@inner
def together(one, other):
    """Mean normal and mean squared deviation from it, (x, y, z, d), of two triangles of the same size."""
    dx, dy, dz = one[0] - other[0], one[1] - other[1], one[2] - other[2]
    half = np.float32(0.5)
    return (
        half * (one[0] + other[0]),
        half * (one[1] + other[1]),
        half * (one[2] + other[2]),
        half * (one[3] + other[3]) + np.float32(0.25) * (dx * dx + dy * dy + dz * dz),
    )


@inner
def stretch(part, u, v, frame, towards_viewer):
    """How much larger squared lengths are on a surface with this mean normal at the screen position (u, v)."""
    rx, ry, rz = to_viewer(u, v, frame, towards_viewer)
    squared = part[0] * part[0] + part[1] * part[1] + part[2] * part[2]
    along = max(part[0] * rx + part[1] * ry + part[2] * rz, 0.0)
    return 1.0 / max(along * along / max(squared, 1e-12), LEAST_COSINE * LEAST_COSINE)


@inner
def pixel_part(normals, kept, i, j):
    """A pixel as a triangle; one that must stay is never flat."""
    if i >= kept.shape[0] or j >= kept.shape[1] or kept[i, j]:
        return np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(np.inf)
    return normals[i, j, 0], normals[i, j, 1], normals[i, j, 2], np.float32(0.0)


@inner
def half_part(halves, i, j, k):
    """Upper (0) or lower (1) half of a square."""
    if i >= halves.shape[0] or j >= halves.shape[1]:
        return np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(np.inf)
    return halves[i, j, k, 0], halves[i, j, k, 1], halves[i, j, k, 2], halves[i, j, k, 3]


@inner(forceinline=True)
def quarters_of(i, j, side, normals, kept, top, left, finer):
    """The quarters north, west, east and south of a square of the given side."""
    if side == 2:
        row, column = top + 2 * i, left + 2 * j
        a, b = pixel_part(normals, kept, row, column), pixel_part(normals, kept, row, column + 1)
        c, d = pixel_part(normals, kept, row + 1, column), pixel_part(normals, kept, row + 1, column + 1)
        return together(a, b), together(a, c), together(b, d), together(c, d)
    return (
        together(half_part(finer, 2 * i, 2 * j, 0), half_part(finer, 2 * i, 2 * j + 1, 0)),
        together(half_part(finer, 2 * i, 2 * j, 1), half_part(finer, 2 * i + 1, 2 * j, 0)),
        together(half_part(finer, 2 * i, 2 * j + 1, 1), half_part(finer, 2 * i + 1, 2 * j + 1, 0)),
        together(half_part(finer, 2 * i + 1, 2 * j, 1), half_part(finer, 2 * i + 1, 2 * j + 1, 1)),
    )


@kernel(error_model="numpy")
def merge_squares(top_row, bottom_row, side, normals, kept, top, left, frame, towards_viewer, finer, halves, costs):
    """Make rows of squares (R, C) of one side from those of half the side.

    ``halves`` (R, C, 2, 4) become their upper and lower halves, ``costs`` (R, C, 5) what it costs (px⁴) to take their
    four quarters for flat, and the larger one of their halves. Pixels that are ``kept`` belong to no flat triangle.
    """
    for i in range(top_row, bottom_row):
        for j in range(costs.shape[1]):
            north, west, east, south = quarters_of(i, j, side, normals, kept, top, left, finer)
            if (i + j) % 2 == 0:
                upper, lower = together(north, east), together(west, south)
            else:
                upper, lower = together(north, west), together(east, south)
            for k in range(4):
                halves[i, j, 0, k] = upper[k]
                halves[i, j, 1, k] = lower[k]
            if upper[3] + lower[3] == np.inf and north[3] == west[3] == east[3] == south[3] == np.inf:
                for k in range(5):
                    costs[i, j, k] = np.inf
                continue
            # Squared deviations of the normals, times the squared distance from the centroid along one direction, a
            # ninth of the area in the mean over a right triangle: for an area of a quarter, and of half a square.
            u, v = left + (j + 0.5) * side, top + (i + 0.5) * side
            quarter = stretch(together(upper, lower), u, v, frame, towards_viewer) * side**4 / 144.0
            costs[i, j, 0] = north[3] * quarter
            costs[i, j, 1] = west[3] * quarter
            costs[i, j, 2] = east[3] * quarter
            costs[i, j, 3] = south[3] * quarter
            costs[i, j, 4] = max(upper[3], lower[3]) * 4.0 * quarter


@inner
def error_at(errors, i, j):
    inside = i >= 0 and j >= 0 and i < errors.shape[0] and j < errors.shape[1]
    return errors[i, j] if inside else np.float32(np.inf)


@inner
def largest_around(errors, i, j, near, far):
    """Largest error at the four corners (i ± near, j ± far) and (i ± far, j ∓ near)."""
    return max(
        error_at(errors, i - near, j - far),
        error_at(errors, i + near, j + far),
        error_at(errors, i - far, j + near),
        error_at(errors, i + far, j - near),
    )


@kernel
def side_errors(top_row, bottom_row, side, costs, errors):
    """Fill the errors of the corners in the middle of the sides of squares, row by row."""
    half = side // 2
    for i in range(top_row, bottom_row):
        y = i * side
        for j in range(costs.shape[1]):
            x = j * side
            if x + half < errors.shape[1]:
                error = max(costs[i, j, 0], costs[i - 1, j, 3]) if y > 0 else np.float32(np.inf)
                if side > 2:
                    error = max(error, largest_around(errors, y, x + half, half // 2, half // 2))
                errors[y, x + half] = error
            if y + half < errors.shape[0]:
                error = max(costs[i, j, 1], costs[i, j - 1, 2]) if x > 0 else np.float32(np.inf)
                if side > 2:
                    error = max(error, largest_around(errors, y + half, x, half // 2, half // 2))
                errors[y + half, x] = error


@kernel
def middle_errors(top_row, bottom_row, side, costs, errors):
    """Fill the errors of the corners in the middle of squares, row by row, from those of their sides."""
    half = side // 2
    for i in range(top_row, bottom_row):
        y = i * side + half
        for j in range(costs.shape[1]):
            x = j * side + half
            if y < errors.shape[0] and x < errors.shape[1]:
                errors[y, x] = max(costs[i, j, 4], largest_around(errors, y, x, 0, half))


@kernel
def count_errors(bits, counts):
    """Count the corners by the leading bits of their error (rows, columns) as int32: counts (BINS,)."""
    for i in range(bits.shape[0]):
        for j in range(bits.shape[1]):
            counts[bits[i, j] >> 19] += 1


@inner
def add_triangle(a, b, c, count, first, errors, mask, top, left, faces):
    """Add the counter-clockwise triangle of three corners (row, column) as face ``count``; only count without faces."""
    if faces.shape[0] > 0:
        middle = a[0] + b[0] + c[0]
        for k in range(3):
            i, j = a if k == 0 else (b if k == 1 else c)
            vertex = first[i, j]
            # A split corner's second vertex belongs to what lies below it.
            if middle > 3 * i and errors[i, j] == np.inf and vertices_at(mask, top + i, left + j) == 2:
                vertex += 1
            faces[count, k] = vertex
    return count + 1


@inner
def add_halves(i, j, side, level, count, first, errors, mask, top, left, faces):
    """Add those halves of a square whose right angle is at a corner that stays."""
    y, x = i * side, j * side
    nw, ne, sw, se = (y, x), (y, x + side), (y + side, x), (y + side, x + side)
    if (i + j) % 2 == 0:
        if error_at(errors, ne[0], ne[1]) > level:
            count = add_triangle(nw, se, ne, count, first, errors, mask, top, left, faces)
        if error_at(errors, sw[0], sw[1]) > level:
            count = add_triangle(nw, sw, se, count, first, errors, mask, top, left, faces)
    else:
        if error_at(errors, nw[0], nw[1]) > level:
            count = add_triangle(nw, sw, ne, count, first, errors, mask, top, left, faces)
        if error_at(errors, se[0], se[1]) > level:
            count = add_triangle(sw, se, ne, count, first, errors, mask, top, left, faces)
    return count


@inner
def add_quarters(i, j, side, level, count, first, errors, mask, top, left, faces):
    """Add those quarters of a square, whose middle stays, over sides that are not split."""
    y, x, half = i * side, j * side, side // 2
    nw, ne, sw, se = (y, x), (y, x + side), (y + side, x), (y + side, x + side)
    middle = (y + half, x + half)
    if error_at(errors, y, x + half) <= level:
        count = add_triangle(nw, middle, ne, count, first, errors, mask, top, left, faces)
    if error_at(errors, y + half, x) <= level:
        count = add_triangle(nw, sw, middle, count, first, errors, mask, top, left, faces)
    if error_at(errors, y + half, x + side) <= level:
        count = add_triangle(ne, middle, se, count, first, errors, mask, top, left, faces)
    if error_at(errors, y + side, x + half) <= level:
        count = add_triangle(sw, se, middle, count, first, errors, mask, top, left, faces)
    return count


@kernel
def number_vertices(first_block, last_block, block, level, errors, mask, top, left, before, first, vertices):
    """Count the vertices of each block, or with ``vertices`` (N, 2) fill them, from ``before`` (blocks + 1,) on.

    ``first`` (rows, columns) becomes the number of each corner's first vertex.
    """
    across = (errors.shape[1] + block - 1) // block
    for b in range(first_block, last_block):
        vertex = before[b] if vertices.shape[0] > 0 else 0
        y, x = b // across * block, b % across * block
        for i in range(y, min(y + block, errors.shape[0])):
            for j in range(x, min(x + block, errors.shape[1])):
                if errors[i, j] <= level:
                    continue
                copies = vertices_at(mask, top + i, left + j)
                if vertices.shape[0] > 0:
                    first[i, j] = vertex
                    for k in range(vertex, vertex + copies):
                        vertices[k, 0] = left + j
                        vertices[k, 1] = top + i
                vertex += copies
        if vertices.shape[0] == 0:
            before[b + 1] = vertex


@kernel
def collect_faces(first_block, last_block, block, level, errors, mask, top, left, first, before, faces):
    """Count the faces of each block, or with ``faces`` (M, 3) fill them, from ``before`` (blocks + 1,) on."""
    across = (errors.shape[1] + block - 1) // block
    # Squares that wait, as row, column and side: four of each size at most.
    waiting = np.empty((64, 3), np.int64)
    for b in range(first_block, last_block):
        count = before[b] if faces.shape[0] > 0 else 0
        waiting[0, 0], waiting[0, 1], waiting[0, 2] = b // across, b % across, block
        size = 1
        while size > 0:
            size -= 1
            i, j, side = waiting[size, 0], waiting[size, 1], waiting[size, 2]
            if side == 1:
                if mask[top + i, left + j]:
                    count = add_halves(i, j, side, level, count, first, errors, mask, top, left, faces)
            elif error_at(errors, i * side + side // 2, j * side + side // 2) <= level:
                count = add_halves(i, j, side, level, count, first, errors, mask, top, left, faces)
            else:
                count = add_quarters(i, j, side, level, count, first, errors, mask, top, left, faces)
                for k in range(4):
                    y, x = 2 * i + k // 2, 2 * j + k % 2
                    if y * (side // 2) < errors.shape[0] - 1 and x * (side // 2) < errors.shape[1] - 1:
                        waiting[size, 0], waiting[size, 1], waiting[size, 2] = y, x, side // 2
                        size += 1
        if faces.shape[0] == 0:
            before[b + 1] = count
