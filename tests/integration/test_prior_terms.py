"""Check that three points on a face have the same sum of squares as many, up to a constant."""

import numpy as np
import pytest

from normalmesh.integration.prior_terms import thinned


def form(faces, feet, values, weights, face):
    """Return matrix (3, 3) and vector (3,) of the sum of squares over the linear functions on a face."""
    own = faces == face
    basis = np.column_stack([feet[own], np.ones(own.sum())])
    return basis.T @ (weights[own, None] * basis), basis.T @ (weights[own] * values[own])


@pytest.mark.parametrize("width", [1.0, 1e-4, 0.0], ids=["wide", "thin", "line"])
def test_sums_of_squares_stay(width):
    rng = np.random.default_rng(0)
    faces = rng.permutation(np.repeat([7, 2, 5, 9], [40, 4, 3, 1]))
    along = rng.random((len(faces), 2)) * [30, 30 * width]
    feet = 100 + along @ np.array([[0.8, 0.6], [-0.6, 0.8]])
    values, weights = 1e4 + rng.normal(size=len(faces)), rng.random(len(faces)) + 0.1
    few = thinned(faces, feet, values, weights)
    assert np.bincount(few[0]).tolist() == [0, 0, 3, 0, 0, 3, 0, 3, 0, 1]
    for face in (7, 2, 5, 9):
        for found, expected in zip(form(*few, face), form(faces, feet, values, weights, face), strict=True):
            assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()


def test_few_points_stay_as_they_are():
    given = np.array([3, 3, 1, 3]), np.arange(8.0).reshape(4, 2), np.arange(4.0), np.ones(4)
    assert all(np.array_equal(one, other) for one, other in zip(thinned(*given), given, strict=True))


def test_points_at_one_place():
    faces, feet, values = np.zeros(5, np.int32), np.full((5, 2), 3.25), np.arange(5.0)
    _, places, heights, weights = thinned(faces, feet, values, np.ones(5))
    assert np.array_equal(places, np.full((3, 2), 3.25))
    assert np.array_equal(heights, np.full(3, 2.0))
    assert weights.sum() == pytest.approx(5)
