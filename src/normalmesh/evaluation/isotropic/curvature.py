"""Curvature of the surface behind a normal map, pixel by pixel: it sets the edge lengths of isotropic meshes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from normalmesh.evaluation.isotropic import _curvature
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import in_parallel

#: The Gaussian window that normals are averaged over before derivatives are taken: deviation and reach in pixels.
WIDTH, REACH = math.sqrt(2), 2
#: Rows of pixels, at least, that a thread works on at once.
ROWS = 64


def curvature(normal_map: NormalMap) -> NDArray[np.float32]:
    """Largest absolute normal curvature at each pixel, (H, W) in 1/px, zero outside the mask.

    The largest absolute eigenvalue of I⁻¹ II (Heep and Zell, ECCV 2024). The first fundamental form is I = JᵀJ with the
    tangents J(n) of the camera, in pixels; the second is II_ij = −⟨∂_i n, J_j⟩, made symmetric. Derivatives are central
    differences of normals averaged over 5×5 pixels, one-sided at the border of the mask. Pixels outside the mask count
    nowhere. Behind a pinhole lengths count in pixels at the depth of the surface.
    """
    # Normals are zero outside the mask, and only directions count: this is the mean over the foreground.
    smooth = ndimage.gaussian_filter(normal_map.normals, WIDTH, mode="constant", radius=REACH, axes=(0, 1))
    found = np.empty(normal_map.shape, np.float32)
    mask, camera = normal_map.mask, normal_map.camera.arrays
    in_parallel(_curvature.normalise, len(mask), smooth, mask, grain=ROWS)
    in_parallel(_curvature.fill_curvature, len(mask), smooth, mask, camera, found, grain=ROWS)
    return found
