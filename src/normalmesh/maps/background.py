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
from normalmesh.files.size_limits import refuse_beyond_memory
from normalmesh.maps._background import (
    BACKGROUND,
    COLOURED,
    INSIDE,
    flood_from_border,
    grow_background,
    mark_coloured,
    pixels_beside,
    steep_outline,
)
from normalmesh.maps.decoding import VectorWindows
from normalmesh.normals.windows import centre_of, padded_window, points_inside
from normalmesh.runtime.row_blocks import row_blocks
from normalmesh.runtime.threads import in_parallel

#: A step of 8-bit values, as a component.
LEVEL = 2 / 255
#: Border pixels within this distance of the most common colour belong to it: the noise of JPEG, where it is flat.
NEAR = 6 * LEVEL
#: Least share of the border that a background has.
LEAST_SHARE = 0.2
#: Ratio of the mean square difference of successive pixels to the variance: 2 of noise, 0 of what is smooth. Pixels of
#: many colours that are smooth, such as sand or mortar, are no background.
SMOOTH = 0.5
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


@dataclass(frozen=True)
class Colour:
    """A colour of the border: vector (3,) float64, and by how much border pixels of that colour differ from it."""

    vector: Float
    tolerance: float


def find_background(
    windows: VectorWindows, border: Float32, sample: Float32, step: float
) -> tuple[Colour, UInt8] | None:
    """Find the background of a map without a mask, besides what holds no normal.

    Returns its colour and a state (H, W), at least :data:`._background.BACKGROUND` where there is background; None if
    there is none. While it looks, it keeps one byte a pixel: background spreads from the border all over the image.

    Vectors are as decoded, in the file's own channels: all of them, those (n, 3) of the ``border``, and those (m, 3) of
    the foreground among :func:`sampled_pixels`. ``step``: difference of successive values; 0 for floats.
    """
    colour = border_colour(border, step)
    lengths = None if colour is None else _usual_lengths(windows, colour, sample)
    if colour is None or lengths is None:
        return None
    refuse_beyond_memory(windows.path, math.prod(windows.shape))
    # Could it be a normal, given the usual lengths of the rest?
    could_be_normal = lengths[0] - OFF_LENGTH <= np.linalg.norm(colour.vector) <= lengths[1] + OFF_LENGTH
    state = _coloured(windows, colour, COLOURED if could_be_normal else BACKGROUND)
    if could_be_normal:
        flood_from_border(state, max(BLOCK, min(state.shape) // SHORT_RUN))
    deviations = _deviations_beside(windows, colour, state)
    lossy = len(deviations) > 0 and np.median(deviations) <= LOSSY
    if lossy:
        _grow(windows, colour, state)
    if could_be_normal:
        steep, total = _steep_outline(windows, colour, state)
        if total < FEW or steep < (STEEP_SHARE_LOSSY if lossy else STEEP_SHARE) * total:
            return None
    return colour, state


def sampled_pixels(shape: tuple[int, int]) -> tuple[int, int]:
    """Return the first row and column, and the step, of the pixels of an image that are sampled for lengths."""
    step = max(1, math.isqrt(math.prod(shape) // SAMPLED))
    return step // 2, step


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
    if near.sum() < LEAST_SHARE * len(border) or _is_smooth(values, near):
        return None
    spread = float(np.quantile(np.abs(values[near] - colour).max(axis=1), 0.99))
    return Colour(colour, max(1.01 * step, 1.5 * spread, 1e-6))


def _is_smooth(values: Float, near: Bool) -> bool:
    """Return whether the chosen ones of border pixels (n, 3) are normals that vary smoothly, by more than rounding."""
    both, chosen = near[1:] & near[:-1], values[near]
    if abs(float(np.linalg.norm(np.median(chosen, axis=0))) - 1) > OFF_LENGTH:
        return False
    squared = ((values[1:] - values[:-1])[both] ** 2).sum()
    variance = chosen.var(axis=0).sum()
    return bool(variance > LEVEL**2 and squared < SMOOTH * variance * np.count_nonzero(both))


def _near(values: Float, colour: Float) -> Bool:
    near: Bool = np.abs(values - colour).max(axis=1) <= NEAR
    return near


def _usual_lengths(windows: VectorWindows, colour: Colour, sample: Float32) -> Float | None:
    """Return the 10 % and 90 % quantiles of the lengths of vectors of other colours, from a sample; None if none is."""
    differing = _others(sample, colour)
    if len(differing) == 0:
        # A small object in a large image may lie between the pixels of a sample of all of it.
        parts = (windows.raw(window) for window in windows.passes())
        differing = np.concatenate(
            [
                _others(vectors[rows][foreground[rows]], colour)
                for vectors, foreground in parts
                for rows in row_blocks(foreground.shape)
            ]
        )
    if len(differing) == 0:
        return None
    usual: Float = np.quantile(np.linalg.norm(differing, axis=1), [0.1, 0.9])
    return usual


def _others(sample: Float32, colour: Colour) -> Float:
    """Return those of some vectors (K, 3) that are not of a colour, up to the noise of a lossy file."""
    vectors = sample.astype(np.float64)
    differing: Float = vectors[np.abs(vectors - colour.vector).max(axis=1) > LOSSY]
    return differing


def _coloured(windows: VectorWindows, colour: Colour, mark: int) -> UInt8:
    """Return the state (H, W) with a mark where vectors have the colour."""
    state = np.zeros(windows.shape, np.uint8)
    for window in windows.passes():
        vectors, _ = windows.raw(window)
        part = np.zeros(vectors.shape[:2], np.uint8)
        in_parallel(mark_coloured, len(part), vectors, colour.vector, colour.tolerance, mark, part, grain=64)
        state[window] = part
    return state


def _deviations_beside(windows: VectorWindows, colour: Colour, state: UInt8) -> Float:
    """Return how far pixels beside the background, the first ones of the image, are from its colour."""
    places = np.empty((SAMPLED, 2), np.int64)
    rows, columns = places[: pixels_beside(state, places)].T
    vectors = np.empty((len(rows), 3), np.float32)
    for window in windows.passes():
        chosen, place = points_inside(window, rows, columns)
        if len(chosen):
            vectors[chosen] = windows.raw(window)[0][place]
    deviations: Float = np.fmax.reduce(np.abs(vectors - colour.vector), axis=1)
    return deviations


def _grow(windows: VectorWindows, colour: Colour, state: UInt8) -> None:
    """Add what is near the colour of the background, and connected to it within a block of a lossy file."""
    for window in windows.passes():
        around = padded_window(window, BLOCK, windows.shape)
        vectors, _ = windows.raw(around)
        # What grew in other windows is foreground still, as far as this one is concerned.
        part = np.where(state[around] > BACKGROUND, 0, state[around]).astype(np.uint8, copy=False)
        for turn in range(1, BLOCK + 1):
            in_parallel(grow_background, len(part), vectors, colour.vector, LOSSY, part, turn, grain=64)
        state[window] = part[centre_of(window, around)]


def _steep_outline(windows: VectorWindows, colour: Colour, state: UInt8) -> tuple[int, int]:
    """Return along how many pixels of the outline the foreground is steep, and the length of it."""
    steep = total = 0
    for window in windows.passes():
        around = padded_window(window, INSIDE, windows.shape)
        part = np.ascontiguousarray(state[around])
        if part.min() >= BACKGROUND or part.max() < BACKGROUND:
            continue
        vectors, _ = windows.raw(around)
        rows, columns = centre_of(window, around)
        bounds = (rows.start, columns.start, rows.stop, columns.stop)
        steep_here, length = steep_outline(vectors, colour.vector, part, math.cos(STEEP), *bounds)
        steep, total = steep + steep_here, total + length
    return steep, total
