"""Curvature of the surface of a normal map at each pixel, which determines the edge lengths of isotropic meshes."""

from __future__ import annotations

import math

import numpy as np
from scipy import ndimage

from normalmesh.array_types import Float32
from normalmesh.evaluation.isotropic import _curvature
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import in_parallel

#: The Gaussian window that normals are averaged over before derivatives are taken: deviation and reach in pixels.
WINDOW_WIDTH, WINDOW_REACH = math.sqrt(2), 2
#: Minimum number of rows of pixels for each thread.
ROWS = 64


def curvature(normal_map: NormalMap) -> Float32:
    """Compute the largest absolute normal curvature (H, W) at each pixel, in 1/px; zero outside the mask.

    It is the largest absolute eigenvalue of I⁻¹ II (Heep and Zell, ECCV 2024). The first fundamental form is I = JᵀJ
    with the tangents J(n) of the camera, in pixels. The second is II_ij = −⟨∂_i n, J_j⟩, symmetrised. Derivatives are
    central differences of normals averaged over 5×5 pixels, one-sided at the border of the mask. Pixels outside the
    mask are ignored. For a perspective camera, lengths are measured in pixels at the depth of the surface.
    """
    # Normals are zero outside the mask, and only directions matter, so that this is the mean over the foreground.
    window = {"sigma": WINDOW_WIDTH, "radius": WINDOW_REACH}
    smooth = ndimage.gaussian_filter(normal_map.normals, **window, mode="constant", axes=(0, 1))
    found = np.empty(normal_map.shape, np.float32)
    mask, camera = normal_map.mask, normal_map.camera.arrays
    np.divide(smooth, np.sqrt((smooth**2).sum(axis=2, keepdims=True)), out=smooth, where=mask[..., None])
    in_parallel(_curvature.fill_curvature, len(mask), smooth, mask, camera, found, grain=ROWS)
    return found
