"""Kernel of :mod:`normalmesh.solvers.selected_inverse`."""

from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Float, Int
from normalmesh.runtime.kernels import inner, kernel
from normalmesh.solvers._fronts import padded, pivot_column


class Inverses(NamedTuple):
    """Inverses of fronts, (k + b, k + b) each, of which ``place`` (B,) is where they begin among ``numbers``."""

    place: Int
    numbers: Float


@inner
def add_multiple(target, factor, source):
    """Add a multiple of one row to another."""
    for i in range(target.size):
        target[i] += factor * source[i]


@inner
def scalar_product(one, other):
    """Return the scalar product of two rows, in four partial sums."""
    v, w, x, y = 0.0, 0.0, 0.0, 0.0
    whole = one.size & ~3
    for i in range(0, whole, 4):
        v += one[i] * other[i]
        w += one[i + 1] * other[i + 1]
        x += one[i + 2] * other[i + 2]
        y += one[i + 3] * other[i + 3]
    for i in range(whole, one.size):
        v += one[i] * other[i]
    return (v + w) + (x + y)


@inner
def fill_quotients(panel, lead, k, quotients):
    """Fill ``quotients`` (k, k + b) with U⁻¹ of the own columns and U⁻¹ times the border's, from a panel of U.

    Both follow row by row from below.
    """
    for j in range(k - 1, -1, -1):
        row = quotients[j]
        for i in range(k):
            row[i] = 0.0
        row[j] = 1.0
        for i in range(k, row.size):
            row[i] = panel[j, lead + i]
        for i in range(j + 1, k):
            add_multiple(row[j + 1 :], -panel[j, lead + i], quotients[i, j + 1 :])
        scale = 1.0 / panel[j, lead + j]
        for i in range(j, row.size):
            row[i] *= scale


@inner
def invert_front(quotients, k, inverse, products):
    """Fill the own rows and columns of an inverse (k + b, k + b) whose border (b, b) is known.

    With the quotients V = U₁₁⁻¹ and W = U₁₁⁻¹ U₁₂, the own rows are V Vᵀ + W X Wᵀ and −W X, X being the border.
    ``products`` (k, b) is a work array.
    """
    width = inverse.shape[0]
    for j in range(k):
        product = products[j]
        for i in range(product.size):
            product[i] = 0.0
        for i in range(width - k):
            add_multiple(product, quotients[j, k + i], inverse[k + i, k:])
        for i in range(width - k):
            inverse[j, k + i] = inverse[k + i, j] = -product[i]
    for j in range(k):
        for i in range(j, k):
            own = scalar_product(quotients[j, i:k], quotients[i, i:k])
            inverse[j, i] = inverse[i, j] = own + scalar_product(products[j], quotients[i, k:])


@kernel
def invert_fronts(first, last, chosen, elimination, storage, inverses, diagonal):
    """Fill the inverses of chosen blocks (C,), whose parents' inverses are known, and the diagonal (n,) there."""
    blocks, tree, column = elimination.blocks, elimination.tree, elimination.assembly.column
    border = tree.border
    for q in range(first, last):
        s = chosen[q]
        k, begin, b = blocks.stop[s] - blocks.start[s], border[s], border[s + 1] - border[s]
        lead, width = pivot_column(k), k + b
        panel = storage.panels[storage.panel_at[s] : storage.panel_at[s + 1]].reshape(k, lead + k + padded(b))
        place = inverses.place[s]
        inverse = inverses.numbers[place : place + width * width].reshape(width, width)
        if b > 0:
            p = tree.parent[s]
            wide = blocks.stop[p] - blocks.start[p]
            shift = pivot_column(wide)
            wide += border[p + 1] - border[p]
            above = inverses.numbers[inverses.place[p] : inverses.place[p] + wide * wide].reshape(wide, wide)
            for j in range(b):
                row = above[column[begin + j] - shift]
                for i in range(b):
                    inverse[k + j, k + i] = row[column[begin + i] - shift]
        quotients, products = np.empty((k, width)), np.empty((k, b))
        fill_quotients(panel, lead, k, quotients)
        invert_front(quotients, k, inverse, products)
        for j in range(k):
            diagonal[blocks.order[blocks.start[s] + j]] = inverse[j, j]
