"""Masks of the foreground from images and arrays, window by window; in memory, one window is all of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool
from normalmesh.errors import NormalMeshError, path_text, shape_text, warn_caller
from normalmesh.files.formats import file_format, unknown_format, unusable
from normalmesh.files.images import IMAGE_FORMATS, IMAGES, Image, read_image
from normalmesh.files.packed_masks import ArrayMask, MaskBuilder, PackedMask
from normalmesh.files.windowed_arrays import ArrayInMemory, NpyWindows, WindowedArray
from normalmesh.files.zarr_windows import ZarrWindows, is_zarr
from normalmesh.normals.windows import Slices

#: A mask has two values; at most this share of the pixels, at soft edges, …
SOFT = 0.05
#: … is farther than this share of the range from both.
MARGIN = 0.02


def read_mask(path: Path, shape: tuple[int, int] | None = None) -> Bool:
    """Read the mask (H, W) of a file, of normals of a shape if one is given: see :func:`mask_of_array`."""
    return mask_of_array(open_mask(path), ArrayMask, shape).whole()


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
        from normalmesh.files.tiff_windows import TiffWindows

        return TiffWindows(path)
    if name not in IMAGE_FORMATS:
        raise unknown_format(path, name, f"a mask as {IMAGES} image, or NPY file")
    return ArrayInMemory.of_image(path, read_image(path, name))


def mask_of_array(
    array: WindowedArray, builder: MaskBuilder, shape: tuple[int, int] | None = None
) -> ArrayMask | PackedMask:
    """Return the mask that an array holds, of normals of a shape if one is given.

    In an image, foreground is what reaches half of its range in a colour channel and is not transparent; an image of
    zeros and ones only counts ones. In other arrays, foreground is what is not zero.
    """
    if shape not in (None, array.size):
        raise unusable(
            array.path,
            f"mask is {shape_text(array.size)} but normals are {shape_text(shape)}; they must be of one image",
        )
    return _nonzero(array, builder) if array.colour == "array" else _bright(array, builder)


def reaches_half(values: NDArray[np.generic], maximum: int | None) -> Bool:
    """Return where values reach half of the range, (H, W) bool. ``maximum`` as in :class:`Image`."""
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


def _nonzero(array: WindowedArray, builder: MaskBuilder) -> ArrayMask | PackedMask:
    if array.shape[2] != 1:
        raise _no_plane(array)
    mask, inside = builder(array.size), 0
    for window in array.passes():
        values = array.read(*window)[..., 0]
        if array.dtype.kind not in "biuf" or not np.all(np.isfinite(values)):
            raise unusable(
                array.path, "mask must be boolean or finite numbers (nonzero = foreground), not NaN or infinite"
            )
        mask.put(window, values != 0)
        inside += int(np.count_nonzero(values))
    if not inside:
        raise empty_mask(array.path)
    return mask.done()


def _no_plane(array: WindowedArray) -> NormalMeshError:
    return unusable(array.path, f"a mask must have the shape (rows, columns), not {shape_text(array.shape)}")


def _bright(array: WindowedArray, builder: MaskBuilder) -> ArrayMask | PackedMask:
    # Indices into a palette are meaningless as a mask; palettes of PNG are decoded to colours.
    if array.colour not in ("RGB", "grey", "MASK", "palette") or (array.colour == "palette" and array.shape[2] < 3):
        raise unusable(array.path, f"is a {array.colour} image; save the mask as grey or RGB, foreground white")
    lowest, peak = value_range(part for _, _, part in _brightnesses(array))
    ones = array.maximum is not None and peak == 1
    mask, bright, inside, between = builder(array.size), 0, 0, 0
    for window, alpha, part in _brightnesses(array):
        foreground = part.astype(np.bool_) if ones else reaches_half(part, array.maximum)
        bright += int(np.count_nonzero(foreground))
        between += 0 if ones else count_between(part, float(lowest), float(peak))
        if alpha is not None:
            foreground &= reaches_half(alpha, array.maximum)
        inside += int(np.count_nonzero(foreground))
        mask.put(window, foreground)
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
    if not inside:
        raise empty_mask(array.path)
    return mask.done()


def _brightnesses(
    array: WindowedArray,
) -> Iterator[tuple[Slices, NDArray[np.generic] | None, NDArray[np.generic]]]:
    """Yield windows, their alpha (h, w), if there is any, and their largest colour channel (h, w)."""
    for window in array.passes():
        image = Image(array.read(*window), array.maximum, array.colour)
        colours = image.values if image.alpha is None else image.values[..., :-1]
        brightest = colours[..., 0]
        for channel in range(1, colours.shape[2]):
            brightest = np.maximum(brightest, colours[..., channel])
        yield window, image.alpha, brightest
