"""Kernels that list the foreground pixels of a face: sums over a list take vector instructions, those over rows do not.

A *list* of pixels is an array (LIST_SIZE,) float32: their normals (X, Y, Z), then their columns and rows (U, V).
"""

import numpy as np

from normalmesh.mesh._raster import row_span
from normalmesh.runtime.kernels import inner

#: Pixels that a list can hold; larger faces are summed in parts. Powers of two would share places in the cache.
CAPACITY = 1000
#: Offsets of the numbers of the first pixel in a list.
X, Y, Z, U, V = 0, CAPACITY, 2 * CAPACITY, 3 * CAPACITY, 4 * CAPACITY
#: Numbers in a list.
LIST_SIZE = 5 * CAPACITY


@inner(forceinline=True)
def list_pixels(edges, row, column, middle_row, end_row, normals, mask, pixels):
    """List the foreground pixels of a face from (row, column) on; return their number, and where to continue.

    There are no more pixels if that is (end_row, 0).
    """
    columns = mask.shape[1]
    count = 0
    while row < end_row:
        start, end = row_span(edges, row, middle_row, columns)
        start = max(start, column)
        stop = min(end, start + CAPACITY - count)
        for place in range(start, stop):
            count = list_pixel(row, place, normals, mask, pixels, count)
        if stop < end:
            return count, row, stop
        row, column = row + 1, 0
    return count, row, 0


@inner(forceinline=True)
def list_pixel(row, column, normals, mask, pixels, count):
    """Write a pixel at the end of a list; return the number of pixels, which grows if the pixel is foreground."""
    # With unsigned indices there is no check for negative ones.
    i, j, k = np.uint64(row), np.uint64(column), np.uint64(count)
    pixels[k + np.uint64(X)] = normals[i, j, 0]
    pixels[k + np.uint64(Y)] = normals[i, j, 1]
    pixels[k + np.uint64(Z)] = normals[i, j, 2]
    pixels[k + np.uint64(U)] = column
    pixels[k + np.uint64(V)] = row
    return count + mask[i, j]
