"""Samples of a map: grids of pixels, and single pixels. They are taken in one pass, or when a diagnosis needs them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float32, Int
from normalmesh.files.packed_masks import WindowedMask
from normalmesh.files.windowed_arrays import WindowedArray
from normalmesh.maps.decoded_windows import DecodedWindows
from normalmesh.normals.integrability import foreground_of
from normalmesh.normals.overview import foreground_window
from normalmesh.normals.windows import Slices, whole_window
from normalmesh.runtime.row_blocks import row_blocks

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
        Of integers of more than 8 bit, the largest value of the first three channels, or any that exceeds 255.
    """

    grids: dict[Grid, NDArray[np.generic]]
    points: NDArray[np.generic]
    largest: int


def take_samples(array: WindowedArray, grids: Collection[Grid], points: Int) -> MapSamples:
    """Take samples in one pass over an array; ``points`` (n,): numbers of pixels, counted row by row."""
    columns, channels = array.shape[1:]
    taken: dict[Grid, NDArray[np.generic]] = {}
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
    return MapSamples(taken, values, largest)


def mask_grid(mask: WindowedMask, grid: Grid) -> Bool:
    """Return the mask (h, w) of a grid of pixels."""
    first, step = grid
    sample = np.empty(_grid_shape(mask.shape, grid), np.bool_)
    for top, band in mask.bands_of_rows():
        inner, outer = grid_places((slice(top, top + len(band)), slice(0, mask.shape[1])), (first, first), step)
        sample[outer] = band[inner]
    return sample


def _grid_shape(shape: tuple[int, int], grid: Grid) -> tuple[int, int]:
    first, step = grid
    return -(-(shape[0] - first) // step), -(-(shape[1] - first) // step)


def mask_points(mask: WindowedMask, points: Int) -> Bool:
    """Return the mask (n,) of pixels, which are numbered row by row."""
    sample, columns = np.empty(len(points), np.bool_), mask.shape[1]
    for top, band in mask.bands_of_rows():
        inside = (points >= top * columns) & (points < (top + len(band)) * columns)
        sample[inside] = band.ravel()[points[inside] - top * columns]
    return sample


def every_foreground_pixel(mask: WindowedMask, step: int) -> Int:
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


class DiskPixels:
    """Pixels of a map on disk from which samples are taken, as :class:`.overview.Pixels` describes it.

    Parameters
    ----------
    windows
        The map.
    grids
        Vectors (h, w, 3) and foreground (h, w) of every step-th pixel, by step, as far as they are known.
    window
        The part of the map that is looked at.
    """

    def __init__(self, windows: DecodedWindows, grids: dict[int, tuple[Float32, Bool]], window: Slices | None = None):
        self._windows, self._grids = windows, grids
        rows, columns = windows.shape
        self._rows, self._columns = window or (slice(0, rows), slice(0, columns))

    @property
    def shape(self) -> tuple[int, int]:
        return self._rows.stop - self._rows.start, self._columns.stop - self._columns.start

    def every(self, step: int) -> tuple[Float32, Bool]:
        if step not in self._grids:
            rows, columns = (-(-length // step) for length in self.shape)
            vectors, foreground = np.zeros((rows, columns, 3), np.float32), np.zeros((rows, columns), np.bool_)
            for window in self._parts():
                found, usable = self._windows.read(window)
                inner, outer = grid_places(window, (self._rows.start, self._columns.start), step)
                vectors[outer], foreground[outer] = found[inner], usable[inner]
            self._grids[step] = vectors, foreground
        return self._grids[step]

    def at(self, i: NDArray[np.intp], j: NDArray[np.intp], step: int) -> tuple[Float32, Bool]:
        if step > 1:
            vectors, foreground = self.every(step)
            return vectors[i // step, j // step], foreground[i // step, j // step]
        squares = [self._square(rows, columns) for rows, columns in zip(i[:, :, 0], j[:, 0, :], strict=True)]
        return np.stack([vectors for vectors, _ in squares]), np.stack([foreground for _, foreground in squares])

    def around_foreground(self) -> tuple[DiskPixels, int, int]:
        rows, columns = (np.zeros(length, np.bool_) for length in self.shape)
        for window in self._parts():
            found = foreground_of(*self._windows.read(window))
            rows[window[0]] |= found.any(axis=1)
            columns[window[1]] |= found.any(axis=0)
        down, across = foreground_window(rows, columns)
        window = slice(down.start, min(down.stop, len(rows))), slice(across.start, min(across.stop, len(columns)))
        return DiskPixels(self._windows, {}, window), down.start, across.start

    def _square(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> tuple[Float32, Bool]:
        """Return the pixels in rows and columns (S,), which ascend."""
        top, left = int(rows[0]) + self._rows.start, int(columns[0]) + self._columns.start
        window = slice(top, top + int(rows[-1] - rows[0]) + 1), slice(left, left + int(columns[-1] - columns[0]) + 1)
        vectors, foreground = self._windows.read(window)
        at = np.ix_(rows - rows[0], columns - columns[0])
        return vectors[at], foreground[at]

    def _parts(self) -> list[Slices]:
        """Return the windows of a pass, cut to the part that is looked at."""
        parts = []
        for rows, columns in self._windows.passes():
            cut = _cut(rows, self._rows), _cut(columns, self._columns)
            if cut[0].start < cut[0].stop and cut[1].start < cut[1].stop:
                parts.append(cut)
        return parts


def _cut(side: slice, limits: slice) -> slice:
    return slice(max(side.start, limits.start), min(side.stop, limits.stop))


def grid_places(window: Slices, origin: tuple[int, int], step: int) -> tuple[Slices, Slices]:
    """Return where in a window the pixels of a grid lie that begins at ``origin``, and where in the grid they are."""
    inner, outer = [], []
    for side, first in zip(window, origin, strict=True):
        before = max(-(-(side.start - first) // step), 0)
        start = first + before * step - side.start
        count = max(-(-(side.stop - side.start - start) // step), 0)
        inner.append(slice(start, start + count * step, step))
        outer.append(slice(before, before + count))
    return (inner[0], inner[1]), (outer[0], outer[1])
