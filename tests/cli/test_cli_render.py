"""Test ``normalmesh render``: the files it writes are read back unchanged."""

import json

import imagecodecs
import numpy as np
import pytest
import trimesh

from invocation import invoke, succeed
from normalmesh import Perspective, read_normal_map, render_normal_map
from normalmesh.evaluation.metrics import angles_between
from normalmesh.evaluation.synthetic.models import stone
from normalmesh.output.heights import read_depth_map

pytest.importorskip("embreex")


@pytest.fixture(scope="module")
def truth():
    return render_normal_map(stone(), 64)


@pytest.mark.parametrize(("suffix", "tolerance"), [("png", 3e-3), ("exr", 1e-5), ("tiff", 1e-5), ("npy", 1e-5)])
def test_normals_read_back(suffix, tolerance, truth, tmp_path):
    if suffix == "exr":
        pytest.importorskip("OpenEXR")
    path = tmp_path / f"n.{suffix}"
    succeed("render", "stone", "--size", 64, "-o", path)
    found = read_normal_map(path)
    np.testing.assert_array_equal(found.mask, truth.normal_map.mask)
    assert np.nanmax(angles_between(found.normals, truth.normal_map.normals)) < tolerance


@pytest.mark.parametrize("suffix", ["exr", "tif", "npy"])
def test_depth_and_mask_read_back(suffix, truth, tmp_path):
    if suffix == "exr":
        pytest.importorskip("OpenEXR")
    depth, mask = tmp_path / f"d.{suffix}", tmp_path / "m.png"
    succeed("render", "stone", "--size", 64, "-o", tmp_path / "n.png", "--depth", depth, "--mask", mask)
    np.testing.assert_array_equal(read_depth_map(depth), truth.depth.astype(np.float32))
    np.testing.assert_array_equal(imagecodecs.imread(mask) == 255, truth.normal_map.mask)


def test_default_output_size_and_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trimesh.creation.icosphere(2).export("ball.stl")
    result = succeed("render", "ball.stl", "--size", "60x40")
    assert "60 × 40 pixels" in result.stdout
    assert "camera       orthographic\n" in result.stdout
    assert result.stdout.endswith("wrote        ball_normals.png\n")
    assert read_normal_map("ball_normals.png").shape == (40, 60)


def test_matrix_makes_the_same_camera(tmp_path):
    options = ("--size", "80x64", "-o", tmp_path / "n.png")
    result = succeed("render", "knot", *options, "--focal-px", 90, "--matrix", tmp_path / "K.txt", "--json")
    assert Perspective.from_file(tmp_path / "K.txt") == Perspective(90, 90, 40, 32)
    found = json.loads(result.stdout)
    assert found["camera"] == {"kind": "perspective", "fx": 90.0, "fy": 90.0, "cx": 40.0, "cy": 32.0, "skew": 0.0}
    first = (tmp_path / "n.png").read_bytes()
    again = succeed("render", "knot", *options, "--camera", tmp_path / "K.txt", "--json")
    assert json.loads(again.stdout)["foreground"] == found["foreground"]
    assert (tmp_path / "n.png").read_bytes() == first


def test_flat_and_placed(tmp_path):
    pixels = trimesh.creation.box((20, 20, 4))
    pixels.apply_translation([16, -16, 0])
    pixels.export(tmp_path / "box.ply")
    result = succeed("render", tmp_path / "box.ply", "--size", 32, "--placed", "--flat", "-o", tmp_path / "n.npy")
    assert "(400)" in result.stdout
    normals = np.load(tmp_path / "n.npy")
    np.testing.assert_array_equal(normals[10, 10], [0, 0, 1])
    assert not normals[:5].any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["pebble"], "there is no such file, nor a model of that name; known models: knot, stone, vase"),
        (["stone", "--placed"], "omit --placed"),
        (["stone", "-o", "n.jpg"], "the suffix of normals must be one of .png"),
        (["stone", "--depth", "d.jpg"], "the suffix of depths must be one of .exr"),
        (["stone", "-o", "no/where.png"], "does not exist"),
        (["stone", "--camera", "missing.txt"], "missing.txt"),
    ],
    ids=str,
)
def test_failures_write_nothing(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke("render", *options, "--size", 32)
    assert result.exit_code == 1
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--size", "0"], "'0' is not a size such as 512 or 640x480"),
        (["--size", "3x4x5"], "is not a size"),
        (["--camera", "perspective", "--focal-px", 9], "give only one of --camera, --focal-px"),
        (["--matrix", "K.txt"], "--matrix needs a perspective camera"),
    ],
    ids=str,
)
def test_bad_usage(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke("render", "stone", "--size", 32, *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []
