"""The sparsest surface within a tolerance."""

import numpy as np
import pytest

from normalmesh import NormalMeshError, add_noise, evaluate, reconstruct, reconstruct_within
from normalmesh.evaluation.metrics import mean_angle
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.reconstruction.within import CLOSE_ENOUGH, FINEST, FINEST_COMPARED, MAX_TRIALS, _Search
from surfaces import flap


@pytest.fixture(scope="module")
def normal_map():
    return Medallion(96).normal_map


@pytest.mark.parametrize("degrees", [5.0, 12.0])
def test_angles_are_kept_with_few_vertices(degrees, normal_map):
    surface = reconstruct_within(normal_map, max_angle=degrees)
    assert evaluate(surface, normal_map).mae <= degrees
    fewer = reconstruct(normal_map, vertices=round(len(surface.vertices) / CLOSE_ENOUGH**2))
    assert evaluate(fewer, normal_map).mae > 0.97 * degrees


def test_errors_are_against_a_finer_mesh(normal_map):
    surface = reconstruct_within(normal_map, max_error=0.15)
    fine = reconstruct(normal_map, vertices=round(FINEST * normal_map.foreground))
    assert evaluate(surface, normal_map, fine.depth_map()).rmse <= 0.15
    assert len(surface.vertices) < FINEST_COMPARED * normal_map.foreground


def test_two_bounds_are_both_kept(normal_map):
    surface = reconstruct_within(normal_map, max_angle=9, max_error=0.15)
    fine = reconstruct(normal_map, vertices=round(FINEST * normal_map.foreground))
    found = evaluate(surface, normal_map, fine.depth_map())
    assert found.mae <= 9
    assert found.rmse <= 0.15


def test_a_surface_is_that_of_its_vertex_count(normal_map):
    surface = reconstruct_within(normal_map, max_angle=10, units="mm")
    again = reconstruct(normal_map, vertices=surface.decimation.target, units="mm")
    assert np.array_equal(surface.vertices, again.vertices)
    assert surface.units == "mm"


def test_jumps_do_not_spoil_the_comparison():
    _, normal_map = flap(64)
    surface = reconstruct_within(normal_map, max_error=0.3)
    assert surface.discontinuities.cut.any()
    assert len(surface.vertices) < 0.1 * normal_map.foreground


def test_what_cannot_be_reached_is_refused(normal_map):
    with pytest.raises(NormalMeshError, match=r"max_angle 1 is out of reach: the finest surface, of \d+ vertices"):
        reconstruct_within(add_noise(normal_map, degrees=5), max_angle=1)
    with pytest.raises(NormalMeshError, match="max_error 1e-06 is out of reach"):
        reconstruct_within(normal_map, max_error=1e-6)


@pytest.mark.parametrize("bounds", [{}, {"max_angle": 0}, {"max_error": -1}, {"max_angle": "small"}], ids=str)
def test_bounds_must_make_sense(bounds, normal_map):
    with pytest.raises(NormalMeshError, match="max_"):
        reconstruct_within(normal_map, **bounds)


def test_progress_never_falls(normal_map):
    steps = []
    reconstruct_within(normal_map, max_angle=10, progress=steps.append)
    shares = [step.share for step in steps]
    assert shares == sorted(shares)
    assert [step.stage for step in steps].count("done") == 1


def test_mean_angle_is_that_of_evaluate(normal_map):
    surface = reconstruct(normal_map, vertices=100)
    assert mean_angle(surface, normal_map) == pytest.approx(evaluate(surface, normal_map).mae, rel=1e-6)


class Counted:
    """Stands for a surface: so many vertices, whatever was asked for where that is too few."""

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


def test_the_search_ends_where_fewer_vertices_cannot_be_had():
    search = _Search(lambda count: Counted(count, least=400), lambda surface: 0.1, 100_000)
    assert len(search.run(2000).vertices) == 400
    assert len(search.sides) < 5


def test_the_search_survives_noise():
    rng = np.random.default_rng(1)
    search = _Search(Counted, lambda s: (5000 / len(s.vertices)) * rng.uniform(0.9, 1.1), 100_000)
    assert 4000 < len(search.run(2000).vertices) < 6000
