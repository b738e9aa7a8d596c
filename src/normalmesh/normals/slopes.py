"""Slopes: the derivatives of the unknown of a camera with respect to u and v, from normals and back to them.

Unlike normals, slopes may be averaged and interpolated: the mean slope of a region is the slope of the mean surface.
"""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Float, Float32
from normalmesh.normals.camera import Camera
from normalmesh.runtime.row_blocks import row_blocks


def slopes_of(normals: Float32, camera: Camera) -> Float:
    """Return the slopes (H, W, 2) of clean normals (H, W, 3): ``∂_i z = −⟨n, τ_i⟩ / ⟨n, r⟩``; zero where n is zero."""
    slopes = np.zeros((*normals.shape[:2], 2))
    for rows in row_blocks(normals.shape[:2]):
        n = normals[rows].astype(np.float64)
        along_ray = np.sum(n * _rays(camera, rows, normals.shape[1]), axis=-1)
        for axis, tangent in enumerate(camera.tangents):
            np.divide(-(n @ tangent), along_ray, out=slopes[rows, :, axis], where=along_ray != 0)
    return slopes


def normals_of_slopes(slopes: Float, camera: Camera) -> Float32:
    """Return the unit normals (H, W, 3), towards the viewer, of slopes (H, W, 2); NaN where one of them is NaN."""
    normals = np.empty((*slopes.shape[:2], 3), np.float32)
    tau_u, tau_v = camera.tangents
    for rows in row_blocks(slopes.shape[:2]):
        rays = _rays(camera, rows, slopes.shape[1])
        along_u, along_v = np.moveaxis(slopes[rows], -1, 0)
        n = np.cross(tau_u + along_u[..., None] * rays, tau_v + along_v[..., None] * rays)
        facing = camera.towards_viewer * np.sign(np.sum(n * rays, axis=-1))
        normals[rows] = n * (facing / np.linalg.norm(n, axis=-1))[..., None]
    return normals


def _rays(camera: Camera, rows: slice, columns: int) -> Float:
    """Return the rays (h, W, 3) of the pixel centres of some rows."""
    u, v = np.arange(columns) + 0.5, np.arange(rows.start, rows.stop) + 0.5
    return camera.rays(u[None, :], v[:, None])
