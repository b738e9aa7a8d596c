"""Test that the examples run unchanged, and that their output can be read."""

import runpy
import sys
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
import trimesh

from normalmesh import NormalMeshWarning, evaluate, reconstruct
from normalmesh.evaluation.synthetic.analytic import sphere
from normalmesh.evaluation.synthetic.medallion import Medallion

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that runs an example in an empty folder and returns its output."""
    monkeypatch.chdir(tmp_path)

    def run_example(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return run_example


def faces_of(path):
    return len(trimesh.load(path, force="mesh").faces)


def test_diligent_folder(run):
    made = run("diligent_folder.py", "--size", 64, "--output", "first")
    assert "median angle to Normal_gt.mat: 0." in made
    assert faces_of("first/surface.glb") > 100
    assert imagecodecs.imread("first/wireframe.png").shape == (64, 64, 3)
    # The folder that it made can be used as input.
    assert "median angle" in run("diligent_folder.py", "first/made", "--output", "second")


def test_photometric_stereo(run):
    truth = sphere(64)
    run("photometric_stereo.py", "--size", 64, "-o", "ball.ply")
    assert evaluate("ball.ply", truth.normal_map, truth.depth).rmse < 0.5


def test_photometric_stereo_of_files(run):
    truth = sphere(64).normal_map
    lights = np.array([[0.5, 0, 0.85], [-0.4, 0.4, 0.8], [-0.3, -0.5, 0.8], [0, 0, 1]])
    np.savetxt("lights.txt", lights)
    files = []
    for number, light in enumerate(lights / np.linalg.norm(lights, axis=1, keepdims=True)):
        files.append(f"photo{number}.png")
        imagecodecs.imwrite(files[-1], np.round(60000 * np.maximum(truth.normals @ light, 0)).astype(np.uint16))
    # Only the middle, which all lights illuminate.
    imagecodecs.imwrite("mask.png", 255 * (truth.normals[..., 2] > 0.85).astype(np.uint8))
    assert "surface.glb" in run(
        "photometric_stereo.py", "lights.txt", *files, "--mask", "mask.png", "-o", "surface.glb"
    )
    assert faces_of("surface.glb") > 10


def test_photometric_stereo_of_an_lp_file(run):
    run("photometric_stereo.py", "--size", 64, "-o", "first.ply")
    lines = Path("photographs.lp").read_text().splitlines()
    assert lines[0] == "12"
    # The order of lines does not matter, nor that of files, since they have names.
    Path("other.lp").write_text("\n".join([lines[0], *lines[:0:-1]]))
    files = sorted(Path("photographs").glob("*.png"))
    run("photometric_stereo.py", "other.lp", *files, "--mask", "ball_mask.png", "-o", "second.ply")
    assert Path("first.ply").read_bytes() == Path("second.ply").read_bytes()


def test_ptm_to_surface(run):
    truth = Medallion(96)
    with pytest.warns(NormalMeshWarning, match="smooth fit"):
        assert "PTM_FORMAT_LRGB" in run("ptm_to_surface.py", "--size", 96)
    # Black around the medallion is background, as in the true map.
    surface = reconstruct(truth.normal_map, compression=0.95)
    assert faces_of("relief.glb") == pytest.approx(len(surface.mesh.faces), rel=0.1)
    with pytest.warns(NormalMeshWarning, match="smooth fit"):
        run("ptm_to_surface.py", "medallion.ptm", "-o", "again.glb")
    assert faces_of("again.glb") == faces_of("relief.glb")


def test_texture_to_glb(run):
    run("texture_to_glb.py", "--size", 64)
    assert faces_of("texture.glb") > 100
    colours = np.full((64, 64, 3), 128, np.uint8)
    imagecodecs.imwrite("colour.png", colours)
    run("texture_to_glb.py", "texture_normal.png", "--colour", "colour.png", "-o", "again.glb")
    assert faces_of("again.glb") == faces_of("texture.glb")
