"""Noise of a normal map: how large it is, and normals from which it has been taken as far as needed.

Dividing by ⟨n, r⟩ turns noise into bias, so noisy normals are averaged before gradients are taken. Averaging blurs real
detail, so it must adapt. Detail is integrable and noise is not: the curl of the gradients tells how much is noise.
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

#: Noise (degrees) below which normals are taken as they are: clean maps of rough surfaces are taken for that noisy.
NEGLIGIBLE = 1.0
#: Radius and deviation (px) of the window that noisy normals are averaged over.
RADIUS, WIDTH = 1, 0.8
#: Side (px) of the loops around which heights should come back to where they began.
LOOP = 8
#: About so many places are looked at.
SAMPLED = 2**19


def estimate_noise(normal_map: NormalMap) -> float:
    """Standard deviation, in degrees and along one direction, of white noise on the normals.

    The curl of the gradients around 2×2 pixels vanishes for a smooth surface; white noise of deviation σ on the
    gradients gives it the deviation √2 σ. The median makes occlusions and creases not count. A turn of the normal by δ
    changes the slope by about δ / cos² of its tilt, so curls are multiplied by that.
    """
    usual = _median(normal_map, 1, curls)
    return math.degrees(1.4826 * usual / math.sqrt(2))


def closure_error(normal_map: NormalMap, noise: float) -> float:
    """By how many pixels, usually, heights miss themselves after a loop of 8 × 8 pixels, beyond what noise explains.

    Measured normals are off in patches: no noise, for the pixels of a patch agree, but no surface has them. Slopes
    count less where they are steep, as in :func:`estimate_noise`; the median makes occlusions not count.
    """
    usual = _median(normal_map, LOOP, loop_gaps, LOOP)
    by_noise = 0.6745 * math.sqrt(4 * LOOP) * math.radians(noise)
    return math.sqrt(max(usual**2 - by_noise**2, 0.0))


def _median(normal_map: NormalMap, reach: int, look: Callable[..., None], *options: int) -> float:
    """Median, in pixels, of what a kernel finds on a sample of rows, each with so many rows below it; 0 for nothing."""
    rows, columns = normal_map.shape
    step = max(1, rows * columns // SAMPLED)
    found = np.empty((len(range(0, rows - reach, step)), columns), np.float32)
    looking = (*options, step, normal_map.normals, normal_map.mask, normal_map.camera.frame)
    in_parallel(look, len(found), *looking, found, grain=16)
    known = found[~np.isnan(found)]
    return float(np.median(known, overwrite_input=True)) / normal_map.camera.pixel_length if known.size else 0.0


def checked_noise(noise: float) -> float:
    what = "an angle in degrees, zero or more and at most 180"
    number = checked_finite(noise, "noise", what)
    if not 0 <= number <= 180:
        raise NormalMeshError(f"noise must be {what}, not {number:g}")
    return number


def without_noise(normal_map: NormalMap, noise: float) -> NormalMap:
    """The map with noise (degrees) averaged away among neighbours that it does not tell apart; as it is below 1°."""
    if checked_noise(noise) < NEGLIGIBLE:
        return normal_map
    smooth = np.empty_like(normal_map.normals)
    window = (RADIUS, WIDTH, 3 * math.radians(noise))
    in_parallel(bilateral, len(smooth), normal_map.normals, normal_map.mask, *window, smooth, grain=32)
    return NormalMap(smooth, normal_map.mask, normal_map.camera)
