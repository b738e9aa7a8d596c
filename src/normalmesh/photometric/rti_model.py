"""Relightable images as files hold them: a function of the light direction for each pixel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from normalmesh.array_types import Float, UInt8
from normalmesh.files.formats import unusable
from normalmesh.files.size_limits import check_image_size

#: Largest scale or bias. Those of brightness from 0 to 255 are far smaller.
MAX_COEFFICIENT = 1e6


@dataclass(frozen=True)
class RTIHeader:
    """What the header of a relightable image says.

    Attributes
    ----------
    format
        Name of the format, such as ``"PTM_FORMAT_LRGB"`` or ``"HSH"``.
    shape
        Rows and columns.
    terms
        Coefficients for each pixel and channel: 6 of a biquadratic polynomial (PTM), 4, 9 or 16 of harmonics (HSH).
    scale, bias
        A coefficient is ``scale · (byte − bias)`` in PTM files, ``scale · byte / 255 + bias`` in HSH files.
    """

    format: str
    shape: tuple[int, int]
    terms: int
    scale: tuple[float, ...]
    bias: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class RTIModel:
    """Brightness of the pixels as a function of the light.

    Attributes
    ----------
    header
        The header of the file.
    coefficients
        (channels, H, W, terms) uint8 as stored, the first row at the top; one channel is luminance.
    colour
        (H, W, 3) uint8, by which luminance is multiplied; None if there are three channels.
    scale, offset
        A coefficient is ``scale · byte + offset``, for brightness 1 at full white; each of the length ``terms``.
    basis
        Function that gives the values (K, terms) that coefficients multiply, from unit directions (K, 3) to lights.
    """

    header: RTIHeader
    coefficients: UInt8
    colour: UInt8 | None
    scale: Float
    offset: Float
    basis: Callable[[Float], Float]


def check_rti_size(path: Path, shape: tuple[int, int], stored: int) -> None:
    """Raise if an image cannot be read: ``stored`` bytes for each pixel, and normals, albedo and residual as floats."""
    if min(shape) < 1:
        raise unusable(path, f"claims {shape[1]} × {shape[0]} pixels; it is damaged")
    check_image_size(path, *shape, stored + 28)


def check_coefficients(scale: tuple[float, ...], bias: tuple[float, ...]) -> None:
    """Raise if scale or bias cannot be those of an image."""
    if not np.all(np.abs([scale, bias]) <= MAX_COEFFICIENT):
        raise ValueError(f"scale or bias is not a number up to {MAX_COEFFICIENT:g}")


def check_complete(path: Path, present: int, shape: tuple[int, int], pixel_bytes: int) -> None:
    """Raise if a file holds fewer bytes of pixels than its header claims."""
    if present < (claimed := math.prod(shape) * pixel_bytes):
        raise unusable(path, f"is incomplete: {present} of the {claimed} bytes of its {shape[1]} × {shape[0]} pixels")
