"""Decoding a map: what the rules for whole maps need is found in samples, and in passes over all windows."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float, Int
from normalmesh.errors import NormalMeshError, path_text, warn_caller
from normalmesh.files.formats import unusable
from normalmesh.files.masks import PackedMask
from normalmesh.files.size_limits import refuse_beyond_memory
from normalmesh.files.windowed_arrays import WindowedArray
from normalmesh.maps.alpha import Alpha, alpha_mask
from normalmesh.maps.background import Colour, find_background, sampled_pixels
from normalmesh.maps.decoding import (
    UNSIGNED,
    DecodedWindows,
    Decoder,
    HeldWindows,
    VectorWindows,
    find_encoding,
    is_premultiplied,
    refuse_narrow,
    usable,
)
from normalmesh.maps.stored_normals import MaskLike, chosen_mask
from normalmesh.normals.camera import Camera
from normalmesh.normals.cleaning import SAMPLED, TYPICAL, lengths_of
from normalmesh.normals.diagnosis import Diagnosis
from normalmesh.normals.integrability import probe_step
from normalmesh.normals.overview import Pixels, overview_step
from normalmesh.normals.windows import Slices, grid_places, points_inside, whole_window
from normalmesh.runtime.row_blocks import row_blocks

#: Number of pixels that the encoding of floats is found in.
ENCODING_PIXELS = 1 << 20
#: First row, which is also the first column, and step of a grid of pixels.
Grid = tuple[int, int]


def decode_map(array: WindowedArray, given: MaskLike, alpha: Alpha, in_memory: bool = True) -> DecodedMap:
    """Find the vectors and the foreground of stored normals, or raise :class:`NormalMeshError` if there are none.

    Background is what the mask leaves out, and what holds no vector; without a mask, what :mod:`.background` finds. If
    none is ``given``, the file or its ``alpha`` channel may hold it. Vectors are held in memory, or decoded whenever a
    window is read.
    """
    if in_memory:
        # Three float32, the foreground, and what searching the background takes.
        refuse_beyond_memory(array.path, 14 * math.prod(array.size))
    mask = chosen_mask(array, given, in_memory)
    unmasked = cache(partial(DecodedMap, array, None, in_memory))
    if mask is None:
        mask = alpha_mask(array, alpha, lambda window: unmasked().windows.read(window)[1])
    if mask is None:
        decoded = unmasked()
    else:
        unmasked.cache_clear()  # it takes as much memory
        decoded = DecodedMap(array, mask, in_memory)
    if not decoded.has_foreground():
        raise unusable(array.path, "no pixel is foreground: all are black, mid grey, zero, NaN or outside the mask")
    if decoded.decoder.encoding == UNSIGNED:
        warn_caller(f"{path_text(array.path)}: floats lie in [0, 1]; they were decoded as 2·value − 1")
    return decoded


class DecodedMap:
    """The ``windows`` of vectors of a map, in the file's own channels, and what was found out about it.

    ``background``: the colour that background was found by; None if there is none, or a ``mask`` was given.
    """

    def __init__(self, array: WindowedArray, mask: PackedMask | None, in_memory: bool):
        self.path, self.mask = array.path, mask
        shape, step = array.size, overview_step(array.size)
        even: Grid = (0, max(1, math.isqrt(math.prod(shape) // ENCODING_PIXELS)))
        background: Grid = sampled_pixels(shape)
        looked_at = [(0, each) for each in sorted({step, probe_step(1), probe_step(step)})]
        border = _border_pixels(shape) if mask is None else np.zeros(0, np.int64)
        typical = np.zeros(0, np.int64) if in_memory else _typical_pixels(shape, mask)
        largest = [0]
        parts = _watched(array, largest)
        grids, points = _samples(parts, shape, {even, background, *looked_at}, np.concatenate([border, typical]))
        inside, typical_inside = _mask_samples(mask, {even, *looked_at}, typical)
        self.decoder = self._decoder(array, grids[even], inside[even])
        if not self.decoder.premultiplied:
            refuse_narrow(array, largest[0])
        on_disk = DecodedWindows(array, self.decoder, mask)
        windows: VectorWindows = HeldWindows.of(array, self.decoder, mask) if in_memory else on_disk
        found = None
        if mask is None:
            edge, _ = self.decoder.vectors(points[: len(border)])
            sample, foreground = self.decoder.vectors(grids[background])
            found = find_background(windows, edge[:, 0], sample[foreground], self.decoder.encoding.step)
        self.background: Colour | None = found and found[0]
        self.windows = windows = windows.without(found and found[1])
        known = {}
        if isinstance(windows, DecodedWindows):  # views of values in memory would keep all of them
            outside, typical_outside = _mask_samples(windows.background, looked_at, typical)
            known = {each[1]: windows.decoded(grids[each], inside[each], outside[each]) for each in looked_at}
            self._lengths = lengths_of(*windows.decoded(points[len(border) :], typical_inside, typical_outside))
        self._pixels = Pixels(windows.read, windows.passes(), whole_window(shape), known)

    @property
    def held(self) -> HeldWindows:
        """The vectors, of a map in memory."""
        assert isinstance(self.windows, HeldWindows)
        return self.windows

    def has_foreground(self) -> bool:
        """Return whether any pixel is foreground."""
        if isinstance(self.windows, DecodedWindows) and self._pixels.every(probe_step(1))[1].any():
            return True
        return any(self.windows.read(window)[1].any() for window in self.windows.passes())

    def diagnosis(self, camera: Camera) -> Diagnosis:
        """Diagnose the convention, or raise an error that names the file."""
        from normalmesh.normals.diagnosis import diagnose_pixels

        try:
            return diagnose_pixels(self._pixels, camera, raw=True)
        except NormalMeshError as error:
            raise unusable(self.path, str(error)) from error

    def typical_length(self) -> float:
        """Return the typical length of vectors on disk, as :func:`.cleaning.typical_length` does; 0 if none has one."""
        lengths = self._lengths
        if len(lengths) == 0:
            lengths = np.concatenate([lengths_of(*self.windows.read(window)) for window in self.windows.passes()])
        return float(np.quantile(lengths, TYPICAL)) if len(lengths) else 0.0

    def _decoder(self, array: WindowedArray, values: NDArray[Any], inside: Bool | None) -> Decoder:
        """Find how stored values become vectors; ``values`` and mask are those of evenly spaced pixels."""

        def sample() -> Float:
            """Return evenly spaced foreground pixels (n, 3); all pixels if there are none."""
            spaced = usable(values, inside)
            return spaced if len(spaced) else np.concatenate([usable(*part) for part in self._parts(array)])

        encoding = find_encoding(array, sample)
        return Decoder(encoding, array.maximum, is_premultiplied(values, array.maximum, encoding, inside))

    def _parts(self, array: WindowedArray) -> Iterator[tuple[NDArray[Any], Bool | None]]:
        """Yield all stored values (h, w, channels) and the given mask (h, w), in small blocks."""
        for window in array.passes():
            values, mask = array.read(*window), None if self.mask is None else self.mask.window(*window)
            for rows in row_blocks(values.shape):
                yield values[rows], None if mask is None else mask[rows]


def _watched(array: WindowedArray, largest: list[int]) -> Iterator[tuple[Slices, NDArray[Any]]]:
    """Yield all windows of an array and their values.

    Of integers of more than 8 bit, ``largest`` notes the largest of the first three channels, or any beyond 255.
    """
    wide = array.maximum is not None and array.maximum > 255
    for window in array.passes():
        values = array.read(*window)
        for rows in row_blocks(values.shape) if wide else ():
            if largest[0] <= 255:
                largest[0] = max(largest[0], int(values[rows, :, :3].max()))
        yield window, values


def _samples(
    parts: Iterable[tuple[Slices, NDArray[Any]]], shape: tuple[int, int], grids: Collection[Grid], points: Int
) -> tuple[dict[Grid, NDArray[Any]], NDArray[Any]]:
    """Take samples in one pass over the parts of an image: the pixels (h, w, …) of grids, and (n, 1, …) at points.

    ``points`` (n,) are numbers of pixels, counted row by row.
    """
    taken: dict[Grid, NDArray[Any]] = {}
    order = np.argsort(points, kind="stable")
    down, across = np.divmod(points[order], shape[1])
    chosen_values: NDArray[Any] | None = None
    for window, values in parts:
        for grid in grids:
            first, step = grid
            inner, outer = grid_places(window, (first, first), step)
            if window == whole_window(shape):
                taken[grid] = values[inner]  # a view: a small map may be all sample
                continue
            if grid not in taken:
                rows, columns = (-(-(length - first) // step) for length in shape)
                taken[grid] = np.empty((rows, columns, *values.shape[2:]), values.dtype)
            taken[grid][outer] = values[inner]
        if chosen_values is None:
            chosen_values = np.empty((len(points), *values.shape[2:]), values.dtype)
        chosen, place = points_inside(window, down, across)
        chosen_values[order[chosen]] = values[place]
    assert chosen_values is not None
    return taken, chosen_values[:, None]


def _mask_samples(
    mask: PackedMask | None, grids: Collection[Grid], points: Int
) -> tuple[Mapping[Grid, Bool | None], Bool | None]:
    """Take samples of a mask; without one, they are None."""
    return (dict.fromkeys(grids), None) if mask is None else _samples(mask.parts(), mask.shape, grids, points)


def _border_pixels(shape: tuple[int, int]) -> Int:
    """Return the numbers of the pixels of the border of an image: first row, last row, then the sides between them."""
    rows, columns = shape
    first, sides = np.arange(columns), np.arange(1, rows - 1) * columns
    return np.concatenate([first, (rows - 1) * columns + first, sides, sides + columns - 1]).astype(np.int64)


def _typical_pixels(shape: tuple[int, int], mask: PackedMask | None) -> Int:
    """Return the numbers of the pixels whose lengths :func:`.cleaning.typical_length` samples."""
    pixels = math.prod(shape)
    if mask is None:
        step = max(pixels // SAMPLED, 1)
        return np.arange(step - 1, pixels, step, dtype=np.int64)
    # Every step-th pixel of the mask, beginning with the step-th.
    step = max(sum(int(np.count_nonzero(part)) for _, part in mask.parts()) // SAMPLED, 1)
    found, before = [], 0
    for (rows, _), part in mask.parts():
        numbers = np.flatnonzero(part)
        found.append(numbers[(step - 1 - before) % step :: step] + rows.start * shape[1])
        before += len(numbers)
    return np.concatenate(found).astype(np.int64)
