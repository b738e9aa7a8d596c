"""Samples of a map on disk, taken in one pass: grids of pixels, and single pixels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Int
from normalmesh.maps.decoded_windows import grid_places
from normalmesh.maps.packed_masks import PackedMask
from normalmesh.maps.windowed_arrays import WindowedArray, pass_windows

#: First row, which is also the first column, and step of a grid of pixels.
Grid = tuple[int, int]


@dataclass(frozen=True, eq=False)
class MapSamples:
    """Stored values of some pixels.

    Attributes
    ----------
    grids
        Values (h, w, channels) of each grid.
    points
        Values (n, channels) of the pixels asked for.
    largest
        Largest value of the first three channels, of all pixels; 0 for floats.
    """

    grids: dict[Grid, NDArray[np.generic]]
    points: NDArray[np.generic]
    largest: int


def take_samples(array: WindowedArray, grids: Iterable[Grid], points: Int) -> MapSamples:
    """Take samples in one pass over an array; ``points`` (n,): numbers of pixels, counted row by row."""
    rows, columns, channels = array.shape
    taken = {
        (first, step): np.empty((*(-(-(length - first) // step) for length in (rows, columns)), channels), array.dtype)
        for first, step in grids
    }
    order = np.argsort(points, kind="stable")
    down, across = np.divmod(points[order], columns)
    values, largest = np.empty((len(points), channels), array.dtype), 0
    for window in pass_windows(array):
        part = array.read(*window)
        for (first, step), grid in taken.items():
            inner, outer = grid_places(window, (first, first), step)
            grid[outer] = part[inner]
        begin, end = np.searchsorted(down, (window[0].start, window[0].stop))
        inside = (across[begin:end] >= window[1].start) & (across[begin:end] < window[1].stop)
        chosen = np.arange(begin, end)[inside]
        values[order[chosen]] = part[down[chosen] - window[0].start, across[chosen] - window[1].start]
        if array.dtype.kind != "f":
            largest = max(largest, int(part[..., :3].max()))
    return MapSamples(taken, values, largest)


def mask_grid(mask: PackedMask, grid: Grid) -> Bool:
    """Return the mask (h, w) of a grid of pixels."""
    first, step = grid
    shape = tuple(-(-(length - first) // step) for length in mask.shape)
    sample = np.empty(shape, np.bool_)
    for top, band in mask.bands_of_rows():
        inner, outer = grid_places((slice(top, top + len(band)), slice(0, mask.shape[1])), (first, first), step)
        sample[outer] = band[inner]
    return sample


def mask_points(mask: PackedMask, points: Int) -> Bool:
    """Return the mask (n,) of pixels, which are numbered row by row."""
    sample, columns = np.empty(len(points), np.bool_), mask.shape[1]
    for top, band in mask.bands_of_rows():
        inside = (points >= top * columns) & (points < (top + len(band)) * columns)
        sample[inside] = band.ravel()[points[inside] - top * columns]
    return sample


def every_foreground_pixel(mask: PackedMask, step: int) -> Int:
    """Return the number of every ``step``-th pixel of a mask, beginning with the ``step``-th."""
    found, before = [], 0
    for top, band in mask.bands_of_rows():
        pixels = np.flatnonzero(band)
        chosen = pixels[(step - 1 - before) % step :: step]
        found.append(chosen + top * mask.shape[1])
        before += len(pixels)
    return np.concatenate(found).astype(np.int64)


def border_pixels(shape: tuple[int, int]) -> Int:
    """Return the numbers of the pixels of the border of an image: first row, last row, then the sides between them."""
    rows, columns = shape
    first, sides = np.arange(columns), np.arange(1, rows - 1) * columns
    return np.concatenate([first, (rows - 1) * columns + first, sides, sides + columns - 1]).astype(np.int64)
