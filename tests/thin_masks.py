"""Masks with thin parts and narrow gaps, which a decimation could lose."""

import numpy as np
from scipy import ndimage


def comb(side, tooth, gap):
    """Return a comb: one row, and columns with gaps between them."""
    mask = np.zeros((side, side), np.bool_)
    mask[:, np.arange(side) % (tooth + gap) < tooth] = True
    mask[:tooth] = True
    return mask


def spiral(side, line, gap):
    """Return a line that winds inwards around itself."""
    mask = np.zeros((side, side), np.bool_)
    position, direction, step = np.zeros(2, int), np.array([0, 1]), line + gap
    lengths = [side - line, side - line, side - line]
    while lengths[-1] - step > step:
        lengths += [lengths[-1] - step] * 2
    for length in lengths:
        end = position + length * direction
        (top, left), (bottom, right) = np.minimum(position, end), np.maximum(position, end)
        mask[top : bottom + line, left : right + line] = True
        position, direction = end, np.array([direction[1], -direction[0]])
    return mask


def dust(side, size, count, seed=0):
    """Return squares at random places."""
    mask = np.zeros((side, side), np.bool_)
    for i, j in np.random.default_rng(seed).integers(0, side - size, (count, 2)):
        mask[i : i + size, j : j + size] = True
    return mask


def filigree(side, width, seed=0):
    """Return the curved lines along which a smooth random function is near zero."""
    noise = ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=(side, side)), 4)
    return np.abs(noise) < width * noise.std()


#: Masks of which half a per cent at most may be lost.
THIN_MASKS = {
    "comb": comb(96, 1, 1),
    "coarse comb": comb(128, 9, 9),
    "spiral": spiral(80, 1, 1),
    "wide spiral": spiral(120, 4, 3),
    "dust": dust(100, 2, 60),
    "specks": dust(140, 6, 30),
    "porous": np.random.default_rng(0).random((80, 80)) > 0.3,
    "filigree": filigree(120, 0.2),
    "checkerboard": np.indices((40, 40)).sum(axis=0) % 2 == 0,
}
