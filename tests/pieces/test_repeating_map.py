"""Test windows of maps that repeat, and of the map without its noise, beyond the sides."""

import numpy as np
import pytest

from normalmesh import add_noise
from normalmesh.mesh.repeats import Repeats, wrapped
from normalmesh.normals.noise import MapNoise, Noise, without_noise
from normalmesh.pieces.clean_map import CleanMap
from normalmesh.pieces.mask_components import find_components
from normalmesh.pieces.repeating_map import RepeatingMap, limits_of
from periodic_maps import map_of_slopes, waves
from task_loop import Loop

SHAPE = (70, 90)


@pytest.fixture(scope="module")
def normal_map():
    """Return a noisy map with a hole in a corner and one at a side."""
    mask = np.ones(SHAPE, bool)
    mask[:9, -12:] = mask[30:40, :5] = False
    return add_noise(map_of_slopes(*waves(SHAPE)[1:], mask), degrees=5)


@pytest.mark.parametrize("window", [(-20, 5, 30, 100), (60, -90, 140, 10), (3, 4, 50, 60), (-7, -8, 77, 98)])
def test_windows_go_on_at_the_opposite_side(window, normal_map):
    top, left, bottom, right = window
    rows, columns = np.arange(top, bottom) % SHAPE[0], np.arange(left, right) % SHAPE[1]
    repeating = RepeatingMap(normal_map, Repeats.of(True, SHAPE))
    found = repeating.window(slice(top, bottom), slice(left, right))
    assert np.array_equal(found.normals, normal_map.normals[np.ix_(rows, columns)])
    assert np.array_equal(found.mask, normal_map.mask[np.ix_(rows, columns)])
    assert np.array_equal(repeating.mask_window(slice(top, bottom), slice(left, right)), found.mask)


@pytest.mark.parametrize("tileable", [True, "x", "y"])
def test_windows_without_noise_are_those_in_memory(tileable, normal_map):
    repeats, noise = Repeats.of(tileable, SHAPE), MapNoise((Noise(5.0, 0.0),), (normal_map.foreground,))
    whole = without_noise(normal_map, noise, wrapped=wrapped(repeats))
    clean = CleanMap(normal_map, find_components(normal_map, Loop(), 32), noise, repeats=repeats)
    for rows, columns in ((slice(0, 20), slice(60, 90)), (slice(40, 70), slice(0, 33)), (slice(0, 70), slice(0, 90))):
        # In memory, normals are scaled to unit length once more.
        np.testing.assert_allclose(clean.window(rows, columns).normals, whole.normals[rows, columns], atol=1e-7)


def test_a_window_without_foreground(normal_map):
    repeating = RepeatingMap(normal_map, Repeats.of("x", SHAPE))
    assert repeating.window(slice(1, 5), slice(-8, 0)) is None
    limits = limits_of(repeating)
    assert (limits.top, limits.left, limits.bottom, limits.right) == (0, -90, 70, 180)
