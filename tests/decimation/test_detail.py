"""Detail: the number of vertices follows from what a map shows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import normalmesh as nm
from normalmesh.decimation.content import Content
from normalmesh.errors import ShortfallWarning
from surfaces import centres, noisy, plane_map, sphere, waves


def wavy(size, wavelength, amplitude):
    """Return a map of waves in both directions, of some wavelength and amplitude (px)."""
    u, v = centres((size, size))
    k = 2 * np.pi / wavelength
    slope_u, slope_v = amplitude * k * np.cos(k * u) * np.sin(k * v), amplitude * k * np.sin(k * u) * np.cos(k * v)
    normals = np.stack([-slope_u, slope_v, np.ones_like(u)], axis=-1)
    return nm.NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True))


def count(normal_map, **options):
    return len(nm.decimate(normal_map, **options).vertices)


def test_medium_is_the_default_and_reported():
    normal_map, _ = waves((96, 96))
    mesh = nm.decimate(normal_map)
    np.testing.assert_array_equal(mesh.vertices, nm.decimate(normal_map, detail="medium").vertices)
    assert mesh.report.detail == "medium"
    assert mesh.report.target == len(mesh.vertices)
    assert nm.decimate(normal_map, vertices=100).report.detail is None


def test_small_maps_keep_what_they_show():
    normal_map, _ = waves((96, 96))
    assert count(normal_map) > 0.05 * normal_map.foreground
    surface = nm.reconstruct(normal_map)
    assert (
        nm.evaluate(surface, normal_map).mae
        < nm.evaluate(nm.reconstruct(normal_map, compression=0.98), normal_map).mae / 2
    )


def test_large_smooth_maps_need_few():
    assert count(sphere(700)[0]) < 0.015 * 700**2
    assert count(plane_map((0.2, 0.1, 1), (400, 400))) < 200


def test_what_is_seen_decides_not_the_number_of_pixels():
    coarse, fine = wavy(600, 200, 3), wavy(600, 50, 0.75)
    assert count(fine) > 3 * count(coarse)


def test_each_level_has_about_four_times_as_many():
    normal_map, _ = waves((128, 128))
    low, medium, high = (count(normal_map, detail=name) for name in ("low", "medium", "high"))
    assert 2.5 * low < medium < 6 * low
    assert 2 * medium < high < 6 * medium


def test_large_detailed_maps_have_a_limit():
    normal_map = noisy(wavy(700, 12, 2.5), 0)
    medium = count(normal_map)
    assert 20_000 <= medium <= max(20_000, 0.08 * normal_map.foreground + 10)


@pytest.mark.parametrize(("made", "costs"), [(wavy(400, 40, 3), (0.05, 2)), (wavy(300, 80, 8), (0.05, 0.5))])
def test_counts_are_about_those_of_thresholds(made, costs):
    content = Content.of(made)
    for cost in costs:
        assert 0.5 < content.vertices(cost) / count(made, threshold=cost) < 2


def test_the_outline_needs_vertices_too():
    v, u = np.indices((300, 300)) - 149.5
    disc = plane_map((0.4, 0, 1), (300, 300), mask=np.hypot(u, v) < 140)
    assert count(disc) > count(plane_map((0.4, 0, 1), (300, 300)))


def test_no_warning_is_given_for_a_number_that_nobody_asked_for():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ShortfallWarning)
        nm.reconstruct(waves((64, 64))[0])


def test_the_paper_knows_no_detail():
    normal_map, _ = waves((64, 64))
    assert nm.reconstruct(normal_map, preset="paper").decimation.target == round(0.02 * 64**2)


def test_tiles_choose_the_same_number():
    normal_map, _ = waves((400, 300))
    whole, tiled = nm.reconstruct(normal_map), nm.reconstruct(normal_map, tiles=256)
    assert tiled.decimation.target == whole.decimation.target
    assert tiled.decimation.detail == "medium"


def test_what_is_wrong():
    with pytest.raises(nm.NormalMeshError, match="detail"):
        nm.decimate(waves()[0], detail="finest")
    with pytest.raises(nm.NormalMeshError, match="at most one"):
        nm.decimate(waves()[0], detail="low", vertices=5)
