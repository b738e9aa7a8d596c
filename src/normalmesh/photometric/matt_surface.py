"""Fitting a matt surface to photographs, pixel by pixel: ρn is the least squares solution of I = ρ ⟨n, l⟩.

The albedo ρ becomes colours for textures, and files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from normalmesh.array_types import Bool, Float, Float32, UInt8
from normalmesh.files.encoding import checked_suffix, encode_npy, encode_png
from normalmesh.photometric.photographs import Photograph

#: Value of 27 det / trace³ of Σ l lᵀ below which lights count as coplanar; it is 1 for lights from all sides.
COPLANAR = 1e-6
#: Share of the pixels that are darker than white in a picture of the albedo.
WHITE = 0.995
#: Suffixes of files of an albedo that can be written.
ALBEDO_SUFFIXES = (".png", ".npy")


@dataclass(frozen=True, eq=False)
class PhotographedSurface:
    """K photographs of a surface, and what is known about them.

    Lights have unit directions (K, 3) and intensities ``strength`` (K, 1 or channels). From the values ``limits`` on,
    as stored, photographs are clipped. ``natural`` is their order by the numbers in the names of their files, where
    that is another one.
    """

    taken: list[Photograph]
    lights: Float
    strength: Float
    limits: list[float]
    foreground: Bool
    natural: tuple[int, ...] | None

    def observations(self, window: slice | tuple[slice, slice]) -> tuple[Float, Bool]:
        """Return values (K, P, channels) of foreground pixels under lights of intensity 1, and which (K, P) count."""
        inside = self.foreground[window]
        values = np.stack([shot.values[window][inside] for shot in self.taken]).astype(np.float64)
        with np.errstate(invalid="ignore"):
            usable = np.all(np.isfinite(values) & (values < np.reshape(self.limits, (-1, 1, 1))), axis=2)
            usable &= values.sum(axis=2) > 0
        values[~usable] = 0
        scale = np.array([shot.maximum or 1 for shot in self.taken])
        values /= (scale[:, None] * self.strength)[:, None, :]
        return values, usable


def trim(usable: Bool, grey: Float, dark: int, bright: int) -> None:
    """Take the darkest and brightest images (K, P) at each pixel out of those that count, in place.

    Images that do not count anyway are taken for dark ones: most are black.
    """
    if dark + bright == 0:
        return
    order = np.argsort(np.where(usable, grey, np.inf), axis=0, kind="stable")
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(len(grey))[:, None], axis=0)
    left = usable.sum(axis=0)
    spare = np.maximum(left - 3, 0)
    low = np.clip(dark - (len(grey) - left), 0, spare)
    high = np.minimum(bright, spare - low)
    usable &= (place >= low) & (place < left - high)


def least_shaded(grey: Float) -> Float:
    """Return the half of the pixels of positive values (K, P) whose darkest one is largest, relative to the others."""
    darkest = grey.min(axis=0) / np.linalg.norm(grey, axis=0)
    return grey[:, darkest >= np.median(darkest)]


def fit(values: Float, usable: Bool, lights: Float) -> tuple[Float, Float, Float]:
    """Return normals (P, 3), albedo (P, channels) and residual (P,); zero if the lights that count are coplanar."""
    grey = values.mean(axis=2)
    if usable.all():
        scaled = grey.T @ np.linalg.pinv(lights).T
    else:
        scaled = solved_systems(usable.T.astype(np.float64), np.where(usable, grey, 0).T, lights, COPLANAR)
    normals = normalised(scaled)
    shading = np.where(usable, lights @ normals.T, 0)
    squared = np.maximum((shading**2).sum(axis=0), 1e-300)
    albedo = np.einsum("kpc,kp->pc", values, shading) / squared[:, None]
    missed = np.where(usable, grey - shading * albedo.mean(axis=1), 0)
    residual = np.sqrt((missed**2).sum(axis=0) / np.maximum(usable.sum(axis=0), 1))
    return normals, albedo, np.where(normals.any(axis=1), residual, 0)


def solved_systems(weights: Float, weighted: Float, lights: Float, least: float) -> Float:
    """Return ρn (P, 3) from weights and weighted values (P, K); zero where lights have only the least spread."""
    products = (lights[:, :, None] * lights[:, None, :]).reshape(-1, 9)
    systems = (weights @ products).reshape(-1, 3, 3)
    independent = spread(systems) > least
    systems[~independent] = np.eye(3)
    scaled = np.asarray(np.linalg.solve(systems, (weighted @ lights)[:, :, None])[:, :, 0], np.float64)
    scaled[~independent] = 0
    return scaled


def normalised(vectors: Float) -> Float:
    """Return vectors (P, 3) of unit length, or zero."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)


def spread(systems: Float) -> Float:
    """Return how far Σ l lᵀ (..., 3, 3) is from being singular: 27 det / trace³, at most 1."""
    trace = np.trace(systems, axis1=-2, axis2=-1)
    spread: Float = 27 * np.linalg.det(systems) / np.maximum(trace, 1e-90) ** 3
    return spread


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
