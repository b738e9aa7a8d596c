"""Noise of a normal map: how large it is, and normals from which it has been taken as far as needed.

Dividing by ⟨n, r⟩ turns noise into bias, so noisy normals are averaged before gradients are taken. Averaging blurs real
detail, so it must adapt. Detail is integrable and noise is not: the curl of the gradients tells how much is noise.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from normalmesh._noise import bilateral
from normalmesh.errors import NormalMeshError
from normalmesh.normalmap import NormalMap

#: Noise (degrees) below which normals are taken as they are: clean maps of rough surfaces are taken for that noisy.
NEGLIGIBLE = 1.0
#: Radius and deviation (px) of the window that noisy normals are averaged over.
RADIUS, WIDTH = 1, 0.8
#: Side (px) of the loops around which heights should come back to where they began.
LOOP = 8
#: About so many pixels are looked at.
SAMPLED = 2**21


def estimate_noise(normal_map: NormalMap) -> float:
    """Standard deviation, in degrees and along one direction, of white noise on the normals.

    The curl of the gradients around 2×2 pixels vanishes for a smooth surface; white noise of deviation σ on the
    gradients gives it the deviation √2 σ. The median makes occlusions and creases not count.
    """
    rows, columns = normal_map.shape
    step = max(1, rows * columns // SAMPLED)
    top = np.arange(0, rows - 1, step)
    if columns < 2 or len(top) == 0:
        return 0.0
    (p, q, squared, inside), (p_below, q_below, squared_below, inside_below) = (
        _slopes(normal_map, top + below) for below in (0, 1)
    )
    curl = (p[:, :-1] + p[:, 1:]) - (p_below[:, :-1] + p_below[:, 1:])
    curl += (q[:, 1:] + q_below[:, 1:]) - (q[:, :-1] + q_below[:, :-1])
    # A turn of the normal by δ changes the slope by about δ / cos² of its tilt.
    flatness = (squared[:, :-1] + squared[:, 1:] + squared_below[:, :-1] + squared_below[:, 1:]) / 4
    whole = inside[:, :-1] & inside[:, 1:] & inside_below[:, :-1] & inside_below[:, 1:]
    if not whole.any():
        return 0.0
    deviation = 1.4826 * float(np.median(np.abs(curl[whole] / 2 * flatness[whole])))
    return math.degrees(deviation / math.sqrt(2))


def closure_error(normal_map: NormalMap, noise: float) -> float:
    """By how many pixels, usually, heights miss themselves after a loop of 8 × 8 pixels, beyond what noise explains.

    Measured normals are off in patches: no noise, for the pixels of a patch agree, but no surface has them. Slopes
    count less where they are steep, as in :func:`estimate_noise`; the median makes occlusions not count.
    """
    rows, columns = normal_map.shape
    top = np.arange(0, rows - LOOP, max(1, rows * columns // SAMPLED))
    if columns <= LOOP or len(top) == 0:
        return 0.0
    around = np.zeros((len(top), columns - LOOP))
    whole = np.ones(around.shape, np.bool_)
    steepest = np.ones(around.shape)
    for k in range(LOOP + 1):
        p, q, squared, inside = _slopes(normal_map, top + k)
        share = 0.5 if k in (0, LOOP) else 1.0
        around += share * (q[:, LOOP:] - q[:, :-LOOP])
        whole &= np.lib.stride_tricks.sliding_window_view(inside, LOOP + 1, axis=1).all(axis=2)
        if k in (0, LOOP):
            sums = np.cumsum(np.pad(p, ((0, 0), (1, 0))), axis=1)
            along = sums[:, LOOP + 1 :] - sums[:, : -LOOP - 1] - (p[:, :-LOOP] + p[:, LOOP:]) / 2
            around += along if k == 0 else -along
            steepest = np.minimum(steepest, np.minimum(squared[:, :-LOOP], squared[:, LOOP:]))
    if not whole.any():
        return 0.0
    usual = float(np.median(np.abs(around * steepest)[whole]))
    by_noise = 0.6745 * math.sqrt(4 * LOOP) * math.radians(noise)
    return math.sqrt(max(usual**2 - by_noise**2, 0.0))


def _slopes(normal_map: NormalMap, rows: NDArray[np.int64]) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Slopes along u and v, cos² of the tilt, and the mask, on some rows; slopes are in pixels for both cameras."""
    camera = normal_map.camera
    normals, mask = normal_map.normals[rows].astype(np.float64), normal_map.mask[rows]
    rays = camera.rays(np.arange(mask.shape[1])[None, :] + 0.5, rows[:, None] + 0.5)
    along = np.where(mask, (normals * rays).sum(axis=-1), 1.0)
    p, q = (np.where(mask, -(normals @ tangent) / along / camera.pixel_length, 0.0) for tangent in camera.tangents)
    return p, q, along**2 / (rays**2).sum(axis=-1), mask


def without_noise(normal_map: NormalMap, noise: float) -> NormalMap:
    """The map with noise (degrees) averaged away among neighbours that it does not tell apart; as it is below 1°."""
    if not (np.isfinite(noise) and noise >= 0):
        raise NormalMeshError(f"noise must be an angle in degrees, zero or more, not {noise}")
    if noise < NEGLIGIBLE:
        return normal_map
    smooth = np.empty_like(normal_map.normals)
    bilateral(normal_map.normals, normal_map.mask, RADIUS, WIDTH, 3 * math.radians(noise), smooth)
    return NormalMap(smooth, normal_map.mask, normal_map.camera)
