"""Kernel of :mod:`normalmesh.noise`."""

import math

from numba import njit, prange


@njit(cache=True, parallel=True, nogil=True)
def bilateral(normals, mask, radius, width, spread, smooth):
    """Mean of each foreground normal and its neighbours that are near on the screen and alike, normalised.

    ``width`` (px) and ``spread`` (length of the difference of unit normals) are the two Gaussians' deviations.
    """
    rows, columns = mask.shape
    for i in prange(rows):
        for j in range(columns):
            smooth[i, j, :] = 0.0
            if not mask[i, j]:
                continue
            x = y = z = 0.0
            for k in range(max(i - radius, 0), min(i + radius + 1, rows)):
                for m in range(max(j - radius, 0), min(j + radius + 1, columns)):
                    if not mask[k, m]:
                        continue
                    dx = normals[k, m, 0] - normals[i, j, 0]
                    dy = normals[k, m, 1] - normals[i, j, 1]
                    dz = normals[k, m, 2] - normals[i, j, 2]
                    near = ((k - i) ** 2 + (m - j) ** 2) / (width * width)
                    alike = (dx * dx + dy * dy + dz * dz) / (spread * spread)
                    weight = math.exp(-0.5 * (near + alike))
                    x += weight * normals[k, m, 0]
                    y += weight * normals[k, m, 1]
                    z += weight * normals[k, m, 2]
            length = math.sqrt(x * x + y * y + z * z)
            smooth[i, j, 0], smooth[i, j, 1], smooth[i, j, 2] = x / length, y / length, z / length
