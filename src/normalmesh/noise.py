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
RADIUS, WIDTH = 2, 1.2
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


def _slopes(normal_map: NormalMap, rows: NDArray[np.int64]) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Slopes along u and v, cos² of the tilt, and the mask, on some rows; slopes are in pixels for both cameras."""
    camera = normal_map.camera
    normals, mask = normal_map.normals[rows].astype(np.float64), normal_map.mask[rows]
    rays = camera.rays(np.arange(mask.shape[1])[None, :] + 0.5, rows[:, None] + 0.5)
    along = np.where(mask, (normals * rays).sum(axis=-1), 1.0)
    p, q = (-(normals @ tangent) / along / camera.pixel_length for tangent in camera.tangents)
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
