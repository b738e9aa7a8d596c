"""Kernels of :mod:`normalmesh.hierarchy`: right triangles that halve each other, from single pixels upwards.

The screen is divided into squares of side s = 1, 2, 4, … A square has two *halves*, on both sides of the diagonal that
runs through the middle of the square of side 2s around it; it has four *quarters*, between its middle and its sides.
Halves of four squares make the quarters of the square of twice the side, and two quarters make one of its halves. Each
pixel corner but the last ones is the middle of a square or of a square's side, once: leaving it out makes two triangles
of four. ``errors`` holds for each corner what that costs, and what its finer neighbours cost that would have to go,
too: so the corners above any level of cost make a mesh without gaps.
"""

import numpy as np
from numba import njit

from normalmesh._inner import inner
from normalmesh._normalmap import to_viewer
from normalmesh._topology import vertices_at

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
def triangle_error(part, size, rx, ry, rz):
    """What it costs (px⁴) to take a triangle of ``size`` px² for flat; r is the direction to the viewer.

    Squared deviations of the normals, times the squared distance from the centroid along one direction, size/9 in the
    mean over a right triangle. Both distance and area are larger on a tilted surface.
    """
    squared = part[0] * part[0] + part[1] * part[1] + part[2] * part[2]
    along = max(part[0] * rx + part[1] * ry + part[2] * rz, 0.0)
    cosine_squared = max(along * along / max(squared, 1e-12), LEAST_COSINE * LEAST_COSINE)
    return np.float32(part[3] * size * size / (9.0 * cosine_squared))


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


@inner(inline="always")
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


@njit(cache=True, nogil=True)
def merge_squares(first, last, side, normals, kept, top, left, frame, towards_viewer, finer, halves, costs):
    """Rows of squares (R, C) of one side from those of half the side.

    ``halves`` (R, C, 2, 4) become their upper and lower halves, ``costs`` (R, C, 5) the errors of their four quarters
    and the larger one of their halves. Pixels that are ``kept`` belong to no flat triangle.
    """
    for i in range(first, last):
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
            rx, ry, rz = to_viewer(left + (j + 0.5) * side, top + (i + 0.5) * side, frame, towards_viewer)
            size = 0.25 * side * side
            costs[i, j, 0] = triangle_error(north, size, rx, ry, rz)
            costs[i, j, 1] = triangle_error(west, size, rx, ry, rz)
            costs[i, j, 2] = triangle_error(east, size, rx, ry, rz)
            costs[i, j, 3] = triangle_error(south, size, rx, ry, rz)
            costs[i, j, 4] = max(
                triangle_error(upper, 2.0 * size, rx, ry, rz), triangle_error(lower, 2.0 * size, rx, ry, rz)
            )


@inner
def error_at(errors, i, j):
    if 0 <= i < errors.shape[0] and 0 <= j < errors.shape[1]:
        return errors[i, j]
    return np.float32(np.inf)


@inner
def largest_around(errors, i, j, near, far):
    """Largest error at the four corners (i ± near, j ± far) and (i ± far, j ∓ near)."""
    return max(
        error_at(errors, i - near, j - far),
        error_at(errors, i + near, j + far),
        error_at(errors, i - far, j + near),
        error_at(errors, i + far, j - near),
    )


@njit(cache=True, nogil=True)
def side_errors(first, last, side, costs, errors):
    """Fill ``errors`` of the corners in the middle of sides, in rows of squares of one size."""
    half = side // 2
    for i in range(first, last):
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


@njit(cache=True, nogil=True)
def middle_errors(first, last, side, costs, errors):
    """Fill ``errors`` of the corners in the middle of squares of one size, in rows of them, once those of sides are."""
    half = side // 2
    for i in range(first, last):
        y = i * side + half
        for j in range(costs.shape[1]):
            x = j * side + half
            if y < errors.shape[0] and x < errors.shape[1]:
                errors[y, x] = max(costs[i, j, 4], largest_around(errors, y, x, 0, half))


@njit(cache=True, nogil=True)
def histogram(first, last, errors, counts):
    """Count the corners by the leading bits of their error: counts (blocks of 64 rows, BINS)."""
    bits = errors.view(np.int32)
    for block in range(first, last):
        for i in range(64 * block, min(64 * block + 64, errors.shape[0])):
            for j in range(errors.shape[1]):
                counts[block, bits[i, j] >> 19] += 1


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


@inner(inline="always")
def add_square(i, j, side, level, count, first, errors, mask, top, left, faces):
    """Add those halves and quarters of a square whose hypotenuse is not split, but that of the triangle around them."""
    y, x, half = i * side, j * side, side // 2
    nw, ne, sw, se = (y, x), (y, x + side), (y + side, x), (y + side, x + side)
    if side > 1 and error_at(errors, y + half, x + half) > level:
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
    if side == 1 and not (top + i < mask.shape[0] and left + j < mask.shape[1] and mask[top + i, left + j]):
        return count
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


@njit(cache=True, nogil=True)
def number_vertices(begin, end, block, level, errors, mask, top, left, before, first, vertices):
    """Count the vertices of each block, or with ``vertices`` (N, 2) fill them, from ``before`` (blocks + 1,) on.

    ``first`` (rows, columns) becomes the number of each corner's first vertex.
    """
    across = (errors.shape[1] + block - 1) // block
    for b in range(begin, end):
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


@njit(cache=True, nogil=True)
def collect_faces(begin, end, block, level, errors, mask, top, left, first, before, faces):
    """Count the faces of each block, or with ``faces`` (M, 3) fill them, from ``before`` (blocks + 1,) on."""
    across = (errors.shape[1] + block - 1) // block
    for b in range(begin, end):
        y, x = b // across * block, b % across * block
        count = before[b] if faces.shape[0] > 0 else 0
        side = 1
        while side <= block:
            for i in range(y // side, min(y + block, errors.shape[0] - 2 + side) // side):
                for j in range(x // side, min(x + block, errors.shape[1] - 2 + side) // side):
                    # One of the two corners off the diagonal must be there for any part of a square to be.
                    off = side * ((i + j + 1) % 2)
                    upper = error_at(errors, i * side, j * side + off)
                    lower = error_at(errors, i * side + side, j * side + side - off)
                    if upper > level or lower > level:
                        count = add_square(i, j, side, level, count, first, errors, mask, top, left, faces)
            side *= 2
        if faces.shape[0] == 0:
            before[b + 1] = count
