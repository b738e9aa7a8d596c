"""Test the search for the sparsest surface within a tolerance."""

import numpy as np
import pytest

from normalmesh import NormalMeshError, add_noise, evaluate, reconstruct, reconstruct_within
from normalmesh.errors import ShortfallWarning
from normalmesh.evaluation.metrics import mean_angle
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.reconstruction.within import CLOSE_ENOUGH, FINEST, FINEST_COMPARED, MAX_TRIALS, _Search
from surfaces import flap


@pytest.fixture(scope="module")
def normal_map():
    return Medallion(96).normal_map


@pytest.mark.parametrize("degrees", [5.0, 12.0])
def test_bounds_on_angles_are_met_with_few_vertices(degrees, normal_map):
    surface = reconstruct_within(normal_map, max_angle=degrees)
    assert evaluate(surface, normal_map).mae <= degrees
    fewer = reconstruct(normal_map, vertices=round(len(surface.vertices) / CLOSE_ENOUGH**2))
    assert evaluate(fewer, normal_map).mae > 0.95 * degrees


def test_depth_errors_are_measured_against_the_finest_mesh(normal_map):
    surface = reconstruct_within(normal_map, max_error=0.15)
    fine = reconstruct(normal_map, vertices=round(FINEST * normal_map.foreground))
    assert evaluate(surface, normal_map, fine.depth_map()).rmse <= 0.15
    assert len(surface.vertices) < FINEST_COMPARED * normal_map.foreground


def test_two_bounds_are_both_met(normal_map):
    surface = reconstruct_within(normal_map, max_angle=9, max_error=0.15)
    fine = reconstruct(normal_map, vertices=round(FINEST * normal_map.foreground))
    found = evaluate(surface, normal_map, fine.depth_map())
    assert found.mae <= 9
    assert found.rmse <= 0.15


def test_the_surface_is_that_of_reconstruct_with_its_target(normal_map):
    surface = reconstruct_within(normal_map, max_angle=10, units="mm")
    again = reconstruct(normal_map, vertices=len(surface.vertices), units="mm")
    assert surface.decimation.target is None
    assert np.array_equal(surface.vertices, again.vertices)
    assert surface.units == "mm"


def test_parts_on_both_sides_of_a_jump_are_compared_separately():
    _, normal_map = flap(64)
    surface = reconstruct_within(normal_map, max_error=0.3, discontinuities=True)
    assert len(surface.discontinuities.screen) > 0
    assert len(surface.vertices) < 0.1 * normal_map.foreground


def test_unreachable_bounds_give_the_best_surface(normal_map):
    noisy = add_noise(normal_map, degrees=5)
    with pytest.warns(ShortfallWarning, match=r"mean angle of 1° is out of reach: .* of \d+ vertices, has \d\.\d+°"):
        surface = reconstruct_within(noisy, max_angle=1)
    assert len(surface.vertices) > 0.2 * noisy.foreground
    tolerance = surface.decimation.tolerance
    assert tolerance.reached == {"max_angle": mean_angle(surface, noisy)}
    assert not tolerance.met
    with pytest.warns(ShortfallWarning, match="deviation of 1e-06 px is out of reach"):
        surface = reconstruct_within(normal_map, max_error=1e-6, max_angle=30)
    assert surface.decimation.tolerance.missed == ["max_error"]


@pytest.mark.parametrize("bounds", [{}, {"max_angle": 0}, {"max_error": -1}, {"max_angle": "small"}], ids=str)
def test_invalid_bounds_are_refused(bounds, normal_map):
    with pytest.raises(NormalMeshError, match="max_"):
        reconstruct_within(normal_map, **bounds)


def test_progress_never_decreases(normal_map):
    steps = []
    reconstruct_within(normal_map, max_angle=10, progress=steps.append)
    shares = [step.share for step in steps]
    assert shares == sorted(shares)
    assert [step.stage for step in steps].count("done") == 1


def test_mean_angle_is_that_of_evaluate_and_90_degrees_without_a_face(normal_map):
    surface = reconstruct(normal_map, vertices=100)
    found = evaluate(surface, normal_map)
    assert found.covered < 1
    expected = found.covered * found.mae + 90 * (1 - found.covered)
    assert mean_angle(surface, normal_map) == pytest.approx(expected, rel=1e-6)


class Counted:
    """A stand-in for a surface with ``count`` vertices, or ``least`` if that is more."""

    def __init__(self, count, least=3):
        self.vertices = range(max(count, least))


@pytest.mark.parametrize("power", [0.25, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("wanted", [3, 10, 777, 20_000, 90_000])
def test_the_search_finds_the_bound(wanted, power):
    tried = []

    def ratio(surface):
        tried.append(len(surface.vertices))
        return (wanted / len(surface.vertices)) ** power

    found = _Search(Counted, ratio, 100_000).run(2000)
    assert wanted <= len(found.vertices) <= max(CLOSE_ENOUGH * wanted, wanted + 1)
    assert len(tried) <= MAX_TRIALS


def test_the_search_ends_if_the_mesh_has_a_minimum_of_vertices():
    search = _Search(lambda count: Counted(count, least=400), lambda surface: 0.1, 100_000)
    assert len(search.run(2000).vertices) == 400
    assert len(search.sides) < 5


def test_the_search_tolerates_noise():
    rng = np.random.default_rng(1)
    search = _Search(Counted, lambda s: (5000 / len(s.vertices)) * rng.uniform(0.9, 1.1), 100_000)
    assert 4000 < len(search.run(2000).vertices) < 6000
