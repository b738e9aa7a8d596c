"""Kernel of :mod:`normalmesh.facets`."""

import numpy as np

from normalmesh._kernels import kernel


@kernel
def laplacian(pairs, weights, count):
    """Laplacian of the graph whose edges join pairs (E, 2) of so many nodes: CSR arrays, columns ascending."""
    indptr = np.zeros(count + 1, np.int32)
    for e in range(weights.size):
        indptr[pairs[e, 0] + 1] += 1
        indptr[pairs[e, 1] + 1] += 1
    for f in range(count):
        indptr[f + 1] += indptr[f] + 1
    indices, values = np.empty(indptr[count], np.int32), np.empty(indptr[count])
    # A row begins with its diagonal, and grows as its edges come.
    end, total = np.empty(count, np.int32), np.zeros(count)
    for f in range(count):
        indices[indptr[f]] = f
        end[f] = indptr[f] + 1
    for e in range(weights.size):
        for side in range(2):
            row, column = pairs[e, side], pairs[e, 1 - side]
            place = end[row]
            while place > indptr[row] and indices[place - 1] > column:
                indices[place], values[place] = indices[place - 1], values[place - 1]
                place -= 1
            indices[place], values[place] = column, -weights[e]
            end[row] += 1
            total[row] += weights[e]
    for f in range(count):
        for place in range(indptr[f], indptr[f + 1]):
            if indices[place] == f:
                values[place] = total[f]
    return values, indices, indptr
