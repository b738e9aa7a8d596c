"""Masks that are put together from windows, in memory or in little of it: one bit a pixel, compressed in bands."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Bool, Int
from normalmesh.normals.windows import Rectangle, Slices, rectangle_of, whole_window

#: Rows of a band.
BAND = 64
#: Level of zlib: masks are coherent, so the fastest compresses them a hundredfold.
LEVEL = 1


class WindowedMask:
    """A mask (H, W) that hands out windows.

    Attributes
    ----------
    shape
        Rows and columns.
    """

    shape: tuple[int, int]

    def window(self, rows: slice, columns: slice) -> Bool:
        """Return a window (h, w) of the mask, which is not to be changed."""
        raise NotImplementedError

    def whole(self) -> Bool:
        """Return the mask (H, W), which is not to be changed."""
        return self.window(*whole_window(self.shape))

    def bands_of_rows(self) -> Iterator[tuple[int, Bool]]:
        """Yield the mask (h, W) of a few rows at a time, with the first of them."""
        for top in range(0, self.shape[0], BAND):
            yield top, self.window(slice(top, min(top + BAND, self.shape[0])), slice(0, self.shape[1]))


class ArrayMask(WindowedMask):
    """A mask in memory, ``values`` (H, W). It is its own builder, as :class:`MaskPacker` is that of the packed one."""

    def __init__(self, shape: tuple[int, int]):
        self.shape, self.values = shape, np.zeros(shape, np.bool_)

    def put(self, window: Slices, values: Bool) -> None:
        """Set the values (h, w) of a window."""
        self.values[window] = values

    def done(self) -> ArrayMask:
        """Return the mask."""
        return self

    def window(self, rows: slice, columns: slice) -> Bool:
        return self.values[rows, columns]


@dataclass(frozen=True, eq=False)
class PackedMask(WindowedMask):
    """A mask in little memory. Large areas of one value take none.

    Attributes
    ----------
    bands
        The bits of :data:`BAND` rows each, compressed, or their only value.
    """

    shape: tuple[int, int]
    bands: tuple[bytes | bool, ...]

    @classmethod
    def of(cls, mask: Bool) -> PackedMask:
        """Pack a mask (H, W)."""
        packer = MaskPacker((mask.shape[0], mask.shape[1]))
        packer.put(whole_window(packer.shape), mask)
        return packer.done()

    def window(self, rows: slice, columns: slice) -> Bool:
        window = np.empty((rows.stop - rows.start, columns.stop - columns.start), np.bool_)
        for number in range(rows.start // BAND, -(-rows.stop // BAND)):
            first, last = max(rows.start, number * BAND), min(rows.stop, (number + 1) * BAND)
            part = slice(first - number * BAND, last - number * BAND)
            window[first - rows.start : last - rows.start] = self._part(number, part, columns)
        return window

    def _part(self, number: int, rows: slice, columns: slice) -> Bool | bool:
        """Return rows of a band."""
        band = self.bands[number]
        if isinstance(band, bool):
            return band
        width = -(-self.shape[1] // 8)
        packed = np.frombuffer(zlib.decompress(band), np.uint8).reshape(-1, width)
        first = columns.start // 8
        bits = np.unpackbits(packed[rows, first : -(-columns.stop // 8)], axis=1)
        part: Bool = bits[:, columns.start - 8 * first : columns.stop - 8 * first].view(np.bool_)
        return part


class MaskPacker:
    """A packed mask that is put together from windows. It takes one bit a pixel meanwhile."""

    def __init__(self, shape: tuple[int, int]):
        self.shape = shape
        self._bits = np.zeros((shape[0], -(-shape[1] // 8)), np.uint8)

    def put(self, window: Slices, values: Bool) -> None:
        """Set the values (h, w) of a window."""
        rows, columns = window
        first = columns.start // 8
        bytes_ = (rows, slice(first, -(-columns.stop // 8)))
        bits = np.unpackbits(self._bits[bytes_], axis=1)
        bits[:, columns.start - 8 * first : columns.stop - 8 * first] = values
        self._bits[bytes_] = np.packbits(bits, axis=1)

    def clear(self, numbers: Int) -> None:
        """Set pixels, which are numbered row by row, to False."""
        rows, columns = np.divmod(numbers, self.shape[1])
        np.bitwise_and.at(self._bits, (rows, columns // 8), ~(128 >> columns % 8).astype(np.uint8))

    def rectangle(self) -> Rectangle:
        """Return the smallest rectangle that holds all that is True."""
        columns = np.unpackbits(np.bitwise_or.reduce(self._bits, axis=0))[: self.shape[1]]
        rows: Bool = np.any(self._bits, axis=1)
        return rectangle_of(rows, columns.view(np.bool_))

    def done(self) -> PackedMask:
        """Return the mask."""
        full = np.packbits(np.ones(self.shape[1], np.uint8))
        bands: list[bytes | bool] = []
        for top in range(0, self.shape[0], BAND):
            band = self._bits[top : top + BAND]
            if not band.any():
                bands.append(False)
            elif np.array_equal(band, np.broadcast_to(full, band.shape)):
                bands.append(True)
            else:
                bands.append(zlib.compress(band.tobytes(), LEVEL))
        return PackedMask(self.shape, tuple(bands))


#: What puts a mask together from windows.
MaskBuilder = type[ArrayMask] | type[MaskPacker]
