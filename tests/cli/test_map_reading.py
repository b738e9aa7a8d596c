"""Test the options of the camera, which all commands that take a map share."""

import json
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

import normalmesh as nm
from invocation import invoke, medallion, succeed, write_medallion
from normalmesh import Perspective

SHAPE = (64, 64)


@pytest.fixture
def coin(tmp_path, monkeypatch):
    """Write the normals of a medallion and a photograph with EXIF data to a temporary current folder."""
    monkeypatch.chdir(tmp_path)
    photo = PIL.Image.new("RGB", (128, 128))
    exif = photo.getexif()
    exif[0x8769] = {0x920A: 50.0, 0xA405: 75}
    photo.save("photo.jpg", exif=exif)
    return write_medallion(Path("coin.png"), 64)


def camera_of(*options):
    found = json.loads(succeed("inspect", "coin.png", *options, "--json").stdout)["camera"]
    return found.pop("kind"), found


def test_every_way_to_choose_a_camera(coin):
    np.savetxt("K.txt", Perspective.centred(99.0, SHAPE).matrix())
    assert camera_of() == camera_of("--camera", "orthographic") == ("orthographic", {"pixel_size": 1.0})
    for options, camera in {
        ("--focal-px", "80"): Perspective.centred(80, SHAPE),
        ("--fov", "90"): Perspective.centred(32, SHAPE),
        ("--camera", "perspective"): Perspective.centred(96, SHAPE),
        ("--camera", "K.txt"): Perspective.centred(99, SHAPE),
        ("--camera", "photo.jpg"): Perspective.from_exif("photo.jpg", SHAPE),
    }.items():
        kind, found = camera_of(*options)
        assert kind == "perspective"
        assert found == pytest.approx(vars(camera), rel=1e-9)


def test_all_commands_take_the_field_of_view(coin):
    succeed("reconstruct", coin, "--fov", "40", "-o", "c.ply", "-q")
    measured = json.loads(succeed("evaluate", "c.ply", "--normals", coin, "--fov", "40", "--json").stdout)
    assert measured["covered"] > 0.95
    depth = json.loads(succeed("convert", "c.ply", "c.npy", "--normals", coin, "--fov", "40", "--json").stdout)
    rendered = json.loads(succeed("render", "stone", "--size", "64", "--fov", "40", "--json").stdout)
    assert (
        depth["camera"]
        == rendered["camera"]
        == json.loads(succeed("inspect", coin, "--fov", "40", "--json").stdout)["camera"]
    )
    assert "--fov" in succeed("view", "--help").stdout


@pytest.mark.parametrize("command", ["inspect", "reconstruct", "view"])
def test_only_one_camera_may_be_given(coin, command):
    result = invoke(command, coin, "--fov", "40", "--focal-px", "80")
    assert result.exit_code == 2
    assert "give only one of --focal-px, --fov" in result.stderr


def test_what_cannot_be_a_camera(coin):
    assert "no focal length in its EXIF" in invoke("inspect", coin, "--camera", "exif").stderr
    assert "there is no file" in invoke("inspect", coin, "--camera", "missing.txt").stderr.replace("no such", "no")
    assert invoke("render", "stone", "--camera", "exif").exit_code == 1
    assert invoke("inspect", coin, "--fov", "180").exit_code == 2


def test_inspect_mentions_the_exif_focal_length_and_does_not_use_it(coin):
    image = PIL.Image.open("photo.jpg")
    normals = PIL.Image.fromarray(np.full((64, 96, 3), (128, 128, 255), np.uint8))
    normals.save("with.png", exif=image.getexif())
    text = succeed("inspect", "with.png").stdout
    assert "orthographic" in text
    assert "EXIF: 50 mm, 75 mm on 35 mm film; --camera exif takes it as a focal length of 200 px" in text
    assert json.loads(succeed("inspect", "with.png", "--camera", "exif", "--json").stdout)["camera"]["fx"] == (
        pytest.approx(200, abs=0.1)
    )


def test_the_camera_in_the_file_of_a_map(tmp_path):
    def unit(*options):
        result = invoke(
            "reconstruct", tmp_path / "n.npz", "-o", tmp_path / "s.stl", "--vertices", 60, "--json", *options
        )
        found = json.loads(result.stdout)
        assert result.exit_code == (found["error"] is not None)
        return found["error"] or found["uncertainty"]["units"]

    normals, mask = medallion(48).normal_map.normals, medallion(48).normal_map.mask
    nm.NormalMap(normals, mask, nm.Perspective.centred(100.0, (48, 48))).save(tmp_path / "n.npz")
    assert unit() == "units"
    assert unit("--distance", 200) == "mm"
    assert unit("--solid", 2, "--distance", 200) == "mm"
    assert "add --distance MM" in unit("--solid", 2)
    assert "--flatten requires an orthographic camera" in unit("--flatten", "plane")
    nm.NormalMap(normals, mask, nm.Orthographic(0.5)).save(tmp_path / "n.npz")
    assert unit() == "units"
    assert unit("--pixel-size", 0.5) == "mm"
    assert "--distance requires a perspective camera" in unit("--distance", 200)
