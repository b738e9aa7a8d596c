"""Kernels of :mod:`normalmesh.normals.extension`.

``rings`` (H, W) uint8 tells where normals are from: 0 has a measurement, or is outside the mask; k > 0 was extended
from rings below k; :data:`MISSING` has no normal yet.
"""

from normalmesh.normals._camera import facing
from normalmesh.runtime.kernels import inner, kernel

MISSING = 255
#: Added to the ring of pixels that belong to the region that was entered last or before. Rings are smaller.
ENTERED = 64


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
def leave_out(arrays, rings, rows, members, rim, largest):
    """Take what is too far from measurements out of the mask; return the number of pixels that were extended.

    A region is a set of 8-connected pixels of rings above 0. It stays if it is enclosed by measurements, has no missing
    pixel and at most ``largest`` pixels; of others, the rings up to ``rim`` stay.

    ``rows`` (H,): the pixels of rings above 0 of each row. ``members``: space for all that are not missing.
    """
    mask, extended = arrays.mask, 0
    for i in range(mask.shape[0]):
        if rows[i] == 0:
            continue
        for j in range(mask.shape[1]):
            if rings[i, j] == MISSING:
                mask[i, j] = False
            elif 0 < rings[i, j] < ENTERED:
                count, enclosed = _region(i, j, mask, rings, members)
                deepest = ENTERED if enclosed and count <= largest else rim
                extended += _keep_rings(members[:count], deepest, arrays, rings)
    return extended


@inner
def _region(i, j, mask, rings, members):
    """Write the region of a pixel to ``members``; return the number of its pixels, and whether it is enclosed."""
    rows, columns = mask.shape
    members[0], count, done, enclosed = i * columns + j, 1, 0, True
    rings[i, j] += ENTERED
    while done < count:
        row, column = members[done] // columns, members[done] % columns
        done += 1
        enclosed = enclosed and 0 < row < rows - 1 and 0 < column < columns - 1
        for r in range(max(row - 1, 0), min(row + 2, rows)):
            for c in range(max(column - 1, 0), min(column + 2, columns)):
                if not mask[r, c] or rings[r, c] == MISSING:
                    enclosed = False
                elif 0 < rings[r, c] < ENTERED:
                    rings[r, c] += ENTERED
                    members[count] = r * columns + c
                    count += 1
    return count, enclosed


@inner
def _keep_rings(members, deepest, arrays, rings):
    """Take the members of rings beyond the deepest out of the mask; return the number of the others."""
    kept, columns = 0, rings.shape[1]
    for member in members:
        row, column = member // columns, member % columns
        if rings[row, column] - ENTERED <= deepest:
            kept += 1
        else:
            arrays.mask[row, column] = False
            arrays.normals[row, column, 0] = 0.0
            arrays.normals[row, column, 1] = 0.0
            arrays.normals[row, column, 2] = 0.0
    return kept
