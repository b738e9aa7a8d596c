"""Surfaces agree with the lines of their jumps: never worse than continuous ones, and as good as with true lines.

``python -m benchmarks.agreement`` prints the errors of all scenes and perturbations.
"""

import warnings

import pytest

from jump_scenes import AGREEING, COMPLETE, RATIO, SMALL, depth_rms, perturbed_scene, true_lines
from normalmesh import NormalMeshWarning, find_jumps, reconstruct


def errors_of(name, kind, *ways):
    """Return the errors of surfaces of a scene that are reconstructed in some ways, and with true lines."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalMeshWarning)
        truth, normal_map = perturbed_scene(name, kind)
        options = [*ways, {"jumps": true_lines(truth)}]
        return [depth_rms(reconstruct(normal_map, vertices=1500, **each), truth) for each in options]


@pytest.mark.parametrize("kind", ["clean", "0.1°", "3°", "8 bit", "JPEG 90"])
@pytest.mark.parametrize("name", AGREEING)
def test_surfaces_are_never_worse_than_continuous_ones(name, kind):
    found, continuous, given = errors_of(name, kind, {}, {"discontinuities": False})
    assert found <= RATIO * continuous + SMALL
    assert given < 0.4 * continuous
    if name in COMPLETE and not kind.startswith("JPEG"):
        assert found <= RATIO * given + SMALL


def test_a_strip_ends_where_it_does():
    found, given = errors_of("strip", "clean", {"discontinuities": True})
    assert found <= RATIO * given + SMALL


@pytest.mark.parametrize("name", ["strip", "step"])
def test_clear_jumps_in_smooth_surroundings_are_found(name):
    """A single jump strains the whole continuous surface a little, and no place of it much."""
    found, given = errors_of(name, "clean", {})
    assert found <= RATIO * given + SMALL


@pytest.mark.parametrize("name", AGREEING)
def test_lines_that_are_given_back_make_the_same_surface(name):
    truth, normal_map = perturbed_scene(name, "clean")
    jumps = find_jumps(normal_map)
    found, given = (
        depth_rms(reconstruct(normal_map, vertices=1500, jumps=each), truth)
        for each in (jumps, [line.path for line in jumps.lines])
    )
    assert found == pytest.approx(given, rel=0.35, abs=SMALL)
