"""Cleaning the normals of a map on disk, with the rules of :class:`.normal_map.NormalMap`, window by window.

Which holes are filled depends on all of a hole, which may lie in many windows: their parts are labelled in each window
and joined afterwards.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Bool, Int, UInt8
from normalmesh.maps.decoded_windows import DecodedWindows
from normalmesh.maps.packed_masks import LEVEL, MaskPacker, PackedMask
from normalmesh.maps.window_labels import WindowLabels, labelled
from normalmesh.maps.windowed_arrays import Window, pass_windows
from normalmesh.normals._extension import MISSING
from normalmesh.normals._normal_map import MaskWindow, NormalMapArrays
from normalmesh.normals.camera import Camera
from normalmesh.normals.extension import Reach, extend_rings
from normalmesh.normals.normal_map import clean, missing_of
from normalmesh.normals.repairs import refuse_unusable
from normalmesh.normals.windows import Rectangle, centre_of, padded_window, rectangle_of


@dataclass(frozen=True, eq=False)
class CleanWindows:
    """Windows of clean normals, before pixels that are too far from measurements leave the mask.

    Attributes
    ----------
    windows
        The vectors.
    camera
        Of the whole map.
    shortest
        Length up to which vectors are no measurement.
    reach
        How far normals are extended.
    """

    windows: DecodedWindows
    camera: Camera
    shortest: float
    reach: Reach

    def measured(self, window: Window) -> tuple[NormalMapArrays, Int]:
        """Return normals, zero where there is no measurement, and the mask; and the counts (h, 5) of repairs."""
        vectors, _ = self.windows.read(window)
        mask = self.windows.mask
        given = np.ones(vectors.shape[:2], np.bool_) if mask is None else mask.window(*window)
        rows, columns = window
        normals, counts = clean(vectors, MaskWindow(given, rows.start, columns.start), self.camera, self.shortest)
        return NormalMapArrays(normals, given, self.camera.arrays), counts

    def extended(self, window: Window) -> tuple[NormalMapArrays, UInt8]:
        """Return normals, extended as far as holes allow, and the mask; and the rings of :func:`extend_rings`.

        Normals are as in the whole map if they are farther than the reach from the border of the window.
        """
        arrays, counts = self.measured(window)
        rows, columns = window
        rings, _ = extend_rings(arrays, missing_of(counts), self.reach, rows.start, columns.start)
        return arrays, rings


@dataclass(frozen=True, eq=False)
class CleanFacts:
    """What a pass over all windows finds.

    Attributes
    ----------
    mask
        The foreground.
    totals
        (5,): what was repaired, as :func:`.normal_map.clean` counts it.
    extended
        Number of pixels that took the mean normal of their neighbours.
    foreground
        Number of foreground pixels.
    rectangle
        Of the foreground.
    """

    mask: PackedMask
    totals: Int
    extended: int
    foreground: int
    rectangle: Rectangle


def find_clean_facts(source: CleanWindows) -> CleanFacts:
    """Return foreground and repairs of a map on disk, or raise :class:`NormalMeshError` if there is no measurement."""
    totals, given = np.zeros(5, np.int64), 0
    regions = _Regions(source)
    for window in pass_windows(source.windows.array):
        arrays, counts = source.measured(window)
        totals += counts.sum(axis=0)
        given += int(np.count_nonzero(arrays.mask))
        regions.add(window, bool(missing_of(counts).any()))
    refuse_unusable(totals, given)
    size = source.windows.array.size
    packer, extended, foreground = MaskPacker(size), 0, 0
    rows, columns = (np.zeros(length, np.bool_) for length in size)
    for window, mask, filled in regions.masks():
        packer.put(*window, mask)
        extended, foreground = extended + filled, foreground + int(np.count_nonzero(mask))
        rows[window[0]] |= mask.any(axis=1)
        columns[window[1]] |= mask.any(axis=0)
    return CleanFacts(packer.packed(), totals, extended, foreground, rectangle_of(rows, columns))


@dataclass(frozen=True)
class _Part:
    """A window, and the rings of its pixels, compressed; None if nothing is missing in it.

    ``first``: number of the first label of the window.
    """

    window: Window
    rings: bytes | None
    first: int = 0


class _Regions:
    """Regions of pixels without a measurement that took the normals of neighbours: 8-connected, over all windows.

    As in :func:`._extension.leave_out`, a region stays if it is enclosed by measurements and not too large; of others,
    the rings up to the rim of the reach stay.
    """

    def __init__(self, source: CleanWindows):
        self._source, self._size = source, source.windows.array.size
        self._labels = WindowLabels(self._size[1], diagonal=True)
        self._parts: list[_Part] = []
        self._sizes: list[Int] = []
        self._is_open: list[Bool] = []

    def add(self, window: Window, missing: bool) -> None:
        """Add a window: row by row from the left."""
        if not missing:
            self._parts.append(_Part(window, None))
            self._labels.add(window, None)
            return
        # One pixel more than the reach: what is beside a pixel tells whether its region is enclosed.
        margin = max(self._source.reach.hole, self._source.reach.rim) + 1
        around = padded_window(window, margin, self._size)
        arrays, rings = self._source.extended(around)
        centre = centre_of(window, around)
        labels, count = _region_labels(rings[centre])
        is_open = self._beside_background(arrays.mask, rings, around)[centre]
        self._sizes.append(np.bincount(labels.ravel(), minlength=count + 1)[1:])
        self._is_open.append(np.bincount(labels[is_open], minlength=count + 1)[1:] > 0)
        self._parts.append(_Part(window, zlib.compress(rings[centre].tobytes(), LEVEL), self._labels.count))
        self._labels.add(window, labels, count)

    def masks(self) -> Iterator[tuple[Window, Bool, int]]:
        """Yield each window, its foreground (h, w), and the number of pixels of it that were extended."""
        kept = self._kept()
        for part in self._parts:
            rows, columns = part.window
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            given = self._source.windows.mask
            mask = np.ones(shape, np.bool_) if given is None else given.window(rows, columns)
            if part.rings is None:
                yield part.window, mask, 0
                continue
            rings = np.frombuffer(zlib.decompress(part.rings), np.uint8).reshape(shape)
            labels, count = _region_labels(rings)
            stays = np.concatenate([[False], kept[part.first : part.first + count]])[labels]
            filled = (labels > 0) & (stays | (rings <= self._source.reach.rim))
            yield part.window, mask & ((rings == 0) | filled), int(np.count_nonzero(filled))

    def _beside_background(self, mask: Bool, rings: UInt8, window: Window) -> Bool:
        """Return which pixels of a window are beside the background, or at the border of the image."""
        from scipy import ndimage

        beside: Bool = ndimage.binary_dilation(~mask | (rings == MISSING), np.ones((3, 3), np.bool_))
        (height, width), (rows, columns) = self._size, window
        beside[: max(1 - rows.start, 0)] = True
        beside[height - 1 - rows.start :] = True
        beside[:, : max(1 - columns.start, 0)] = True
        beside[:, width - 1 - columns.start :] = True
        return beside

    def _kept(self) -> Bool:
        """Return which labels (N,) belong to regions that stay as a whole."""
        if self._labels.count == 0:
            return np.zeros(0, np.bool_)
        region = self._labels.regions()
        sizes = np.bincount(region, np.concatenate(self._sizes))
        is_open = np.bincount(region, np.concatenate(self._is_open)) > 0
        kept: Bool = (~is_open & (sizes <= self._source.reach.largest))[region]
        return kept


def _region_labels(rings: UInt8) -> tuple[Int, int]:
    """Return the number (h, w) of the region of each pixel that was extended, and how many there are."""
    return labelled((rings > 0) & (rings != MISSING), diagonal=True)
