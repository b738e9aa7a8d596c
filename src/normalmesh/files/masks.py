"""Masks of the foreground: from images and arrays, window by window, into little memory."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Int
from normalmesh.errors import NormalMeshError, path_text, shape_text, warn_caller
from normalmesh.files.formats import file_format, unknown_format, unusable
from normalmesh.files.images import IMAGE_FORMATS, IMAGES, read_image
from normalmesh.files.tiff_windows import TiffWindows
from normalmesh.files.windowed_arrays import NpyWindows, WindowedArray
from normalmesh.files.zarr_windows import ZarrWindows, is_zarr
from normalmesh.normals.windows import Rectangle, Slices, rectangle_of, whole_window

#: A mask has two values; at most this share of the pixels, at soft edges, …
SOFT = 0.05
#: … is farther than this share of the range from both.
MARGIN = 0.02
#: Rows of a band.
BAND = 64
#: Level of zlib: masks are coherent, so the fastest compresses them a hundredfold.
LEVEL = 1


def read_mask(path: Path, shape: tuple[int, int] | None = None) -> Bool:
    """Read the mask (H, W) of a file, of normals of a shape if one is given: see :func:`mask_of_array`."""
    return mask_of_array(open_mask(path), shape).whole()


def open_mask(path: Path, on_disk: bool = False) -> WindowedArray:
    """Return the values of the file of a mask. TIFF files are read whole, unless they are to stay ``on_disk``."""
    if is_zarr(path):
        return ZarrWindows.of_mask(path)
    name = file_format(path)
    if name == "NPY":
        array = NpyWindows(path)
        if array.has_channels:
            raise _no_plane(array)
        return array
    if name == "TIFF" and on_disk:
        return TiffWindows(path).check_pieces()
    if name not in IMAGE_FORMATS:
        raise unknown_format(path, name, f"a mask as {IMAGES} image, or NPY file")
    return read_image(path, name)


def mask_of_array(array: WindowedArray, shape: tuple[int, int] | None = None) -> PackedMask:
    """Return the mask that an array holds, of normals of a shape if one is given.

    In an image, foreground is what reaches half of its range in a colour channel and is not transparent; an image of
    zeros and ones only counts ones. In other arrays, foreground is what is not zero.
    """
    if shape not in (None, array.size):
        raise unusable(
            array.path,
            f"mask is {shape_text(array.size)} but normals are {shape_text(shape)}; they must be of one image",
        )
    mask = MaskPacker(array.size)
    (_put_nonzero if array.colour == "array" else _put_bright)(array, mask)
    if not mask.count:
        raise empty_mask(array.path)
    return mask.done()


def reaches_half(values: NDArray[np.generic], maximum: int | None) -> Bool:
    """Return where values reach half of the range, (H, W) bool. ``maximum`` as of :class:`WindowedArray`."""
    half: Bool = np.greater_equal(values, 0.5 if maximum is None else (maximum + 1) // 2)
    return half


def count_between(values: NDArray[np.generic], lowest: float, highest: float) -> int:
    """Return the number of values that are neither the lowest nor the highest of an image, up to a margin."""
    margin = MARGIN * (highest - lowest)
    return int(np.count_nonzero(np.greater(values, lowest + margin) & np.less(values, highest - margin)))


def value_range(parts: Iterator[NDArray[np.generic]]) -> tuple[np.generic, np.generic]:
    """Return the lowest and the highest value of all parts that is a number; NaN if there is none."""
    ends = np.array([(np.fmin.reduce(part, axis=None), np.fmax.reduce(part, axis=None)) for part in parts])
    return np.fmin.reduce(ends[:, 0]), np.fmax.reduce(ends[:, 1])


def empty_mask(path: Path) -> NormalMeshError:
    """Return the error for a mask without foreground."""
    return unusable(path, "mask is empty: no pixel is foreground; is it inverted, or of another image?")


def _put_nonzero(array: WindowedArray, mask: MaskPacker) -> None:
    if array.shape[2] != 1:
        raise _no_plane(array)
    for window in array.passes():
        values = array.read(*window)[..., 0]
        if array.dtype.kind not in "biuf" or not np.all(np.isfinite(values)):
            raise unusable(
                array.path, "mask must be boolean or finite numbers (nonzero = foreground), not NaN or infinite"
            )
        mask.put(window, values != 0)


def _no_plane(array: WindowedArray) -> NormalMeshError:
    return unusable(array.path, f"a mask must have the shape (rows, columns), not {shape_text(array.shape)}")


def _put_bright(array: WindowedArray, mask: MaskPacker) -> None:
    # Indices into a palette are meaningless as a mask; palettes of PNG are decoded to colours.
    if array.colour not in ("RGB", "grey", "MASK", "palette") or (array.colour == "palette" and array.shape[2] < 3):
        raise unusable(array.path, f"is a {array.colour} image; save the mask as grey or RGB, foreground white")
    lowest, peak = value_range(part for _, _, part in _brightnesses(array))
    ones = array.maximum is not None and peak == 1
    bright = between = 0
    for window, alpha, part in _brightnesses(array):
        foreground = part.astype(np.bool_) if ones else reaches_half(part, array.maximum)
        bright += int(np.count_nonzero(foreground))
        between += 0 if ones else count_between(part, float(lowest), float(peak))
        mask.put(window, foreground if alpha is None else foreground & reaches_half(alpha, array.maximum))
    if not bright:
        raise unusable(
            array.path,
            f"the mask is empty: its largest value is {peak} and foreground begins at half of {array.maximum or 1}; "
            "save foreground as white",
        )
    if (share := between / math.prod(array.size)) > SOFT:
        warn_caller(
            f"{path_text(array.path)}: {100 * share:.0f} % of the mask is neither black nor white; what reaches half "
            "of the range was taken as foreground. If it holds labels, save foreground as white"
        )


def _brightnesses(array: WindowedArray) -> Iterator[tuple[Slices, NDArray[Any] | None, NDArray[Any]]]:
    """Yield windows, their alpha (h, w), if there is any, and their largest colour channel (h, w)."""
    channels = array.shape[2]
    for window in array.passes():
        values = array.read(*window)
        brightest = values[..., 0]
        for channel in range(1, channels - (channels % 2 == 0)):
            brightest = np.maximum(brightest, values[..., channel])
        yield window, values[..., -1] if channels % 2 == 0 else None, brightest


@dataclass(frozen=True, eq=False)
class PackedMask:
    """A mask (H, W) in little memory. Large areas of one value take none."""

    shape: tuple[int, int]
    bands: tuple[bytes | bool, ...]  # the bits of :data:`BAND` rows each, compressed, or their only value

    @classmethod
    def of(cls, mask: Bool) -> PackedMask:
        """Pack a mask (H, W)."""
        packer = MaskPacker((mask.shape[0], mask.shape[1]))
        packer.put(whole_window(packer.shape), mask)
        return packer.done()

    def whole(self) -> Bool:
        """Return the mask (H, W)."""
        return self.window(*whole_window(self.shape))

    def parts(self) -> Iterator[tuple[Slices, Bool]]:
        """Yield windows of a few rows, which cover the mask, and the mask of each."""
        rows, columns = self.shape
        for top in range(0, rows, BAND):
            window = slice(top, min(top + BAND, rows)), slice(0, columns)
            yield window, self.window(*window)

    def window(self, rows: slice, columns: slice) -> Bool:
        """Return a window (h, w) of the mask."""
        window = np.empty((rows.stop - rows.start, columns.stop - columns.start), np.bool_)
        width, first = -(-self.shape[1] // 8), columns.start // 8
        for number in range(rows.start // BAND, -(-rows.stop // BAND)):
            band, start = self.bands[number], number * BAND
            top, bottom = max(rows.start, start), min(rows.stop, start + BAND)
            part = window[top - rows.start : bottom - rows.start]
            if isinstance(band, bool):
                part[...] = band
                continue
            packed = np.frombuffer(zlib.decompress(band), np.uint8).reshape(-1, width)
            bits = np.unpackbits(packed[top - start : bottom - start, first : -(-columns.stop // 8)], axis=1)
            part[...] = bits[:, columns.start - 8 * first : columns.stop - 8 * first]
        return window


class MaskPacker:
    """A packed mask that is put together from windows, and the ``count`` of its True pixels."""

    def __init__(self, shape: tuple[int, int]):
        self.shape, self.count = shape, 0
        self._bits = np.zeros((shape[0], -(-shape[1] // 8)), np.uint8)

    def put(self, window: Slices, values: Bool) -> None:
        """Set the values (h, w) of a window, once."""
        rows, columns = window
        first = columns.start // 8
        bytes_ = (rows, slice(first, -(-columns.stop // 8)))
        bits = np.unpackbits(self._bits[bytes_], axis=1)
        bits[:, columns.start - 8 * first : columns.stop - 8 * first] = values
        self._bits[bytes_] = np.packbits(bits, axis=1)
        self.count += int(np.count_nonzero(values))

    def clear(self, numbers: Int) -> None:
        """Set pixels that are True, which are numbered row by row, to False."""
        rows, columns = np.divmod(numbers, self.shape[1])
        np.bitwise_and.at(self._bits, (rows, columns // 8), ~(128 >> columns % 8).astype(np.uint8))
        self.count -= len(numbers)

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
            is_full = bool((band == full).all())
            bands.append(is_full if is_full or not band.any() else zlib.compress(band.tobytes(), LEVEL))
        return PackedMask(self.shape, tuple(bands))
