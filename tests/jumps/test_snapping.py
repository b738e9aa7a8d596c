"""Lines that are moved onto the pixel sides across which normals differ."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normalmesh import NormalMap
from normalmesh.jumps._snapping import unit_steps
from normalmesh.jumps.snapping import MIN_LENGTH, WIDTH, Snapper, cells_of, long_enough


def two_planes(boundary, rows=40, columns=50, tilt=0.8, mask=None):
    """Return a map whose normals lean to the left in the columns before ``boundary`` (rows,), to the right behind."""
    left = np.arange(columns) < np.asarray(boundary)[:, None]
    normals = np.stack([np.where(left, -tilt, tilt), np.zeros_like(left), np.ones_like(left)], axis=-1)
    assert normals.shape == (rows, columns, 3)
    return NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True), mask)


def staircase(boundary):
    """Return the pixel corners (P, 2) along a boundary, from its top to its bottom."""
    points = [(int(boundary[0]), 0)]
    for row, column in enumerate(boundary):
        while points[-1][0] != column:
            points.append((points[-1][0] + int(np.sign(column - points[-1][0])), row))
        points.append((int(column), row + 1))
    return np.array(points)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_path_along_a_contrast_is_found_exactly(reverse):
    boundary = 25 + np.repeat([0, 1, 1, 0, -1, -2, -1, 0], 5)
    expected = staircase(boundary)
    guess = np.array([[25, 0], [25, 20], [24, 30], [25, 40]])
    assert np.abs(boundary - 25).max() <= WIDTH
    snapper = Snapper(cells_of(two_planes(boundary)))
    for _ in range(2):  # the work arrays are clean again
        (path,) = snapper.paths(guess[::-1] if reverse else guess)
        assert np.array_equal(path[::-1] if reverse else path, expected)


def test_a_path_stays_near_its_line():
    guess = np.array([[20, 0], [20, 40]])
    (path,) = Snapper(cells_of(two_planes(np.full(40, 20 + WIDTH)))).paths(guess)
    assert np.count_nonzero(path[:, 0] == 20 + WIDTH) > 30
    (path,) = Snapper(cells_of(two_planes(np.full(40, 20 + WIDTH + 1)))).paths(guess)
    assert (path[:, 0] == 20).all()
    assert np.array_equal(path[[0, -1]], guess)


def test_background_bars_the_way():
    mask = np.ones((40, 50), bool)
    mask[18:22, 15:35] = False
    snapper = Snapper(cells_of(two_planes(np.full(40, 25), mask=mask)))
    assert list(snapper.paths(np.array([[25, 0], [25, 40]]))) == []
    # A way around a hole is taken if it is near enough.
    mask[:, :] = True
    mask[18:22, 24:26] = False
    (path,) = Snapper(cells_of(two_planes(np.full(40, 25), mask=mask))).paths(np.array([[25, 0], [25, 40]]))
    beside = path[(path[:, 1] > 18) & (path[:, 1] < 22)]
    assert (np.abs(beside[:, 0] - 25) == 2).all()


def test_a_loop_becomes_two_paths():
    inside = np.zeros((40, 50), bool)
    inside[10:30, 15:35] = True
    normals = np.where(inside[..., None], [0.6, 0.0, 0.8], [-0.6, 0.0, 0.8])
    loop = np.array([[15, 10], [35, 10], [35, 30], [15, 30], [15, 10]])
    paths = list(Snapper(cells_of(NormalMap(normals))).paths(loop))
    assert len(paths) == 2
    around = np.concatenate([paths[0], paths[1][1:]])
    assert np.array_equal(around, unit_steps(loop))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=6))
def test_unit_steps_lead_from_point_to_point(points):
    points = np.array(points)
    line = unit_steps(points)
    assert np.array_equal(line[[0, -1]], points[[0, -1]])
    assert (np.abs(np.diff(line, axis=0)).max(axis=1, initial=0) <= 1).all()
    at = 0
    for start, end in pairwise(points):
        count = np.abs(end - start).max()
        ideal = start + np.arange(count + 1)[:, None] / max(count, 1) * (end - start)
        assert np.abs(line[at : at + count + 1] - ideal).max() <= 1
        at += count
    assert at == len(line) - 1


def test_connected_paths_are_long_enough_together():
    def straight(u, first, last):
        return np.array([[u, v] for v in range(first, last + 1)])

    whole = straight(5, 0, MIN_LENGTH)
    parts = [straight(9, 0, 2), straight(9, 2, MIN_LENGTH)]
    short = straight(20, 0, MIN_LENGTH - 1)
    # It touches another path, but not at its end.
    aside = np.array([[5 + k, 2] for k in range(3)])
    assert long_enough([whole, *parts, short, aside]).tolist() == [True, True, True, False, False]
    assert long_enough([]).tolist() == []
