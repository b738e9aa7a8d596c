"""Kernels of :mod:`normalmesh.decimation.hierarchy`: right triangles that halve each other, from single pixels upwards.

The screen is divided into squares of side s = 1, 2, 4, … A square has two *halves*, on both sides of the diagonal that
runs through the middle of the square of side 2s around it; it has four *quarters*, between its middle and its sides.
Halves of four squares make the quarters of the square of twice the side, and two quarters make one of its halves. Each
pixel corner but the last ones is the middle of a square or of a square's side, once: leaving it out makes two triangles
of four. ``errors`` holds for each corner the largest cost of leaving out that corner and the finer neighbours that have
to go with it: so the corners above any level of cost make a mesh without gaps.
"""

from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Bool, Float32, Int32
from normalmesh.mesh._topology import vertices_at
from normalmesh.normals._camera import to_viewer
from normalmesh.normals.camera import CameraArrays
from normalmesh.runtime.kernels import inner, kernel

#: Smallest cosine between a normal and the ray to the viewer that is taken into account.
MIN_COSINE = 0.1
#: Bins of the histogram of errors: the leading bits of their float32 representation.
BINS = 4096
#: Rows of corners that are counted together.
COUNTED = 64
#: The two halves of a square in a table of halves (R, C, 2, PART), and the numbers of a :class:`Part`.
UPPER, LOWER = 0, 1
PART = 4
#: Columns of a table of costs (R, C, COSTS): of the quarters of a square, and the larger one of its halves.
NORTH, WEST, EAST, SOUTH, HALVES = range(5)
COSTS = 5


class Part(NamedTuple):
    """A triangle of the hierarchy: its mean normal, and the mean squared deviation from it. All are float32."""

    x: np.float32
    y: np.float32
    z: np.float32
    deviation: np.float32


class Foreground(NamedTuple):
    """The pixels of which a hierarchy is made.

    Attributes
    ----------
    normals : (H, W, 3) float32
    kept : (H, W) bool
        Pixels that belong to no flat triangle.
    top, left : int
        Row and column where the first square begins.
    place : (int, int)
        Row and column of the first pixel in the image of the camera.
    camera : CameraArrays
    regularisation : float32
        λ, which is added to the deviations.
    """

    normals: Float32
    kept: Bool
    top: int
    left: int
    place: tuple[int, int]
    camera: CameraArrays
    regularisation: np.float32


class Corners(NamedTuple):
    """The pixel corners that stay: those whose error exceeds a level.

    Attributes
    ----------
    errors : (R, C) float32
        Costs of leaving out each corner, px⁴; infinite if it must stay.
    level : float32
        The level, px⁴.
    mask : (H, W) bool
        Foreground pixels.
    top, left : int
        Row and column of the first corner.
    first_vertex : (R, C) int32
        Number of the first vertex at each corner that stays.
    """

    errors: Float32
    level: np.float32
    mask: Bool
    top: int
    left: int
    first_vertex: Int32


@inner
def together(one, other):
    """Join two triangles of the same size."""
    dx, dy, dz = one.x - other.x, one.y - other.y, one.z - other.z
    half = np.float32(0.5)
    return Part(
        half * (one.x + other.x),
        half * (one.y + other.y),
        half * (one.z + other.z),
        half * (one.deviation + other.deviation) + np.float32(0.25) * (dx * dx + dy * dy + dz * dz),
    )


@inner
def stretch(part, u, v, camera):
    """Return how much larger squared lengths are on a surface with this mean normal at the screen position (u, v)."""
    rx, ry, rz = to_viewer(u, v, camera)
    squared = part.x * part.x + part.y * part.y + part.z * part.z
    along = max(part.x * rx + part.y * ry + part.z * rz, 0.0)
    return 1.0 / max(along * along / max(squared, 1e-12), MIN_COSINE * MIN_COSINE)


@inner
def pixel_part(row, column, foreground):
    """Return a pixel as a triangle; one that must stay is never flat."""
    normals, kept = foreground.normals, foreground.kept
    if row >= kept.shape[0] or column >= kept.shape[1] or kept[row, column]:
        return Part(np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(np.inf))
    return Part(normals[row, column, 0], normals[row, column, 1], normals[row, column, 2], np.float32(0.0))


@inner
def half_part(halves, i, j, k):
    """Return the upper (0) or lower (1) half of a square; outside the table it is never flat."""
    if i >= halves.shape[0] or j >= halves.shape[1]:
        return Part(np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(np.inf))
    return Part(halves[i, j, k, 0], halves[i, j, k, 1], halves[i, j, k, 2], halves[i, j, k, 3])


@inner(forceinline=True)
def quarters_of(i, j, side, foreground, finer):
    """Return the quarters north, west, east and south of a square of the given side.

    ``finer`` are the halves of the squares of half the side; those of single pixels are not needed.
    """
    if side == 2:
        row, column = foreground.top + 2 * i, foreground.left + 2 * j
        a, b = pixel_part(row, column, foreground), pixel_part(row, column + 1, foreground)
        c, d = pixel_part(row + 1, column, foreground), pixel_part(row + 1, column + 1, foreground)
        return together(a, b), together(a, c), together(b, d), together(c, d)
    y, x = 2 * i, 2 * j
    return (
        together(half_part(finer, y, x, UPPER), half_part(finer, y, x + 1, UPPER)),
        together(half_part(finer, y, x, LOWER), half_part(finer, y + 1, x, UPPER)),
        together(half_part(finer, y, x + 1, LOWER), half_part(finer, y + 1, x + 1, UPPER)),
        together(half_part(finer, y + 1, x, LOWER), half_part(finer, y + 1, x + 1, LOWER)),
    )


@kernel
def merge_squares(top_row, bottom_row, side, foreground, finer, halves, costs):
    """Make rows of squares (R, C) of one side from those of half the side.

    Fill their upper and lower halves, (R, C, 2, PART), and ``costs`` (R, C, COSTS), px⁴, of taking their four quarters
    and their halves for flat.
    """
    for i in range(top_row, bottom_row):
        for j in range(costs.shape[1]):
            north, west, east, south = quarters_of(i, j, side, foreground, finer)
            if (i + j) % 2 == 0:
                upper, lower = together(north, east), together(west, south)
            else:
                upper, lower = together(north, west), together(east, south)
            for k in range(PART):
                halves[i, j, UPPER, k] = upper[k]
                halves[i, j, LOWER, k] = lower[k]
            none_is_flat = north.deviation == west.deviation == east.deviation == south.deviation == np.inf
            if upper.deviation + lower.deviation == np.inf and none_is_flat:
                for k in range(COSTS):
                    costs[i, j, k] = np.inf
                continue
            # Squared deviations of the normals, times the squared distance from the centroid along one direction, a
            # ninth of the area in the mean over a right triangle: for an area of a quarter, and of half a square.
            u = foreground.place[1] + foreground.left + (j + 0.5) * side
            v = foreground.place[0] + foreground.top + (i + 0.5) * side
            quarter = stretch(together(upper, lower), u, v, foreground.camera) * side**4 / 144.0
            even = foreground.regularisation
            costs[i, j, NORTH] = (north.deviation + even) * quarter
            costs[i, j, WEST] = (west.deviation + even) * quarter
            costs[i, j, EAST] = (east.deviation + even) * quarter
            costs[i, j, SOUTH] = (south.deviation + even) * quarter
            costs[i, j, HALVES] = (max(upper.deviation, lower.deviation) + even) * 4.0 * quarter


@inner
def error_at(errors, i, j):
    """Return the error of a corner, infinite outside the table."""
    inside = i >= 0 and j >= 0 and i < errors.shape[0] and j < errors.shape[1]
    return errors[i, j] if inside else np.float32(np.inf)


@inner
def largest_around(errors, i, j, near, far):
    """Return the largest error at the four corners (i ± near, j ± far) and (i ± far, j ∓ near)."""
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
                error = max(costs[i, j, NORTH], costs[i - 1, j, SOUTH]) if y > 0 else np.float32(np.inf)
                if side > 2:
                    error = max(error, largest_around(errors, y, x + half, half // 2, half // 2))
                errors[y, x + half] = error
            if y + half < errors.shape[0]:
                error = max(costs[i, j, WEST], costs[i, j - 1, EAST]) if x > 0 else np.float32(np.inf)
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
                errors[y, x] = max(costs[i, j, HALVES], largest_around(errors, y, x, 0, half))


@kernel
def count_errors(first, last, bits, counts):
    """Count the corners by the leading bits of their error (rows, columns) as int32: counts (bands of rows, BINS)."""
    for band in range(first, last):
        for i in range(band * COUNTED, min((band + 1) * COUNTED, bits.shape[0])):
            for j in range(bits.shape[1]):
                counts[band, bits[i, j] >> 19] += 1


@inner
def add_triangle(a, b, c, count, corners, faces):
    """Write the counter-clockwise triangle of three corners (row, column) as face ``count``; return ``count + 1``.

    Nothing is written if ``faces`` is empty.
    """
    if faces.shape[0] > 0:
        middle = a[0] + b[0] + c[0]
        for k in range(3):
            i, j = a if k == 0 else (b if k == 1 else c)
            vertex = corners.first_vertex[i, j]
            # A split corner's second vertex belongs to what lies below it.
            if middle > 3 * i and corners.errors[i, j] == np.inf and _vertices_at(i, j, corners) == 2:
                vertex += 1
            faces[count, k] = vertex
    return count + 1


@inner
def _vertices_at(i, j, corners):
    """Return the number of vertices that a corner needs."""
    return vertices_at(corners.mask, corners.top + i, corners.left + j)


@inner
def _stays(i, j, corners):
    """Check whether a corner stays; corners outside the table do."""
    return error_at(corners.errors, i, j) > corners.level


@inner
def add_halves(i, j, side, count, corners, faces):
    """Add those halves of a square whose right angle is at a corner that stays; return the number of faces."""
    y, x = i * side, j * side
    nw, ne, sw, se = (y, x), (y, x + side), (y + side, x), (y + side, x + side)
    if (i + j) % 2 == 0:
        if _stays(ne[0], ne[1], corners):
            count = add_triangle(nw, se, ne, count, corners, faces)
        if _stays(sw[0], sw[1], corners):
            count = add_triangle(nw, sw, se, count, corners, faces)
    else:
        if _stays(nw[0], nw[1], corners):
            count = add_triangle(nw, sw, ne, count, corners, faces)
        if _stays(se[0], se[1], corners):
            count = add_triangle(sw, se, ne, count, corners, faces)
    return count


@inner
def add_quarters(i, j, side, count, corners, faces):
    """Add those quarters of a square, whose middle stays, over sides that are not split; return the number of faces."""
    y, x, half = i * side, j * side, side // 2
    nw, ne, sw, se = (y, x), (y, x + side), (y + side, x), (y + side, x + side)
    middle = (y + half, x + half)
    if not _stays(y, x + half, corners):
        count = add_triangle(nw, middle, ne, count, corners, faces)
    if not _stays(y + half, x, corners):
        count = add_triangle(nw, sw, middle, count, corners, faces)
    if not _stays(y + half, x + side, corners):
        count = add_triangle(ne, middle, se, count, corners, faces)
    if not _stays(y + side, x + half, corners):
        count = add_triangle(sw, se, middle, count, corners, faces)
    return count


@kernel
def number_vertices(first_block, last_block, block, corners, before, vertices):
    """Count the vertices of blocks, or fill ``vertices`` (N, 2) and the numbers of the corners' first vertices.

    If ``vertices`` is empty, ``before[b + 1]`` becomes the number of vertices of block b. Otherwise ``before``
    (blocks + 1,) is the number of vertices before each block.
    """
    errors = corners.errors
    across = (errors.shape[1] + block - 1) // block
    for b in range(first_block, last_block):
        vertex = before[b] if vertices.shape[0] > 0 else 0
        y, x = b // across * block, b % across * block
        for i in range(y, min(y + block, errors.shape[0])):
            for j in range(x, min(x + block, errors.shape[1])):
                if errors[i, j] <= corners.level:
                    continue
                copies = _vertices_at(i, j, corners)
                if vertices.shape[0] > 0:
                    corners.first_vertex[i, j] = vertex
                    for k in range(vertex, vertex + copies):
                        vertices[k, 0] = corners.left + j
                        vertices[k, 1] = corners.top + i
                vertex += copies
        if vertices.shape[0] == 0:
            before[b + 1] = vertex


@kernel
def collect_faces(first_block, last_block, block, corners, before, faces):
    """Count the faces of blocks, or fill ``faces`` (M, 3).

    If ``faces`` is empty, ``before[b + 1]`` becomes the number of faces of block b. Otherwise ``before`` (blocks + 1,)
    is the number of faces before each block.
    """
    rows, columns = corners.errors.shape
    across = (columns + block - 1) // block
    # Row, column and side of squares that wait: four of each size at most.
    waiting = np.empty((64, 3), np.int64)
    for b in range(first_block, last_block):
        count = before[b] if faces.shape[0] > 0 else 0
        waiting[0, 0], waiting[0, 1], waiting[0, 2] = b // across, b % across, block
        # The last corners may be alone in a block, which then has no faces.
        size = 1 if b // across * block < rows - 1 and b % across * block < columns - 1 else 0
        while size > 0:
            size -= 1
            i, j, side = waiting[size, 0], waiting[size, 1], waiting[size, 2]
            if side == 1:
                if corners.mask[corners.top + i, corners.left + j]:
                    count = add_halves(i, j, side, count, corners, faces)
            elif not _stays(i * side + side // 2, j * side + side // 2, corners):
                count = add_halves(i, j, side, count, corners, faces)
            else:
                count = add_quarters(i, j, side, count, corners, faces)
                for k in range(4):
                    y, x = 2 * i + k // 2, 2 * j + k % 2
                    if y * (side // 2) < rows - 1 and x * (side // 2) < columns - 1:
                        waiting[size, 0], waiting[size, 1], waiting[size, 2] = y, x, side // 2
                        size += 1
        if faces.shape[0] == 0:
            before[b + 1] = count


@inner
def _is_kept(i, j, kept):
    return 0 <= i < kept.shape[0] and 0 <= j < kept.shape[1] and kept[i, j] > 0


@kernel
def keep_parents(kept, block):
    """Set the corners of ``kept`` (R, C) that others need, so that the mesh of all that are set has no gaps.

    The middle of a square is needed by those of its sides, and the middle of a side by those of the smaller squares
    beside it.
    """
    rows, columns = kept.shape
    side = 2
    while side <= block:
        half = side // 2
        for i in range(half, rows, side):
            for j in range(half, columns, side):
                if kept[i, j] == 0 and (
                    _is_kept(i - half, j, kept)
                    or _is_kept(i + half, j, kept)
                    or _is_kept(i, j - half, kept)
                    or _is_kept(i, j + half, kept)
                ):
                    kept[i, j] = 1
        for i in range(0, rows if side < block else 0, side):
            for j in range(0, columns, side):
                if (
                    (i // side + j // side) % 2 == 1
                    and kept[i, j] == 0
                    and (
                        _is_kept(i - half, j - half, kept)
                        or _is_kept(i - half, j + half, kept)
                        or _is_kept(i + half, j - half, kept)
                        or _is_kept(i + half, j + half, kept)
                    )
                ):
                    kept[i, j] = 1
        side *= 2
