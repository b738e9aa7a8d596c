"""Decoding stored values to vectors: n = 2·value/maximum − 1 for integers, [−1, 1] or [0, 1] for floats.

Windows of vectors are of a map that stays on disk, decoded whenever they are read, or of one that is held in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float, Float32, UInt8
from normalmesh.files.formats import unusable
from normalmesh.files.masks import MaskPacker, PackedMask
from normalmesh.files.windowed_arrays import WindowedArray
from normalmesh.maps._background import BACKGROUND
from normalmesh.normals.conventions import Convention
from normalmesh.normals.windows import Slices, whole_window
from normalmesh.runtime.row_blocks import row_blocks

#: The convention that leaves channels as they are.
OPENGL = Convention.parse("opengl")
#: Vectors (h, w, 3) and foreground (h, w) of a window.
VectorsAndForeground = tuple[Float32, Bool]


@dataclass(frozen=True)
class Encoding:
    """The relation between stored values and components: ``scale · value + offset``.

    The zero of unsigned encodings lies between two values: a vector of components up to one step is none.
    """

    scale: float
    offset: float
    step: float  # between components of successive values; 0 if it is not known


SIGNED = Encoding(1.0, 0.0, 0.0)
#: Most floats in [0, 1] were 8-bit values before: their steps are 1/255.
UNSIGNED = Encoding(2.0, -1.0, 2 / 255)
#: Opacity up to which a pixel is transparent, and from which on, below one, it is opaque.
SOFT = 0.02
#: Black, with the noise of a lossy file: no normal has three components of less than −0.58.
BLACK = -0.9


@dataclass(frozen=True)
class Decoder:
    """How the stored values of a map become vectors."""

    encoding: Encoding
    maximum: int | None  # stands for +1 in integers, and for opaque; None for floats
    premultiplied: bool  # whether channels were multiplied by alpha

    def vectors(self, values: NDArray[Any], mask: Bool | None = None) -> tuple[Float32, Bool]:
        """Return vectors, as they are in the background, too, and foreground of stored values (h, w, 3 or 4)."""
        vectors = np.empty((*values.shape[:2], 3), np.float32)
        foreground = np.ones(values.shape[:2], np.bool_) if mask is None else mask.copy()
        self.decode(values, vectors, foreground, mask is not None)
        return vectors, foreground

    def decode(self, values: NDArray[Any], vectors: Float32, foreground: Bool, has_mask: bool) -> None:
        """Write the vectors (h, w, 3) of stored values (h, w, 3 or 4), and take what is none out of the foreground.

        Values that are black or mid grey, where the encoding is unsigned, and zero vectors are none; without a mask,
        NaN and infinities, too.
        """
        for rows in row_blocks(foreground.shape):
            part = straight(values[rows], self.maximum) if self.premultiplied else values[rows]
            low, high = self._components(part, vectors[rows])
            size = np.maximum(-low, high)
            none = size <= (self.encoding.step if self.encoding.offset else 0.0)
            if self.encoding.offset:
                none |= high <= BLACK
            if not has_mask:
                none |= ~np.isfinite(size)
            foreground[rows] &= ~none

    def _components(self, values: NDArray[Any], vectors: Float32) -> tuple[Float32, Float32]:
        """Write vectors, and return the smallest and the largest component of each pixel."""
        components = []
        for axis in range(3):
            # Values beyond float32 become infinite, which is as unusable as NaN.
            with np.errstate(over="ignore", invalid="ignore"):
                component = values[..., axis].astype(np.float32)
                component *= np.float32(self.encoding.scale)
                component += np.float32(self.encoding.offset)
            vectors[..., axis] = component
            components.append(component)
        x, y, z = components
        return np.minimum(np.minimum(x, y), z), np.maximum(np.maximum(x, y), z)


@dataclass(frozen=True, eq=False)
class DecodedWindows:
    """Windows of vectors of a map on disk, and what the whole map tells about how to decode them."""

    array: WindowedArray
    decoder: Decoder
    mask: PackedMask | None  # as given
    background: PackedMask | None = None  # what :func:`.find_background` finds
    convention: Convention = OPENGL

    @property
    def path(self) -> Path:
        return self.array.path

    @property
    def shape(self) -> tuple[int, int]:
        return self.array.size

    def passes(self) -> Iterator[Slices]:
        """Yield windows that cover the map."""
        return self.array.passes()

    def read(self, window: Slices) -> VectorsAndForeground:
        """Return the pixels of a window; vectors are zero where there is none."""
        masks = (None if each is None else each.window(*window) for each in (self.mask, self.background))
        return self.decoded(self.array.read(*window), *masks)

    def raw(self, window: Slices) -> VectorsAndForeground:
        """Return the pixels of a window, with vectors as they are in the background, too."""
        mask = None if self.mask is None else self.mask.window(*window)
        return self.decoder.vectors(self.array.read(*window), mask)

    def to_clean(self, window: Slices) -> VectorsAndForeground:
        """Return vectors, zero where there is none, and the given mask."""
        vectors, _ = self.read(window)
        return vectors, np.ones(vectors.shape[:2], np.bool_) if self.mask is None else self.mask.window(*window)

    def decoded(self, values: NDArray[Any], mask: Bool | None, background: Bool | None) -> VectorsAndForeground:
        """Return vectors and foreground of stored values (h, w, 3 or 4) of any pixels."""
        vectors, foreground = self.decoder.vectors(values, mask)
        if background is not None:
            foreground &= ~background
        vectors[~foreground] = 0
        if self.convention != OPENGL:
            vectors = self.convention.to_project(vectors).astype(np.float32, copy=False)
        return vectors, foreground

    def without(self, state: UInt8 | None) -> DecodedWindows:
        """Return the same windows without the background, as :func:`.find_background` returns it."""
        if state is None:
            return self
        packer = MaskPacker(self.shape)
        for rows in row_blocks(self.shape):
            packer.put((rows, slice(0, self.shape[1])), state[rows] >= BACKGROUND)
        return replace(self, background=packer.done())


@dataclass(frozen=True, eq=False)
class HeldWindows:
    """Windows of vectors (H, W, 3) and foreground (H, W) in memory: the only pass is all of them."""

    path: Path
    vectors: Float32
    foreground: Bool

    @classmethod
    def of(cls, array: WindowedArray, decoder: Decoder, mask: PackedMask | None) -> HeldWindows:
        """Decode all of an array."""
        vectors = np.empty((*array.size, 3), np.float32)
        foreground = np.ones(array.size, np.bool_) if mask is None else mask.whole()
        for window in array.passes():
            decoder.decode(array.read(*window), vectors[window], foreground[window], mask is not None)
        return cls(array.path, vectors, foreground)

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.foreground.shape
        return rows, columns

    def passes(self) -> Iterator[Slices]:
        """Yield the only window."""
        yield whole_window(self.shape)

    def read(self, window: Slices) -> VectorsAndForeground:
        """Return the pixels of a window; vectors are zero where there is none once :meth:`without` was called."""
        return self.vectors[window], self.foreground[window]

    raw = read

    def without(self, state: UInt8 | None) -> HeldWindows:
        """Take the background, as :func:`.find_background` returns it, out of the foreground, in place."""
        for rows in row_blocks(self.shape):
            if state is not None:
                self.foreground[rows] &= state[rows] < BACKGROUND
            self.vectors[rows][~self.foreground[rows]] = 0
        return self

    def turn(self, convention: Convention) -> None:
        """Turn the file's channels into the project's frame, in place: a copy would be a third of all memory."""
        if convention != OPENGL:
            for rows in row_blocks(self.shape):
                self.vectors[rows] = convention.to_project(self.vectors[rows])


#: Vectors of a map, on disk or in memory.
VectorWindows = DecodedWindows | HeldWindows


def refuse_narrow(array: WindowedArray, largest: int) -> None:
    """Raise :class:`NormalMeshError` if the largest value of an array shows that it uses a part of its range only."""
    if array.maximum is not None and array.maximum > 255 and 0 < largest <= 255:
        raise unusable(
            array.path,
            f"values end at 255 of {array.maximum}: 8-bit values in a wider file; save them as 8 bit, or scale them",
        )


def find_encoding(array: WindowedArray, samples: Callable[[], Float]) -> Encoding:
    """Return the encoding of an array; ``samples`` takes :func:`usable` vectors (n, 3) from it."""
    if (maximum := array.maximum) is not None:
        if array.dtype.kind == "i":
            return Encoding(1 / maximum, 0.0, 1 / maximum)
        return Encoding(2 / maximum, -1.0, 2 / maximum)
    if array.dtype.kind == "f":
        return _float_encoding(array, samples())
    raise unusable(
        array.path, f"holds {array.dtype}, whose range is not known; save normals as 8 or 16 bit integers or floats"
    )


def _float_encoding(array: WindowedArray, sample: Float) -> Encoding:
    """Choose [−1, 1] or [0, 1] from a sample (n, 3) of the foreground: by sign, then by the lengths of vectors."""
    if len(sample) == 0 or sample.min() < -0.02:
        return SIGNED
    signed, unsigned = (_misfit(sample, encoding) for encoding in (SIGNED, UNSIGNED))
    if min(signed, unsigned) > 0.1:
        raise unusable(
            array.path,
            f"floats from {sample.min():g} to {sample.max():g} are neither normals in [−1, 1] nor encoded in [0, 1]; "
            "divide them by their full range (255 for 8 bit) first",
        )
    return SIGNED if signed <= unsigned else UNSIGNED


def is_premultiplied(sample: NDArray[Any], maximum: int | None, encoding: Encoding, mask: Bool | None) -> bool:
    """Return whether channels were multiplied by alpha: then vectors have unit length once they are divided by it.

    Files need not say so. Vectors of signed encodings keep their direction anyway. ``sample`` (h, w, 3 or 4) and its
    ``mask`` (h, w) are evenly spaced pixels.
    """
    if sample.shape[2] != 4 or not encoding.offset:
        return False
    opacity = _opacity(sample, maximum)
    soft = (opacity > SOFT) & (opacity < 1 - SOFT)
    if mask is not None:
        soft &= mask
    if not soft.any():
        return False
    values = sample[soft][:, :3].astype(np.float64)
    plain, divided = (_misfit(each, encoding) for each in (values, values / opacity[soft][:, None]))
    return divided <= min(0.5 * plain, 0.1)


def straight(values: NDArray[Any], maximum: int | None) -> Float32:
    """Return the channels (h, w, 3) of values (h, w, 4), divided by alpha."""
    opacity = _opacity(values, maximum)
    opacity[~(opacity > 0)] = 1
    channels: Float32 = np.divide(values[..., :3], opacity[..., None], dtype=np.float32)
    return channels


def _opacity(values: NDArray[Any], maximum: int | None) -> Float32:
    """Return the alpha channel of values (h, w, 4) as shares of one."""
    opacity: Float32 = values[..., 3].astype(np.float32) / np.float32(maximum or 1)
    return opacity


def _misfit(values: Float, encoding: Encoding) -> float:
    """Return the median difference from unit length of stored vectors (n, 3)."""
    return float(np.median(np.abs(np.linalg.norm(encoding.scale * values + encoding.offset, axis=1) - 1)))


def usable(values: NDArray[Any], mask: Bool | None) -> Float:
    """Return the stored vectors (n, 3) of the foreground that are finite, not zero and not mid grey."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        sample = (values.reshape(-1, values.shape[-1]) if mask is None else values[mask])[:, :3].astype(np.float64)
    sample = sample[np.isfinite(sample).all(axis=1)]
    usable: Float = sample[(sample != 0).any(axis=1) & (np.abs(sample - 0.5) > 1 / 255).any(axis=1)]
    return usable
