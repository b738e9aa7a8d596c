"""Integrability: how close the channels of a normal map, read in a convention, are to the gradient of a surface.

For the right convention the gradient ``(∂_u z, ∂_v z) = −(⟨n, τ_u⟩, ⟨n, τ_v⟩) / ⟨n, r⟩`` has no curl; for a wrong one
it has, wherever the surface bends in both directions. Noise hides fine curvature and occlusions break every convention,
so the curl is summed over small blocks, on the pixels and on averages of 2×2, 4×4 and 8×8 of them, and the blocks vote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float, Float32, Floating
from normalmesh.normals.camera import Camera
from normalmesh.normals.conventions import Convention

if TYPE_CHECKING:
    from normalmesh.normals.overview import Pixels

Scalar = TypeVar("Scalar", bound=np.generic)

#: Conventions with z towards the viewer. Negating all three channels leaves the gradient as it is.
FRONT = tuple(f"{first}{a}{second}{b}+z" for a, b in (("x", "y"), ("y", "x")) for first in "+-" for second in "+-")

#: The sixteen conventions that are distinguished: the signs, and x and y swapped. The third channel holds z.
CANDIDATES = FRONT + tuple(axes[:4] + "-z" for axes in FRONT)

_TILE = 128  # pixels per side of a sampled tile
_TILES = 32  # maximum number of tiles per step, which bounds time and memory on maps of any size
_BLOCK = 8  # 2×2 loops per side of a voting block
_LOOPS = 24  # minimum number of foreground loops for a block to vote
_STEEP = 0.17  # cosine of 80°: steeper normals count as 80°, since the gradient has no bound at 90°


@dataclass(frozen=True)
class Tiles:
    """Square pieces of a map."""

    channels: Float32  # (T, S, S, 3) as in the file, of unit length on the foreground
    foreground: Bool  # (T, S, S)
    u: Float32  # (T, 1, S) and
    v: Float32  # (T, S, 1) screen positions of the pixel centres


@dataclass(frozen=True)
class Preference:
    """The evidence of the votes for one convention against another. Positive values are for the first."""

    significance: float = 0.0  # sum of votes by its standard deviation, were each as likely to be the opposite
    effect: float = 0.0  # difference of what is voted about, as a share of the whole map
    agreement: float = 0.0  # in [−1, 1]: 1 when the votes are unanimous, 0 when as much is against as for

    @classmethod
    def of(cls, votes: Float, effect: float) -> Preference:
        """Count the votes (N,); without any, there is no preference."""
        spread = float(np.sqrt(np.sum(votes**2)))
        total = float(votes.sum())
        return cls(total / spread, effect, total / float(np.abs(votes).sum())) if spread > 0 else cls()


@dataclass(frozen=True)
class Integrability:
    """Curl of the eight :data:`FRONT` conventions, on each scale that bends."""

    curl: tuple[Float, ...]  # (8, B) sum of |curl| over each of the B blocks of a scale
    bending: tuple[Float, ...]  # (B,) sum of the derivatives of the gradient: what the curl is compared with

    @cached_property
    def scores(self) -> Float:
        """(8,) curl as a share of all bending, the mean over the scales; NaN where nothing bends."""
        shares = [curl.sum(axis=1) / bending.sum() for curl, bending in zip(self.curl, self.bending, strict=True)]
        return np.mean(shares, axis=0) if shares else np.full(len(FRONT), np.nan)

    def preferences(self, first: int, second: int) -> Iterator[Preference]:
        """Yield, for each scale, the evidence for the convention FRONT[first] against FRONT[second]."""
        for curl, bending in zip(self.curl, self.bending, strict=True):
            difference, both = curl[second] - curl[first], curl[first] + curl[second]
            votes = np.divide(difference, both, out=np.zeros_like(both), where=both > 0)
            yield Preference.of(votes, float(difference.sum() / bending.sum()))


def foreground_of(channels: Floating, mask: Bool) -> Bool:
    """Return which pixels (...) of channels (..., 3) in a mask hold a normal: finite, not zero, not black or white."""
    first, second, third = np.moveaxis(channels, -1, 0)
    low = np.minimum(np.minimum(first, second), third)
    high = np.maximum(np.maximum(first, second), third)
    size = np.maximum(high, -low)
    usable: Bool = (size > 0.2) & (size < np.inf) & (high > -0.999) & (low < 0.999) & mask
    return usable


def lengths(channels: Floating) -> Floating:
    """Return the lengths (...) of vectors (..., 3)."""
    return np.sqrt(np.einsum("...c,...c->...", channels, channels))


def undo_srgb(channels: Float32) -> Float32:
    """Undo the sRGB curve of channels in [−1, 1]."""
    stored = np.clip((channels + 1) / 2, 0, 1)
    linear = np.where(stored <= 0.04045, stored / 12.92, ((stored + 0.055) / 1.055) ** 2.4)
    return (2 * linear - 1).astype(np.float32)


def probe_step(step: int) -> int:
    """Return the step of the pixels that tell where :func:`sample_tiles` finds foreground."""
    return _TILE // 8 * step


def sample_tiles(pixels: Pixels, step: int, srgb: bool) -> Tiles:
    """Return tiles of every ``step``-th pixel of a map, spread evenly over its foreground."""
    shape = pixels.shape
    side = _TILE * step
    rows, columns = (np.arange(0, size, side) for size in shape)
    top, left = (grid.ravel() for grid in np.meshgrid(rows, columns, indexing="ij"))
    look = probe_step(step)
    probe = foreground_of(*pixels.every(look))
    share = np.array([probe[i : i + 8, j : j + 8].sum() for i, j in zip(top // look, left // look, strict=True)])
    chosen = np.flatnonzero(share >= 0.25 * share.max())
    if chosen.size > _TILES:
        chosen = chosen[np.linspace(0, chosen.size - 1, _TILES).astype(int)]
    i = (top[chosen, None] + step * np.arange(_TILE))[:, :, None]
    j = (left[chosen, None] + step * np.arange(_TILE))[:, None, :]
    inside = (i < shape[0]) & (j < shape[1])
    at = np.minimum(i, shape[0] - 1), np.minimum(j, shape[1] - 1)
    channels, mask = pixels.at(*at, step)
    picked = channels.astype(np.float32)
    foreground = inside & foreground_of(picked, mask)
    if srgb:
        picked = undo_srgb(picked)
    return Tiles(_unit(picked, foreground), foreground, (j + 0.5).astype(np.float32), (i + 0.5).astype(np.float32))


def integrability(pieces: list[Tiles], camera: Camera) -> Integrability:
    """Compute the curl of the tiles in all conventions and on all scales."""
    scales = [_curl_of_blocks(scale, camera) for tiles in pieces for scale in _scales(tiles)]
    scales = [(curl, bending) for curl, bending in scales if bending.sum() > 0]
    return Integrability(tuple(curl for curl, _ in scales), tuple(bending for _, bending in scales))


def _unit(channels: Float32, foreground: Bool) -> Float32:
    """Return channels scaled to unit length on the foreground, zero elsewhere."""
    channels = np.where(foreground[..., None], channels, 0)
    return np.asarray(channels / np.maximum(lengths(channels), 1e-6)[..., None])


def _scales(tiles: Tiles) -> Iterator[Tiles]:
    """Yield the tiles, then averages of 2×2, 4×4 and 8×8 pixels that are all foreground."""
    for _ in range(3):
        yield tiles
        foreground: Bool = np.all(_quarters(tiles.foreground), axis=(2, 4))
        channels = _unit(_quarters(tiles.channels).mean(axis=(2, 4)), foreground)
        u = np.float32(0.5) * (tiles.u[:, :, ::2] + tiles.u[:, :, 1::2])
        v = np.float32(0.5) * (tiles.v[:, ::2] + tiles.v[:, 1::2])
        tiles = Tiles(channels, foreground, u, v)
    yield tiles


def _quarters(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return (T, S, S, ...) as (T, S/2, 2, S/2, 2, ...)."""
    tiles, side = array.shape[:2]
    return array.reshape(tiles, side // 2, 2, side // 2, 2, *array.shape[3:])


def _curl_of_blocks(tiles: Tiles, camera: Camera) -> tuple[Float, Float]:
    """Return sums of |curl| (8, B) and of bending (B,) over the blocks with enough foreground."""
    loops = _loops(tiles.foreground, np.logical_and)
    voting = _sum_blocks(loops) >= _LOOPS
    curls: dict[str, Float] = {}
    bending = np.zeros(np.count_nonzero(voting))
    parallel = not camera.is_central
    for axes in FRONT:
        opposite = axes.translate(str.maketrans("+-", "-+"))[:4] + "+z"
        if parallel and opposite in curls:
            curls[axes] = curls[opposite]
            continue
        along_v, along_u, weight = _mixed_derivatives(tiles, camera, axes)
        weight *= loops
        curls[axes] = _sum_blocks(np.abs(along_v - along_u) * weight)[voting]
        bending += _sum_blocks((np.abs(along_v) + np.abs(along_u)) * weight)[voting]
    return np.stack([curls[axes] for axes in FRONT]), bending * (0.5 if parallel else 0.25)


def _mixed_derivatives(tiles: Tiles, camera: Camera, axes: str) -> tuple[Float32, Float32, Float32]:
    """Return ∂_v∂_u z, ∂_u∂_v z and the weight of each 2×2 loop, (T, S − 1, S − 1).

    The weight is the squared cosine between normal and ray: the error of the gradient grows with its inverse.
    """
    frame = camera.frame.astype(np.float32)
    products = Convention(axes).to_project(np.eye(3, dtype=np.float32)) @ frame.T
    tau_u, tau_v, origin, ray_u, ray_v = np.moveaxis(tiles.channels @ products, -1, 0)
    along_ray = origin + tiles.u * ray_u + tiles.v * ray_v
    _, _, *ray_parts = frame
    ray_length = np.sqrt(sum((r + tiles.u * r_u + tiles.v * r_v) ** 2 for r, r_u, r_v in np.transpose(ray_parts)))
    cosine = np.abs(along_ray) / ray_length
    bounded = np.copysign(np.maximum(cosine, _STEEP) * ray_length, along_ray)
    p, q = -tau_u / bounded, -tau_v / bounded
    along_v = np.diff(p, axis=1)
    along_u = np.diff(q, axis=2)
    return (
        (along_v[:, :, 1:] + along_v[:, :, :-1]) / 2,
        (along_u[:, 1:] + along_u[:, :-1]) / 2,
        _loops(cosine, np.minimum) ** 2,
    )


def _loops(array: NDArray[Scalar], combine: np.ufunc) -> NDArray[Scalar]:
    """Combine the four pixels of each 2×2 loop: (T, S, S) to (T, S − 1, S − 1)."""
    rows: NDArray[Scalar] = combine(array[:, 1:], array[:, :-1])
    return combine(rows[:, :, 1:], rows[:, :, :-1])


def _sum_blocks(loops: NDArray[np.generic]) -> Float:
    """Sum over blocks of 8×8 loops: (T, S − 1, S − 1) to (T · S²/64,)."""
    tiles, side = loops.shape[0], loops.shape[1] + 1
    padded = np.zeros((tiles, side, side), np.float32)
    padded[:, :-1, :-1] = loops
    blocks = padded.reshape(tiles, side // _BLOCK, _BLOCK, side // _BLOCK, _BLOCK)
    sums: Float = blocks.sum(axis=(2, 4), dtype=np.float64)
    return sums.ravel()
