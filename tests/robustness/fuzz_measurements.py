"""Fuzz photometric stereo and the error measures with inputs whose answer is known."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import naive_metrics
import normalmesh as nm

#: Types of images, and the largest error of rounding a value of at most one to them.
TYPES = {"f8": 1e-15, "f4": 6e-8, "u2": 0.5 / 65535, "u1": 0.5 / 255}
#: Expected errors in radians up to which a normal is compared: with larger ones, its lights are too close to a plane.
COMPARED = 0.2


@dataclass(frozen=True)
class Photographed:
    """A compact description of photographs of a matt surface.

    ``lights`` is their number and their angle to the viewing direction in degrees; ``lost`` is the share of the values
    that are black, clipped or NaN.
    """

    shape: tuple[int, int]
    lights: tuple[int, float]
    dtype: str
    channels: int
    lost: float
    convention: str
    strengths: bool
    seed: int


@dataclass(frozen=True)
class Compared:
    """A compact description of two depth maps to compare: ``unknown`` are the shares without a depth."""

    shape: tuple[int, int]
    masked: float
    unknown: tuple[float, float]
    error: float
    central: bool
    each_component: bool
    seed: int


def measurements() -> st.SearchStrategy[Photographed | Compared]:
    shapes = st.tuples(st.integers(1, 12), st.integers(1, 12))
    seeds = st.integers(0, 2**32 - 1)
    shares = st.sampled_from((0.0, 0.05, 0.3, 0.8, 1.0))
    photographed = st.builds(
        Photographed,
        shapes,
        st.tuples(st.integers(1, 9), st.sampled_from((0.0, 0.1, 5.0, 25.0, 45.0, 80.0, 120.0))),
        st.sampled_from(sorted(TYPES)),
        st.sampled_from((1, 3)),
        shares,
        st.sampled_from(("opengl", "directx", "opencv", "+y+x+z")),
        st.booleans(),
        seeds,
    )
    compared = st.builds(
        Compared,
        shapes,
        shares,
        st.tuples(shares, shares),
        st.sampled_from((0.0, 1e-9, 1e-3, 0.5)),
        st.booleans(),
        st.booleans(),
        seeds,
    )
    return photographed | compared


def measure(given: Photographed | Compared) -> str:
    """Check the result against the known answer, or that it is refused with one sentence."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", nm.NormalMeshWarning)
        try:
            return _photograph(given) if isinstance(given, Photographed) else _compare(given)
        except nm.NormalMeshError as error:
            message = str(error)
    assert "\n" not in message, message
    return "refused"


def _photograph(given: Photographed) -> str:
    rng = np.random.default_rng(given.seed)
    count, slant = given.lights
    normals = rng.normal((0, 0, 1.5), (0.5, 0.5, 0.2), (*given.shape, 3))
    normals[..., 2] = np.maximum(normals[..., 2], 0.5)
    normals /= np.linalg.norm(normals, axis=2, keepdims=True)
    turn, tilt = rng.uniform(0, 2 * np.pi, count), np.radians(slant) * rng.uniform(0.5, 1, count)
    lights = np.stack([np.sin(tilt) * np.cos(turn), np.sin(tilt) * np.sin(turn), np.cos(tilt)], axis=1)
    strength = rng.uniform(0.5, 1, (count, given.channels)) if given.strengths else np.ones((count, 1))
    albedo = rng.uniform(0.3, 0.9, (*given.shape, given.channels))
    exact = np.maximum(np.einsum("hwc,kc->khw", normals, lights), 0)[..., None] * albedo * strength[:, None, None]
    images, usable = _stored(given, exact, rng)
    found = nm.photometric_stereo(
        images if given.channels == 3 else images[..., 0],
        _in_convention(lights, given.convention) * rng.uniform(0.1, 9, (count, 1)),
        intensities=strength if given.strengths else None,
        convention=given.convention,
        saturation=None if given.dtype[0] == "u" else 1.0,
    )
    expected = TYPES[given.dtype] / (albedo.min() * strength.min())
    for place in np.ndindex(given.shape):
        _check_pixel(found, normals[place], lights[usable[(slice(None), *place)]], place, expected)
    return "measured"


def _stored(given: Photographed, exact: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return images as stored, with lost values, and which (K, H, W) of the values count."""
    maximum = np.iinfo(given.dtype).max if given.dtype[0] == "u" else 1
    images = (np.rint(exact * maximum) if maximum > 1 else exact).astype(given.dtype)
    lost = rng.random(exact.shape[:3]) < given.lost
    images[lost] = rng.choice([0, maximum] if maximum > 1 else [0, 1, np.nan], exact.shape[:3])[lost][..., None]
    return images, (images < maximum).all(axis=3) & (images.sum(axis=3) > 0)


def _in_convention(lights: np.ndarray, convention: str) -> np.ndarray:
    return {
        "opengl": lights,
        "directx": lights * [1, -1, 1],
        "opencv": lights * [1, -1, -1],
        "+y+x+z": lights[:, [1, 0, 2]],
    }[convention]


def _check_pixel(
    found: nm.PhotometricStereo, truth: np.ndarray, lights: np.ndarray, place: tuple[int, int], rounding: float
) -> None:
    """Check one normal against the truth, as far as its lights determine it."""
    smallest = np.linalg.svd(lights, compute_uv=False)[-1] if len(lights) >= 3 else 0.0
    expected = 2 * rounding * np.sqrt(len(lights)) / smallest if smallest > 0 else np.inf
    if len(lights) < 3:
        assert not found.normal_map.mask[place], f"{place} has a normal from {len(lights)} lights"
    elif expected < COMPARED and smallest > 0.1:
        assert found.normal_map.mask[place], f"{place} has no normal"
        angle = naive_metrics.angle(found.normal_map.normals[place].astype(float), truth)
        assert np.radians(angle) < expected + 1e-5, f"{place} is off by {angle}°"


def _compare(given: Compared) -> str:
    rng = np.random.default_rng(given.seed)
    mask = rng.random(given.shape) >= given.masked
    mask[rng.integers(given.shape[0]), rng.integers(given.shape[1])] = True
    camera = nm.Perspective.centred(20, given.shape) if given.central else nm.Orthographic(0.7)
    truth = rng.uniform(2, 3, given.shape)
    result = truth * rng.uniform(0.1, 9) if given.central else truth + 5 * rng.normal()
    result += given.error * rng.normal(size=given.shape) * (0.1 if given.central else 1)
    for depth, share in zip((result, truth), given.unknown, strict=True):
        depth[rng.random(given.shape) < share] = rng.choice([np.nan, np.inf])
    normal_map = nm.NormalMap(np.broadcast_to([0.0, 0.0, 1.0], (*given.shape, 3)), mask, camera)
    found = nm.evaluate(result, normal_map, truth, each_component=given.each_component)
    both = np.isfinite(result) & np.isfinite(truth) & mask
    assert found.depths_compared == np.count_nonzero(both)
    assert found.normals_compared <= np.count_nonzero(np.isfinite(result) & mask)
    assert found.covered == np.count_nonzero(np.isfinite(result) & mask) / np.count_nonzero(mask)
    assert np.isfinite(found.rmse) == both.any()
    if given.each_component and both.any():
        known = np.where(np.isfinite(result), result, np.nan), np.where(np.isfinite(truth), truth, np.nan)
        expected = naive_metrics.rmse_and_made(*known, mask, not given.central)
        np.testing.assert_allclose([found.rmse, found.made], expected, rtol=1e-9, atol=1e-12)
    if given.error == 0 and both.any():
        np.testing.assert_allclose([found.rmse, found.made], 0, atol=1e-12)
    return "compared"
