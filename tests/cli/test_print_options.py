"""Test ``normalmesh reconstruct --solid``, ``--width`` and ``--flatten``."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import trimesh

from invocation import invoke, succeed, write_medallion


@pytest.fixture
def coin(tmp_path, monkeypatch):
    """Write the normals of a medallion to a temporary current folder."""
    monkeypatch.chdir(tmp_path)
    return write_medallion(Path("coin.png"), 64)


def test_a_solid_of_a_given_width(coin):
    result = succeed("reconstruct", coin, "--solid", "3mm", "--width", "80mm")
    assert "solid        80 ×" in result.stdout
    assert "watertight" in result.stdout
    assert not Path("coin.glb").exists()
    solid = trimesh.load("coin.stl")
    assert solid.is_watertight
    assert solid.extents[0] == pytest.approx(80)


def test_figures_of_a_solid_and_of_what_was_taken_away(coin):
    options = ("--solid", "0.2cm", "--pixel-size", "0.5", "--flatten", "quadratic", "-o", "c.3mf", "--report", "--json")
    figures = json.loads(succeed("reconstruct", coin, *options).stdout)
    assert figures["outputs"] == ["c.3mf", "c.html"]
    assert figures["solid"]["units"] == figures["flattening"]["units"] == "mm"
    assert figures["solid"]["pieces"] == 1
    assert figures["flattening"]["tilt_degrees"] < 1
    assert figures["flattening"]["bow"] > 0
    page = Path("c.html").read_text("utf-8")
    assert "Taken away by flattening" in page
    # Angles are those of the surface before the bend was taken away.
    plain = json.loads(succeed("reconstruct", coin, "--pixel-size", "0.5", "-o", "c.glb", "--json").stdout)
    assert figures["mae"] == plain["mae"]
    succeed("reconstruct", coin, "--pixel-size", "0.5", "-o", "c.glb", "--report")
    assert _angle(page) == _angle(Path("c.html").read_text("utf-8"))
    assert plain["solid"] is plain["flattening"] is None


def _angle(page):
    return re.search(r"Mean angular error</dt><dd>([^<]*)", page)[1]


def test_levels_of_detail_and_a_perspective_camera(coin):
    succeed("reconstruct", coin, "--fov", "40", "--solid", "2mm", "--width", "50mm", "--lod", "5%,2%", "-o", "p.ply")
    for name in ("p.lod0.ply", "p.lod1.ply"):
        mesh = trimesh.load(name)
        assert mesh.is_watertight
        assert mesh.extents[0] == pytest.approx(50, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--solid", "3mm"], "--pixel-size"),
        (["--solid", "3mm", "--width", "80px"], "such as --width 80mm"),
        (["--solid", "3mm", "--width", "80"], "such as --width 80mm"),
        (["--solid", "thick"], "such as 3mm"),
        (["--width", "80mm"], "add that"),
        (["--solid", "3px", "--fov", "40"], "--distance"),
        (["--solid", "3px", "--texture", "coin.png"], "no texture"),
        (["--solid", "3px", "-o", "c.tif"], "which --depth writes"),
        (["--jumps", "j.png", "--continuous"], "give only one of them"),
        (["--flatten", "plane", "--camera", "perspective"], "orthographic"),
        (["--flatten", "plane", "--prior", "points.csv"], "--prior"),
    ],
)
def test_conflicts_are_reported_before_work(coin, options, text):
    Path("points.csv").write_text("32,32,0\n")
    result = invoke("reconstruct", coin, *options)
    assert result.exit_code == (1 if "c.tif" in options else 2)
    assert text in result.stderr
    assert sorted(path.name for path in Path().iterdir()) == ["coin.png", "points.csv"]


def test_flattened_heights_are_written(coin):
    succeed("reconstruct", coin, "--flatten", "plane", "-o", "flat.npy")
    assert abs(np.nanmedian(np.load("flat.npy"))) < 5
