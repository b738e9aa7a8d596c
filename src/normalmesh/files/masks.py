"""Reading masks of the foreground from an image, an array, or the alpha channel of a normal map."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool
from normalmesh.errors import NormalMeshError, NormalMeshWarning, path_text, shape_text
from normalmesh.files.arrays import read_npy
from normalmesh.files.formats import file_format, unknown_format, unusable
from normalmesh.files.images import IMAGE_FORMATS, IMAGES, Image, read_image
from normalmesh.runtime.row_blocks import row_blocks

#: A mask has two values; at most this share of the pixels, at soft edges, …
SOFT = 0.05
#: … is farther than this share of the range from both.
MARGIN = 0.02


def read_mask(path: Path) -> NDArray[np.generic]:
    """Read a mask (H, W), nonzero = foreground.

    In an image, foreground is what reaches half of its range in a colour channel and is not transparent; an image of
    zeros and ones only counts ones. The array of an NPY file is taken as it is.
    """
    name = file_format(path)
    if name == "NPY":
        mask = read_npy(path)
        if mask.ndim != 2:
            raise unusable(path, f"a mask must have the shape (rows, columns), not {shape_text(mask.shape)}")
        return mask
    if name not in IMAGE_FORMATS:
        raise unknown_format(path, name, f"a mask as {IMAGES} image, or NPY file")
    return _image_mask(path, read_image(path, name))


def reaches_half(values: NDArray[np.generic], maximum: int | None) -> Bool:
    """Return where values reach half of the range, (H, W) bool. ``maximum`` as in :class:`Image`."""
    half: Bool = np.greater_equal(values, 0.5 if maximum is None else (maximum + 1) // 2)
    return half


def share_between(values: NDArray[np.generic]) -> float:
    """Return the share of the pixels (H, W) that have neither the lowest nor the highest value, up to a margin."""
    lowest, highest = float(np.min(values)), float(np.max(values))
    return sum(count_between(values[rows], lowest, highest) for rows in row_blocks(values.shape)) / values.size


def count_between(values: NDArray[np.generic], lowest: float, highest: float) -> int:
    """Return the number of values that are neither the lowest nor the highest of an image, up to a margin."""
    margin = MARGIN * (highest - lowest)
    return int(np.count_nonzero(np.greater(values, lowest + margin) & np.less(values, highest - margin)))


def _image_mask(path: Path, image: Image) -> Bool:
    refuse_colour(path, image.colour, image.values.shape[2])
    brightest = brightness(image)
    peak = brightest.max()
    if image.maximum is not None and peak == 1:
        mask = brightest.astype(np.bool_)
    else:
        mask = reaches_half(brightest, image.maximum)
        if mask.any():
            warn_of_grey(path, share_between(brightest))
    if not mask.any():
        raise empty_mask(path, peak, image.maximum)
    return mask if image.alpha is None else mask & reaches_half(image.alpha, image.maximum)


def refuse_colour(path: Path, colour: str, channels: int) -> None:
    """Raise :class:`NormalMeshError` if the channels of an image cannot be those of a mask."""
    # Indices into a palette are meaningless as a mask; palettes of PNG are decoded to colours.
    if colour not in ("RGB", "grey", "MASK", "palette") or (colour == "palette" and channels < 3):
        raise unusable(path, f"is a {colour} image; save the mask as grey or RGB, foreground white")


def brightness(image: Image) -> NDArray[np.generic]:
    """Return the largest colour channel (H, W)."""
    colours = image.values if image.alpha is None else image.values[..., :-1]
    brightest = colours[..., 0]
    for channel in range(1, colours.shape[2]):
        brightest = np.maximum(brightest, colours[..., channel])
    return brightest


def warn_of_grey(path: Path, share: float) -> None:
    """Warn if a large share of a mask is neither black nor white."""
    if share > SOFT:
        warnings.warn(
            f"{path_text(path)}: {100 * share:.0f} % of the mask is neither black nor white; what reaches half of "
            "the range was taken as foreground. If it holds labels, save foreground as white",
            NormalMeshWarning,
            stacklevel=5,
        )


def empty_mask(path: Path, peak: object, maximum: int | None) -> NormalMeshError:
    """Return the error for a mask without foreground."""
    return unusable(
        path,
        f"the mask is empty: its largest value is {peak} and foreground begins at half of {maximum or 1}; "
        "save foreground as white",
    )
