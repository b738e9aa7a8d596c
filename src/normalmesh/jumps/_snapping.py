"""Kernels of :mod:`normalmesh.jumps.snapping`: ways over pixel sides, near a line, across which normals differ."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float, Float32, Int32
from normalmesh.runtime._heap import drop_first, push
from normalmesh.runtime.kernels import inner, kernel

#: Cost of a pixel side: its length, plus a share of its distance from the line, over the contrast plus a small number.
OFFSET_COST, MIN_CONTRAST = 0.25, 0.05
#: Steps from a pixel corner: right, left, down, up.
RIGHT, LEFT, DOWN, UP = range(4)
STEPS = 4


class Cells(NamedTuple):
    """Pixels in some of the cells into which an image is divided.

    Attributes
    ----------
    shape : (int, int)
        Rows and columns of the image.
    side : (int, int)
        Rows and columns of a cell.
    table : (Y, X) int32
        Number of each cell, −1 for those whose pixels are not known. It has cells for all pixel corners, too.
    normals : (N, h, w, 3) float32
    mask : (N, h, w) bool
        Pixels of the cells, of those sides or less.
    """

    shape: tuple[int, int]
    side: tuple[int, int]
    table: Int32
    normals: Float32
    mask: Bool


class Grid(NamedTuple):
    """Work arrays (N, *side) over the pixel corners of cells.

    ``offset`` is the distance from the line in px, −1 outside the band around it; ``step`` the last step on the way to
    a corner, −1 for none; ``cost`` that of the way.
    """

    offset: NDArray[np.int8]
    step: NDArray[np.int8]
    cost: Float


@inner
def corner_after(u, v, step):
    """Return the pixel corner one step further."""
    return u + (step == RIGHT) - (step == LEFT), v + (step == DOWN) - (step == UP)


@inner(forceinline=True)
def in_cell(row, column, cells):
    """Return the cell of a pixel or pixel corner, and its row and column there."""
    height, width = cells.side
    return cells.table[row // height, column // width], row % height, column % width


@inner
def contrast_across(u, v, step, apart, cells):
    """Return the length of the difference of the normals on both sides of a pixel side; −1 if one is background.

    ``step`` leads along the side from the corner (u, v). The two pixels are ``apart`` pixels from the side: 0 for those
    next to it.
    """
    x, y = corner_after(u, v, step)
    if step in (RIGHT, LEFT):
        i, j, k, m = v - 1 - apart, min(u, x), v + apart, min(u, x)
    else:
        i, j, k, m = min(v, y), u - 1 - apart, min(v, y), u + apart
    if i < 0 or j < 0 or k >= cells.shape[0] or m >= cells.shape[1]:
        return -1.0
    one, i, j = in_cell(i, j, cells)
    other, k, m = in_cell(k, m, cells)
    if not (cells.mask[one, i, j] and cells.mask[other, k, m]):
        return -1.0
    squared = 0.0
    for axis in range(3):
        squared += (np.float64(cells.normals[one, i, j, axis]) - np.float64(cells.normals[other, k, m, axis])) ** 2
    return math.sqrt(squared)


@inner
def mark_band(points, width, cells, grid, marked):
    """Mark the pixel corners within ``width`` px of points (K, 2); list them in ``marked``, and return their number."""
    rows, columns = cells.shape[0] + 1, cells.shape[1] + 1
    count = 0
    for k in range(points.shape[0]):
        for dv in range(-width, width + 1):
            for du in range(-width, width + 1):
                u, v = points[k, 0] + du, points[k, 1] + dv
                if not (0 <= u < columns and 0 <= v < rows):
                    continue
                away = max(abs(du), abs(dv))
                place = in_cell(v, u, cells)
                if grid.offset[place] < 0:
                    marked[count, 0], marked[count, 1] = u, v
                    count += 1
                    grid.cost[place], grid.step[place] = np.inf, -1
                    grid.offset[place] = away
                elif away < grid.offset[place]:
                    grid.offset[place] = away
    return count


@inner
def route(start, end, cells, grid, costs, waiting):
    """Find the cheapest way over pixel sides in the marked band from one corner to another.

    ``costs`` and ``waiting`` are the heap of corners to continue from, with room for four ways to each of the band.
    """
    rows, columns = cells.shape[0] + 1, cells.shape[1] + 1
    grid.cost[in_cell(start[1], start[0], cells)] = 0.0
    size = push(costs, waiting, 0, 0.0, start[0] * rows + start[1])
    while size > 0:
        cost, u, v = costs[0], waiting[0] // rows, waiting[0] % rows
        size = drop_first(costs, waiting, size)
        if cost > grid.cost[in_cell(v, u, cells)]:
            continue
        if u == end[0] and v == end[1]:
            return
        for step in range(STEPS):
            x, y = corner_after(u, v, step)
            if x < 0 or y < 0 or y >= rows or x >= columns:
                continue
            place = in_cell(y, x, cells)
            if grid.offset[place] < 0:
                continue
            contrast = contrast_across(u, v, step, 0, cells)
            if contrast < 0.0:
                continue
            further = cost + (1.0 + OFFSET_COST * grid.offset[place]) / (MIN_CONTRAST + contrast)
            if further < grid.cost[place] - 1e-9:
                grid.cost[place], grid.step[place] = further, step
                size = push(costs, waiting, size, further, x * rows + y)


@kernel
def snap_line(points, width, cells, grid):
    """Return the cheapest path (P, 2) of pixel corners near a line of points (K, 2), from its first to its last one.

    It has at most ``width`` px from the line; it is empty if background bars the way. The arrays of the grid are −1
    before, and again afterwards; its costs are arbitrary.
    """
    marked = np.empty((len(points) * (2 * width + 1) ** 2, 2), np.int64)
    band = mark_band(points, width, cells, grid, marked)
    last = len(points) - 1
    start, end = (points[0, 0], points[0, 1]), (points[last, 0], points[last, 1])
    route(start, end, cells, grid, np.empty(4 * band + 1), np.empty(4 * band + 1, np.int64))
    path = np.empty((band, 2), np.int64)
    count = 0
    if grid.cost[in_cell(end[1], end[0], cells)] < np.inf:
        u, v = end
        while True:
            path[count, 0], path[count, 1] = u, v
            count += 1
            step = grid.step[in_cell(v, u, cells)]
            if step < 0:
                break
            x, y = corner_after(0, 0, step)
            u, v = u - x, v - y
    for k in range(band):
        place = in_cell(marked[k, 1], marked[k, 0], cells)
        grid.offset[place] = grid.step[place] = -1
    return path[:count][::-1].copy()


@kernel
def unit_steps(points):
    """Return the pixel corners (K, 2) of a polyline between pixel corners (P, 2), in steps of at most one px."""
    total = 1
    for i in range(len(points) - 1):
        total += max(abs(points[i + 1, 0] - points[i, 0]), abs(points[i + 1, 1] - points[i, 1]))
    line = np.empty((total, 2), np.int64)
    line[0, 0], line[0, 1] = points[0, 0], points[0, 1]
    filled = 1
    for i in range(len(points) - 1):
        du, dv = points[i + 1, 0] - points[i, 0], points[i + 1, 1] - points[i, 1]
        steps = max(abs(du), abs(dv))
        for k in range(1, steps + 1):
            line[filled, 0], line[filled, 1] = points[i, 0] + du * k // steps, points[i, 1] + dv * k // steps
            filled += 1
    return line
