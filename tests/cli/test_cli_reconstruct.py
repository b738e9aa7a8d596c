"""Test the options of ``normalmesh reconstruct``."""

import json
import os
import struct
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import tifffile
import trimesh
from click.testing import CliRunner

from invocation import write_medallion
from normalmesh import Perspective, evaluate, read_normal_map
from normalmesh.cli import normalmesh
from normalmesh.cli.option_types import compression, levels


def run(*arguments):
    return CliRunner().invoke(normalmesh, list(map(str, arguments)))


def reconstruct(*arguments):
    return run("reconstruct", *arguments)


def figures(*arguments):
    result = reconstruct(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def medallion_file(tmp_path_factory):
    return write_medallion(tmp_path_factory.mktemp("maps") / "medallion.png", 64)


@pytest.fixture
def medallion(medallion_file, tmp_path, monkeypatch):
    """Write a map of 64 × 64 pixels to a temporary current folder, and return its path."""
    monkeypatch.chdir(tmp_path)
    Path("m.png").write_bytes(medallion_file.read_bytes())
    return Path("m.png")


def test_a_tilted_relief_is_told(tmp_path):
    v, u = np.indices((64, 64))
    normals = np.stack([0.1 * np.cos(u / 4) + 0.02, 0.1 * np.cos(v / 5), np.ones(u.shape)], axis=-1)
    path = tmp_path / "relief.png"
    PIL.Image.fromarray(np.rint((normals + 1) * 127.5).astype(np.uint8)).save(path)
    result = reconstruct(path, "--output", tmp_path / "relief.glb", "--compression", "0.9")
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("tilted"))
    assert "--flatten plane" in line
    found = figures(path, "--output", tmp_path / "again.glb", "--compression", "0.9")["tilt"]
    assert found["degrees"] == pytest.approx(np.degrees(0.02), abs=0.4)
    assert found["direction_degrees"] == pytest.approx(180, abs=30)
    flat = figures(path, "--output", tmp_path / "flat.glb", "--compression", "0.9", "--flatten", "plane")
    assert flat["tilt"] is None


@pytest.fixture
def photo(medallion):
    rows, columns = np.mgrid[:128, :128]
    image = np.dstack([2 * columns, 2 * rows, 0 * rows + 90]).astype(np.uint8)
    PIL.Image.fromarray(image).save("photo.jpg", quality=95)
    return Path("photo.jpg")


@pytest.mark.parametrize(
    ("text", "share"), [("98", 0.98), ("0.98", 0.98), ("98%", 0.98), ("0.5%", 0.005), ("1", 0.01), ("99.9", 0.999)]
)
def test_compression_as_fraction_or_percentage(text, share):
    assert compression(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["0", "100", "-3", "many", "nan", "100%"])
def test_compression_out_of_range(text, medallion):
    result = reconstruct(medallion, "--compression", text)
    assert result.exit_code == 2
    assert "percent" in result.stderr


def test_levels_as_percentages_or_numbers():
    assert levels("1%, .3%,500") == (0.01, 0.003, 500)


@pytest.mark.parametrize("text", ["", "1", "0%", "0.3", "1%;2%", "101%"])
def test_invalid_levels(text, medallion):
    assert reconstruct(medallion, "--lod", text).exit_code == 2


def test_levels_are_written_finest_first(medallion):
    found = figures(medallion, "-o", "coin.ply", "--lod", "40,5%")
    assert found["outputs"] == ["coin.lod0.ply", "coin.lod1.ply"]
    assert [level["vertices"] for level in found["levels"]] == [round(0.05 * found["foreground"]), 40]
    assert found["vertices"] == found["levels"][0]["vertices"]
    for name, level in zip(found["outputs"], found["levels"], strict=True):
        assert len(trimesh.load(name, process=False).faces) == level["faces"]
    same = reconstruct(medallion, "--lod", "40,40")
    assert same.exit_code == 1
    assert "must fall" in same.stderr


def test_tolerances(medallion):
    assert figures(medallion, "--max-angle", 10)["mae"] <= 10
    assert figures(medallion, "--max-error", 0.5)["vertices"] < 1000
    missed = reconstruct(medallion, "--max-angle", 0.01, "-o", "best.glb", "--json")
    assert missed.exit_code == 3
    assert "out of reach" in missed.stderr
    assert Path("best.glb").exists()
    found = json.loads(missed.stdout)
    assert found["tolerance"] == {"bounds": {"max_angle": 0.01}, "reached": {"max_angle": found["mae"]}, "met": False}


def test_focal_length_is_a_centred_camera(medallion):
    figures(medallion, "-o", "m.ply", "--vertices", 100, "--focal-px", 200, "--distance", 500)
    depths = -trimesh.load("m.ply", process=False).vertices[:, 2]
    assert np.median(depths) == pytest.approx(500, rel=0.05)
    normal_map = read_normal_map(medallion, camera=lambda shape: Perspective.centred(200, shape))
    assert normal_map.camera == Perspective(200, 200, 32, 32)
    assert evaluate("m.ply", normal_map).mae < 20


def test_pixel_size_and_control_points_are_metric(medallion):
    Path("points.csv").write_text("u,v,depth\n32,32,7.5\n")
    figures(medallion, "-o", "m.ply", "--vertices", 100, "--pixel-size", 0.1, "--prior", "points.csv")
    mesh = trimesh.load("m.ply", process=False)
    assert np.ptp(mesh.vertices[:, 0]) == pytest.approx(6.2, abs=0.3)
    middle = np.argmin(np.linalg.norm(mesh.vertices[:, :2] - [3.2, -3.2], axis=1))
    assert mesh.vertices[middle, 2] == pytest.approx(7.5, abs=0.3)
    Path("points.csv").write_text("u,v,depth\n32,32,high\n")
    junk = reconstruct(medallion, "--prior", "points.csv")
    assert junk.exit_code == 1
    assert "normalmesh: error: points.csv: line 2" in junk.stderr


def test_photos_become_textures(medallion, photo):
    figures(medallion, "-o", "m.glb", "--vertices", 60, "--texture", photo)
    content = Path("m.glb").read_bytes()
    tree = json.loads(content[20 : 20 + struct.unpack("<I", content[12:16])[0]])
    assert "baseColorTexture" in tree["materials"][0]["pbrMetallicRoughness"]
    assert photo.read_bytes() in content
    assert tree["images"][0]["mimeType"] == "image/jpeg"
    figures(medallion, "-o", "m.obj", "--vertices", 60, "--texture", photo)
    assert "map_Kd m_texture.png" in Path("m.mtl").read_text()


def test_photo_orientation_is_applied(medallion, photo):
    image = PIL.Image.open(photo)
    exif = image.getexif()
    exif[0x0112] = 3
    image.rotate(180).save("turned.jpg", exif=exif, quality=95)
    figures(medallion, "-o", "m.glb", "--vertices", 60, "--texture", "turned.jpg")
    shown = np.asarray(trimesh.load("m.glb").to_geometry().visual.material.baseColorTexture.convert("RGB"))
    assert np.abs(shown.astype(int) - np.asarray(image)).mean() < 3


def test_rejected_textures(medallion, photo):
    no_colours = reconstruct(medallion, "-o", "m.stl", "--texture", photo)
    assert no_colours.exit_code == 1
    assert "STL has no colours" in no_colours.stderr
    PIL.Image.open(photo).crop((0, 0, 128, 100)).save("cropped.png")
    other = reconstruct(medallion, "--texture", "cropped.png")
    assert other.exit_code == 1
    assert "128 × 100 pixels but the normal map 64 × 64" in other.stderr
    assert not Path("m.glb").exists()


def test_previews_and_reports(medallion, photo, monkeypatch):
    def preview(surface, normal_map):
        return np.full((4, 5, 3), len(surface.vertices), np.uint8)

    def write_report(path, surface, normal_map, *, source, settings, warnings, texture):
        path.write_text(f"{len(surface.vertices)} {source} {settings['vertices']} {warnings} {texture}")

    monkeypatch.setattr("normalmesh.cli.output_files.preview", preview)
    monkeypatch.setattr("normalmesh.write_report", write_report, raising=False)
    found = figures(medallion, "-o", "x.glb", "--vertices", 60, "--preview", "--report", "--texture", photo)
    assert found["outputs"] == ["x.glb", "x.preview.png", "x.html"]
    assert (np.asarray(PIL.Image.open("x.preview.png")) == 60).all()
    assert Path("x.html").read_text() == f"60 m.png 60 {found['warnings']} photo.jpg"


def test_verbose_prints_settings_and_seconds(medallion):
    result = reconstruct(medallion, "--vertices", 60, "-v")
    assert result.exit_code == 0
    assert "settings     vertices 60, convention opengl" in result.stderr
    assert "seconds      read " in result.stderr
    assert "seconds" not in reconstruct(medallion, "--vertices", 60).stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--camera", "K.txt", "--focal-px", 300], "give only one of --camera, --focal-px"),
        (["--focal-px", 300, "--pixel-size", 0.1], "give only one of --focal-px, --pixel-size"),
        (["--distance", 300], "--distance requires a perspective camera"),
        (["--max-angle", 3, "--lod", "1%"], "give only one of --max-angle, --lod"),
        (["--continuous", "--jump-lines", "lines.txt"], "give only one of --continuous, --jump-lines"),
        (["-v", "-q"], "give only one of --verbose, --quiet"),
    ],
    ids=str,
)
def test_options_that_exclude_each_other(options, message, medallion):
    result = reconstruct(medallion, *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_name_that_ends_with_a_separator_is_for_tiles(medallion, photo):
    found = figures(medallion, "-o", "tiles/", "--vertices", 60, "--preview", "--depth", "d.tif", "--texture", photo)
    assert found["outputs"] == [str(Path("tiles/tileset.json")), "d.tif", "tiles.preview.png"]
    assert sorted(path.name for path in Path("tiles").iterdir()) == ["tiles", "tileset.json"]
    figures(medallion, "-o", "tiles", "--vertices", 50)  # a tileset by now
    assert sorted(path.name for path in Path("tiles").iterdir()) == ["tiles", "tileset.json"]
    batch = reconstruct("m*.png", "-o", "meshes/", "--vertices", 60)
    assert batch.exit_code == 0, batch.output
    assert [path.name for path in Path("meshes").iterdir()] == ["m.glb"]
    refused = reconstruct(medallion, "-o", "meshes/")
    assert refused.stderr.startswith("normalmesh: error: cannot write 3D Tiles to meshes: the folder has other files")
    levels = reconstruct(medallion, "-o", "tiles/", "--lod", "2%,1%")
    assert levels.stderr == "normalmesh: error: 3D Tiles have levels of detail already: leave out --lod\n"
    plain = reconstruct(medallion, "-o", "folder")
    assert plain.stderr.endswith(f"; the name of a folder of 3D Tiles must end with {os.sep}\n")


def test_depth_maps_are_written(medallion, photo):
    figures(medallion, "-o", "d.tif", "--vertices", 60)
    figures(medallion, "-o", "d.npy", "--vertices", 60)
    np.testing.assert_array_equal(tifffile.imread("d.tif"), np.load("d.npy"))
    assert not Path("m.glb").exists()
    textured = reconstruct(medallion, "-o", "d.tif", "--texture", photo)
    assert textured.stderr == (
        "normalmesh: error: d.tif cannot have a texture: a depth map has no colours; write GLB, OBJ or PLY instead\n"
    )
    other = reconstruct(medallion, "-o", "m.glb", "--depth", "d.jpg")
    assert "the suffix of depths must be one of" in other.stderr
    several = reconstruct(medallion, photo, "-o", "out", "--depth", "d.tif")
    assert "--depth must contain {stem} if there are several inputs" in several.stderr


def test_formats_are_checked_before_work_begins(medallion):
    result = reconstruct(medallion, "-o", "m.fbx")
    assert result.exit_code == 1
    message = "normalmesh: error: cannot write m.fbx: the suffix must be one of .ply, .obj, .glb, .stl, .exr, "
    assert result.stderr.startswith(message)


def test_debug_shows_the_traceback_before_and_after_the_command(tmp_path):
    missing = tmp_path / "none.png"
    assert "Traceback" not in run("inspect", missing).stderr
    for arguments in (
        ["--debug", "inspect", missing],
        ["inspect", missing, "--debug"],
        ["reconstruct", missing, "--debug"],
    ):
        result = run(*arguments)
        assert result.exit_code == 1
        assert "Traceback" in result.stderr
        assert result.stderr.splitlines()[-1] == f"normalmesh: error: {missing}: there is no such file"


def test_unexpected_errors_are_one_line(monkeypatch, tmp_path):
    def broken(*arguments, **options):
        raise KeyError("wheel")

    monkeypatch.setattr("normalmesh.maps.inspection.inspect_file", broken)
    result = run("inspect", tmp_path / "a.png")
    assert result.exit_code == 1
    assert result.stderr == "normalmesh: internal error: KeyError: 'wheel'; --debug shows where\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_NORMALMESH_COMPLETE" in result.stdout


def test_completion_knows_the_options():
    environment = {
        "_NORMALMESH_COMPLETE": "bash_complete",
        "COMP_WORDS": "normalmesh reconstruct --ma",
        "COMP_CWORD": "2",
    }
    result = CliRunner().invoke(normalmesh, [], prog_name="normalmesh", env=environment)
    assert {line.split(",")[1] for line in result.stdout.splitlines()} == {
        "--mask",
        "--max-angle",
        "--max-error",
        "--max-pixels",
    }
