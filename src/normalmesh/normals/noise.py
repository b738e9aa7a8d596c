"""Estimating and filtering the noise of a normal map.

Dividing by ⟨n, r⟩ turns noise into bias, so noisy normals are averaged before gradients are computed. Averaging blurs
real detail, so it must adapt to the noise. Detail is integrable and noise is not: the curl of the gradients measures
the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from normalmesh.arguments import checked_finite
from normalmesh.errors import NormalMeshError
from normalmesh.normals._noise import bilateral, curls, loop_gaps
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import in_parallel

#: Noise (degrees) below which normals are not filtered: the estimate is that large for clean maps of rough surfaces.
NEGLIGIBLE = 1.0
#: Radius and standard deviation (px) of the window of the filter.
RADIUS, WIDTH = 1, 0.8
#: Side (px) of the loops of the closure error.
LOOP = 8
#: Approximate number of pixels in the sample for the estimates.
SAMPLED = 2**19


def estimate_noise(normal_map: NormalMap) -> float:
    """Estimate the standard deviation, in degrees and along one direction, of white noise on the normals.

    The curl of the gradients around 2×2 pixels vanishes for a smooth surface; white noise of deviation σ on the
    gradients gives it the deviation √2 σ. The median is robust to occlusions and creases. A rotation of the normal by δ
    changes the slope by about δ / cos² of its tilt, so curls are multiplied by that.
    """
    usual = _median(normal_map, 1, curls)
    return math.degrees(1.4826 * usual / math.sqrt(2))


def closure_error(normal_map: NormalMap, noise: float) -> float:
    """Estimate the median closure error of heights around loops of 8 × 8 pixels, in pixels, beyond that of noise.

    Measured normals have correlated errors: neighbouring pixels agree, but no surface has these normals. Steep slopes
    have lower weights, as in :func:`estimate_noise`; the median is robust to occlusions.
    """
    usual = _median(normal_map, LOOP, loop_gaps, LOOP)
    by_noise = 0.6745 * math.sqrt(4 * LOOP) * math.radians(noise)
    return math.sqrt(max(usual**2 - by_noise**2, 0.0))


def _median(normal_map: NormalMap, reach: int, measure: Callable[..., None], *options: int) -> float:
    """Return the median, in pixels, of what a kernel measures on a sample of rows; 0 if it measures nothing.

    The kernel needs ``reach`` more rows below each row.
    """
    rows, columns = normal_map.shape
    step = max(1, rows * columns // SAMPLED)
    found = np.empty((len(range(0, rows - reach, step)), columns), np.float32)
    arrays = (normal_map.normals, normal_map.mask, normal_map.camera.frame)
    in_parallel(measure, len(found), *options, step, *arrays, found, grain=16)
    known = found[~np.isnan(found)]
    return float(np.median(known, overwrite_input=True)) / normal_map.camera.pixel_length if known.size else 0.0


def checked_noise(noise: float) -> float:
    """Return the standard deviation of noise in degrees, or raise :class:`NormalMeshError`."""
    what = "an angle in degrees, zero or more and at most 180"
    number = checked_finite(noise, "noise", what)
    if not 0 <= number <= 180:
        raise NormalMeshError(f"noise must be {what}, not {number:g}")
    return number


def without_noise(normal_map: NormalMap, noise: float) -> NormalMap:
    """Return the map after a bilateral filter against noise (degrees); the map itself if the noise is below 1°."""
    if checked_noise(noise) < NEGLIGIBLE:
        return normal_map
    smooth = np.empty_like(normal_map.normals)
    window = (RADIUS, WIDTH, 3 * math.radians(noise))
    in_parallel(bilateral, len(smooth), normal_map.normals, normal_map.mask, *window, smooth, grain=32)
    return NormalMap(smooth, normal_map.mask, normal_map.camera)
