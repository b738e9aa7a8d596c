"""Test several outputs, the placement of GLB files and the strength of the relief on the command line."""

import json
from pathlib import Path

import numpy as np
import pytest
import trimesh

from invocation import invoke, succeed, write_medallion
from normalmesh import read_depth_map, read_height_range
from normalmesh.evaluation.rendering.triangle_model import TriangleModel

FEW = ("--vertices", 80)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Write two maps, a.png and b.png, and make their folder the current one."""
    monkeypatch.chdir(tmp_path)
    write_medallion(tmp_path / "a.png", 48)
    write_medallion(tmp_path / "b.png", 48)


def names(folder="."):
    return {path.name for path in Path(folder).iterdir()}


def reconstructed(*arguments):
    """Return the figures of a reconstruction of a.png."""
    return json.loads(succeed("reconstruct", "a.png", *FEW, "--json", "-q", *arguments).stdout)


def test_one_run_writes_several_formats():
    found = reconstructed("-o", "s.glb", "-o", "h.png", "-o", "s.ply", "-o", "s.obj", "-o", "h.tif")
    assert found["outputs"] == ["s.glb", "h.png", "s.ply", "s.obj", "h.tif"]
    assert names() == {"a.png", "b.png", "s.glb", "h.png", "h.json", "s.ply", "s.obj", "s.mtl", "h.tif"}
    models = [TriangleModel.of(f"s.{suffix}") for suffix in ("glb", "ply", "obj")]
    for model in models[1:]:
        np.testing.assert_allclose(model.vertices, models[0].vertices, atol=1e-5)
        np.testing.assert_allclose(model.normals, models[0].normals, atol=1e-5)
    depth = read_depth_map("h.tif")
    np.testing.assert_allclose(read_depth_map("h.png"), depth, atol=np.ptp(depth[np.isfinite(depth)]) / 1e5)


def test_names_of_several_inputs():
    succeed(
        "reconstruct", "?.png", *FEW, "-o", "out", "-o", "deep/{stem}.h.png", "-o", "tiles/{stem}/", "--depth",
        "{stem}.npy", "-q",
    )  # fmt: skip
    assert names("out") == {"a.glb", "b.glb"}
    assert names("deep") == {"a.h.png", "a.h.json", "b.h.png", "b.h.json"}
    assert {path.name for path in Path("tiles").glob("*/tileset.json")} == {"tileset.json"}
    assert names("tiles") == {"a", "b"}
    assert {"a.npy", "b.npy"} <= names()
    # Heights that lie beside the maps are not taken for maps.
    Path("deep/a.h.png").rename("ah.png")
    assert json.loads(succeed("reconstruct", "a*.png", *FEW, "--json", "-q").stdout)["input"] == "a.png"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.png", "-o", "s.glb", "-o", "./s.glb"), "is written, too"),
        (("a.png", "-o", "h.png", "-o", "h.json"), "is written, too"),
        (("a.png", "-o", "h.jpg"), "suffix must be one of .ply, .obj, .glb, .stl, .exr, .tif, .tiff, .npy, .png"),
        (("a.png", "-o", "s.glb", "-o", "a.png"), "this file is read, too"),
        (("a.png", "b.png", "-o", "{stem}.glb", "-o", "h.png"), "-o must be a folder, or contain {stem}"),
        (("a.png", "b.png", "-o", "out/x{stem}.glb", "--mask", "out/xb.glb"), "this file is read, too"),
        (("a.png", "-o", "s.glb", "-o", ""), "empty"),
        (("a.png", "-o", "h.png", "--texture", "b.png"), "cannot have a texture"),
        (("a.png", "--scale", "big"), "'big' is neither auto, none nor a positive number"),
        (("a.png", "--pixel-size", "big"), "'big' is not a valid number"),
        (("a.png", "--scale", "0"), "0"),
        (("a.png", "-o", "s.ply", "--scale", "0.01"), "--scale is for GLB files only"),
        (("a.png", "-o", "s.glb", "--solid", "3px", "--no-centre"), "--no-centre has no effect on a solid"),
        (("a.png", "-o", "s.3mf", "--dry-run"), "3MF holds solids only: add --solid"),
        (("a.png", "b.png", "-o", "s.3mf", "--solid", "3px"), "-o must be a folder, or contain {stem}"),
        (("a.png", "b.png", "-o", "{stem}"), ".png; the name of a folder of 3D Tiles must end with"),
        (("a.png", "-o", "t/", "-o", "t/h.png"), "t/h.png is in t, a folder for 3D Tiles only"),
        (("a.png", "--strength", "0"), "not a factor of the relief"),
        (("a.png", "--strength", "2", "--focal-px", "50"), "strength is for orthographic maps"),
    ],
    ids=str,
)
def test_refused_before_work_begins(arguments, message):
    result = invoke("reconstruct", *arguments, *FEW)
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert names() == {"a.png", "b.png"}


def test_heights_are_not_taken_for_normals():
    succeed("reconstruct", "a.png", *FEW, "-o", "h.png")
    result = invoke("reconstruct", "h.png")
    assert result.exit_code == 1
    assert "h.png: holds heights, not normals: normalmesh view shows them" in result.stderr


def test_levels_of_all_outputs():
    succeed("reconstruct", "a.png", "--lod", "90,30", "-o", "s.glb", "-o", "h.png", "-q")
    assert {"s.lod0.glb", "s.lod1.glb", "h.lod0.png", "h.lod0.json", "h.lod1.png", "h.lod1.json"} < names()


@pytest.mark.parametrize(
    ("options", "size", "middle"),
    [
        ((), 1.0, (0, 0)),
        (("--pixel-size", "0.5"), 0.024, (0, 0)),
        (("--scale", "none", "--no-centre"), 48.0, (24, -24)),
        (("--scale", "0.01"), 0.48, (0, 0)),
    ],
)
def test_scenes_are_in_metres_and_meshes_in_the_unit_of_the_surface(options, size, middle):
    reconstructed("-o", "s.glb", "-o", "s.ply", *options)
    low, high = trimesh.load_scene("s.glb").bounds
    assert max(high - low) == pytest.approx(size, rel=0.05)
    np.testing.assert_allclose((low + high)[:2] / 2, middle, atol=0.02 * size)
    plain = TriangleModel.of("s.ply").vertices
    np.testing.assert_allclose(TriangleModel.of("s.glb").vertices, plain, rtol=1e-6)
    succeed("convert", "s.glb", "t.glb")
    np.testing.assert_allclose(TriangleModel.of("t.glb").vertices, plain, rtol=1e-6)
    figures = [
        json.loads(succeed("evaluate", f"s.{kind}", "--normals", "a.png", "--json").stdout) for kind in ("ply", "glb")
    ]
    assert figures[0] | {"result": ""} == figures[1] | {"result": ""}


def test_strength_multiplies_heights_and_says_so():
    plain = reconstructed("-o", "p.ply", "-o", "p.png")
    strong = reconstructed("-o", "s.ply", "-o", "s.png", "-o", "s.glb", "-o", "s.obj", "--strength", "-2", "--report")
    assert (plain["strength"], strong["strength"]) == (1.0, -2.0)
    assert strong["mae"] == plain["mae"]  # of the reconstruction, not of what was made of it
    assert strong["uncertainty"]["median"] == pytest.approx(2 * plain["uncertainty"]["median"])  # as in the report
    before, after = TriangleModel.of("p.ply"), TriangleModel.of("s.ply")
    np.testing.assert_allclose(after.vertices, before.vertices * [1, 1, -2], atol=1e-4)
    np.testing.assert_array_equal(after.faces, before.faces)
    assert read_height_range("s.png").strength == -2
    assert b"relief multiplied by -2.0" in Path("s.ply").read_bytes()
    assert b"relief multiplied by -2.0" in Path("s.obj").read_bytes()
    assert b'"strength":-2.0' in Path("s.glb").read_bytes()
    assert "heights multiplied by -2" in Path("s.html").read_text("utf-8")
