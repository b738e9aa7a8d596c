"""Kernels of :mod:`normalmesh.normals.normal_map`."""

import math
from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Bool, Float32
from normalmesh.normals._camera import CLAMP_COSINE, change_of_depth, steepest, to_viewer
from normalmesh.normals.camera import CameraArrays
from normalmesh.runtime.kernels import inner, kernel

#: Columns of the counts of :func:`clean_normals`.
INVALID, RESCALED, BACK_FACING, GRAZING, UNRESOLVED = range(5)
#: Largest relative change of the depth of a pinhole camera from the centre of a pixel to a corner that meshes follow.
MAX_CHANGE = 0.25


class NormalMapArrays(NamedTuple):
    """The arrays of a :class:`.normal_map.NormalMap`, as kernels take them."""

    normals: Float32  # (H, W, 3) of unit length, zero outside the mask
    mask: Bool  # (H, W)
    camera: CameraArrays


class MaskWindow(NamedTuple):
    """The mask of an image, or of a window of one."""

    mask: Bool  # (H, W)
    top: int  # row and
    left: int  # column of the first pixel in the image of the camera


@inner
def nearest_pixel(mask, u, v):
    """Return row and column of the foreground pixel whose centre is nearest to (u, v), the first of equally near ones.

    Only the 5 × 5 pixels around the one under (u, v) are considered; (−1, −1) if none of them is foreground.
    """
    row, column = int(math.floor(v)), int(math.floor(u))
    if 0 <= row < mask.shape[0] and 0 <= column < mask.shape[1] and mask[row, column]:
        return row, column
    nearest_row, nearest_column, least = -1, -1, np.inf
    for i in range(max(row - 2, 0), min(row + 3, mask.shape[0])):
        for j in range(max(column - 2, 0), min(column + 3, mask.shape[1])):
            squared = (j + 0.5 - u) ** 2 + (i + 0.5 - v) ** 2
            if mask[i, j] and squared < least:
                nearest_row, nearest_column, least = i, j, squared
    return nearest_row, nearest_column


@inner(forceinline=True)
def normal_at(normals, row, column):
    """Return the normal of a pixel as three float64."""
    return np.float64(normals[row, column, 0]), np.float64(normals[row, column, 1]), np.float64(normals[row, column, 2])


@kernel
def sample_lengths(given, mask, step, lengths):
    """Write the lengths of every ``step``-th vector of the mask that is finite and not zero; return their number."""
    count = seen = 0
    for i in range(mask.shape[0]):
        for j in range(mask.shape[1]):
            if mask[i, j]:
                seen += 1
                if seen % step == 0:
                    length = _length(given, i, j)
                    if 0.0 < length < np.inf:
                        lengths[count] = length
                        count += 1
    return count


@inner
def _length(given, i, j):
    """Return the length of a vector; NaN or infinite if a component is."""
    x, y, z = normal_at(given, i, j)
    # Dividing by the largest component first keeps the squares of tiny and huge vectors in range.
    largest = max(abs(x), abs(y), abs(z))
    if largest == 0.0 or not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        return abs(x) + abs(y) + abs(z)
    return largest * math.sqrt((x / largest) ** 2 + (y / largest) ** 2 + (z / largest) ** 2)


@kernel
def clean_normals(first, last, given, window, camera, shortest, normals, counts):
    """Fill rows of ``normals`` (H, W, 3) with unit normals, clamped where they are grazing; zero where there is none.

    A vector that is not finite, not longer than ``shortest`` or turned away from the viewer is no measurement. Counts
    those that are (invalid, rescaled, back-facing, grazing, unresolved) in each row of the mask: ``counts`` (H, 5),
    zero before. ``window``: :class:`MaskWindow`.
    """
    mask = window.mask
    for i in range(first, last):
        for j in range(mask.shape[1]):
            normals[i, j, 0] = normals[i, j, 1] = normals[i, j, 2] = 0.0
            if not mask[i, j]:
                continue
            length = _length(given, i, j)
            if not shortest < length < np.inf:
                counts[i, INVALID] += 1
                continue
            x, y, z = normal_at(given, i, j)
            x, y, z = x / length, y / length, z / length
            u, v = window.left + j + 0.5, window.top + i + 0.5
            ray_x, ray_y, ray_z = to_viewer(u, v, camera)
            cosine = x * ray_x + y * ray_y + z * ray_z
            if cosine <= 0.0:
                counts[i, BACK_FACING] += 1
                continue
            if abs(length - 1.0) > 0.02:
                counts[i, RESCALED] += 1
            # The margin lets normals that were clamped and rounded to float32 pass unchanged.
            if cosine < CLAMP_COSINE - 1e-6:
                limit, sine = steepest(ray_x, ray_y, ray_z, camera)
                if cosine < limit - 1e-6:
                    counts[i, GRAZING] += 1
                    x, y, z = x - cosine * ray_x, y - cosine * ray_y, z - cosine * ray_z
                    scale = sine / math.sqrt(x * x + y * y + z * z)
                    x, y, z = limit * ray_x + scale * x, limit * ray_y + scale * y, limit * ray_z + scale * z
            normals[i, j, 0], normals[i, j, 1], normals[i, j, 2] = x, y, z
            if change_of_depth(x, y, z, u, v, camera) > MAX_CHANGE:
                counts[i, UNRESOLVED] += 1


@kernel
def count_clamped(arrays, labels, counts):
    """Count the pixels of each component, and those whose normal is as steep as it may be.

    ``labels`` (H, W) number the components from 1; ``counts`` (N + 1, 2), zero before.
    """
    normals, mask, camera = arrays.normals, arrays.mask, arrays.camera
    for i in range(mask.shape[0]):
        for j in range(mask.shape[1]):
            if not mask[i, j]:
                continue
            counts[labels[i, j], 0] += 1
            x, y, z = normal_at(normals, i, j)
            ray_x, ray_y, ray_z = to_viewer(j + 0.5, i + 0.5, camera)
            cosine = x * ray_x + y * ray_y + z * ray_z
            if cosine < CLAMP_COSINE + 1e-6 and cosine < steepest(ray_x, ray_y, ray_z, camera)[0] + 1e-6:
                counts[labels[i, j], 1] += 1
