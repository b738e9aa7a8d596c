"""Test that the examples run unchanged, and that their output can be read."""

import re
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


def test_tileable_texture(run):
    printed = run("tileable_texture.py", "--size", 64)
    assert "repeats in x and y" in printed
    heights = imagecodecs.imread("bricks_height.png").astype(float)
    assert heights.shape == (64, 64)
    assert heights.max() == 65535
    steps = np.abs(np.diff(heights, axis=1, append=heights[:, :1])).mean(axis=0)
    assert steps[-1] < steps[:-1].max()
    assert imagecodecs.imread("bricks_shaded.png").shape[:2] == (128, 128)
    assert faces_of("bricks.glb") > 100
    run("tileable_texture.py", "bricks_normal.png", "-o", "again")
    assert np.array_equal(imagecodecs.imread("again_height.png"), heights)


def test_printable_coin(run):
    made = run("printable_coin.py", "--size", 96)
    assert "flattened: plane: tilt 0." in made
    assert "1 piece" in made
    coin = trimesh.load("coin.stl")
    assert coin.is_watertight
    assert coin.extents[:2] == pytest.approx(40, rel=0.01)
    # The file that it made can be used as input.
    assert "10 × 9.99" in run("printable_coin.py", "coin_normals.png", "--width", "10mm", "--flatten", "none")


def test_height_difference(run):
    printed = run("height_difference.py", "--size", 96)
    value, deviation = map(float, re.search(r"measured: (\S+) ± (\S+) mm", printed).groups())
    assert 0.0005 < deviation < 0.002
    assert abs(value - 0.25) < 4 * deviation


def test_height_difference_of_files(run):
    normals = sphere(64).normal_map
    imagecodecs.imwrite("normals.png", np.round(65535 * (normals.normals + 1) / 2).astype(np.uint16))
    imagecodecs.imwrite("mask.png", 255 * normals.mask.astype(np.uint8))
    points = ("--from", 32, 32, "--to", 40, 32)
    printed = run("height_difference.py", "normals.png", "--mask", "mask.png", *points, "--noise", 1)
    assert re.search(r"measured: -\S+ ± 0\.\d+ px", printed)


def test_open3d_round_trip(run):
    pytest.importorskip("open3d", exc_type=ImportError)
    made = run("open3d_round_trip.py", "--size", 64, "--smooth", 1)
    assert "which is manifold" in made
    assert 0 < float(made.split("moved it by")[1].split()[0]) < 1
    assert faces_of("smooth.ply") > 50


def test_notebook_display(tmp_path):
    """The notebook runs, and its outputs are a picture and a frame, each with the plain text beside it."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(EXAMPLES / "notebook_display.ipynb", 4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    picture, frame = (cell.outputs[-1].data for cell in notebook.cells if cell.cell_type == "code")
    assert "data:image/png" in picture["text/html"]
    assert frame["text/html"].startswith("<iframe srcdoc=")
    assert frame["text/plain"].startswith("Surface(")
