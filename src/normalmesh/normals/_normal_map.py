"""Kernels of :mod:`normalmesh.normals.normal_map`."""

import math

import numpy as np

from normalmesh.runtime.kernels import inner, kernel

#: Normals closer than 5° to grazing carry no usable slope: they are clamped to this angle from the viewing ray.
CLAMP_COSINE = math.cos(math.radians(85))
CLAMP_SINE = math.sin(math.radians(85))


@inner(forceinline=True)
def ray(u, v, frame):
    """r(u, v), as three numbers."""
    return (
        frame[2, 0] + u * frame[3, 0] + v * frame[4, 0],
        frame[2, 1] + u * frame[3, 1] + v * frame[4, 1],
        frame[2, 2] + u * frame[3, 2] + v * frame[4, 2],
    )


@inner
def to_viewer(u, v, frame, towards_viewer):
    """Unit direction from the surface at the screen position (u, v) to the viewer."""
    rx, ry, rz = ray(u, v, frame)
    x, y, z = towards_viewer * rx, towards_viewer * ry, towards_viewer * rz
    length = math.sqrt(x * x + y * y + z * z)
    return x / length, y / length, z / length


@kernel
def clean_normals(first, last, given, mask, frame, towards_viewer, normals, counts):
    """Fill rows of ``normals`` (H, W, 3) with unit normals clamped to 85°; take unusable pixels out of ``mask``.

    Counts those that are (invalid, rescaled, back-facing, grazing) in each row of the mask as it was given: ``counts``
    (H, 4), zero before.
    """
    for i in range(first, last):
        for j in range(mask.shape[1]):
            normals[i, j, 0] = normals[i, j, 1] = normals[i, j, 2] = 0.0
            if not mask[i, j]:
                continue
            x, y, z = np.float64(given[i, j, 0]), np.float64(given[i, j, 1]), np.float64(given[i, j, 2])
            largest = max(abs(x), abs(y), abs(z))
            if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)) or largest == 0.0:
                counts[i, 0] += 1
                mask[i, j] = False
                continue
            # Dividing by the largest component first keeps the squares of tiny and huge vectors in range.
            x, y, z = x / largest, y / largest, z / largest
            length = math.sqrt(x * x + y * y + z * z)
            if abs(largest * length - 1.0) > 0.02:
                counts[i, 1] += 1
            x, y, z = x / length, y / length, z / length

            ray_x, ray_y, ray_z = to_viewer(j + 0.5, i + 0.5, frame, towards_viewer)
            cosine = x * ray_x + y * ray_y + z * ray_z
            # The margin lets normals that were clamped and rounded to float32 pass unchanged.
            if cosine < CLAMP_COSINE - 1e-6:
                x, y, z = x - cosine * ray_x, y - cosine * ray_y, z - cosine * ray_z
                length = math.sqrt(x * x + y * y + z * z)
                if length < 1e-9:
                    counts[i, 0] += 1
                    mask[i, j] = False
                    continue
                counts[i, 2 if cosine <= 0.0 else 3] += 1
                scale = CLAMP_SINE / length
                x = CLAMP_COSINE * ray_x + scale * x
                y = CLAMP_COSINE * ray_y + scale * y
                z = CLAMP_COSINE * ray_z + scale * z
            normals[i, j, 0], normals[i, j, 1], normals[i, j, 2] = x, y, z
