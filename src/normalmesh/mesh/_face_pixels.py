"""Kernels that list the foreground pixels of a face: sums over a list take vector instructions, those over rows do not.

A *list* of pixels is an array (LISTED · ROOM,) float32: their normals (X, Y, Z), then their columns and rows (U, V).
"""

import numpy as np

from normalmesh.mesh._raster import row_span
from normalmesh.runtime.kernels import inner

#: Pixels that a list has room for; larger faces are summed in parts. No power of two: those share places in the cache.
ROOM = 1000
#: Where the numbers of the first pixel are in a list.
X, Y, Z, U, V = 0, ROOM, 2 * ROOM, 3 * ROOM, 4 * ROOM
LISTED = 5
#: Sums over lists: vector instructions add in another order.
FAST = {"contract", "reassoc", "nsz"}


@inner(forceinline=True, error_model="numpy")
def list_pixels(edges, row, column, middle_row, end_row, normals, mask, pixels):
    """List the foreground pixels of a face from (row, column) on; their number, and the place to go on from.

    That is (end_row, 0) when there are no more.
    """
    columns = mask.shape[1]
    count = 0
    while row < end_row:
        start, end = row_span(edges, row, middle_row, columns)
        start = max(start, column)
        stop = min(end, start + ROOM - count)
        for place in range(start, stop):
            count = list_pixel(row, place, normals, mask, pixels, count)
        if stop < end:
            return count, row, stop
        row, column = row + 1, 0
    return count, row, 0


@inner(forceinline=True)
def list_pixel(row, column, normals, mask, pixels, count):
    """Write a pixel at the end of a list; the number of pixels, which grows if it is foreground."""
    # With unsigned indices there is no check for negative ones.
    i, j, k = np.uint64(row), np.uint64(column), np.uint64(count)
    pixels[k + np.uint64(X)] = normals[i, j, 0]
    pixels[k + np.uint64(Y)] = normals[i, j, 1]
    pixels[k + np.uint64(Z)] = normals[i, j, 2]
    pixels[k + np.uint64(U)] = column
    pixels[k + np.uint64(V)] = row
    return count + mask[i, j]
