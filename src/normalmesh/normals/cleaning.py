"""Cleaning vectors: unit normals where there is a measurement, or one is near, and the mask that remains.

A pixel of the mask that has no measurement takes the mean of its 3 × 3 neighbours that have a normal, ring by ring away
from the measurements. A map is cleaned window by window; in memory, one window is all of it. Which holes are filled
depends on all of a hole, which may lie in many windows: extended pixels are listed, and judged at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Bool, Float32, Floating, Int, UInt8
from normalmesh.normals._extension import MISSING, extend_ring, mark_missing
from normalmesh.normals._normal_map import (
    BACK_FACING,
    INVALID,
    UNRESOLVED,
    MaskWindow,
    NormalMapArrays,
    clean_normals,
    sample_lengths,
)
from normalmesh.normals.camera import Camera
from normalmesh.normals.mask_labels import joined
from normalmesh.normals.repairs import Repairs, counted_repairs, refuse_unusable
from normalmesh.normals.windows import Slices, centre_of, padded_window
from normalmesh.runtime.threads import in_parallel

#: Vectors that are shorter than this share of the typical length have no direction: mid grey with the noise of a file.
SHORT = 0.05
#: Number of vectors whose lengths are sampled, and the quantile that is typical: most of an image may be background.
SAMPLED, TYPICAL = 1 << 16, 0.95


@dataclass(frozen=True)
class Reach:
    """How far normals are extended, in pixels."""

    rim: int  # beyond the measurements at the rim of the mask, and in holes that are not filled
    hole: int  # from the measurements around a hole to its middle; deeper holes are not filled
    largest: int  # pixels of a hole that is filled


#: A given mask is believed: it is often some pixels larger than the object, and includes highlights and shadows.
WITH_MASK = Reach(rim=4, hole=16, largest=2**62)
#: Without a mask, what has no measurement is background, except for specks that are smaller than any gap between parts.
WITHOUT_MASK = Reach(rim=0, hole=2, largest=16)


def typical_length(given: Floating, mask: Bool) -> float:
    """Return the typical length of the vectors (H, W, 3) of the mask (H, W) that have one; 0 if none has."""
    foreground = int(np.count_nonzero(mask))
    for step in (max(foreground // SAMPLED, 1), 1):
        lengths = lengths_of(given, mask, step)
        if len(lengths):
            return float(np.quantile(lengths, TYPICAL))
    return 0.0


def lengths_of(given: Floating, mask: Bool, step: int = 1) -> Floating:
    """Return the lengths (n,) of every ``step``-th vector of a mask, of those that are finite and not zero."""
    lengths = np.empty(int(np.count_nonzero(mask)) // step, np.float64)
    return lengths[: sample_lengths(given, mask, step, lengths)]


@dataclass(frozen=True, eq=False)
class CleanWindows:
    """Windows of clean normals, before pixels that are too far from measurements leave the mask."""

    read: Callable[[Slices], tuple[Floating, Bool]]  # vectors (h, w, 3) and mask (h, w), which is changed
    shape: tuple[int, int]
    camera: Camera  # of the whole map
    typical_length: float  # of the vectors
    has_mask: bool  # whether a mask was given

    @property
    def reach(self) -> Reach:
        """How far normals are extended."""
        return WITH_MASK if self.has_mask else WITHOUT_MASK

    def measured(self, window: Slices) -> tuple[NormalMapArrays, Int]:
        """Return normals, zero where there is no measurement, and the mask; and the counts (h, 5) of repairs."""
        vectors, mask = self.read(window)
        normals = np.empty(vectors.shape, np.float32)
        counts = np.zeros((len(normals), 5), np.int64)
        place = MaskWindow(mask, window[0].start, window[1].start)
        camera, shortest = self.camera.arrays, SHORT * self.typical_length
        in_parallel(clean_normals, len(mask), vectors, place, camera, shortest, normals, counts, grain=64)
        return NormalMapArrays(normals, mask, camera), counts

    def extended(self, window: Slices, measured: NormalMapArrays, counts: Int) -> ExtendedWindow:
        """Return a window, given what :meth:`measured` returned for it, with normals extended as far as holes allow."""
        # One pixel more than the reach: what is beside a pixel tells whether its region is enclosed.
        around = padded_window(window, max(self.reach.hole, self.reach.rim) + 1, self.shape)
        arrays, counts = (measured, counts) if around == window else self.measured(around)
        top, left = around[0].start, around[1].start
        rings, mask = _extend_rings(arrays, _missing(counts), self.reach, top, left), arrays.mask
        mask &= rings != MISSING
        centre = centre_of(window, around)
        i, j = np.nonzero((rings[centre] > 0) & mask[centre])
        i, j = i + centre[0].start, j + centre[1].start
        rows, columns = top + i, left + j
        enclosed = (rows > 0) & (rows < self.shape[0] - 1) & (columns > 0) & (columns < self.shape[1] - 1)
        for down, across in np.ndindex(3, 3):
            enclosed &= mask[np.clip(i + down - 1, 0, len(mask) - 1), np.clip(j + across - 1, 0, mask.shape[1] - 1)]
        numbers = rows * self.shape[1] + columns
        return ExtendedWindow(arrays.normals[centre], mask[centre], numbers, rings[i, j], enclosed)


class ExtendedWindow(NamedTuple):
    """Normals (h, w, 3) of a window, the mask (h, w) of those that are known, and a list of those that were extended.

    ``numbers`` (n,): pixels of the map, row by row; their ``rings`` (n,); whether all neighbours are known (n,).
    """

    normals: Float32
    mask: Bool
    numbers: Int
    rings: UInt8
    enclosed: Bool


class Cleaning:
    """Cleaning a map, one window after another."""

    def __init__(self, windows: CleanWindows):
        self._windows, self._masked = windows, 0
        self._totals = np.zeros(5, np.int64)  # of what was repaired, as :func:`.clean_normals` counts it
        self._extended: list[tuple[Int, UInt8, Bool]] = []  # see :class:`ExtendedWindow`

    def add(self, window: Slices) -> tuple[Float32, Bool]:
        """Return normals (h, w, 3), extended as far as holes allow, and the mask (h, w) of pixels that have one."""
        source = self._windows
        arrays, counts = source.measured(window)
        self._totals += counts.sum(axis=0)
        self._masked += int(np.count_nonzero(arrays.mask))
        if not _missing(counts).any():
            return arrays.normals, arrays.mask
        extended = source.extended(window, arrays, counts)
        self._extended.append(extended[2:])
        return extended.normals, extended.mask

    def finish(self) -> tuple[Repairs, Int]:
        """Return the repairs, and the numbers of the pixels, row by row, that must still leave the mask.

        Raises
        ------
        NormalMeshError
            No pixel holds a measurement.
        """
        refuse_unusable(self._totals, self._masked)
        leaving, extended = np.zeros(0, np.int64), 0
        if self._extended:
            numbers, rings, enclosed = (np.concatenate(each) for each in zip(*self._extended, strict=True))
            if len(self._extended) > 1:
                order = np.argsort(numbers)
                numbers, rings, enclosed = numbers[order], rings[order], enclosed[order]
            leaves = _leaving(numbers, rings, enclosed, self._windows.shape[1], self._windows.reach)
            leaving, extended = numbers[leaves], int(np.count_nonzero(~leaves))
        return counted_repairs(self._totals, extended, self._windows.has_mask), leaving

    @property
    def unresolved(self) -> int:
        """Number of pixels in which depth changes too much to be resolved."""
        return int(self._totals[UNRESOLVED])


def _missing(counts: Int) -> Int:
    """Return the number (h,) of pixels of the mask without a measurement in each row."""
    missing: Int = counts[:, INVALID] + counts[:, BACK_FACING]
    return missing


def _leaving(numbers: Int, rings: UInt8, enclosed: Bool, width: int, reach: Reach) -> Bool:
    """Return which extended pixels (n,), which ascend, are too far from measurements to stay.

    A region is a set of 8-connected extended pixels. It stays if it is enclosed by measurements and is not too large;
    of others, the rings up to the rim stay.
    """
    pairs, columns = [], numbers % width
    for down, across in ((0, 1), (1, -1), (1, 0), (1, 1)):
        beside = numbers + down * width + across
        place = np.minimum(np.searchsorted(numbers, beside), len(numbers) - 1)
        touches = (numbers[place] == beside) & (columns + across >= 0) & (columns + across < width)
        pairs.append(np.stack([np.flatnonzero(touches), place[touches]]))
    regions = joined(np.concatenate(pairs, axis=1), len(numbers))
    stays = (np.bincount(regions, ~enclosed) == 0) & (np.bincount(regions) <= reach.largest)
    leaves: Bool = (rings > reach.rim) & ~stays[regions]
    return leaves


def _extend_rings(arrays: NormalMapArrays, missing: Int, reach: Reach, top: int, left: int) -> UInt8:
    """Extend normals ring by ring as far as holes allow; return the ring of each pixel.

    ``top`` and ``left``: row and column of the first pixel in the image of the camera. The ring (H, W) of a pixel is
    0 where there is a measurement or no mask, and :data:`._extension.MISSING` where there is no normal yet. Pixels of a
    window are as in the whole image if they are farther than the reach from its border.
    """
    rows, still = len(missing), missing.copy()
    rings = np.zeros(arrays.mask.shape, np.uint8)
    in_parallel(mark_missing, rows, arrays, rings, grain=64)
    count = int(missing.sum())
    for ring in range(1, max(reach.rim, reach.hole) + 1):
        in_parallel(extend_ring, rows, arrays, rings, ring, still, top, left, grain=64)
        before, count = count, int(still.sum())
        if count in (0, before):
            break
    return rings
