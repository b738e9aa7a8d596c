"""Kernels of :mod:`normalmesh.normals.noise`."""

import math
from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Int
from normalmesh.normals._camera import products, ray
from normalmesh.runtime.kernels import inner, kernel


class Sample(NamedTuple):
    """Where loops begin: in these rows (K,), and between the columns ``left`` and ``right`` − 1."""

    rows: Int
    left: int
    right: int


@inner
def slopes(normals, mask, row, column, camera):
    """Return the slopes ∂_u z and ∂_v z of a pixel, and cos² of its tilt to the ray; 0, 0, 1 outside the mask."""
    if not mask[row, column]:
        return 0.0, 0.0, 1.0
    nx, ny, nz = normals[row, column, 0], normals[row, column, 1], normals[row, column, 2]
    u, v = column + 0.5, row + 0.5
    rx, ry, rz = ray(u, v, camera)
    along_u, along_v, along = products(nx, ny, nz, u, v, camera)
    return -along_u / along, -along_v / along, along * along / (rx * rx + ry * ry + rz * rz)


@kernel
def loop_gaps(first, last, side, sample, normals, mask, camera, found):
    """Fill ``found`` (K, C, 3) with closure errors around square loops of foreground pixels, ``side`` px long.

    Row k of it is for loops that begin in a row of the sample: their closure error, NaN for loops that leave the
    foreground, then the least and the mean of cos² of the tilts of their corners. Slopes are integrated by the
    trapezoidal rule.
    """
    columns = found.shape[1]
    # For each column: the sum of slopes along it, the difference of slopes across its two ends, and cos² of both.
    down, across, flat = np.empty(columns), np.empty(columns), np.empty((columns, 2))
    for k in range(first, last):
        top = sample.rows[k]
        run, along = 0, 0.0
        for column in range(columns):
            place = sample.left + column
            p, q, flat[column, 0] = slopes(normals, mask, top, place, camera)
            p_low, q_low, flat[column, 1] = slopes(normals, mask, top + side, place, camera)
            down[column] = (q + q_low) / 2
            whole = mask[top, place] and mask[top + side, place]
            for row in range(top + 1, top + side):
                whole &= mask[row, place]
                _, q, _ = slopes(normals, mask, row, place, camera)
                down[column] += q
            across[column] = p - p_low
            along = along + across[column] if whole else 0.0
            run = run + 1 if whole else 0
            if run > side + 1:
                along -= across[column - side - 1]
            found[k, column, 0] = np.nan
            if run > side:
                start = column - side
                a, b, c, d = flat[start, 0], flat[start, 1], flat[column, 0], flat[column, 1]
                found[k, column, 0] = down[column] - down[start] + along - (across[start] + across[column]) / 2
                found[k, column, 1] = min(a, b, c, d)
                found[k, column, 2] = (a + b + c + d) / 4


@kernel
def bilateral(first, last, normals, mask, radius, width, spread, smooth):
    """Fill rows of ``smooth`` (H, W, 3) with bilaterally filtered unit normals.

    ``width`` (px) and ``spread`` (length of the difference of unit normals) are the standard deviations of the two
    Gaussians.
    """
    rows, columns = mask.shape
    for i in range(first, last):
        for j in range(columns):
            smooth[i, j, 0] = smooth[i, j, 1] = smooth[i, j, 2] = 0.0
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
