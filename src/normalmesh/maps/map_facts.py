"""Facts about a normal map on disk: what the rules for whole maps need, found in passes over all windows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from normalmesh.array_types import Bool, Float, Float32, Int
from normalmesh.errors import NormalMeshError
from normalmesh.files.formats import unusable
from normalmesh.maps.alpha import Alpha
from normalmesh.maps.background import sampled_pixels
from normalmesh.maps.decoded_windows import DecodedWindows, DiskPixels, stored_values
from normalmesh.maps.decoding import (
    evenly_spaced,
    find_encoding,
    is_premultiplied,
    no_foreground,
    refuse_narrow,
    usable,
)
from normalmesh.maps.map_samples import (
    Grid,
    border_pixels,
    every_foreground_pixel,
    mask_grid,
    mask_points,
    take_samples,
)
from normalmesh.maps.normal_maps import chosen_convention
from normalmesh.maps.packed_masks import PackedMask
from normalmesh.maps.windowed_arrays import Window, WindowedArray, pass_windows
from normalmesh.maps.windowed_background import find_background_on_disk
from normalmesh.maps.windowed_cleaning import CleanWindows
from normalmesh.maps.windowed_masks import mask_of_alpha
from normalmesh.normals._normal_map import sample_lengths
from normalmesh.normals.camera import Camera
from normalmesh.normals.conventions import Convention
from normalmesh.normals.diagnosis import Diagnosis, diagnose_pixels
from normalmesh.normals.extension import WITH_MASK, WITHOUT_MASK
from normalmesh.normals.integrability import probe_step
from normalmesh.normals.normal_map import SAMPLED, SHORT, TYPICAL
from normalmesh.normals.overview import overview_step


def find_source(
    array: WindowedArray, mask: PackedMask | None, camera: Camera, stated: Convention | None, alpha: Alpha
) -> CleanWindows:
    """Find how the windows of a map are decoded and cleaned.

    Parameters
    ----------
    array
        The stored values.
    mask
        As given; None: the alpha channel may hold it.
    camera
        Of the map.
    stated
        Convention; None: the data decide.
    alpha
        How to take an alpha channel, if no mask is given.
    """
    found: list[_Decoding] = []

    def foreground(window: Window) -> Bool:
        if not found:
            found.append(_Decoding(array, None))
        return found[0].windows.read(window)[1]

    if mask is None:
        mask = mask_of_alpha(array, alpha, foreground)
    decoding = found[0] if found and mask is None else _Decoding(array, mask)
    diagnosis = _diagnosis(decoding, camera)
    windows = replace(decoding.windows, convention=chosen_convention(array.path, diagnosis, stated))
    reach = WITHOUT_MASK if mask is None else WITH_MASK
    return CleanWindows(windows, camera, SHORT * decoding.typical_length(windows), reach)


def _diagnosis(decoding: _Decoding, camera: Camera) -> Diagnosis:
    """Diagnose the convention, or raise an error that names the file."""
    array = decoding.windows.array
    try:
        return diagnose_pixels(decoding.pixels(), camera, raw=True)
    except NormalMeshError as error:
        if not any(decoding.windows.read(window)[1].any() for window in pass_windows(array)):
            raise no_foreground(array.path) from error
        raise unusable(array.path, str(error)) from error


class _Decoding:
    """How windows are decoded, from samples that one pass takes.

    Attributes
    ----------
    windows
        The vectors, in the file's own channels.
    """

    def __init__(self, array: WindowedArray, mask: PackedMask | None):
        self._array, self._mask = array, mask
        shape, step = array.size, overview_step(array.size)
        self._even: Grid = (0, evenly_spaced(shape)[0].step)
        self._steps = sorted({step, probe_step(1), probe_step(step)})
        every = sampled_pixels(shape)[0]
        self._background: Grid = (every.start, every.step)
        self._border = border_pixels(shape) if mask is None else np.zeros(0, np.int64)
        self._places = _typical_places(shape, mask)
        grids = {self._even, self._background, *((0, each) for each in self._steps)}
        self._samples = take_samples(array, grids, np.concatenate([self._border, self._places]))
        self.windows = self._decoded_windows()

    def pixels(self) -> DiskPixels:
        """Return the vectors for a diagnosis."""
        grids = {}
        for step in self._steps:
            masks = (None if each is None else mask_grid(each, (0, step)) for each in self._masks)
            grids[step] = self.windows.decoded(self._samples.grids[0, step], *masks)
        return DiskPixels(self.windows, grids)

    def typical_length(self, windows: DecodedWindows) -> float:
        """Return the typical length of vectors, as :mod:`.normal_map` samples it; 0 if none has one."""
        values = self._samples.points[len(self._border) :, None]
        masks = (None if each is None else mask_points(each, self._places)[:, None] for each in self._masks)
        lengths = _lengths(*windows.decoded(values, *masks))
        if len(lengths) == 0:
            parts = (windows.read(window) for window in pass_windows(self._array))
            lengths = np.concatenate([_lengths(*part) for part in parts])
        return float(np.quantile(lengths, TYPICAL)) if len(lengths) else 0.0

    @property
    def _masks(self) -> tuple[PackedMask | None, PackedMask | None]:
        return self.windows.mask, self.windows.found

    def _decoded_windows(self) -> DecodedWindows:
        array, samples = self._array, self._samples
        encoding = find_encoding(array.path, array.dtype, array.maximum, self._usable_samples)
        even = stored_values(samples.grids[self._even], array.maximum)
        inside = None if self._mask is None else mask_grid(self._mask, self._even)
        windows = DecodedWindows(array, encoding, is_premultiplied(even, encoding, inside), self._mask)
        if array.maximum is not None and not windows.premultiplied:
            refuse_narrow(array.path, array.maximum, samples.largest)
        if self._mask is not None:
            return windows
        border, _ = windows.raw_values(samples.points[: len(self._border), None])
        sample, foreground = windows.raw_values(samples.grids[self._background])
        return replace(windows, found=find_background_on_disk(windows, border[:, 0], sample[foreground]))

    def _usable_samples(self) -> Float:
        """Return about a million evenly spaced foreground pixels (n, 3); all pixels if there are none."""
        inside = None if self._mask is None else mask_grid(self._mask, self._even)
        sample = usable(stored_values(self._samples.grids[self._even], self._array.maximum), inside)
        if len(sample):
            return sample
        found = []
        for window in pass_windows(self._array):
            inside = None if self._mask is None else self._mask.window(*window)
            found.append(usable(stored_values(self._array.read(*window), self._array.maximum), inside))
        return np.concatenate(found)


def _typical_places(shape: tuple[int, int], mask: PackedMask | None) -> Int:
    """Return the numbers of the pixels whose lengths :mod:`.normal_map` samples."""
    pixels = math.prod(shape)
    if mask is None:
        step = max(pixels // SAMPLED, 1)
        return np.arange(step - 1, pixels, step, dtype=np.int64)
    foreground = sum(int(np.count_nonzero(band)) for _, band in mask.bands_of_rows())
    return every_foreground_pixel(mask, max(foreground // SAMPLED, 1))


def _lengths(vectors: Float32, foreground: Bool) -> Float:
    """Return the lengths of the vectors (h, w, 3) that are finite and not zero."""
    lengths = np.empty(int(np.count_nonzero(foreground)), np.float64)
    count = sample_lengths(vectors, foreground, 1, lengths)
    return lengths[:count]
