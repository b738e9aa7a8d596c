"""Fill holes of normal maps."""

import warnings

import numpy as np
import pytest

from meshes import bumpy_map, disc
from normalmesh import NormalMap, NormalMeshWarning, from_gradients
from normalmesh.normals.gradients import slopes_of

ROWS, COLUMNS = np.indices((40, 44))


def with_holes():
    """Return a mask with a round hole, a single missing pixel, a gap that touches the border, and a diagonal gap."""
    mask = np.hypot(ROWS - 20, COLUMNS - 22) > 8
    mask[3, 5] = False
    mask[30:, 2] = False
    mask[[34, 35, 36], [30, 31, 32]] = False
    return mask


def test_paraboloids_are_exact():
    p, q = 0.05 * (COLUMNS - 20) + 0.02 * ROWS, 0.02 * COLUMNS - 0.03 * ROWS
    whole, mask = from_gradients(p, q), with_holes()
    filled = from_gradients(p, q, mask).filled()
    assert filled.mask.sum() == mask.size - 10  # all but the gap at the border
    np.testing.assert_allclose(filled.normals[filled.mask], whole.normals[filled.mask], atol=1e-5)


def test_slopes_are_means_of_their_neighbours():
    normal_map = bumpy_map(ROWS.shape, mask=with_holes())
    filled = normal_map.filled()
    slopes = slopes_of(filled.normals, filled.camera)
    for row, column in np.argwhere(filled.mask & ~normal_map.mask):
        near = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
        mean = np.mean([slopes[place] for place in near if filled.mask[place]], axis=0)
        np.testing.assert_allclose(slopes[row, column], mean, atol=1e-5)
    np.testing.assert_array_equal(filled.normals[normal_map.mask], normal_map.normals[normal_map.mask])


def test_large_holes_may_stay():
    assert bumpy_map(ROWS.shape, mask=with_holes()).filled(largest=5).mask.sum() == with_holes().sum() + 4


def test_a_given_mask_continues_the_foreground():
    inner, outer = disc(40, 12), disc(40, 18)
    outer[0, 0] = True
    with pytest.warns(NormalMeshWarning, match="1 pixels of the mask are not connected"):
        filled = bumpy_map((40, 40), mask=inner).filled(outer)
    np.testing.assert_array_equal(filled.mask, disc(40, 18))


def test_without_holes_nothing_changes():
    normal_map = bumpy_map(mask=np.ones((24, 26), bool))
    assert normal_map.filled() is normal_map


def test_no_second_warning():
    grazing = np.broadcast_to(np.array([1.0, 0.0, 0.02]), (*ROWS.shape, 3))
    with pytest.warns(NormalMeshWarning, match="clamped"):
        normal_map = NormalMap(grazing, with_holes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        normal_map.filled()
