"""Components that are found tile by tile are those of the whole mask."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from normalmesh import NormalMap
from normalmesh.integration.pixel_jumps import pixel_parts
from normalmesh.mesh.jumps import JumpLine
from normalmesh.normals.mask_labels import component_labels
from normalmesh.pieces.map_windows import Window
from normalmesh.pieces.mask_components import find_components, groups_of
from task_loop import Loop


def map_of(mask):
    return NormalMap(np.tile([0.0, 0.0, 1.0], (*mask.shape, 1)), mask)


def check_whole(found, expected):
    """Check areas and rectangles of components with these labels."""
    assert found.areas.tolist() == np.bincount(expected[expected > 0], minlength=expected.max() + 1)[1:].tolist()
    for number in range(found.count):
        rows, columns = np.nonzero(expected == number + 1)
        assert found.rectangle_of(number) == Window(rows.min(), columns.min(), rows.max() + 1, columns.max() + 1)


@given(arrays(bool, (24, 31), elements=st.booleans()), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_labels_of_all_windows_are_those_of_the_whole_mask(mask, seed):
    mask[5, 7] = True
    normal_map = map_of(mask)
    expected, count = component_labels(mask)
    found = find_components(normal_map, Loop(), 8)
    assert found.count == count
    check_whole(found, expected)
    rng = np.random.default_rng(seed)
    for _ in range(4):
        (top, bottom), (left, right) = (sorted(rng.choice(n + 1, 2, replace=False).tolist()) for n in mask.shape)
        labels = found.labels(Window(top, left, bottom, right))
        assert np.array_equal(labels, expected[top:bottom, left:right])


@pytest.mark.parametrize("side", [8, 16, 64])
def test_lines_separate_parts_across_tiles(side):
    mask = np.ones((40, 40), bool)
    mask[10:20, 25:28] = False
    loop = [[u, 8] for u in range(6, 30)] + [[30, v] for v in range(8, 33)]
    loop += [[u, 32] for u in range(29, 5, -1)] + [[6, v] for v in range(31, 7, -1)]
    across = [[16, v] for v in range(41)]
    lines = tuple(JumpLine(np.array(path), 1.0, 1.0) for path in (loop, across))
    expected = pixel_parts(mask, lines)
    found = find_components(map_of(mask), Loop(), side, lines)
    assert found.count == expected.max() > 3
    check_whole(found, expected)
    for window in (Window(0, 0, 40, 40), Window(3, 5, 17, 33), Window(15, 12, 25, 18)):
        assert np.array_equal(found.labels(window), expected[window.rows, window.columns])


def test_groups_are_components_of_one_tile():
    mask = np.zeros((64, 64), bool)
    for top, left in ((2, 3), (9, 20), (30, 30), (50, 10), (40, 59)):
        mask[top : top + 4, left : left + 4] = True
    found = find_components(map_of(mask), Loop(), 32)
    groups, large = groups_of(found, 1, 32)
    assert large == []
    assert sorted(number for _, numbers in groups.values() for number in numbers) == list(range(5))
    assert groups["tile_0_0"] == (Window(0, 0, 13, 24), [0, 1])
    assert groups["component_2"] == (Window(24, 24, 34, 34), [2])
