"""Windows of a normal map on disk: stored values → vectors, as :mod:`.decoding` decodes whole files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float32
from normalmesh.maps.decoding import Encoding, StoredNormals, decode_window, straight
from normalmesh.maps.packed_masks import PackedMask
from normalmesh.maps.windowed_arrays import Window, WindowedArray, pass_windows
from normalmesh.normals.conventions import Convention
from normalmesh.normals.integrability import foreground_of
from normalmesh.normals.overview import foreground_window

#: The convention that leaves channels as they are.
OPENGL = Convention.parse("opengl")


def stored_values(values: NDArray[np.generic], maximum: int | None) -> StoredNormals:
    """Return values (h, w, 3 or 4) as normals and alpha."""
    alpha = values[..., 3] if values.shape[2] == 4 else None
    return StoredNormals((values[..., 0], values[..., 1], values[..., 2]), maximum, alpha=alpha)


@dataclass(frozen=True, eq=False)
class DecodedWindows:
    """Windows of vectors, and what the whole map tells about how to decode them.

    Attributes
    ----------
    array
        The stored values.
    encoding
        How values become components.
    premultiplied
        Whether channels were multiplied by alpha.
    mask
        The given mask; None if there is none.
    found
        The background that :mod:`.background` finds by the colour of the border; None if there is none.
    convention
        What the channels hold; opengl leaves them as they are.
    """

    array: WindowedArray
    encoding: Encoding
    premultiplied: bool
    mask: PackedMask | None
    found: PackedMask | None = None
    convention: Convention = OPENGL

    def read(self, window: Window) -> tuple[Float32, Bool]:
        """Return vectors (h, w, 3), zero where there is none, and foreground (h, w)."""
        mask, found = (None if each is None else each.window(*window) for each in (self.mask, self.found))
        return self.decoded(self.array.read(*window), mask, found)

    def raw(self, window: Window) -> tuple[Float32, Bool]:
        """Return vectors (h, w, 3) as they are in the background, too, and foreground (h, w)."""
        mask = None if self.mask is None else self.mask.window(*window)
        return self.raw_values(self.array.read(*window), mask)

    def decoded(self, values: NDArray[np.generic], mask: Bool | None, found: Bool | None) -> tuple[Float32, Bool]:
        """Return vectors and foreground of stored values (h, w, 3 or 4) of any pixels."""
        vectors, foreground = self.raw_values(values, mask)
        if found is not None:
            foreground &= ~found
        vectors[~foreground] = 0
        if self.convention != OPENGL:
            vectors = self.convention.to_project(vectors).astype(np.float32, copy=False)
        return vectors, foreground

    def raw_values(self, values: NDArray[np.generic], mask: Bool | None = None) -> tuple[Float32, Bool]:
        """Return vectors as they are in the background, too, and foreground of stored values of any pixels."""
        stored = stored_values(values, self.array.maximum)
        return decode_window(straight(stored) if self.premultiplied else stored, self.encoding, mask)


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

    def __init__(self, windows: DecodedWindows, grids: dict[int, tuple[Float32, Bool]], window: Window | None = None):
        self._windows, self._grids = windows, grids
        rows, columns = windows.array.size
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

    def _parts(self) -> list[Window]:
        """Return the windows of a pass, cut to the part that is looked at."""
        parts = []
        for rows, columns in pass_windows(self._windows.array):
            cut = _cut(rows, self._rows), _cut(columns, self._columns)
            if cut[0].start < cut[0].stop and cut[1].start < cut[1].stop:
                parts.append(cut)
        return parts


def _cut(side: slice, limits: slice) -> slice:
    return slice(max(side.start, limits.start), min(side.stop, limits.stop))


def grid_places(window: Window, origin: tuple[int, int], step: int) -> tuple[Window, Window]:
    """Return where in a window the pixels of a grid lie that begins at ``origin``, and where in the grid they are."""
    inner, outer = [], []
    for side, first in zip(window, origin, strict=True):
        before = max(-(-(side.start - first) // step), 0)
        start = first + before * step - side.start
        count = max(-(-(side.stop - side.start - start) // step), 0)
        inner.append(slice(start, start + count * step, step))
        outer.append(slice(before, before + count))
    return (inner[0], inner[1]), (outer[0], outer[1])
