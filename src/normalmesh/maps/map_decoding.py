"""Decoding a map: what the rules for whole maps need is found in samples, and in passes over all windows."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float, Int
from normalmesh.errors import NormalMeshError, path_text, warn_caller
from normalmesh.files.formats import unusable
from normalmesh.files.packed_masks import ArrayMask, MaskPacker, PackedMask
from normalmesh.files.size_limits import refuse_beyond_memory
from normalmesh.files.windowed_arrays import WindowedArray
from normalmesh.maps.alpha import Alpha, alpha_mask
from normalmesh.maps.background import Colour, find_background, sampled_pixels
from normalmesh.maps.decoded_windows import DecodedWindows, HeldWindows, VectorWindows
from normalmesh.maps.decoding import (
    UNSIGNED,
    Decoder,
    Encoding,
    find_encoding,
    is_premultiplied,
    refuse_narrow,
    sampling_step,
    usable,
)
from normalmesh.maps.map_samples import (
    DiskPixels,
    Grid,
    border_pixels,
    every_foreground_pixel,
    mask_grid,
    mask_points,
    take_samples,
)
from normalmesh.normals.camera import Camera
from normalmesh.normals.cleaning import SAMPLED, TYPICAL, lengths_of
from normalmesh.normals.diagnosis import Diagnosis
from normalmesh.normals.integrability import probe_step
from normalmesh.normals.overview import ArrayPixels, overview_step
from normalmesh.runtime.row_blocks import row_blocks

Mask = ArrayMask | PackedMask


def decode_map(array: WindowedArray, mask: Mask | None, alpha: Alpha, in_memory: bool) -> DecodedMap:
    """Find the vectors and the foreground of stored normals, or raise :class:`NormalMeshError` if there are none.

    Background is what the mask leaves out, and what holds no vector; without a mask, what :mod:`.background` finds.

    Parameters
    ----------
    array
        The stored values.
    mask
        As given; None: the alpha channel may hold it.
    alpha
        How to take an alpha channel, if no mask is given.
    in_memory
        Whether vectors are held in memory, or decoded whenever a window is read.
    """
    if in_memory:
        # Three float32, the foreground, and what searching the background takes.
        refuse_beyond_memory(array.path, 14 * math.prod(array.size))
    unmasked: list[DecodedMap] = []

    def foreground(window: tuple[slice, slice]) -> Bool:
        if not unmasked:
            unmasked.append(DecodedMap(array, None, in_memory))
        return unmasked[0].windows.read(window)[1]

    if mask is None:
        mask = alpha_mask(array, alpha, foreground, ArrayMask if in_memory else MaskPacker)
    if mask is not None:
        unmasked.clear()
    decoded = unmasked[0] if unmasked else DecodedMap(array, mask, in_memory)
    if not decoded.has_foreground():
        raise unusable(array.path, "no pixel is foreground: all are black, mid grey, zero, NaN or outside the mask")
    if decoded.decoder.encoding == UNSIGNED:
        warn_caller(f"{path_text(array.path)}: floats lie in [0, 1]; they were decoded as 2·value − 1")
    return decoded


class DecodedMap:
    """The vectors of a map, in the file's own channels, and what was found out about it.

    Attributes
    ----------
    path
        The file, for messages.
    mask
        As given; None if there is none.
    decoder
        How stored values become vectors.
    windows
        The vectors.
    background
        The colour that background was found by; None if there is none, or a mask was given.
    """

    def __init__(self, array: WindowedArray, mask: Mask | None, in_memory: bool):
        self.path, self.mask = array.path, mask
        shape, step = array.size, overview_step(array.size)
        self._even: Grid = (0, sampling_step(shape))
        self._steps = sorted({step, probe_step(1), probe_step(step)})
        background: Grid = sampled_pixels(shape)
        border = border_pixels(shape) if mask is None else np.zeros(0, np.int64)
        self._places = np.zeros(0, np.int64) if in_memory else _typical_places(shape, mask)
        grids = {self._even, background, *((0, each) for each in self._steps)}
        samples = take_samples(array, grids, np.concatenate([border, self._places]))
        self.decoder = self._decoder(array, samples.grids[self._even])
        if array.maximum is not None and not self.decoder.premultiplied:
            refuse_narrow(array.path, array.maximum, samples.largest)
        on_disk = DecodedWindows(array, self.decoder, None if isinstance(mask, ArrayMask) else mask)
        self.windows: VectorWindows = on_disk
        if in_memory:
            self.windows = HeldWindows.of(array, self.decoder, None if mask is None else mask.whole())
        found = None
        if mask is None:
            edge, _ = on_disk.raw_values(samples.points[: len(border), None])
            sample, foreground = on_disk.raw_values(samples.grids[background])
            found = find_background(self.windows, edge[:, 0], sample[foreground], self.decoder.encoding.step)
        colour, state = found or (None, None)
        self.background: Colour | None = colour
        self.windows = self.windows.without(state)
        # Views of values in memory would keep all of them.
        self._grids = {} if in_memory else {step: samples.grids[0, step] for step in self._steps}
        self._points = samples.points[len(border) :, None]

    @property
    def held(self) -> HeldWindows:
        """The vectors, of a map in memory."""
        assert isinstance(self.windows, HeldWindows)
        return self.windows

    def has_foreground(self) -> bool:
        """Return whether any pixel is foreground."""
        if isinstance(self.windows, DecodedWindows):
            pixels = self._disk_pixels(self.windows)
            if any(pixels.every(step)[1].any() for step in self._steps):
                return True
        return any(self.windows.read(window)[1].any() for window in self.windows.passes())

    def diagnosis(self, camera: Camera) -> Diagnosis:
        """Diagnose the convention, or raise an error that names the file."""
        from normalmesh.normals.diagnosis import diagnose_pixels

        windows = self.windows
        pixels = (
            ArrayPixels(windows.vectors, windows.foreground)
            if isinstance(windows, HeldWindows)
            else self._disk_pixels(windows)
        )
        try:
            return diagnose_pixels(pixels, camera, raw=True)
        except NormalMeshError as error:
            raise unusable(self.path, str(error)) from error

    def typical_length(self) -> float:
        """Return the typical length of vectors on disk, as :func:`.cleaning.typical_length` does; 0 if none has one."""
        windows = self.windows
        assert isinstance(windows, DecodedWindows)
        masks = (None if each is None else mask_points(each, self._places)[:, None] for each in _masks(windows))
        lengths = lengths_of(*windows.decoded(self._points, *masks))
        if len(lengths) == 0:
            lengths = np.concatenate([lengths_of(*windows.read(window)) for window in windows.passes()])
        return float(np.quantile(lengths, TYPICAL)) if len(lengths) else 0.0

    def _disk_pixels(self, windows: DecodedWindows) -> DiskPixels:
        grids = {}
        for step in self._steps:
            masks = (None if each is None else mask_grid(each, (0, step)) for each in _masks(windows))
            grids[step] = windows.decoded(self._grids[step], *masks)
        return DiskPixels(windows, grids)

    def _decoder(self, array: WindowedArray, values: NDArray[np.generic]) -> Decoder:
        inside = None if self.mask is None else mask_grid(self.mask, self._even)

        def sample() -> Float:
            """Return about a million evenly spaced foreground pixels (n, 3); all pixels if there are none."""
            spaced = usable(values, inside)
            return spaced if len(spaced) else np.concatenate([usable(*part) for part in self._parts(array)])

        encoding: Encoding = find_encoding(array.path, array.dtype, array.maximum, sample)
        return Decoder(encoding, array.maximum, is_premultiplied(values, array.maximum, encoding, inside))

    def _parts(self, array: WindowedArray) -> Iterator[tuple[NDArray[np.generic], Bool | None]]:
        """Yield all stored values (h, w, channels) and the given mask (h, w), in small blocks."""
        for window in array.passes():
            values, mask = array.read(*window), None if self.mask is None else self.mask.window(*window)
            for rows in row_blocks(values.shape):
                yield values[rows], None if mask is None else mask[rows]


def _masks(windows: DecodedWindows) -> tuple[PackedMask | None, PackedMask | None]:
    return windows.mask, windows.found


def _typical_places(shape: tuple[int, int], mask: Mask | None) -> Int:
    """Return the numbers of the pixels whose lengths :func:`.cleaning.typical_length` samples."""
    pixels = math.prod(shape)
    if mask is None:
        step = max(pixels // SAMPLED, 1)
        return np.arange(step - 1, pixels, step, dtype=np.int64)
    foreground = sum(int(np.count_nonzero(band)) for _, band in mask.bands_of_rows())
    return every_foreground_pixel(mask, max(foreground // SAMPLED, 1))
