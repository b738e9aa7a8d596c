"""Decoding stored values to vectors: n = 2·value/maximum − 1 for integers, [−1, 1] or [0, 1] for floats."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float, Float32
from normalmesh.errors import NormalMeshError, NormalMeshWarning, path_text
from normalmesh.files.formats import unusable
from normalmesh.files.size_limits import refuse_beyond_memory
from normalmesh.maps.background import Colour, find_background
from normalmesh.runtime.row_blocks import row_blocks


@dataclass(frozen=True)
class StoredNormals:
    """Normals as a file holds them.

    Attributes
    ----------
    channels
        Three arrays (H, W), integers or floats.
    maximum
        The value that stands for +1 in integers; None for floats.
    mask
        (H, W), nonzero = foreground, where the file has a mask.
    alpha
        (H, W) in the unit of the values, where the file has an alpha channel.
    """

    channels: tuple[NDArray[np.generic], NDArray[np.generic], NDArray[np.generic]]
    maximum: int | None
    mask: NDArray[np.generic] | None = None
    alpha: NDArray[np.generic] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.channels[0].shape
        return rows, columns

    @property
    def dtype(self) -> np.dtype[np.generic]:
        return self.channels[0].dtype

    def part(self, window: tuple[slice, slice]) -> StoredNormals:
        """Return channels and alpha of some rows and columns."""
        first, second, third = (channel[window] for channel in self.channels)
        alpha = None if self.alpha is None else self.alpha[window]
        return StoredNormals((first, second, third), self.maximum, alpha=alpha)


@dataclass(frozen=True)
class Encoding:
    """The relation between stored values and components: ``scale · value + offset``.

    ``step`` is the difference between components of successive values, 0 if it is not known. The zero of unsigned
    encodings lies between two values: a vector of components up to one step is none.
    """

    scale: float
    offset: float
    step: float


SIGNED = Encoding(1.0, 0.0, 0.0)
#: Most floats in [0, 1] were 8-bit values before: their steps are 1/255.
UNSIGNED = Encoding(2.0, -1.0, 2 / 255)
#: Opacity up to which a pixel is transparent, and from which on, below one, it is opaque.
SOFT = 0.02
#: Black, with the noise of a lossy file: no normal has three components of less than −0.58.
BLACK = -0.9


@dataclass(frozen=True)
class DecodedNormals:
    """Vectors of a file, and which of them count.

    Attributes
    ----------
    vectors
        (H, W, 3) in the file's own channels, not normalised; zero where the file marks background.
    foreground
        (H, W): pixels of the mask that hold a vector.
    background
        The colour that background was found by, where it is none of the usual ones.
    """

    vectors: Float32
    foreground: Bool
    background: Colour | None


def decode(path: Path, stored: StoredNormals, mask: Bool | None) -> DecodedNormals:
    """Return vectors and foreground of a file, given its mask, which stays as it is.

    Background is what the mask leaves out, and what a file marks as such: black and mid grey where the encoding is
    unsigned; zero vectors; without a mask, NaN, infinities, and what :func:`.background.find_background` finds.
    """
    encoding = find_encoding(path, stored.dtype, stored.maximum, partial(_usable_samples, stored, mask))
    every = evenly_spaced(stored.shape)
    if is_premultiplied(stored.part(every), encoding, None if mask is None else mask[every]):
        stored = straight(stored)
    # Three float32, the foreground, and what searching the background takes.
    refuse_beyond_memory(path, 14 * math.prod(stored.shape))
    vectors = np.empty((*stored.shape, 3), np.float32)
    foreground = np.ones(stored.shape, np.bool_) if mask is None else mask.copy()
    highest = -math.inf
    for rows in row_blocks(stored.shape):
        low, high = decode_rows(stored, encoding, rows, vectors)
        foreground[rows] &= ~background_of(low, high, encoding, nonfinite=mask is None)
        highest = max(highest, float(high.max()))
    if stored.maximum is not None:
        refuse_narrow(path, stored.maximum, round((highest - encoding.offset) / encoding.scale))
    found = find_background(vectors, foreground, encoding.step) if mask is None and foreground.any() else None
    for rows in row_blocks(stored.shape):
        vectors[rows][~foreground[rows]] = 0
    if not foreground.any():
        raise no_foreground(path)
    return DecodedNormals(vectors, foreground, found)


def decode_window(stored: StoredNormals, encoding: Encoding, mask: Bool | None) -> tuple[Float32, Bool]:
    """Return vectors (h, w, 3), as stored, and foreground (h, w) of a window, with what each pixel tells by itself."""
    vectors = np.empty((*stored.shape, 3), np.float32)
    foreground = np.ones(stored.shape, np.bool_) if mask is None else mask.copy()
    for rows in row_blocks(stored.shape):
        low, high = decode_rows(stored, encoding, rows, vectors)
        foreground[rows] &= ~background_of(low, high, encoding, nonfinite=mask is None)
    return vectors, foreground


def refuse_narrow(path: Path, maximum: int, largest: int) -> None:
    """Raise :class:`NormalMeshError` if the largest value of a file shows that it uses a part of its range only."""
    if maximum > 255 and 0 < largest <= 255:
        raise unusable(
            path,
            f"values end at 255 of {maximum}: 8-bit values in a wider file; save them as 8 bit, or scale them",
        )


def no_foreground(path: Path) -> NormalMeshError:
    """Return the error for a file without foreground."""
    return unusable(path, "no pixel is foreground: all are black, mid grey, zero, NaN or outside the mask")


def decode_rows(stored: StoredNormals, encoding: Encoding, rows: slice, vectors: Float32) -> tuple[Float32, Float32]:
    """Decode some rows into ``vectors``, and return the smallest and the largest component of each pixel."""
    decoded = []
    for axis, channel in enumerate(stored.channels):
        # Values beyond float32 become infinite, which is as unusable as NaN.
        with np.errstate(over="ignore", invalid="ignore"):
            component = channel[rows].astype(np.float32)
            component *= np.float32(encoding.scale)
            component += np.float32(encoding.offset)
        vectors[rows, :, axis] = component
        decoded.append(component)
    x, y, z = decoded
    return np.minimum(np.minimum(x, y), z), np.maximum(np.maximum(x, y), z)


def background_of(low: Float32, high: Float32, encoding: Encoding, nonfinite: bool) -> Bool:
    """Return which pixels hold no normal, from the smallest and the largest component of each."""
    size = np.maximum(-low, high)
    background = size <= (encoding.step if encoding.offset else 0.0)
    if encoding.offset:
        background |= high <= BLACK
    if nonfinite:
        background |= ~np.isfinite(size)
    return background


def find_encoding(
    path: Path, dtype: np.dtype[np.generic], maximum: int | None, samples: Callable[[], Float]
) -> Encoding:
    """Return the encoding of a file; ``samples`` takes :func:`usable` vectors (n, 3) from it."""
    if maximum is not None:
        if dtype.kind == "i":
            return Encoding(1 / maximum, 0.0, 1 / maximum)
        return Encoding(2 / maximum, -1.0, 2 / maximum)
    if dtype.kind != "f":
        raise unusable(path, f"holds {dtype}, whose range is not known; save normals as 8 or 16 bit integers or floats")
    return _float_encoding(path, samples())


def _float_encoding(path: Path, sample: Float) -> Encoding:
    """Choose [−1, 1] or [0, 1] from a sample (n, 3) of the foreground: by sign, then by the lengths of vectors."""
    if len(sample) == 0 or sample.min() < -0.02:
        return SIGNED
    signed, unsigned = (_misfit(sample, encoding) for encoding in (SIGNED, UNSIGNED))
    if min(signed, unsigned) > 0.1:
        raise unusable(
            path,
            f"floats from {sample.min():g} to {sample.max():g} are neither normals in [−1, 1] nor encoded in [0, 1]; "
            "divide them by their full range (255 for 8 bit) first",
        )
    if signed <= unsigned:
        return SIGNED
    text = "floats lie in [0, 1]; they were decoded as 2·value − 1"
    warnings.warn(f"{path_text(path)}: {text}", NormalMeshWarning, stacklevel=5)
    return UNSIGNED


def is_premultiplied(sample: StoredNormals, encoding: Encoding, mask: Bool | None) -> bool:
    """Return whether channels were multiplied by alpha: then vectors have unit length once they are divided by it.

    Files need not say so. Vectors of signed encodings keep their direction anyway. ``sample`` and its ``mask`` (h, w)
    are evenly spaced pixels.
    """
    if sample.alpha is None or not encoding.offset:
        return False
    opacity = _opacity(sample.alpha, sample.maximum)
    soft = (opacity > SOFT) & (opacity < 1 - SOFT)
    if mask is not None:
        soft &= mask
    if not soft.any():
        return False
    values = np.stack([channel[soft] for channel in sample.channels], axis=-1).astype(np.float64)
    plain, divided = (_misfit(each, encoding) for each in (values, values / opacity[soft][:, None]))
    return divided <= min(0.5 * plain, 0.1)


def straight(stored: StoredNormals) -> StoredNormals:
    """Return the normals with channels divided by alpha."""
    assert stored.alpha is not None
    opacity = _opacity(stored.alpha, stored.maximum)
    opacity[~(opacity > 0)] = 1
    first, second, third = (np.divide(channel, opacity, dtype=np.float32) for channel in stored.channels)
    return replace(stored, channels=(first, second, third))


def _opacity(alpha: NDArray[np.generic], maximum: int | None) -> Float32:
    """Return an alpha channel as shares of one."""
    return alpha.astype(np.float32) / np.float32(maximum or 1)


def _misfit(values: Float, encoding: Encoding) -> float:
    """Return the median difference from unit length of stored vectors (n, 3)."""
    return float(np.median(np.abs(np.linalg.norm(encoding.scale * values + encoding.offset, axis=1) - 1)))


def evenly_spaced(shape: tuple[int, int]) -> tuple[slice, slice]:
    """Return slices of rows and columns of an image that hold about a million pixels."""
    step = max(1, math.isqrt(math.prod(shape) >> 20))
    return slice(None, None, step), slice(None, None, step)


def _usable_samples(stored: StoredNormals, mask: Bool | None) -> Float:
    """Return about a million evenly spaced foreground pixels (n, 3); all pixels if there are none."""
    for every in (evenly_spaced(stored.shape), (slice(None), slice(None))):
        sample = usable(stored.part(every), None if mask is None else mask[every])
        if len(sample):
            break
    return sample


def usable(stored: StoredNormals, mask: Bool | None) -> Float:
    """Return the stored vectors (n, 3) of the foreground that are finite, not zero and not mid grey."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        sample = np.stack(stored.channels, axis=-1).astype(np.float64)
    sample = sample.reshape(-1, 3) if mask is None else sample[mask]
    sample = sample[np.isfinite(sample).all(axis=1)]
    usable: Float = sample[(sample != 0).any(axis=1) & (np.abs(sample - 0.5) > 1 / 255).any(axis=1)]
    return usable
