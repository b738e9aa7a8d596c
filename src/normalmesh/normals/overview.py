"""Overview of a large map: a sample of its pixels, and where its foreground is."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float32, Floating
from normalmesh.normals.integrability import foreground_of
from normalmesh.normals.windows import Rectangle, Slices, grid_places, padded_window, rectangle_of
from normalmesh.runtime.row_blocks import row_blocks

#: Number of pixels sampled for lengths, directions and the outline.
OVERVIEW_PIXELS = 2**19
#: Number of foreground pixels in a sample below which it should be taken around the foreground only.
FEW = 2**14
#: Pixels around the foreground.
MARGIN = 32

#: Channels (h, w, 3) and mask (h, w) of some pixels.
ChannelsAndMask = tuple[Floating, Bool]


class Pixels:
    """Channels of a map, in memory or on disk, from which samples are taken.

    Parameters
    ----------
    read
        Return the pixels of a window.
    passes
        Windows that cover the map; in memory, one.
    window
        The part of the map that is looked at.
    grids
        Every step-th pixel along rows and columns, by step, as far as they are known.
    """

    def __init__(
        self,
        read: Callable[[Slices], ChannelsAndMask],
        passes: Iterable[Slices],
        window: Slices,
        grids: dict[int, ChannelsAndMask] | None = None,
    ):
        self._read, self._grids = read, {} if grids is None else grids
        self._origin = window[0].start, window[1].start
        self.shape = window[0].stop - window[0].start, window[1].stop - window[1].start
        cut = [(_common(rows, window[0]), _common(columns, window[1])) for rows, columns in passes]
        self._passes = [each for each in cut if all(side.start < side.stop for side in each)]

    def every(self, step: int) -> ChannelsAndMask:
        """Return every ``step``-th pixel along rows and columns."""
        if step not in self._grids:
            rows, columns = (-(-length // step) for length in self.shape)
            channels, mask = np.zeros((rows, columns, 3), np.float32), np.zeros((rows, columns), np.bool_)
            for window in self._passes:
                found, usable = self._read(window)
                inner, outer = grid_places(window, self._origin, step)
                channels[outer], mask[outer] = found[inner], usable[inner]
            self._grids[step] = channels, mask
        return self._grids[step]

    def at(self, i: NDArray[np.intp], j: NDArray[np.intp], step: int) -> ChannelsAndMask:
        """Return channels (T, S, S, 3) and mask (T, S, S) of every ``step``-th pixel of squares.

        Rows i (T, S, 1) and columns j (T, 1, S) begin at multiples of ``step``; the last ones may be repeated.
        """
        if step > 1:
            channels, mask = self.every(step)
            return channels[i // step, j // step], mask[i // step, j // step]
        squares = [self._square(rows, columns) for rows, columns in zip(i[:, :, 0], j[:, 0, :], strict=True)]
        return np.stack([channels for channels, _ in squares]), np.stack([mask for _, mask in squares])

    def _square(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> ChannelsAndMask:
        """Return the pixels in rows and columns (S,), which ascend."""
        (top, left), (height, width) = (int(rows[0]), int(columns[0])), (np.ptp(rows) + 1, np.ptp(columns) + 1)
        window = Rectangle(self._origin[0] + top, self._origin[1] + left, int(height), int(width)).window
        channels, mask = self._read(window)
        at = np.ix_(rows - rows[0], columns - columns[0])
        return channels[at], mask[at]

    def around_foreground(self) -> tuple[Pixels, int, int]:
        """Return the pixels of a window around the foreground, and row and column of its first pixel."""
        rows, columns = (np.zeros(length, np.bool_) for length in self.shape)
        (top, left), (height, width) = self._origin, self.shape
        for window in self._passes:
            channels, mask = self._read(window)
            across = columns[window[1].start - left : window[1].stop - left]
            for block in row_blocks(mask.shape):
                found = foreground_of(channels[block].astype(np.float32, copy=False), mask[block])
                first = window[0].start - top + block.start
                rows[first : first + len(found)] |= found.any(axis=1)
                across |= found.any(axis=0)
        down, right = slice(0, height), slice(0, width)
        if rows.any():
            down, right = padded_window(rectangle_of(rows, columns).window, MARGIN, self.shape)
        inside = slice(top + down.start, top + down.stop), slice(left + right.start, left + right.stop)
        return Pixels(self._read, self._passes, inside), down.start, right.start


def _common(side: slice, limits: slice) -> slice:
    return slice(max(side.start, limits.start), min(side.stop, limits.stop))


def overview_of(pixels: Pixels) -> tuple[int, Float32, Bool]:
    """Return a step, every ``step``-th pixel (h, w, 3) of a map along rows and columns, and its foreground (h, w)."""
    step = overview_step(pixels.shape)
    channels, usable = pixels.every(step)
    overview = channels.astype(np.float32)
    return step, overview, foreground_of(overview, usable)


def overview_step(shape: tuple[int, int]) -> int:
    """Return the step of an overview of :data:`OVERVIEW_PIXELS` pixels."""
    rows, columns = shape
    return max(1, int(np.ceil(np.sqrt(rows * columns / OVERVIEW_PIXELS))))
