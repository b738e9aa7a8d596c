"""Finding the background of a map on disk, with the rules of :mod:`.background`, window by window.

While it looks, it keeps one byte a pixel: background spreads from the border all over the image.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Float, Float32, UInt8
from normalmesh.files.size_limits import refuse_beyond_memory
from normalmesh.maps._background import (
    BACKGROUND,
    COLOURED,
    INSIDE,
    deviations_of,
    flood_from_border,
    mark_coloured,
    steep_outline,
)
from normalmesh.maps.background import (
    BLOCK,
    SAMPLED,
    STEEP,
    Colour,
    border_colour,
    grow,
    is_lossy,
    is_object,
    is_usual,
    others,
    shortest_run,
    usual_lengths,
)
from normalmesh.maps.decoded_windows import DecodedWindows
from normalmesh.maps.packed_masks import MaskPacker, PackedMask
from normalmesh.maps.windowed_arrays import pass_windows
from normalmesh.normals.windows import centre_of, padded_window
from normalmesh.runtime.row_blocks import row_blocks
from normalmesh.runtime.threads import in_parallel


def find_background_on_disk(windows: DecodedWindows, border: Float32, sample: Float32) -> PackedMask | None:
    """Return the background of a map without a mask, besides what holds no normal; None if there is none.

    ``border`` (n, 3): vectors of the border; ``sample`` (m, 3): those of the foreground among
    :func:`.background.sampled_pixels`.
    """
    colour = border_colour(border, windows.encoding.step)
    lengths = None if colour is None else _usual_lengths(windows, colour, sample)
    if colour is None or lengths is None:
        return None
    refuse_beyond_memory(windows.array.path, math.prod(windows.array.size))
    could_be_normal = is_usual(colour, lengths)
    state = _coloured(windows, colour, COLOURED if could_be_normal else BACKGROUND)
    if could_be_normal:
        flood_from_border(state, shortest_run(state.shape))
    lossy = is_lossy(_deviations_beside(windows, colour, state))
    if lossy:
        _grow(windows, colour, state)
    if could_be_normal and not is_object(*_steep_outline(windows, colour, state), lossy):
        return None
    packer = MaskPacker(windows.array.size)
    for rows in row_blocks(state.shape):
        packer.put(rows, slice(0, state.shape[1]), state[rows] >= BACKGROUND)
    return packer.packed()


def _usual_lengths(windows: DecodedWindows, colour: Colour, sample: Float32) -> Float | None:
    """Return the usual lengths of vectors of other colours, from a sample; from all if it holds none."""
    found = others(sample, colour)
    if len(found) == 0:
        parts = (windows.raw(window) for window in pass_windows(windows.array))
        found = np.concatenate([others(vectors[foreground], colour) for vectors, foreground in parts])
    return usual_lengths(found)


def _coloured(windows: DecodedWindows, colour: Colour, mark: int) -> UInt8:
    """Return the state (H, W) with a mark where vectors have the colour."""
    state = np.zeros(windows.array.size, np.uint8)
    for window in pass_windows(windows.array):
        vectors, _ = windows.raw(window)
        part = np.zeros(vectors.shape[:2], np.uint8)
        in_parallel(mark_coloured, len(part), vectors, colour.vector, colour.tolerance, mark, part, grain=64)
        state[window] = part
    return state


def _deviations_beside(windows: DecodedWindows, colour: Colour, state: UInt8) -> Float:
    """Return how far pixels beside the background, the first ones of the image, are from its colour."""
    rows, columns = _beside(state)
    vectors = np.empty((len(rows), 1, 3), np.float32)
    for window in pass_windows(windows.array):
        begin, end = np.searchsorted(rows, (window[0].start, window[0].stop))
        inside = (columns[begin:end] >= window[1].start) & (columns[begin:end] < window[1].stop)
        if inside.any():
            chosen = np.arange(begin, end)[inside]
            found, _ = windows.raw(window)
            vectors[chosen, 0] = found[rows[chosen] - window[0].start, columns[chosen] - window[1].start]
    deviations = np.empty(len(rows), np.float64)
    deviations_of(vectors, colour.vector, deviations)
    return deviations


def _beside(state: UInt8) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows and columns of the first :data:`SAMPLED` pixels beside the background, row by row."""
    from scipy import ndimage

    found: list[NDArray[np.intp]] = []
    for rows in row_blocks(state.shape):
        around = slice(max(rows.start - 1, 0), rows.stop + 1)
        background = state[around] == BACKGROUND
        beside = ndimage.binary_dilation(background, np.ones((3, 3), np.bool_)) & ~background
        first = rows.start - around.start
        found.append(np.argwhere(beside[first : first + rows.stop - rows.start]) + np.array([rows.start, 0]))
        if sum(map(len, found)) >= SAMPLED:
            break
    places = np.concatenate(found)[:SAMPLED]
    return places[:, 0], places[:, 1]


def _grow(windows: DecodedWindows, colour: Colour, state: UInt8) -> None:
    """Add what differs from the background by the noise of a lossy file."""
    for window in pass_windows(windows.array):
        around = padded_window(window, BLOCK, windows.array.size)
        vectors, _ = windows.raw(around)
        # What grew in other windows is foreground still, as far as this one is concerned.
        part = np.where(state[around] > BACKGROUND, 0, state[around]).astype(np.uint8)
        grow(vectors, colour, part)
        state[window] = part[centre_of(window, around)]


def _steep_outline(windows: DecodedWindows, colour: Colour, state: UInt8) -> tuple[int, int]:
    """Return along how many pixels of the outline the foreground is steep, and the length of it."""
    steep = total = 0
    for window in pass_windows(windows.array):
        around = padded_window(window, INSIDE, windows.array.size)
        part = np.ascontiguousarray(state[around])
        if part.min() >= BACKGROUND or part.max() < BACKGROUND:
            continue
        vectors, _ = windows.raw(around)
        rows, columns = centre_of(window, around)
        bounds = (rows.start, columns.start, rows.stop, columns.stop)
        found, length = steep_outline(vectors, colour.vector, part, math.cos(STEEP), *bounds)
        steep, total = steep + found, total + length
    return steep, total
