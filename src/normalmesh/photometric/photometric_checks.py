"""Doubts about photometric stereo: images and lights that give wrong normals without being impossible."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from normalmesh.array_types import Bool, Float, Float32
from normalmesh.normals.conventions import Convention
from normalmesh.normals.diagnosis import diagnose
from normalmesh.normals.normal_map import NormalMap
from normalmesh.photometric.light_order import doubts_about_order
from normalmesh.photometric.matt_surface import PhotographedSurface, fit, least_shaded

#: Number of values of the photographs that are sampled, and the least number of pixels or values to judge by.
SAMPLED, LEAST = 1 << 20, 20
#: Lights that are nearly in one plane multiply errors of the images by more than this; lights from all sides by 1.7.
AMPLIFIED = 20.0
#: Median residual, as a share of the albedo, above which images and lights do not fit, and below which they do well.
MISFIT, WELL = 0.1, 0.01
#: Usual exponent of a gamma curve. Without such a curve, or a constant, the residual is at most this share of it.
GAMMA, IMPROVED = 2.2, 0.5
#: Clipped values are lower than the other images predict by more than this factor.
CLIPPED = 1.02


def doubts_about_lights(lights: Float) -> Iterator[str]:
    """Yield a warning if unit directions (K, 3) are near one plane."""
    amplified = math.sqrt(len(lights)) / np.linalg.svd(lights, compute_uv=False)[-1]
    if amplified > AMPLIFIED:
        yield (
            f"the lights lie nearly in one plane, which multiplies errors of the images by up to {amplified:.0f}; "
            "add an image with a light outside that plane"
        )


def doubts_about_images(given: PhotographedSurface) -> Iterator[str]:
    """Yield warnings of a gamma curve, an added constant, another order, and clipped values, judging by some pixels."""
    rows, columns = given.foreground.shape
    step = max(1, math.isqrt(rows * columns * len(given.taken) // SAMPLED))
    every = (slice(None, None, step), slice(None, None, step))
    values, usable = given.observations(every)
    grey = values.mean(axis=2)[:, usable.all(axis=0)]
    yield from _doubts_about_response(grey, given.lights)
    yield from doubts_about_order(grey, given.lights, given.natural)
    stored = values * given.strength[:, None, :]
    top = stored.max(initial=0.0)
    exceeded = _excess_at_top(values, usable, (stored >= top).any(axis=2) & usable, given.lights)
    if exceeded > CLIPPED:
        limit = top * (given.taken[0].maximum or 1)
        yield (
            f"values seem to be clipped at {limit:.6g}, where the other images predict {100 * (exceeded - 1):.0f} % "
            f"more; saturation={limit:.6g} leaves them out"
        )


def _doubts_about_response(grey: Float, lights: Float) -> Iterator[str]:
    """Yield a warning if values (K, P) fit far better when a gamma curve is undone, or a constant is subtracted."""
    count, pixels = grey.shape
    if count < 4 or pixels < LEAST:
        return
    # If a constant is added, pixels in shadow look lit: only pixels that all lights reach can tell.
    grey = least_shaded(grey)
    if (linear := _misfit(grey, lights)) <= WELL:
        return
    if (undone := _misfit((grey / grey.max()) ** GAMMA, lights)) < IMPROVED * linear:
        yield (
            f"the images seem to have a gamma curve: without it, the median residual is {100 * undone:.1f} % of the "
            f"albedo instead of {100 * linear:.1f} %; take raw images, or undo the curve (for sRGB, about value^2.2)"
        )
    elif count > 5 and (above := _misfit(grey, np.column_stack([lights, np.ones(count)]))) < min(
        IMPROVED * linear, WELL
    ):
        yield (
            f"a constant seems to be added to the images, as by ambient light or a black level: without it, the median "
            f"residual is {100 * above:.1f} % of the albedo instead of {100 * linear:.1f} %; subtract an image that "
            "was taken without the lights"
        )


def _misfit(grey: Float, columns: Float) -> float:
    """Return the median residual of values (K, P) that depend linearly on columns (K, 3 or 4), as a share of |ρn|.

    The residual is divided by the degrees of freedom, so that another column alone makes it no smaller.
    """
    found = np.linalg.pinv(columns) @ grey
    squares = ((grey - columns @ found) ** 2).sum(axis=0) / (len(grey) - columns.shape[1])
    return float(np.median(np.sqrt(squares) / np.maximum(np.linalg.norm(found[:3], axis=0), 1e-300)))


def _excess_at_top(values: Float, usable: Bool, at_top: Bool, lights: Float) -> float:
    """Return how much more than their value the other images predict for the largest observations (K, P); 1 if open."""
    pixels = at_top.any(axis=0)
    values, usable, at_top = values[:, pixels], usable[:, pixels], at_top[:, pixels]
    normals, albedo, _ = fit(values, usable & ~at_top, lights)
    predicted = (lights @ normals.T) * albedo.mean(axis=1)
    judged = at_top & normals.any(axis=1)
    if np.count_nonzero(judged) < LEAST:
        return 1.0
    return float(np.median(predicted[judged] / values.mean(axis=2)[judged]))


def doubts_about_fit(normal_map: NormalMap, albedo: Float32, residual: Float32) -> Iterator[str]:
    """Yield warnings if the images do not fit the lights, or the normals are those of no surface in these axes."""
    inside = normal_map.mask
    share = float(np.median(residual[inside] / np.maximum(albedo[inside].mean(axis=1), 1e-30)))
    if share > MISFIT:
        yield (
            f"the images do not fit a matt surface under these lights: the median residual is {100 * share:.0f} % of "
            "the albedo; check that lights and intensities are in the order of the images, or leave out shadows and "
            "highlights by darkest and brightest"
        )
    if diagnose(normal_map).strongly_excludes(Convention.parse("opengl")):
        yield (
            "the normals contradict the axes of the lights: no surface has them; check the convention, and that the "
            "lights are in the order of the images"
        )
