"""Decoding a map: what the rules for whole maps need is found in samples, and in passes over all windows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.array_types import Bool, Float, Int
from normalmesh.errors import NormalMeshError, path_text, warn_caller
from normalmesh.files.formats import unusable
from normalmesh.files.masks import PackedMask
from normalmesh.files.size_limits import refuse_beyond_memory
from normalmesh.files.windowed_arrays import WindowedArray
from normalmesh.maps.alpha import Alpha, alpha_mask
from normalmesh.maps.background import Colour, find_background, sampled_pixels
from normalmesh.maps.decoded_windows import DecodedWindows, HeldWindows, VectorWindows
from normalmesh.maps.decoding import UNSIGNED, Decoder, find_encoding, is_premultiplied, refuse_narrow, usable
from normalmesh.maps.map_samples import (
    Grid,
    border_pixels,
    every_foreground_pixel,
    mask_grid,
    mask_points,
    take_samples,
)
from normalmesh.maps.stored_normals import chosen_mask
from normalmesh.normals.camera import Camera
from normalmesh.normals.cleaning import SAMPLED, TYPICAL, lengths_of
from normalmesh.normals.diagnosis import Diagnosis
from normalmesh.normals.integrability import probe_step
from normalmesh.normals.overview import Pixels, overview_step
from normalmesh.normals.windows import whole_window
from normalmesh.runtime.row_blocks import row_blocks

#: Number of pixels that the encoding of floats is found in.
ENCODING_PIXELS = 1 << 20


def decode_map(
    array: WindowedArray, given: str | PathLike[str] | ArrayLike | None, alpha: Alpha, in_memory: bool = True
) -> DecodedMap:
    """Find the vectors and the foreground of stored normals, or raise :class:`NormalMeshError` if there are none.

    Background is what the mask leaves out, and what holds no vector; without a mask, what :mod:`.background` finds. If
    none is ``given``, the file or its ``alpha`` channel may hold it. Vectors are held in memory, or decoded whenever a
    window is read.
    """
    if in_memory:
        # Three float32, the foreground, and what searching the background takes.
        refuse_beyond_memory(array.path, 14 * math.prod(array.size))
    mask = chosen_mask(array, given, in_memory)
    unmasked: list[DecodedMap] = []

    def foreground(window: tuple[slice, slice]) -> Bool:
        if not unmasked:
            unmasked.append(DecodedMap(array, None, in_memory))
        return unmasked[0].windows.read(window)[1]

    if mask is None:
        mask = alpha_mask(array, alpha, foreground)
    if mask is not None:
        unmasked.clear()
    decoded = unmasked[0] if unmasked else DecodedMap(array, mask, in_memory)
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
        steps = sorted({step, probe_step(1), probe_step(step)})
        border = border_pixels(shape) if mask is None else np.zeros(0, np.int64)
        self._places = np.zeros(0, np.int64) if in_memory else _typical_places(shape, mask)
        wanted = {even, background, *((0, each) for each in steps)}
        grids, points, largest = take_samples(array, wanted, np.concatenate([border, self._places]))
        self.decoder = self._decoder(array, even, grids[even])
        if not self.decoder.premultiplied:
            refuse_narrow(array, largest)
        on_disk = DecodedWindows(array, self.decoder, mask)
        windows: VectorWindows = HeldWindows.of(array, self.decoder, mask) if in_memory else on_disk
        found = None
        if mask is None:
            edge, _ = self.decoder.vectors(points[: len(border), None])
            sample, foreground = self.decoder.vectors(grids[background])
            found = find_background(windows, edge[:, 0], sample[foreground], self.decoder.encoding.step)
        self.background: Colour | None = found and found[0]
        self.windows = windows = windows.without(found and found[1])
        known = {}
        if isinstance(windows, DecodedWindows):  # views of values in memory would keep all of them
            for step in steps:
                masks = (mask_grid(each, (0, step)) for each in (windows.mask, windows.background))
                known[step] = windows.decoded(grids[0, step], *masks)
        self._pixels = Pixels(windows.read, windows.passes(), whole_window(shape), known)
        self._points = points[len(border) :, None]

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
        windows = self.windows
        assert isinstance(windows, DecodedWindows)
        masks = (mask_points(each, self._places) for each in (windows.mask, windows.background))
        lengths = lengths_of(*windows.decoded(self._points, *masks))
        if len(lengths) == 0:
            lengths = np.concatenate([lengths_of(*windows.read(window)) for window in windows.passes()])
        return float(np.quantile(lengths, TYPICAL)) if len(lengths) else 0.0

    def _decoder(self, array: WindowedArray, grid: Grid, values: NDArray[Any]) -> Decoder:
        """Find how stored values become vectors; ``values`` are those of a grid of evenly spaced pixels."""
        inside = mask_grid(self.mask, grid)

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


def _typical_places(shape: tuple[int, int], mask: PackedMask | None) -> Int:
    """Return the numbers of the pixels whose lengths :func:`.cleaning.typical_length` samples."""
    pixels = math.prod(shape)
    if mask is None:
        step = max(pixels // SAMPLED, 1)
        return np.arange(step - 1, pixels, step, dtype=np.int64)
    foreground = sum(int(np.count_nonzero(band)) for _, band in mask.bands_of_rows())
    return every_foreground_pixel(mask, max(foreground // SAMPLED, 1))
