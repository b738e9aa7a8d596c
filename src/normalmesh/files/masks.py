"""Reading masks of the foreground from an image, an array, or the alpha channel of a normal map."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from normalmesh.errors import NormalMeshWarning, path_text, shape_text
from normalmesh.files.arrays import read_npy
from normalmesh.files.formats import file_format, unknown_format, unusable
from normalmesh.files.images import IMAGE_FORMATS, Image, read_image
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
        raise unknown_format(path, name, "a mask as PNG, JPEG, TIFF or NPY file")
    return _image_mask(path, read_image(path, name))


def reaches_half(values: NDArray[np.generic], maximum: int | None) -> NDArray[np.bool_]:
    """Return where values reach half of the range, (H, W) bool. ``maximum`` as in :class:`Image`."""
    half: NDArray[np.bool_] = np.greater_equal(values, 0.5 if maximum is None else (maximum + 1) // 2)
    return half


def share_between(values: NDArray[np.generic]) -> float:
    """Return the share of the pixels (H, W) that have neither the lowest nor the highest value, up to a margin."""
    lowest, highest = float(np.min(values)), float(np.max(values))
    margin, between = MARGIN * (highest - lowest), 0
    for rows in row_blocks(values.shape):
        inner = np.greater(values[rows], lowest + margin) & np.less(values[rows], highest - margin)
        between += int(np.count_nonzero(inner))
    return between / values.size


def _image_mask(path: Path, image: Image) -> NDArray[np.bool_]:
    # Indices into a palette are meaningless as a mask; palettes of PNG are decoded to colours.
    if image.colour not in ("RGB", "grey", "MASK", "palette") or (
        image.colour == "palette" and image.values.shape[2] < 3
    ):
        raise unusable(path, f"is a {image.colour} image; save the mask as grey or RGB, foreground white")
    alpha = image.alpha
    colours = image.values if alpha is None else image.values[..., :-1]
    brightest = colours[..., 0]
    for channel in range(1, colours.shape[2]):
        brightest = np.maximum(brightest, colours[..., channel])
    peak = brightest.max()
    if image.maximum is not None and peak == 1:
        mask = brightest.astype(np.bool_)
    else:
        mask = reaches_half(brightest, image.maximum)
        if mask.any() and (share := share_between(brightest)) > SOFT:
            warnings.warn(
                f"{path_text(path)}: {100 * share:.0f} % of the mask is neither black nor white; what reaches half of "
                "the range was taken as foreground. If it holds labels, save foreground as white",
                NormalMeshWarning,
                stacklevel=4,
            )
    if not mask.any():
        raise unusable(
            path,
            f"the mask is empty: its largest value is {peak} and foreground begins at half of "
            f"{image.maximum or 1}; save foreground as white",
        )
    return mask if alpha is None else mask & reaches_half(alpha, image.maximum)
