"""Add Gaussian noise to normals, as in the paper's robustness test."""

from __future__ import annotations

import warnings

import numpy as np

from normalmesh.arguments import checked_finite, checked_int
from normalmesh.errors import NormalMeshError, NormalMeshWarning, repr_for_error
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.normal_map_like import NormalMapLike, as_normal_map

#: Largest standard deviation of the noise, in degrees.
MAX_DEGREES = 360.0


def add_noise(normal_map: NormalMapLike, degrees: float, seed: int = 0) -> NormalMap:
    """Add Gaussian noise to the normals of a normal map.

    Parameters
    ----------
    normal_map
        The normal map.
    degrees
        Standard deviation of the rotation of a normal in each of the two tangential directions, in degrees.
    seed
        The same seed gives the same noise.

    Returns
    -------
    NormalMap
        Normals that noise rotates away from the viewer are clamped, without a warning.
    """
    normal_map = as_normal_map(normal_map)
    if not 0 <= checked_finite(degrees, "degrees") <= MAX_DEGREES:
        raise NormalMeshError(f"degrees must be a number from 0 to {MAX_DEGREES:g}, not {repr_for_error(degrees)}")
    checked_int(seed, 0, "seed")
    if degrees == 0:
        return normal_map
    rng = np.random.default_rng(seed)
    turns = np.radians(rng.normal(0, degrees, (*normal_map.shape, 2)))[normal_map.mask]
    angle = np.linalg.norm(turns, axis=1, keepdims=True)
    normals = normal_map.normals[normal_map.mask].astype(np.float64)
    # Build a tangent frame from the coordinate axis that is farthest from parallel to the normal.
    least = np.eye(3)[np.argmin(np.abs(normals), axis=1)]
    across = np.cross(normals, least)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    along = np.cross(normals, across)
    noisy = np.zeros((*normal_map.shape, 3), np.float32)
    sideways = (turns[:, :1] * across + turns[:, 1:] * along) / np.maximum(angle, np.finfo(np.float64).tiny)
    noisy[normal_map.mask] = np.cos(angle) * normals + np.sin(angle) * sideways
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalMeshWarning)
        return NormalMap(noisy, normal_map.mask, normal_map.camera)
