"""Finding the background of a map without a mask: what has the colour of the image's border, up to the file's noise.

A colour that is no normal (black, grey, any wrong length) is background wherever it occurs. A colour that could be a
normal, such as flat (128, 128, 255), is background only where it is connected to the border, and only if the rest has
the outline of an object: normals there turn away from the viewer. The ground of a relief has no such outline.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Bool, Float, Float32, Floating, UInt8
from normalmesh.maps._background import (
    BACKGROUND,
    COLOURED,
    deviations_beside,
    flood_from_border,
    grow_background,
    mark_coloured,
    steep_outline,
)
from normalmesh.runtime.row_blocks import row_blocks
from normalmesh.runtime.threads import in_parallel

#: A step of 8-bit values, as a component.
LEVEL = 2 / 255
#: Border pixels within this distance of the most common colour belong to it: the noise of JPEG, where it is flat.
NEAR = 6 * LEVEL
#: Least share of the border that a background has.
LEAST_SHARE = 0.2
#: How far the length of a colour must be outside the usual lengths of the rest to be no normal.
OFF_LENGTH = 0.12
#: If most pixels beside the background are nearer to its colour than this, they are its noise: the file is lossy.
LOSSY = 0.25
#: Largest number of pixels that noise reaches beyond the background: a block of JPEG, with subsampled colours.
BLOCK = 16
#: Runs of the border shorter than this part of a side are no background, but the middle of an object that is cut off.
SHORT_RUN = 20
#: The normals at the outline of an object are at least this far from flat, …
STEEP = math.radians(68)
#: … along at least this share of it, less in lossy files, which blur the steepest. Cones of 63° on flat ground reach
#: 0.00 and, in lossy files, 0.33; objects 0.5 to 1.0, and 0.36 to 1.0, …
STEEP_SHARE, STEEP_SHARE_LOSSY = 0.45, 0.34
#: … which is of at least this many pixels.
FEW = 20
#: Number of vectors that are sampled for lengths and noise.
SAMPLED = 1 << 16
#: Rows that are looked at together, where a sample is not enough.
BLOCK_ROWS = 32


@dataclass(frozen=True)
class Colour:
    """A colour of the border: vector (3,) float64, and by how much border pixels of that colour differ from it."""

    vector: Float
    tolerance: float


def find_background(vectors: Float32, foreground: Bool, step: float) -> Colour | None:
    """Take the background out of the foreground (H, W), in place.

    Parameters
    ----------
    vectors
        (H, W, 3), as decoded, in the file's own channels.
    foreground
        Without pixels that are known to hold no normal.
    step
        Difference of successive values, as a component; 0 for floats.

    Returns
    -------
    Colour or None
        The colour of the background; None if there is none besides what holds no normal.
    """
    border = np.concatenate([vectors[0], vectors[-1], vectors[1:-1, 0], vectors[1:-1, -1]])
    colour = border_colour(border, step)
    lengths = None if colour is None else _usual_lengths(vectors, foreground, colour)
    if colour is None or lengths is None:
        return None
    could_be_normal = is_usual(colour, lengths)
    mark, state = COLOURED if could_be_normal else BACKGROUND, np.zeros(foreground.shape, np.uint8)
    in_parallel(mark_coloured, len(state), vectors, colour.vector, colour.tolerance, mark, state, grain=64)
    if could_be_normal:
        flood_from_border(state, shortest_run(state.shape))
    lossy = _grow(vectors, colour, state)
    if could_be_normal:
        steep, total = steep_outline(vectors, colour.vector, state, math.cos(STEEP), 0, 0, *state.shape)
        if not is_object(steep, total, lossy):
            return None
    for rows in row_blocks(foreground.shape):
        foreground[rows] &= state[rows] < BACKGROUND
    return colour


def border_colour(border: Floating, step: float) -> Colour | None:
    """Return the most common colour of the border, vectors (n, 3), if enough of it has that colour."""
    numbers: Float = border.astype(np.float64)
    values = numbers[np.isfinite(numbers).all(axis=1) & (np.abs(numbers) < 4).all(axis=1)]
    if len(values) == 0:
        return None
    keys, counts = np.unique(np.rint(values / LEVEL).astype(np.int64), axis=0, return_counts=True)
    near = _near(values, LEVEL * keys[counts.argmax()])
    colour = np.median(values[near], axis=0)
    near = _near(values, colour)
    if near.sum() < LEAST_SHARE * len(border):
        return None
    spread = float(np.quantile(np.abs(values[near] - colour).max(axis=1), 0.99))
    return Colour(colour, max(1.01 * step, 1.5 * spread, 1e-6))


def _near(values: Float, colour: Float) -> Bool:
    near: Bool = np.abs(values - colour).max(axis=1) <= NEAR
    return near


def _usual_lengths(vectors: Float32, foreground: Bool, colour: Colour) -> Float | None:
    """Return the 10 % and 90 % quantiles of the lengths of vectors of other colours, from a sample; None if none is."""
    every = sampled_pixels(foreground.shape)
    sample = others(vectors[every][foreground[every]], colour)
    if len(sample) == 0:
        # A small object in a large image may lie between the pixels of a sample of all of it.
        blocks = (slice(start, start + BLOCK_ROWS) for start in range(0, len(foreground), BLOCK_ROWS))
        sample = np.concatenate([others(vectors[block][foreground[block]], colour) for block in blocks])
    return usual_lengths(sample)


def sampled_pixels(shape: tuple[int, ...]) -> tuple[slice, slice]:
    """Return rows and columns of the pixels of an image that are sampled for lengths."""
    rows, columns = shape
    step = max(1, math.isqrt(rows * columns // SAMPLED))
    return slice(step // 2, None, step), slice(step // 2, None, step)


def usual_lengths(vectors: Float) -> Float | None:
    """Return the 10 % and 90 % quantiles of the lengths of vectors (n, 3); None if there is none."""
    if len(vectors) == 0:
        return None
    usual: Float = np.quantile(np.linalg.norm(vectors, axis=1), [0.1, 0.9])
    return usual


def is_usual(colour: Colour, lengths: Float) -> bool:
    """Return whether a colour could be a normal, given the usual lengths of the rest."""
    return bool(lengths[0] - OFF_LENGTH <= np.linalg.norm(colour.vector) <= lengths[1] + OFF_LENGTH)


def shortest_run(shape: tuple[int, ...]) -> int:
    """Return the least number of pixels of a run of the border from which background spreads."""
    return max(BLOCK, min(shape) // SHORT_RUN)


def others(sample: Float32, colour: Colour) -> Float:
    """Return those of some vectors (K, 3) that are not of a colour, up to the noise of a lossy file."""
    found = sample.astype(np.float64)
    differing: Float = found[np.abs(found - colour.vector).max(axis=1) > LOSSY]
    return differing


def _grow(vectors: Float32, colour: Colour, state: UInt8) -> bool:
    """Add what differs from the background by the noise of a lossy file; return whether the file is lossy."""
    deviations = np.empty(SAMPLED, np.float64)
    count = deviations_beside(vectors, colour.vector, state, deviations)
    if not is_lossy(deviations[:count]):
        return False
    grow(vectors, colour, state)
    return True


def is_lossy(deviations: Float) -> bool:
    """Return whether pixels beside the background differ from its colour, by these deviations, by noise only."""
    return bool(len(deviations) and np.median(deviations) <= LOSSY)


def grow(vectors: Float32, colour: Colour, state: UInt8) -> None:
    """Add what is near the colour of the background, and connected to it within a block of a lossy file."""
    for turn in range(1, BLOCK + 1):
        in_parallel(grow_background, len(state), vectors, colour.vector, LOSSY, state, turn, grain=64)


def is_object(steep: int, total: int, lossy: bool) -> bool:
    """Return whether an outline of ``total`` pixels, of which some are steep, is that of an object."""
    return total >= FEW and steep >= (STEEP_SHARE_LOSSY if lossy else STEEP_SHARE) * total
