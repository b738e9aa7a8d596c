"""Kernels of pixel integration with depth discontinuities. Arrays are (H, W), lengths count in pixels.

``right`` and ``down`` hold the weights of edges as in :mod:`._pixel_integration`, ``half_steps`` what half a step on
the plane of a pixel changes the unknown by.
"""

import numpy as np
from numba import prange

from normalmesh.normals._camera import ray
from normalmesh.runtime.kernels import inner, kernel
from normalmesh.solvers._multigrid import total_of


@kernel(parallel=True)
def uprightness(mobility, mask, frame, upright):
    """ν = cosine between normal and viewing ray, from mobility = ⟨n, r⟩²; 1 outside."""
    for i in prange(mask.shape[0]):
        for j in range(mask.shape[1]):
            rx, ry, rz = ray(j + 0.5, i + 0.5, frame)
            squared = rx * rx + ry * ry + rz * rz
            upright[i, j] = np.sqrt(mobility[i, j] / squared) if mask[i, j] else 1.0


@inner(forceinline=True)
def _liking(upright, before, after, sharpness):
    step = upright * (after - before)
    return -sharpness * step * step


@kernel(parallel=True)
def _sums_of_likings(mask, upright, z, sharpness, highest, factor):
    """Per pixel: the highest of its likings, and half its number of edges over the sum of exp(liking − highest)."""
    rows, columns = mask.shape
    for i in prange(rows):
        likings = np.empty(4)
        for j in range(columns):
            if not mask[i, j]:
                continue
            count = 0
            for k in range(4):
                y, x = i + (k == 2) - (k == 3), j + (k == 0) - (k == 1)
                if 0 <= y < rows and 0 <= x < columns and mask[y, x]:
                    likings[count] = _liking(upright[i, j], z[i, j], z[y, x], sharpness)
                    count += 1
            if count == 0:
                continue
            most, total = likings[:count].max(), 0.0
            for k in range(count):
                total += np.exp(likings[k] - most)
            highest[i, j] = most
            factor[i, j] = 0.5 * count / total


@inner(forceinline=True)
def _share(p, q, upright, z, sharpness, least, highest, factor):
    """What pixel p adds to the weight of its edge to q."""
    share = factor[p] * np.exp(_liking(upright[p], z[p], z[q], sharpness) - highest[p])
    return max(share, least) * upright[p] ** 2


def one_sided_weights(mask, upright, z, sharpness, least, right, down):
    """Each pixel shares its weight out among its edges by a softmax, more to those that it is level with."""
    highest, factor = np.zeros(mask.shape), np.zeros(mask.shape)
    _sums_of_likings(mask, upright, z, sharpness, highest, factor)
    _shares(mask, upright, z, sharpness, least, highest, factor, right, down)


@kernel(parallel=True)
def _shares(mask, upright, z, sharpness, least, highest, factor, right, down):
    rows, columns = mask.shape
    for i in prange(rows):
        for j in range(columns):
            if not mask[i, j]:
                continue
            p = i, j
            if j + 1 < columns and mask[i, j + 1]:
                q = i, j + 1
                there = _share(q, p, upright, z, sharpness, least, highest, factor)
                right[p] = _share(p, q, upright, z, sharpness, least, highest, factor) + there
            if i + 1 < rows and mask[i + 1, j]:
                q = i + 1, j
                there = _share(q, p, upright, z, sharpness, least, highest, factor)
                down[p] = _share(p, q, upright, z, sharpness, least, highest, factor) + there


@inner(forceinline=True)
def _misfit(z, half_steps, p, q, leaving):
    """By how much the planes of pixels p and q miss each other at their common side; ``leaving``: 1 right, 3 down."""
    return z[q] - z[p] - half_steps[p[0], p[1], leaving] - half_steps[q[0], q[1], leaving - 1]


@inner(forceinline=True)
def _cauchy(upright, misfit, width):
    return upright**2 / ((upright * misfit) ** 2 + width**2)


@kernel(parallel=True)
def cauchy_weights(mask, upright, z, half_steps, width, right, down):
    """An edge loses weight as the square of its misfit, beyond a width."""
    rows, columns = mask.shape
    for i in prange(rows):
        for j in range(columns):
            if not mask[i, j]:
                continue
            if j + 1 < columns and mask[i, j + 1]:
                misfit = _misfit(z, half_steps, (i, j), (i, j + 1), 1)
                right[i, j] = _cauchy(min(upright[i, j], upright[i, j + 1]), misfit, width)
            if i + 1 < rows and mask[i + 1, j]:
                misfit = _misfit(z, half_steps, (i, j), (i + 1, j), 3)
                down[i, j] = _cauchy(min(upright[i, j], upright[i + 1, j]), misfit, width)


@kernel(parallel=True)
def misfit_energy(half_steps, right, down, z):
    """Σ weight · misfit² and Σ weight over all edges."""
    rows, columns = z.shape
    sums = np.zeros((2, rows))
    for i in prange(rows):
        energy, total = 0.0, 0.0
        for j in range(columns):
            if j + 1 < columns:
                misfit = _misfit(z, half_steps, (i, j), (i, j + 1), 1)
                energy += right[i, j] * misfit**2
                total += right[i, j]
            if i + 1 < rows:
                misfit = _misfit(z, half_steps, (i, j), (i + 1, j), 3)
                energy += down[i, j] * misfit**2
                total += down[i, j]
        sums[0, i], sums[1, i] = energy, total
    return total_of(sums[0]), total_of(sums[1])


@kernel(parallel=True)
def mean_change(mask, upright, before, after):
    """Root mean square over all edges of how much their step changed, times the smaller ν at both ends."""
    rows, columns = mask.shape
    sums = np.zeros((2, rows))
    for i in prange(rows):
        total, count = 0.0, 0
        for j in range(columns):
            if not mask[i, j]:
                continue
            here = after[i, j] - before[i, j]
            if j + 1 < columns and mask[i, j + 1]:
                change = after[i, j + 1] - before[i, j + 1] - here
                total += (min(upright[i, j], upright[i, j + 1]) * change) ** 2
                count += 1
            if i + 1 < rows and mask[i + 1, j]:
                change = after[i + 1, j] - before[i + 1, j] - here
                total += (min(upright[i, j], upright[i + 1, j]) * change) ** 2
                count += 1
        sums[0, i], sums[1, i] = total, count
    return np.sqrt(total_of(sums[0]) / max(total_of(sums[1]), 1.0))
