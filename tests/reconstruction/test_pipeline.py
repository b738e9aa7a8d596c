"""Test the pipeline: presets and options, and the accuracy from end to end."""

import numpy as np
import pytest

from normalmesh import NormalMeshError, decimate, integrate, integrate_pixels, reconstruct
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.normals.noise import component_noise, without_noise
from normalmesh.runtime.threads import MAX_THREADS, allowed_threads
from surfaces import angle_error, noisy, rmse, sphere, waves


def assert_same(one, other):
    """Check that two surfaces and their integrations are identical."""
    assert np.array_equal(one.vertices, other.vertices)
    assert np.array_equal(one.faces, other.faces)
    assert one.integration.refinements == other.integration.refinements
    assert one.integration.noise == other.integration.noise


def test_the_default_is_decimate_and_integrate():
    normal_map = Medallion(90).normal_map
    surface = reconstruct(normal_map, vertices=200)
    assert len(surface.vertices) == 200
    assert_same(surface, integrate(decimate(normal_map, vertices=200), normal_map))
    assert surface.integration.noise == component_noise(normal_map).usual.degrees
    assert len(surface.integration.refinements) > 0


def test_noise_is_averaged_before_decimation():
    normal_map = noisy(waves((64, 64))[0], 8)
    noise = component_noise(normal_map).usual
    assert noise.degrees > 5
    mesh = decimate(without_noise(normal_map, noise), vertices=150)
    assert_same(reconstruct(normal_map, vertices=150), integrate(mesh, normal_map))
    assert_same(reconstruct(normal_map, vertices=150, noise=noise), integrate(mesh, normal_map))
    given = reconstruct(normal_map, vertices=150, noise=0)
    assert given.integration.noise == 0
    assert not np.array_equal(given.vertices, reconstruct(normal_map, vertices=150).vertices)


def test_the_preset_paper_is_the_published_method():
    normal_map = noisy(Medallion(90).normal_map, 5)
    surface = reconstruct(normal_map, vertices=200, preset="paper")
    explicit = integrate(
        decimate(normal_map, vertices=200, start="pixels", rounds=5, passes=10, align="each"),
        normal_map,
        formulation="vertices",
        parameters="tight",
        metric="surface",
        clamp=(0.026, 9.55),
        noise=0,
        refine=0,
    )
    assert np.array_equal(surface.vertices, explicit.vertices)
    assert np.array_equal(surface.faces, explicit.faces)
    assert surface.integration.refinements == ()
    assert surface.integration.noise == 0


def test_options_override_presets():
    normal_map = Medallion(64).normal_map
    surface = reconstruct(normal_map, vertices=100, preset="paper", refine=2, decimation={"passes": 0}, units="mm")
    assert len(surface.integration.refinements) == 2
    assert surface.units == "mm"
    mesh = decimate(normal_map, vertices=100, start="pixels", rounds=5, passes=0)
    options = {"formulation": "vertices", "parameters": "tight", "metric": "surface", "clamp": (0.026, 9.55)}
    assert np.array_equal(surface.vertices, integrate(mesh, normal_map, noise=0, refine=2, **options).vertices)


@pytest.mark.parametrize("rule", [{"vertices": 150}, {"threshold": 20.0}, {"compression": 0.97}], ids=str)
def test_stopping_rules(rule):
    normal_map = Medallion(72).normal_map
    surface = reconstruct(normal_map, **rule, refine=1)
    assert len(surface.vertices) == len(decimate(normal_map, **rule).vertices)
    assert surface.mesh.check().ok


def test_end_to_end_on_the_medallion():
    """400 vertices for 128 × 128 pixels. Measured: 0.12 px and 5.2°; the paper's method 0.28 px and 7.0°."""
    medallion = Medallion(128)
    normal_map = medallion.normal_map
    ours, paper = (reconstruct(normal_map, vertices=400, preset=preset) for preset in ("default", "paper"))
    assert rmse(ours, medallion.height, normal_map.mask) < 0.18
    assert angle_error(ours, normal_map) < 5.8
    assert rmse(paper, medallion.height, normal_map.mask) < 0.4
    assert angle_error(paper, normal_map) < 8


def test_locked_vertices_keep_their_positions():
    normal_map = Medallion(64).normal_map
    surface = reconstruct(normal_map, vertices=120, decimation={"locked": [[30, 31], [20, 40]]})
    places = {tuple(place) for place in surface.screen}
    assert {(30.0, 31.0), (20.0, 40.0)} <= places


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vertices": 50, "preset": "best"}, "preset must be one of default, paper, not 'best'"),
        ({"vertices": 9, "compression": 0.9}, "at most one of vertices, threshold and compression, not vertices and"),
        ({"vertices": 50, "refine": -2}, "refine must be a whole number"),
        ({"vertices": 50, "noise": float("nan")}, "noise must be an angle"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with pytest.raises(NormalMeshError, match=message):
        reconstruct(Medallion(32).normal_map, **options)


def test_the_number_of_threads_is_limited_and_restored():
    seen = []
    normal_map = Medallion(48).normal_map
    surface = reconstruct(normal_map, vertices=100, threads=1, progress=lambda _: seen.append(allowed_threads()))
    assert set(seen) == {1}
    assert allowed_threads() == MAX_THREADS
    assert_same(surface, reconstruct(normal_map, vertices=100))
    with pytest.raises(NormalMeshError, match=r"threads is 1000, but there are at most \d+ here; set "):
        reconstruct(normal_map, vertices=100, threads=1000)
    with pytest.raises(NormalMeshError, match="threads must be a whole number of at least 1, not 0"):
        reconstruct(normal_map, vertices=100, threads=0)
    with pytest.raises(ZeroDivisionError):
        reconstruct(normal_map, vertices=100, threads=1, progress=lambda _: 1 / 0)
    assert allowed_threads() == MAX_THREADS


SMOOTH = [("waves", 0, 0), ("waves", 10, 0), *(("sphere", degrees, seed) for degrees in (8, 15) for seed in range(3))]


@pytest.mark.filterwarnings("ignore::normalmesh.NormalMeshWarning")  # a few noisy normals point away from the viewer
@pytest.mark.parametrize(("name", "degrees", "seed"), SMOOTH)
@pytest.mark.parametrize("choice", ["auto", True])
def test_without_a_cut_the_surface_is_the_continuous_one(name, degrees, seed, choice):
    """Normals are filtered and refined in the same way, whether jumps are looked for or not."""
    normal_map = waves((96, 96))[0] if name == "waves" else sphere(96)[0]
    if degrees:
        normal_map = noisy(normal_map, degrees, seed)
    found, continuous = (reconstruct(normal_map, vertices=200, discontinuities=each) for each in (choice, False))
    assert found.discontinuities.lines == ()
    assert_same(found, continuous)
    pixels, plain = (integrate_pixels(normal_map, discontinuities=each) for each in (choice, False))
    assert np.array_equal(pixels, plain)
