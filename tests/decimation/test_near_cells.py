"""Neighbourhoods of points as grids of cells."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from normalmesh.decimation.near_cells import SIZE, NearCells


@given(
    st.integers(0, 10**6),
    st.integers(0, 5),
    st.sampled_from([0.0, 7.9, 8.0, 24.0, 33.0]),
    st.tuples(*[st.integers(1, 70)] * 2),
)
def test_cells_are_those_within_reach_of_a_cell_with_a_point(seed, count, reach, shape):
    rng = np.random.default_rng(seed)
    points = rng.random((count, 2)) * np.array(shape)[::-1]
    near = NearCells.of(points, reach, shape)
    rows, columns = shape[0] // SIZE + 1, shape[1] // SIZE + 1
    expected = np.zeros((rows, columns), bool)
    held = {(int(v // SIZE), int(u // SIZE)) for u, v in points}
    for y in range(rows):
        for x in range(columns):
            expected[y, x] = any(np.hypot(y - i, x - j) <= reach // SIZE for i, j in held)
    assert np.array_equal(near.cells, expected)
    assert near.at(points).all()
    places = rng.random((20, 2)) * np.array(shape)[::-1]
    assert near.at(places).tolist() == [expected[int(v // SIZE), int(u // SIZE)] for u, v in places]


def test_the_far_corner_of_the_screen_has_a_cell():
    near = NearCells.of(np.array([[64.0, 48.0]]), 8.0, (48, 64))
    assert near.at(np.array([[64.0, 48.0], [63.9, 48.0], [0.0, 0.0]])).tolist() == [True, True, False]


def test_a_window_has_the_cells_of_the_screen():
    rng = np.random.default_rng(1)
    near = NearCells.of(rng.random((5, 2)) * [90, 70], 12.0, (70, 90))
    for rows, columns in ((slice(0, 70), slice(0, 90)), (slice(13, 40), slice(8, 77)), (slice(69, 70), slice(5, 6))):
        window = near.window(rows, columns)
        corners = np.stack(
            np.meshgrid(np.arange(columns.start, columns.stop + 1), np.arange(rows.start, rows.stop + 1)), -1
        )
        points = corners.reshape(-1, 2).astype(float)
        assert np.array_equal(window.at(points - [columns.start, rows.start]), near.at(points))
