"""Lights in another order than the photographs: found, and not suspected where the order is right."""

import numpy as np
import pytest

from normalmesh.evaluation.synthetic.analytic import sphere
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.photometric.photometric_checks import _gains, _residuals, doubts_about_order
from rti_files import dome

LIGHTS = dome(16, 35)


def seen(normals, lights, kind="", seed=0):
    """Values (K, P) of the pixels that all lights reach."""
    generator = np.random.default_rng(seed)
    values = np.maximum(lights @ normals.T, 0) * (0.3 + 0.5 * generator.random(len(normals)))
    if "noise" in kind:
        values += generator.normal(0, 0.02, values.shape)
    if "highlights" in kind:
        halfway = lights + np.array([0, 0, 1])
        values += 0.5 * np.maximum(halfway / np.linalg.norm(halfway, axis=1, keepdims=True) @ normals.T, 0) ** 40
    if "shadows" in kind:
        values = np.where(generator.random(values.shape) < 0.1, 0.15 * values, values)
    if "intensities" in kind:
        values *= generator.uniform(0.7, 1.3, len(lights))[:, None]
    if "gamma" in kind:
        values = np.maximum(values, 0) ** (1 / 2.2)
    return values[:, (values > 0).all(axis=0)]


def normals_of(truth):
    return truth.normals[truth.mask].astype(float)


BALL, COIN = normals_of(sphere(48).normal_map), normals_of(Medallion(64).normal_map)


def doubt(values, lights, natural=None):
    return " ".join(doubts_about_order(values, lights, natural))


@pytest.mark.parametrize("kind", ["", "noise", "highlights", "shadows", "shadows noise", "intensities", "gamma"])
@pytest.mark.parametrize("normals", [BALL, COIN], ids=["ball", "coin"])
def test_no_doubt_about_the_right_order(normals, kind):
    for seed in range(3):
        generator = np.random.default_rng(seed)
        scattered = np.column_stack([generator.uniform(-0.8, 0.8, (9, 2)), np.ones(9)])
        ring = np.array([[np.cos(turn), np.sin(turn), 1.5] for turn in np.arange(6) * np.pi / 3])
        for lights in (LIGHTS, dome(48, 25), scattered, ring):
            units = lights / np.linalg.norm(lights, axis=1, keepdims=True)
            assert doubt(seen(normals, units, kind, seed), units) == ""
            # Nor if directions are known to some degrees only.
            blurred = units + generator.normal(0, 0.03, units.shape)
            assert doubt(seen(normals, units, kind, seed), blurred / np.linalg.norm(blurred, axis=1)[:, None]) == ""


@pytest.mark.parametrize("kind", ["", "noise"])
def test_common_mistakes_are_named(kind):
    values = seen(BALL, LIGHTS, kind)
    places = np.arange(16)
    assert "with the lights in reverse" in doubt(values, LIGHTS[::-1])
    assert "with the lights shifted by 3" in doubt(values, np.roll(LIGHTS, -3, axis=0))
    places[[2, 11]] = places[[11, 2]]
    assert "the lights 3 and 12 swapped" in doubt(values, LIGHTS[places])
    alphabet = np.array(sorted(range(16), key=lambda place: str(place + 1)))
    natural = np.argsort(alphabet)
    assert "the order of the numbers in the names" in doubt(values[alphabet], LIGHTS, tuple(natural))
    assert "lights in other places" in doubt(values, LIGHTS[np.random.default_rng(5).permutation(16)])


@pytest.mark.parametrize("normals", [BALL, COIN], ids=["ball", "coin"])
def test_mistakes_are_named_where_some_lights_are_close(normals):
    """In the middle of a long list in reverse, neighbours change places, which nothing tells apart."""
    lights = dome(40, 30)
    assert "with the lights in reverse" in doubt(seen(normals, lights, "noise"), lights[::-1])


def test_of_symmetric_orders_the_simplest_is_named():
    turns = np.arange(8) * np.pi / 4
    ring = np.stack([0.6 * np.cos(turns), 0.6 * np.sin(turns), np.full(8, 0.8)], axis=1)
    lights = np.concatenate([ring, [[0, 0, 1]]])
    places = np.arange(9)
    places[[1, 5]] = places[[5, 1]]
    assert "the lights 2 and 6 swapped" in doubt(seen(BALL, lights, "noise"), lights[places])


def test_too_little_to_judge_by():
    assert doubt(seen(BALL, LIGHTS[:4]), LIGHTS[3::-1]) == ""
    assert doubt(seen(BALL, LIGHTS)[:, :20], LIGHTS[::-1]) == ""


def test_gains_of_swaps_against_swaps():
    generator = np.random.default_rng(0)
    values = generator.random((7, 30))
    gram, lights = values @ values.T, generator.normal(size=(7, 3))
    basis = np.linalg.qr(lights)[0]
    projector = basis @ basis.T
    for first, second in [(0, 1), (2, 6), (3, 3)]:
        order = np.arange(7)
        order[[first, second]] = order[[second, first]]
        swapped = projector[np.ix_(order, order)]
        assert _gains(gram, basis)[first, second] == pytest.approx((gram * (swapped - projector)).sum(), abs=1e-9)
    left = values - projector @ values
    shares = (left**2).sum(axis=1) * 7**2 / ((values**2).sum() * 4)
    np.testing.assert_allclose(_residuals(gram, lights), shares)
