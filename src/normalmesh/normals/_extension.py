"""Kernels of :mod:`normalmesh.normals.cleaning`.

``rings`` (H, W) uint8 tells where normals are from: 0 has a measurement, or is outside the mask; k > 0 was extended
from rings below k; :data:`MISSING` has no normal yet.
"""

from typing import NamedTuple

import numpy as np

from normalmesh.normals._camera import facing
from normalmesh.runtime.kernels import inner, kernel

MISSING = 255
#: Added to the ring of a pixel at the border of its region that is not enclosed by measurements. Rings are smaller.
OPEN = 64


class WindowPlace(NamedTuple):
    """A part of a window of an image."""

    top: int  # row and
    left: int  # column of the first pixel of the window in the image
    first_row: int  # of the part, in rows of the window
    last_row: int  # not in the part
    first_column: int
    last_column: int
    width: int  # columns of the image


@kernel
def mark_missing(first, last, arrays, rings):
    """Set rows of ``rings``, which are zero, to ``MISSING`` where the mask has no normal."""
    normals, mask = arrays.normals, arrays.mask
    for i in range(first, last):
        for j in range(mask.shape[1]):
            if mask[i, j] and normals[i, j, 0] == 0 and normals[i, j, 1] == 0 and normals[i, j, 2] == 0:
                rings[i, j] = MISSING


@kernel
def extend_ring(first, last, arrays, rings, ring, missing, top, left):
    """Give missing pixels next to lower rings the mean normal of these neighbours, at most 85° from the viewing ray.

    ``missing`` (H,) counts the missing pixels of each row. ``top`` and ``left``: row and column of the first pixel in
    the image of the camera. Threads read only pixels that none of them writes.
    """
    normals = arrays.normals
    for i in range(first, last):
        if missing[i] == 0:
            continue
        for j in range(rings.shape[1]):
            if rings[i, j] != MISSING:
                continue
            x, y, z, found = _sum_of_neighbours(i, j, arrays, rings, ring)
            if found:
                x, y, z = facing(x, y, z, left + j + 0.5, top + i + 0.5, arrays.camera)
                normals[i, j, 0], normals[i, j, 1], normals[i, j, 2] = x, y, z
                rings[i, j] = ring
                missing[i] -= 1


@inner
def _sum_of_neighbours(i, j, arrays, rings, ring):
    """Return the sum of the normals of the 3 × 3 neighbours in lower rings, and whether there are any."""
    normals, mask = arrays.normals, arrays.mask
    x, y, z, found = 0.0, 0.0, 0.0, False
    for row in range(max(i - 1, 0), min(i + 2, mask.shape[0])):
        for column in range(max(j - 1, 0), min(j + 2, mask.shape[1])):
            if mask[row, column] and rings[row, column] < ring:
                x += normals[row, column, 0]
                y += normals[row, column, 1]
                z += normals[row, column, 2]
                found = True
    return x, y, z, found


@kernel
def list_extended(mask, rings, missing, place, rows, numbers, depths):
    """List the extended pixels of a window, and take those that are missing out of its mask; return how many it lists.

    ``missing`` (h,): pixels without a measurement in each row; ``rows``: those of the image. ``numbers`` (n,): pixels
    of the image, row by row; ``depths`` (n,): their rings, plus :data:`OPEN` beside background or the image's border.
    """
    count, bottom, right = 0, rows - 1 - place.top, place.width - 1 - place.left
    for i in range(place.first_row, place.last_row):
        if missing[i] == 0:
            continue
        for j in range(place.first_column, place.last_column):
            if rings[i, j] == MISSING:
                mask[i, j] = False
            elif rings[i, j] > 0:
                border = i == -place.top or i == bottom or j == -place.left or j == right
                numbers[count] = (place.top + i) * place.width + place.left + j
                depths[count] = rings[i, j] + (OPEN if border or _is_beside_nothing(i, j, mask, rings) else 0)
                count += 1
    return count


@inner
def _is_beside_nothing(i, j, mask, rings):
    """Return whether one of the 3 × 3 neighbours, all of them inside the window, is no foreground."""
    for row in range(i - 1, i + 2):
        for column in range(j - 1, j + 2):
            if not mask[row, column] or rings[row, column] == MISSING:
                return True
    return False


@kernel
def leaving_pixels(numbers, depths, width, rim, largest, parents, sizes):
    """Return which extended pixels (n,) are too far from measurements to stay.

    A region is a set of 8-connected extended pixels. It stays if it is enclosed by measurements and has at most
    ``largest`` pixels; of others, the rings up to ``rim`` stay. ``numbers`` ascend; ``parents`` and ``sizes`` (n,) are
    scratch.
    """
    _join_neighbours(numbers, width, parents)
    sizes[:] = 0
    for k in range(len(numbers)):
        root = parents[k] = parents[parents[k]]  # roots come first, and were shortened before
        if depths[k] >= OPEN:
            sizes[root] = -1
        elif sizes[root] >= 0:
            sizes[root] += 1
    leaves = np.zeros(len(numbers), np.bool_)
    for k in range(len(numbers)):
        size = sizes[parents[k]]
        leaves[k] = depths[k] % OPEN > rim and not 0 < size <= largest
    return leaves


@inner
def _join_neighbours(numbers, width, parents):
    """Join each pixel with its neighbours; ``parents`` (n,): a pixel before it of the same region, or itself."""
    above = 0
    for k in range(len(numbers)):
        number, column = numbers[k], numbers[k] % width
        parents[k] = k
        if column > 0 and k > 0 and numbers[k - 1] == number - 1:
            _join_regions(k, k - 1, parents)
        first, last = number - width - (column > 0), number - width + (column < width - 1)
        while numbers[above] < first:
            above += 1
        beside = above
        while numbers[beside] <= last:
            _join_regions(k, beside, parents)
            beside += 1


@inner
def _join_regions(one, other, parents):
    """Join two regions: the pixel that comes first is their root."""
    while parents[one] != one:
        parents[one] = parents[parents[one]]
        one = parents[one]
    while parents[other] != other:
        parents[other] = parents[parents[other]]
        other = parents[other]
    parents[max(one, other)] = min(one, other)
