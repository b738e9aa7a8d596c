"""Windows: rectangles of pixels of an image."""

from __future__ import annotations

from numbers import Integral
from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Bool, Int
from normalmesh.errors import NormalMeshError, repr_for_error, shape_text

#: Rows and columns of a window, with a start and a stop.
Slices = tuple[slice, slice]


class Rectangle(NamedTuple):
    """A rectangle of pixels: row and column of its first pixel, and its sides."""

    top: int
    left: int
    height: int
    width: int

    @property
    def window(self) -> Slices:
        """Rows and columns."""
        return slice(self.top, self.top + self.height), slice(self.left, self.left + self.width)


def rectangle_of(rows: Bool, columns: Bool) -> Rectangle:
    """Return the rectangle of a foreground, given which rows (H,) and which columns (W,) hold some of it."""
    tops, lefts = np.flatnonzero(rows), np.flatnonzero(columns)
    top, left = int(tops[0]), int(lefts[0])
    return Rectangle(top, left, int(tops[-1]) + 1 - top, int(lefts[-1]) + 1 - left)


def whole_window(shape: tuple[int, int]) -> Slices:
    """Return the window of a whole image."""
    return slice(0, shape[0]), slice(0, shape[1])


def checked_window(rows: object, columns: object, shape: tuple[int, int]) -> Slices:
    """Return rows and columns as slices with a start and a stop inside an image, or raise :class:`NormalMeshError`."""
    first, second = (_checked_side(side, length) for side, length in zip((rows, columns), shape, strict=True))
    if first is None or second is None:
        raise NormalMeshError(
            f"rows and columns of a window must be slices without steps that begin inside the image of "
            f"{shape_text(shape)} pixels, not {repr_for_error(rows)} and {repr_for_error(columns)}"
        )
    return first, second


def _checked_side(side: object, length: int) -> slice | None:
    if not isinstance(side, slice) or side.step not in (None, 1):
        return None
    ends = (0 if side.start is None else side.start, length if side.stop is None else side.stop)
    if not all(isinstance(end, Integral) for end in ends):
        return None
    start, stop = int(ends[0]), min(int(ends[1]), length)
    return slice(start, stop) if 0 <= start < stop else None


def padded_window(window: Slices, margin: int, shape: tuple[int, int]) -> Slices:
    """Return a window with a margin around it, as far as the image reaches."""
    rows, columns = (
        slice(max(side.start - margin, 0), min(side.stop + margin, length))
        for side, length in zip(window, shape, strict=True)
    )
    return rows, columns


def centre_of(window: Slices, around: Slices) -> Slices:
    """Return where a window lies in a larger one around it."""
    rows, columns = (
        slice(side.start - outer.start, side.stop - outer.start) for side, outer in zip(window, around, strict=True)
    )
    return rows, columns


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


def points_inside(window: Slices, rows: Int, columns: Int) -> tuple[Int, tuple[Int, Int]]:
    """Return which of some pixels (n,), whose rows ascend, lie in a window, and their rows and columns in it."""
    begin, end = np.searchsorted(rows, (window[0].start, window[0].stop))
    inside = (columns[begin:end] >= window[1].start) & (columns[begin:end] < window[1].stop)
    chosen = np.arange(begin, end)[inside]
    return chosen, (rows[chosen] - window[0].start, columns[chosen] - window[1].start)
