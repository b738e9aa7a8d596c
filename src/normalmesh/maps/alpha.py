"""Alpha channels of normal maps: some are masks, others hold a height, a roughness or nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool
from normalmesh.errors import NormalMeshError, path_text, repr_for_error, warn_caller
from normalmesh.files.formats import unusable
from normalmesh.files.masks import (
    MARGIN,
    SOFT,
    MaskPacker,
    PackedMask,
    count_between,
    empty_mask,
    reaches_half,
    value_range,
)
from normalmesh.files.windowed_arrays import WindowedArray
from normalmesh.normals.windows import Slices

#: How to take an alpha channel: as a mask where it looks like one, always, or never.
Alpha = Literal["auto", "mask", "ignore"]
#: Least overlap, of the union, between the zeros of an alpha channel and the background that they match.
MATCH = 0.95


def checked_alpha(alpha: Alpha) -> Alpha:
    """Return how to take an alpha channel, or raise :class:`NormalMeshError`."""
    if isinstance(alpha, str) and alpha in get_args(Alpha):
        return alpha
    raise NormalMeshError(f"alpha must be 'auto', 'mask' or 'ignore', not {repr_for_error(alpha)}")


def alpha_mask(array: WindowedArray, use: Alpha, foreground: Callable[[Slices], Bool]) -> PackedMask | None:
    """Return the mask that an alpha channel holds, or None; warn if it is ignored because it looks like none.

    ``array``: stored normals, a fourth channel is alpha; ``foreground`` finds that (h, w) of a window without it.
    """
    if use == "ignore" or array.shape[2] != 4:
        if use == "mask":
            raise unusable(array.path, "has no alpha channel that could be the mask")
        return None
    pixels, opaque = math.prod(array.size), 1 if array.maximum is None else array.maximum
    if use == "auto":
        lowest, highest = value_range(alpha for _, alpha in _alphas(array))
        if lowest == highest == opaque:
            return None
    half, between = MaskPacker(array.size), 0
    for window, alpha in _alphas(array):
        half.put(window, reaches_half(alpha, array.maximum))
        between += count_between(alpha, float(lowest), float(highest)) if use == "auto" else 0
    if use == "mask" and not half.count:
        raise empty_mask(array.path)
    # Nearly all pixels have the lowest or the highest value, one of them outside the mask.
    if use == "mask" or (0 < half.count < pixels and between / pixels <= SOFT):
        return half.done()
    if visible := _visible(array, opaque, foreground):
        return visible
    warn_caller(
        f"{path_text(array.path)}: the alpha channel, from {lowest:g} to {highest:g}, does not look like a mask and "
        "was ignored; alpha='mask' takes it as one"
    )
    return None


def _visible(array: WindowedArray, opaque: int, foreground: Callable[[Slices], Bool]) -> PackedMask | None:
    """Return where alpha is not zero, up to a margin; None if that is not where the foreground is."""
    visible, both, either = MaskPacker(array.size), 0, 0
    for window, alpha in _alphas(array):
        mask: Bool = np.greater(alpha, MARGIN * opaque)
        visible.put(window, mask)
        transparent, background = ~mask, ~foreground(window)
        both += int(np.count_nonzero(transparent & background))
        either += int(np.count_nonzero(transparent | background))
    if not either or both / either < MATCH:
        return None
    if not visible.count:
        raise empty_mask(array.path)
    return visible.done()


def _alphas(array: WindowedArray) -> Iterator[tuple[Slices, NDArray[np.generic]]]:
    for window in array.passes():
        yield window, array.read(*window)[..., 3]
