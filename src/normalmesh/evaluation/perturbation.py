"""Perturbation of normals: the noise of the paper's robustness test."""

from __future__ import annotations

import warnings

import numpy as np

from normalmesh.arguments import checked_finite, checked_instance, checked_int
from normalmesh.errors import NormalMeshError, NormalMeshWarning, repr_for_error
from normalmesh.normals.normal_map import NormalMap

#: Noise that has turned every normal around already.
MOST_DEGREES = 360.0


def add_noise(normal_map: NormalMap, degrees: float, seed: int = 0) -> NormalMap:
    """A normal map with Gaussian noise on its normals.

    Parameters
    ----------
    normal_map
    degrees
        Standard deviation of the angle by which a normal turns in each of the two directions across it.
    seed
        The same seed gives the same noise.

    Returns
    -------
    NormalMap
        Normals that noise turned away from the viewer are turned back to grazing, silently.
    """
    checked_instance(normal_map, NormalMap, "normal_map")
    if not 0 <= checked_finite(degrees, "degrees") <= MOST_DEGREES:
        raise NormalMeshError(f"degrees must be a number from 0 to {MOST_DEGREES:g}, not {repr_for_error(degrees)}")
    checked_int(seed, 0, "seed")
    if degrees == 0:
        return normal_map
    rng = np.random.default_rng(seed)
    turns = np.radians(rng.normal(0, degrees, (*normal_map.shape, 2)))[normal_map.mask]
    angle = np.linalg.norm(turns, axis=1, keepdims=True)
    normals = normal_map.normals[normal_map.mask].astype(np.float64)
    # Any direction that is far from parallel to the normal begins a frame across it.
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
