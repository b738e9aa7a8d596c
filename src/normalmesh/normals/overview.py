"""Overview of a large map: a sample of its pixels, and where its foreground is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from normalmesh.array_types import Bool, Float32, Floating, Int
from normalmesh.normals.integrability import foreground_of
from normalmesh.normals.windows import padded_window, rectangle_of

#: Number of pixels sampled for lengths, directions and the outline.
OVERVIEW_PIXELS = 2**19
#: Number of foreground pixels in a sample below which it should be taken around the foreground only.
FEW = 2**14
#: Pixels around the foreground, and rows that are looked at together to find it.
MARGIN, ROWS = 32, 256


class Pixels(Protocol):
    """Channels of a map, in memory or on disk, from which samples are taken. A mask may be None: all pixels."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    def every(self, step: int) -> tuple[Floating, Bool | None]:
        """Return channels (h, w, 3) and mask (h, w) of every ``step``-th pixel along rows and columns."""

    def at(self, i: Int, j: Int, step: int) -> tuple[Floating, Bool | None]:
        """Return channels (T, S, S, 3) and mask (T, S, S) of every ``step``-th pixel of squares.

        Rows i (T, S, 1) and columns j (T, 1, S) begin at multiples of ``step``; the last ones may be repeated.
        """

    def around_foreground(self) -> tuple[Pixels, int, int]:
        """Return the pixels of a window around the foreground, and row and column of its first pixel."""


@dataclass(frozen=True, eq=False)
class ArrayPixels:
    """Pixels in memory: channels (H, W, 3) and a mask (H, W) or None."""

    channels: Floating
    usable: Bool | None

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.channels.shape[:2]
        return rows, columns

    def every(self, step: int) -> tuple[Floating, Bool | None]:
        return self.channels[::step, ::step], None if self.usable is None else self.usable[::step, ::step]

    def at(self, i: Int, j: Int, step: int) -> tuple[Floating, Bool | None]:
        return self.channels[i, j], None if self.usable is None else self.usable[i, j]

    def around_foreground(self) -> tuple[ArrayPixels, int, int]:
        rows, columns = (np.zeros(length, np.bool_) for length in self.shape)
        for start in range(0, len(rows), ROWS):
            part = slice(start, start + ROWS)
            usable = None if self.usable is None else self.usable[part]
            found = foreground_of(self.channels[part].astype(np.float32), usable)
            rows[part] = found.any(axis=1)
            columns |= found.any(axis=0)
        window = foreground_window(rows, columns)
        pixels = ArrayPixels(self.channels[window], None if self.usable is None else self.usable[window])
        return pixels, window[0].start, window[1].start


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


def foreground_window(rows: Bool, columns: Bool) -> tuple[slice, slice]:
    """Return the window of the foreground with a margin, given which rows (H,) and columns (W,) hold some of it."""
    if not rows.any():
        return slice(0, len(rows)), slice(0, len(columns))
    return padded_window(rectangle_of(rows, columns).window, MARGIN, (len(rows), len(columns)))
