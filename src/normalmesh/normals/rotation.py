"""Turning normal maps by right angles."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.normals.normal_map import NormalMap


def rotated_map(normal_map: NormalMap, degrees: int) -> NormalMap:
    """Return a map turned anticlockwise, see :meth:`NormalMap.rotated`."""
    if isinstance(degrees, bool) or not isinstance(degrees, Integral | float) or degrees % 90:
        raise NormalMeshError(f"degrees must be a multiple of 90, not {repr_for_error(degrees)}")
    quarters = int(degrees // 90) % 4
    normals = np.rot90(normal_map.normals, quarters).copy()
    x, y = normals[..., 0].copy(), normals[..., 1].copy()
    for _ in range(quarters):
        x, y = -y, x
    normals[..., 0], normals[..., 1] = x, y
    # Negating a zero of the background leaves −0.
    normals += np.float32(0)
    mask, camera = np.rot90(normal_map.mask, quarters).copy(), normal_map.camera.turned(quarters, normal_map.shape)
    return NormalMap.cleaned(normals, mask, camera)
