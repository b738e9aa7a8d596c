"""Thin parts of the foreground, and thin gaps between its parts, whose pixels the outline must not cross.

Quadrics measure distances to straight lines, so that shortening a thin part or bridging a narrow gap costs next to
nothing: a comb would lose its teeth.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from normalmesh.array_types import Bool
from normalmesh.runtime.threads import in_parallel

#: Widths (px) below which parts are thin, each twice the last, and how far (px) the outline of such parts may shift.
THIN = {2: 0, 4: 0, 8: 0, 16: 2}
#: Side (px) of the blocks in which a mask is searched: their arrays fit into a core's cache.
BLOCK = 512
#: Pixels (px) around a block that determine what is thin in it.
THIN_REACH = 2 * max(THIN)


def thin_pixels(mask: Bool) -> Bool:
    """Find the pixels (H, W) of which the outline must not cross the centres.

    They lie in and around thin parts of the foreground and thin gaps in the background: those that are narrower than
    16 px, and longer than wide. Around parts of 8 px and more, pixels within 2 px of the outline are left out.

    Parameters
    ----------
    mask
        (H, W) foreground pixels.
    """
    found = np.zeros(mask.shape, np.bool_)
    if mask.all():
        return found
    blocks = list(_blocks(mask.shape))
    in_parallel(_search_blocks, len(blocks), blocks, np.pad(mask, THIN_REACH), found, grain=1)
    return found


def _search_blocks(first: int, last: int, blocks: list[tuple[slice, slice]], padded: Bool, found: Bool) -> None:
    """Find the thin pixels of blocks first … last − 1 of a mask with a margin: a range kernel in NumPy."""
    for rows, columns in blocks[first:last]:
        window = padded[rows.start : rows.stop + 2 * THIN_REACH, columns.start : columns.stop + 2 * THIN_REACH]
        if window.any() and not window.all():
            around = _around_thin_parts(window) | _around_thin_parts(~window)
            found[rows, columns] = around[THIN_REACH:-THIN_REACH, THIN_REACH:-THIN_REACH]


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
    """Yield the rows and columns of the blocks of an image."""
    for top in range(0, shape[0], BLOCK):
        for left in range(0, shape[1], BLOCK):
            yield slice(top, min(top + BLOCK, shape[0])), slice(left, min(left + BLOCK, shape[1]))


def _around_thin_parts(pixels: Bool) -> Bool:
    """Return the pixels in and around the thin parts of a set of pixels, without those that the outline may cross."""
    around = np.zeros_like(pixels)
    for width, free in THIN.items():
        # A pixel is not thin if it lies within half a width of a square of that width.
        squares = ~_any_within(~pixels, 0, width - 1)
        thin = pixels & ~_any_within(squares, width - 1 + width // 2, width // 2)
        if not thin.any():
            continue
        inside = thin & ~_any_within(~pixels, free, free)
        outside = _any_within(thin, free + 1, free + 1) & ~_any_within(pixels, free, free)
        around |= inside | outside
    return around


def _any_within(pixels: Bool, before: int, after: int) -> Bool:
    """Return the pixels with one of a set in the square from ``before`` to ``after`` them in both directions.

    The image is continued periodically.
    """
    length = before + after + 1
    for axis in (0, 1):
        width = 1
        while width < length:
            step = min(width, length - width)
            pixels = pixels | np.roll(pixels, step, axis)
            width += step
        pixels = np.roll(pixels, -after, axis)
    return pixels
