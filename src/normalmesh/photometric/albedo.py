"""Albedo as colours for textures, and as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from normalmesh.array_types import Float32, UInt8
from normalmesh.files.encoding import checked_suffix, encode_npy, encode_png

#: Share of the pixels that are darker than white in a picture of the albedo.
WHITE = 0.995
#: Suffixes of files of an albedo that can be written.
ALBEDO_SUFFIXES = (".png", ".npy")


def scaled_to_white(albedo: Float32) -> Float32:
    """Return an albedo (H, W) or (H, W, 3) in [0, 1]: the brightest half per cent of what is not black is white."""
    brightest = albedo.max(axis=2) if albedo.ndim == 3 else albedo
    lit = brightest[brightest > 0]
    white = float(np.quantile(lit, WHITE)) if lit.size else 1.0
    shares: Float32 = np.clip(albedo / np.float32(white), 0, 1).astype(np.float32)
    return shares


def to_bytes(shares: Float32) -> UInt8:
    """Return shares of white in [0, 1] as bytes."""
    return np.round(255 * shares).astype(np.uint8)


def encode_albedo(path: Path, albedo: Float32) -> bytes:
    """Encode an albedo that is proportional to light, (H, W) or (H, W, 3), in the format of the path's suffix.

    PNG: sRGB with 8 bits and three channels, scaled to white, for textures. NPY: float32 as it is.
    """
    if checked_suffix(path, ALBEDO_SUFFIXES, "albedo") == ".npy":
        return encode_npy(albedo)
    shares = scaled_to_white(albedo)
    curved = np.where(shares <= 0.0031308, 12.92 * shares, 1.055 * shares ** (1 / 2.4) - 0.055)
    return encode_png(to_bytes(np.dstack([curved] * 3) if curved.ndim == 2 else curved))
