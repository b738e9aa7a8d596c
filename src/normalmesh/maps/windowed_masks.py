"""Masks of maps on disk, from files, arrays and alpha channels, with the rules of :mod:`.masks` and :mod:`.alpha`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.files.formats import file_format, unusable
from normalmesh.files.images import Image
from normalmesh.files.masks import (
    SOFT,
    brightness,
    count_between,
    empty_mask,
    reaches_half,
    read_mask,
    refuse_colour,
    warn_of_grey,
)
from normalmesh.maps.alpha import MATCH, Alpha, is_visible, missing_alpha, opaque_value, warn_of_ignored
from normalmesh.maps.packed_masks import MaskPacker, PackedMask
from normalmesh.maps.windowed_arrays import Window, WindowedArray, open_array, pass_windows
from normalmesh.maps.zarr_windows import ZarrWindows, is_zarr
from normalmesh.normals.normal_map import checked_mask


def mask_of_file(path: Path, shape: tuple[int, int]) -> PackedMask:
    """Read the mask of a file of any format; only formats that cannot be read in windows are read whole."""
    if is_zarr(path):
        return mask_of_array(ZarrWindows.of_mask(path), shape)
    if file_format(path) in ("TIFF", "NPY"):
        return mask_of_array(open_array(path), shape)
    try:
        return PackedMask.of(checked_mask(read_mask(path), shape))
    except NormalMeshError as error:
        raise error if str(path) in str(error) else unusable(path, str(error)) from error


def mask_of_array(array: WindowedArray, shape: tuple[int, int]) -> PackedMask:
    """Read the mask of an array on disk: nonzero values, or what reaches half of the range of an image."""
    if array.size != shape:
        raise unusable(
            array.path,
            f"mask is {shape_text(array.size)} but normals are {shape_text(shape)}; they must be of one image",
        )
    return _nonzero(array) if array.colour == "array" else _bright(array)


def mask_of_alpha(array: WindowedArray, use: Alpha, foreground: Callable[[Window], Bool]) -> PackedMask | None:
    """Return the mask that the alpha channel of a map holds, or None; warn if it is ignored because it looks like none.

    ``foreground`` finds the foreground (h, w) of a window without the alpha channel.
    """
    if use == "ignore" or array.shape[2] != 4:
        if use == "mask":
            raise missing_alpha(array.path)
        return None
    half, lowest, highest = MaskPacker(array.size), math.inf, -math.inf
    inside, pixels = 0, math.prod(array.size)
    for window, alpha in _alphas(array):
        lowest, highest = min(lowest, alpha.min()), max(highest, alpha.max())
        mask = reaches_half(alpha, array.maximum)
        inside += int(np.count_nonzero(mask))
        half.put(*window, mask)
    if use == "mask":
        return _checked(array.path, half.packed(), inside)
    if 0 < inside < pixels:
        between = sum(count_between(alpha, float(lowest), float(highest)) for _, alpha in _alphas(array))
        if between / pixels <= SOFT:
            return half.packed()
    opaque = opaque_value(array.maximum)
    if lowest == highest == opaque:
        return None
    visible, inside, share = _matching(array, opaque, foreground)
    if inside < pixels and share >= MATCH:
        return _checked(array.path, visible, inside)
    warn_of_ignored(array.path, lowest, highest)
    return None


def _matching(array: WindowedArray, opaque: int, foreground: Callable[[Window], Bool]) -> tuple[PackedMask, int, float]:
    """Return where alpha is not zero, in how many pixels, and the overlap of the rest with the background."""
    visible, inside, both, either = MaskPacker(array.size), 0, 0, 0
    for window, alpha in _alphas(array):
        mask = is_visible(alpha, opaque)
        visible.put(*window, mask)
        inside += int(np.count_nonzero(mask))
        background = ~foreground(window)
        both += int(np.count_nonzero(~mask & background))
        either += int(np.count_nonzero(~mask | background))
    return visible.packed(), inside, both / either if either else 0.0


def _alphas(array: WindowedArray) -> Iterator[tuple[Window, NDArray[np.generic]]]:
    for window in pass_windows(array):
        yield window, array.read(*window)[..., 3]


def _checked(path: Path, mask: PackedMask, inside: int) -> PackedMask:
    if not inside:
        raise unusable(path, "mask is empty: no pixel is foreground; is it inverted, or of another image?")
    return mask


def _nonzero(array: WindowedArray) -> PackedMask:
    """Return where an array without colours is not zero."""
    if array.shape[2] != 1:
        raise unusable(array.path, f"a mask must have the shape (rows, columns), not {shape_text(array.shape)}")
    packer, inside = MaskPacker(array.size), 0
    for window in pass_windows(array):
        values = array.read(*window)[..., 0]
        if array.dtype.kind == "f" and not np.all(np.isfinite(values)):
            raise unusable(
                array.path, "mask must be boolean or finite numbers (nonzero = foreground), not NaN or infinite"
            )
        packer.put(*window, values != 0)
        inside += int(np.count_nonzero(values))
    return _checked(array.path, packer.packed(), inside)


def _bright(array: WindowedArray) -> PackedMask:
    """Return where an image reaches half of its range in a colour channel and is not transparent."""
    refuse_colour(array.path, array.colour, array.shape[2])
    peaks = [(part.min(), part.max()) for _, _, part in _brightnesses(array)]
    lowest, peak = min(low for low, _ in peaks), max(high for _, high in peaks)
    ones = array.maximum is not None and peak == 1
    packer, bright, inside, between = MaskPacker(array.size), 0, 0, 0
    for window, image, part in _brightnesses(array):
        mask = part.astype(np.bool_) if ones else reaches_half(part, array.maximum)
        bright += int(np.count_nonzero(mask))
        between += 0 if ones else count_between(part, float(lowest), float(peak))
        if image.alpha is not None:
            mask &= reaches_half(image.alpha, array.maximum)
        inside += int(np.count_nonzero(mask))
        packer.put(*window, mask)
    if not bright:
        raise empty_mask(array.path, peak, array.maximum)
    warn_of_grey(array.path, between / math.prod(array.size))
    return _checked(array.path, packer.packed(), inside)


def _brightnesses(array: WindowedArray) -> Iterator[tuple[Window, Image, NDArray[np.generic]]]:
    for window in pass_windows(array):
        image = Image(array.read(*window), array.maximum, array.colour)
        yield window, image, brightness(image)
