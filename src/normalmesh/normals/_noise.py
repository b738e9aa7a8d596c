"""Kernels of :mod:`normalmesh.normals.noise`."""

import math

import numpy as np

from normalmesh.normals._camera import along_tangents, ray
from normalmesh.runtime.kernels import inner, kernel


@inner
def slopes(normals, mask, row, column, frame):
    """Return the slopes ∂_u z and ∂_v z of a pixel, and cos² of its tilt to the ray; 0, 0, 1 outside the mask."""
    if not mask[row, column]:
        return 0.0, 0.0, 1.0
    nx, ny, nz = normals[row, column, 0], normals[row, column, 1], normals[row, column, 2]
    u, v = column + 0.5, row + 0.5
    rx, ry, rz = ray(u, v, frame)
    along = nx * rx + ny * ry + nz * rz
    along_u, along_v = along_tangents(nx, ny, nz, frame)
    return -along_u / along, -along_v / along, along * along / (rx * rx + ry * ry + rz * rz)


@kernel
def curls(first, last, step, normals, mask, frame, found):
    """Fill ``found`` (K, W) with curls of the slopes around 2×2 foreground pixels, times cos² of their tilt; else NaN.

    Row k of it is for row ``step`` · k of the map and the one below.
    """
    columns = mask.shape[1]
    for k in range(first, last):
        row = step * k
        found[k, 0] = np.nan
        # The pixels above and below on the left, then on the right.
        whole_left = mask[row, 0] and mask[row + 1, 0]
        p_left, q_left, flat_left = slopes(normals, mask, row, 0, frame)
        p_low_left, q_low_left, flat_low_left = slopes(normals, mask, row + 1, 0, frame)
        for column in range(1, columns):
            whole = mask[row, column] and mask[row + 1, column]
            p, q, flat = slopes(normals, mask, row, column, frame)
            p_low, q_low, flat_low = slopes(normals, mask, row + 1, column, frame)
            found[k, column] = np.nan
            if whole and whole_left:
                curl = ((p_left + p) - (p_low_left + p_low) + (q + q_low) - (q_left + q_low_left)) / 2
                found[k, column] = abs(curl * (flat_left + flat + flat_low_left + flat_low) / 4)
            whole_left = whole
            p_left, q_left, flat_left = p, q, flat
            p_low_left, q_low_left, flat_low_left = p_low, q_low, flat_low


@kernel
def loop_gaps(first, last, side, step, normals, mask, frame, found):
    """Fill ``found`` (K, W) with closure errors around square loops of foreground pixels, ``side`` px long; else NaN.

    They are multiplied by the least cos² of the corners. Slopes are integrated by the trapezoidal rule. Row k of
    ``found`` is for loops that begin in row ``step`` · k of the map.
    """
    columns = mask.shape[1]
    # For each column: the sum of slopes along it, the difference of slopes across its two ends, and the lesser cos².
    down, across, flat = np.empty(columns), np.empty(columns), np.empty(columns)
    for k in range(first, last):
        top = step * k
        run, along = 0, 0.0
        for column in range(columns):
            whole = True
            down[column] = 0.0
            for row in range(top, top + side + 1):
                whole &= mask[row, column]
                _, q, _ = slopes(normals, mask, row, column, frame)
                down[column] += q
            p, q, flat_top = slopes(normals, mask, top, column, frame)
            p_low, q_low, flat_low = slopes(normals, mask, top + side, column, frame)
            down[column] -= (q + q_low) / 2
            across[column] = p - p_low
            flat[column] = min(flat_top, flat_low)
            along = along + across[column] if whole else 0.0
            run = run + 1 if whole else 0
            if run > side + 1:
                along -= across[column - side - 1]
            found[k, column] = np.nan
            if run > side:
                start = column - side
                gap = down[column] - down[start] + along - (across[start] + across[column]) / 2
                found[k, column] = abs(gap * min(flat[start], flat[column]))


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
