"""Test that normals and heights of the medallion agree."""

import numpy as np

from normalmesh.evaluation.synthetic.medallion import Medallion


def test_slopes_are_those_of_the_height():
    medallion = Medallion(200)
    screen = np.random.default_rng(0).uniform(5, 195, (500, 2))
    _, slope_x, slope_y = medallion.relief(screen)
    step = 1e-6
    to_right, to_top = np.array([step, 0]), np.array([0, -step])
    right = (medallion.relief(screen + to_right)[0] - medallion.relief(screen - to_right)[0]) / (2 * step)
    up = (medallion.relief(screen + to_top)[0] - medallion.relief(screen - to_top)[0]) / (2 * step)
    assert np.allclose(slope_x, right, atol=1e-6)
    assert np.allclose(slope_y, up, atol=1e-6)


def test_nothing_needs_repair():
    medallion = Medallion(100)
    repairs = medallion.normal_map.repairs
    assert (repairs.invalid, repairs.rescaled, repairs.back_facing, repairs.grazing) == (0, 0, 0, 0)
    assert np.array_equal(np.isfinite(medallion.height), medallion.normal_map.mask)
