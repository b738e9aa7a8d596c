"""Windows of an image, the tiles that divide it, and what hands out their pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from normalmesh.array_types import Bool, Float, Int
from normalmesh.normals.camera import Camera
from normalmesh.normals.normal_map import NormalMap


class WindowedMap(Protocol):
    """A normal map that hands out windows; see :class:`.NormalMap`."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def camera(self) -> Camera: ...

    def window(self, rows: slice, columns: slice) -> NormalMap | None:
        """Return a window with its own camera, None without foreground."""
        ...

    def mask_window(self, rows: slice, columns: slice) -> Bool:
        """Return the mask of a window."""
        ...


@dataclass(frozen=True)
class Window:
    """A rectangle of pixels; ``bottom`` and ``right`` are the first row and column beyond it."""

    top: int
    left: int
    bottom: int
    right: int

    @classmethod
    def whole(cls, shape: tuple[int, int]) -> Window:
        """Return the window of a whole image."""
        return cls(0, 0, *shape)

    @property
    def rows(self) -> slice:
        return slice(self.top, self.bottom)

    @property
    def columns(self) -> slice:
        return slice(self.left, self.right)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.bottom - self.top, self.right - self.left

    @property
    def corner(self) -> Int:
        """The upper left corner as u, v."""
        return np.array([self.left, self.top])

    @property
    def pixels(self) -> int:
        """Number of pixels; 0 for a window of another one that it does not meet."""
        height, width = self.shape
        return max(height, 0) * max(width, 0)

    def within(self, other: Window) -> Window:
        """Return the part in another window."""
        first = max(self.top, other.top), max(self.left, other.left)
        return Window(*first, min(self.bottom, other.bottom), min(self.right, other.right))

    def moved(self, down: int, right: int) -> Window:
        """Return the window of another place, so many px down and to the right."""
        return Window(self.top + down, self.left + right, self.bottom + down, self.right + right)

    def grown(self, by: int, limits: Window) -> Window:
        """Return the window with so many px more on all sides, within limits."""
        return Window(self.top - by, self.left - by, self.bottom + by, self.right + by).within(limits)

    def numbers(self, chosen: Bool, columns: int) -> Int:
        """Return the numbers (K,), in an image of so many columns, of the chosen pixels (h, w)."""
        row, column = np.nonzero(chosen)
        return (row + self.top) * np.int64(columns) + column + self.left

    def place_in(self, other: Window) -> tuple[slice, slice]:
        """Return rows and columns in an array of another window, which holds this one."""
        top, left = self.top - other.top, self.left - other.left
        height, width = self.shape
        return slice(top, top + height), slice(left, left + width)


def tiles_of(window: Window, side: int) -> dict[str, Window]:
    """Return the tiles of a window, of a side in px and smaller at the end, row by row, by their keys."""
    return {
        f"{i}_{j}": Window(top, left, top + side, left + side).within(window)
        for i, top in enumerate(range(window.top, window.bottom, side))
        for j, left in enumerate(range(window.left, window.right, side))
    }


def filled_window(normal_map: WindowedMap, window: Window) -> NormalMap:
    """Return the pixels of a window in which there is foreground."""
    pixels = normal_map.window(window.rows, window.columns)
    assert pixels is not None, f"no foreground in {window}"
    return pixels


def window_around(points: Float, limits: Window) -> Window:
    """Return the pixels around points (K, 2) as u, v, with a margin of two, within limits."""
    (left, top), (right, bottom) = np.floor(points.min(axis=0)), np.ceil(points.max(axis=0))
    return Window(int(top), int(left), int(bottom), int(right)).grown(2, limits)
