"""Kernels of :mod:`normalmesh.normals.cleaning`.

``rings`` (H, W) uint8 tells where normals are from: 0 has a measurement, or is outside the mask; k > 0 was extended
from rings below k; :data:`MISSING` has no normal yet.
"""

from normalmesh.normals._camera import facing
from normalmesh.runtime.kernels import inner, kernel

MISSING = 255


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
