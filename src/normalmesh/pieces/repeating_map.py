"""RepeatingMap: windows of a map that repeats, which may lie beyond its sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Bool
from normalmesh.integration.levelling import without_slope
from normalmesh.mesh.repeats import Repeats, wrapped
from normalmesh.normals.camera import Camera
from normalmesh.normals.normal_map import NormalMap
from normalmesh.pieces.map_windows import Window, WindowedMap


@dataclass(frozen=True, eq=False)
class RepeatingMap:
    """A map whose windows go on at the opposite side, without the mean slope that was taken away."""

    source: WindowedMap
    repeats: Repeats

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of one period."""
        return self.source.shape

    @property
    def camera(self) -> Camera:
        """Camera of the whole image, which is orthographic: that of all windows."""
        return self.source.camera

    @property
    def limits(self) -> Window:
        """Where windows may lie: in the image, and a period beyond its sides in the directions in which it repeats."""
        (rows, columns), (down, right) = self.shape, wrapped(self.repeats)
        return Window(-rows * down, -columns * right, rows * (1 + down), columns * (1 + right))

    def window(self, rows: slice, columns: slice) -> NormalMap | None:
        """Return a window, None without foreground."""
        shape = rows.stop - rows.start, columns.stop - columns.start
        normals, mask = np.zeros((*shape, 3), np.float32), np.zeros(shape, np.bool_)
        for here, there in self._parts(rows, columns):
            part = self.source.window(*there)
            if part is not None:
                normals[here], mask[here] = part.normals, part.mask
        if not mask.any():
            return None
        window = NormalMap.cleaned(normals, mask, self.camera)
        return without_slope(window, self.repeats.mean_slope) if any(self.repeats.mean_slope) else window

    def mask_window(self, rows: slice, columns: slice) -> Bool:
        """Return the mask of a window."""
        mask = np.zeros((rows.stop - rows.start, columns.stop - columns.start), np.bool_)
        for here, there in self._parts(rows, columns):
            mask[here] = self.source.mask_window(*there)
        return mask

    def _parts(self, rows: slice, columns: slice) -> Iterator[tuple[tuple[slice, slice], tuple[slice, slice]]]:
        """Yield rows and columns of the parts of a window, in it and in the image."""
        for down, there in _periods(rows, self.shape[0]):
            for right, across in _periods(columns, self.shape[1]):
                yield (down, right), (there, across)


def level_map(normal_map: WindowedMap, repeats: Repeats | None) -> WindowedMap:
    """Return a map that goes on beyond its sides if it repeats, without its mean slope."""
    return normal_map if repeats is None else RepeatingMap(normal_map, repeats)


def limits_of(normal_map: WindowedMap) -> Window:
    """Return the window of all pixels that a map has."""
    return normal_map.limits if isinstance(normal_map, RepeatingMap) else Window.whole(normal_map.shape)


def _periods(window: slice, period: int) -> Iterator[tuple[slice, slice]]:
    """Yield the parts of a window in each period, counted in the window and in the period."""
    start = window.start
    while start < window.stop:
        first = start % period
        length = min(window.stop - start, period - first)
        yield slice(start - window.start, start - window.start + length), slice(first, first + length)
        start += length
