"""Samples of a map: grids of pixels, and single pixels, all taken in one pass."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Int
from normalmesh.files.masks import PackedMask
from normalmesh.files.windowed_arrays import WindowedArray
from normalmesh.normals.windows import grid_places, whole_window
from normalmesh.runtime.row_blocks import row_blocks

#: First row, which is also the first column, and step of a grid of pixels.
Grid = tuple[int, int]


def take_samples(
    array: WindowedArray, grids: Collection[Grid], points: Int
) -> tuple[dict[Grid, NDArray[Any]], NDArray[Any], int]:
    """Take samples in one pass over an array: values (h, w, C) of grids, and values (n, C) of points.

    ``points`` (n,) are numbers of pixels, counted row by row. Returns, besides, of integers of more than 8 bit the
    largest value of the first three channels, or any that exceeds 255.
    """
    columns, channels = array.shape[1:]
    taken: dict[Grid, NDArray[Any]] = {}
    order = np.argsort(points, kind="stable")
    down, across = np.divmod(points[order], columns)
    values, largest = np.empty((len(points), channels), array.dtype), 0
    wide = array.maximum is not None and array.maximum > 255
    for window in array.passes():
        part = array.read(*window)
        for grid in grids:
            inner, outer = grid_places(window, (grid[0], grid[0]), grid[1])
            if window == whole_window(array.size):
                taken[grid] = part[inner]  # a view: a small map may be all sample
                continue
            if grid not in taken:
                taken[grid] = np.empty((*_grid_shape(array.size, grid), channels), array.dtype)
            taken[grid][outer] = part[inner]
        begin, end = np.searchsorted(down, (window[0].start, window[0].stop))
        inside = (across[begin:end] >= window[1].start) & (across[begin:end] < window[1].stop)
        chosen = np.arange(begin, end)[inside]
        values[order[chosen]] = part[down[chosen] - window[0].start, across[chosen] - window[1].start]
        for rows in row_blocks(part.shape) if wide else ():
            largest = largest if largest > 255 else max(largest, int(part[rows, :, :3].max()))
    return taken, values, largest


def _grid_shape(shape: tuple[int, int], grid: Grid) -> tuple[int, int]:
    first, step = grid
    return -(-(shape[0] - first) // step), -(-(shape[1] - first) // step)


def mask_grid(mask: PackedMask | None, grid: Grid) -> Bool | None:
    """Return the mask (h, w) of a grid of pixels; None without a mask."""
    if mask is None:
        return None
    first, step = grid
    sample = np.empty(_grid_shape(mask.shape, grid), np.bool_)
    for top, band in mask.bands_of_rows():
        inner, outer = grid_places((slice(top, top + len(band)), slice(0, mask.shape[1])), (first, first), step)
        sample[outer] = band[inner]
    return sample


def mask_points(mask: PackedMask | None, points: Int) -> Bool | None:
    """Return the mask (n, 1) of pixels, which are numbered row by row; None without a mask."""
    if mask is None:
        return None
    sample, columns = np.empty(len(points), np.bool_), mask.shape[1]
    for top, band in mask.bands_of_rows():
        inside = (points >= top * columns) & (points < (top + len(band)) * columns)
        sample[inside] = band.ravel()[points[inside] - top * columns]
    return sample[:, None]


def every_foreground_pixel(mask: PackedMask, step: int) -> Int:
    """Return the number of every ``step``-th pixel of a mask, beginning with the ``step``-th."""
    found, before = [], 0
    for top, band in mask.bands_of_rows():
        pixels = np.flatnonzero(band)
        found.append(pixels[(step - 1 - before) % step :: step] + top * mask.shape[1])
        before += len(pixels)
    return np.concatenate(found).astype(np.int64)


def border_pixels(shape: tuple[int, int]) -> Int:
    """Return the numbers of the pixels of the border of an image: first row, last row, then the sides between them."""
    rows, columns = shape
    first, sides = np.arange(columns), np.arange(1, rows - 1) * columns
    return np.concatenate([first, (rows - 1) * columns + first, sides, sides + columns - 1]).astype(np.int64)
