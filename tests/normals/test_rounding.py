"""Rounding to 8 bits, and what it does to heights."""

from __future__ import annotations

import math

import numpy as np
import pytest

import normalmesh as nm
from normalmesh.normals.noise import Noise, rounding_noise, shared_pixels
from normalmesh.normals.rounding import DEGREES, rounded_run

SIDE = 128


def _waves(slope: float, period: float) -> tuple[np.ndarray, np.ndarray]:
    """Return normals (H, W, 3) and heights (H, W) of waves with these slopes, and radians per period in px."""
    v, u = np.mgrid[:SIDE, :SIDE] + 0.5
    p = slope * np.cos(u / period) * np.cos(0.8 * v / period)
    q = -0.8 * slope * np.sin(u / period) * np.sin(0.8 * v / period)
    normals = np.stack([-p, q, np.ones((SIDE, SIDE))], axis=-1)
    heights = slope * period * np.sin(u / period) * np.cos(0.8 * v / period)
    return normals / np.linalg.norm(normals, axis=-1, keepdims=True), heights


def _rounded(normals: np.ndarray, levels: int = 255) -> np.ndarray:
    return np.round((normals + 1) / 2 * levels) / levels * 2 - 1


@pytest.mark.parametrize("slope", [0.01, 0.1, 0.7, 3.0])
def test_maps_of_8_bits_are_told_from_others(slope):
    normals, _ = _waves(slope, 12)
    assert rounded_run(nm.NormalMap(normals)) == 0
    assert rounded_run(nm.NormalMap(_rounded(normals, 2**16 - 1))) == 0
    stored = nm.NormalMap(_rounded(normals))
    assert rounded_run(stored) >= 1
    mirrored = _rounded(normals)[::-1, :, [1, 0, 2]] * [1, -1, 1]
    assert rounded_run(nm.NormalMap(mirrored)) == pytest.approx(rounded_run(stored))
    found = rounding_noise(stored)
    variance = found.degrees**2 * float(shared_pixels(np.array(found.correlation)))
    assert variance == pytest.approx(rounded_run(stored) * DEGREES**2)
    assert pytest.approx(0.13, abs=0.001) == DEGREES


@pytest.mark.parametrize(
    "rule",
    [lambda n: 255 * (n + 1) / 2, lambda n: 127 * n + 127, lambda n: 127 * n + 128],
    ids=["255", "127 n + 127", "127 n + 128"],
)
def test_values_that_are_rounded_down_are_recognised(rule):
    """Rounding down shortens normals most where all components are positive."""
    waves, _ = _waves(0.05, 12)
    normals = waves + np.array([0.37, 0.37, 0.0])
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    stored = np.floor(rule(normals)) / 255 * 2 - 1
    assert rounded_run(nm.NormalMap(stored / np.linalg.norm(stored, axis=-1, keepdims=True))) >= 1


def test_run_is_the_number_of_pixels_that_are_rounded_alike():
    columns = np.zeros((6, 12, 3)) + _rounded(np.array([0.0, 0.0, 1.0]))
    columns[:, 4:8, 0], columns[:, 8:, 0] = 3 / 255, 5 / 255
    # Of 6 × 11 + 5 × 12 pairs of neighbours, two columns of 6 differ.
    assert rounded_run(nm.NormalMap(columns)) == pytest.approx((6 * 11 + 5 * 12) / 12)
    assert rounded_run(nm.NormalMap(columns[:, :4])) == 6
    assert rounded_run(nm.NormalMap(columns[:1, :1])) == 1
    assert rounded_run(nm.NormalMap(np.tile([0.0, 0.0, 1.0], (5, 5, 1)))) == 0


@pytest.mark.parametrize(("slope", "period"), [(0.05, 20.0), (0.1, 12.0), (0.02, 20.0)])
def test_errors_of_gentle_maps_of_8_bits_are_as_large_as_expected(slope, period):
    normals, heights = _waves(slope, period)
    surface = nm.reconstruct(_rounded(normals), compression=0.9, discontinuities=False)
    assert surface.integration.noise < 0.01
    random = np.random.default_rng(0)
    scores = []
    for (u, v), (other_u, other_v) in random.integers(2, SIDE - 2, (60, 2, 2)):
        found = surface.height_difference((u + 0.5, v + 0.5), (other_u + 0.5, other_v + 0.5))
        scores.append((found.value - (heights[v, u] - heights[other_v, other_u])) / found.standard_deviation)
    assert 0.6 < np.sqrt(np.mean(np.square(scores))) < 1.3


def test_noise_that_is_larger_or_given_counts_instead():
    normals, _ = _waves(0.05, 20.0)
    rounded = nm.NormalMap(_rounded(normals))
    options = {"compression": 0.95, "discontinuities": False}
    given = nm.reconstruct(rounded, noise=0.01, **options).integration.height_noise
    assert given.degrees == pytest.approx(0.01)
    estimated = nm.reconstruct(rounded, **options).integration.height_noise
    run = rounded_run(rounded)
    assert run > 2
    assert (estimated.degrees[0], estimated.correlation[0]) == (DEGREES, math.sqrt(run / (4 * math.pi)))
    noisy = nm.add_noise(nm.NormalMap(normals), degrees=2.0).normals
    record = nm.reconstruct(_rounded(noisy), **options).integration.height_noise
    assert record.degrees[0] == pytest.approx(2.0, rel=0.1)
    assert rounding_noise(nm.NormalMap(normals)) == Noise(0.0)
