"""Tests of the warnings about what a surface lacks."""

import json
import warnings

import numpy as np
import pytest

import normalmesh as nm
from invocation import invoke, write_medallion
from normalmesh.errors import ShortfallWarning
from normalmesh.files.encoding import encode_normals
from normalmesh.reconstruction.shortfalls import shortfalls
from surfaces import plane_map, waves
from thin_masks import THIN_MASKS


def of_mask(mask):
    return plane_map([0.1, 0.2, 1.0], mask.shape, mask=mask)


def test_components_that_need_more_vertices_than_asked_for():
    with pytest.warns(ShortfallWarning, match=r"50 vertices were asked for, but the surface has 2400: 800 components"):
        surface = nm.reconstruct(of_mask(THIN_MASKS["checkerboard"]), vertices=50)
    assert surface.decimation.target == 50
    assert "800 components and 0 holes of the foreground need three vertices each" in surface.decimation.reason


def test_thin_parts_that_need_more_vertices_than_asked_for():
    with pytest.warns(ShortfallWarning, match="thin parts and gaps of the foreground keep their outline"):
        nm.reconstruct(of_mask(THIN_MASKS["wide spiral"]), vertices=20)


def test_more_vertices_than_pixel_corners():
    with pytest.warns(ShortfallWarning, match=r"500 vertices were .* have no use for more"):
        nm.reconstruct(waves((10, 10))[0], vertices=500)


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_lost_pixels(preset):
    """With the paper's mesh, the comb loses its teeth."""
    mask = THIN_MASKS["comb"]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        surface = nm.reconstruct(of_mask(mask), compression=0.98, preset=preset)
    told = [str(each.message) for each in found if "of the foreground, and" in str(each.message)]
    assert (surface.coverage.uncovered_share > 0.005) == (preset == "paper") == bool(told)


def test_levels_and_bounds_tell_it_once():
    normal_map = of_mask(THIN_MASKS["dust"])
    with pytest.warns(ShortfallWarning) as found:
        nm.reconstruct_levels(normal_map, [30, 10])
    assert len(found) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        surface = nm.reconstruct_within(normal_map, max_angle=1)
    assert list(shortfalls(surface)) == []


def test_bounds_count_pixels_that_are_not_covered():
    """Each face fits exactly, so that only the outline needs vertices."""
    mask = np.hypot(*(np.indices((80, 80)) - 39.5)) < 38
    surface = nm.reconstruct_within(of_mask(mask), max_angle=0.3)
    assert 90 * surface.coverage.uncovered_share <= 0.3


def test_the_command_says_it(tmp_path):
    mask = THIN_MASKS["dust"]
    path = tmp_path / "dust.png"
    path.write_bytes(encode_normals(path, of_mask(mask).normals, mask))
    result = invoke("reconstruct", path, "--vertices", 20, "--json", "-q")
    found = json.loads(result.stdout)
    assert (found["requested"], found["coverage"]["covered"]) == (20, 1.0)
    assert found["vertices"] > 100
    reason = nm.decimate(of_mask(mask), vertices=20).report.reason
    assert found["warnings"] == [f"20 vertices were asked for, but the surface has {found['vertices']}: {reason}"]
    text = invoke("reconstruct", path, "--vertices", 20).stdout
    assert f"{found['vertices']} for {mask.sum()} pixels, 20 asked for" in text


def test_the_report_says_it(tmp_path):
    mask = THIN_MASKS["dust"]
    normal_map = of_mask(mask)
    surface = nm.reconstruct(normal_map, vertices=20)
    nm.write_report(tmp_path / "report.html", surface, normal_map)
    page = (tmp_path / "report.html").read_text()
    assert "20 vertices were asked for" in page
    assert "100.00 % of the foreground" in page


def test_usual_maps_lack_nothing(tmp_path):
    result = invoke("reconstruct", write_medallion(tmp_path / "m.png"), "--compression", "0.95", "-q")
    assert (result.exit_code, result.stderr) == (0, "")
