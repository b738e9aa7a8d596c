"""Test that ``normalmesh report`` and ``view`` take all that ``reconstruct`` writes."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import normalmesh as nm
from invocation import invoke, messages, succeed, write_medallion
from normalmesh.cli import pages
from normalmesh.cli.console import Console
from normalmesh.cli.map_reading import MapReading
from normalmesh.output.tileset import write_tileset
from normalmesh.report import page


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Write a map of 48 × 48 pixels of 0.5 mm and its surface in all formats, and return their folder."""
    folder = tmp_path_factory.mktemp("made")
    write_medallion(folder / "map.png", 48)
    outputs = [f"s.{kind}" for kind in ("ply", "obj", "glb", "stl", "tif", "npy", "exr", "png")]
    outputs = [word for name in outputs for word in ("-o", folder / name)]
    succeed(
        "reconstruct", folder / "map.png", "--vertices", 90, "--pixel-size", "0.5", *outputs, "-o", f"{folder}/tiles/"
    )
    return folder


def figure(text, name):
    """Return a figure of a page."""
    found = re.search(rf"<(?:dt|th[^>]*)>{name}</(?:dt|th)><(?:dd|td)>(.*?)<", text)
    return found[1].replace("\u202f", "")


@pytest.mark.parametrize("name", ["s.ply", "s.obj", "s.glb", "s.stl", "tiles", "tiles/tileset.json"])
def test_meshes_and_tiles(made, tmp_path, name):
    succeed("report", made / name, "-o", tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text("utf-8")
    assert figure(text, "Vertices") == "90"
    assert float(figure(text, "Extent").split()[0]) == pytest.approx(24, rel=0.05)


def test_only_html_is_written(made, tmp_path):
    result = invoke("report", made / "s.ply", "-o", tmp_path / "s.glb")
    assert result.exit_code == 2
    assert "the suffix must be .html or .htm" in result.stderr
    assert not (tmp_path / "s.glb").exists()


@pytest.mark.parametrize("name", ["s.png", "s.tif", "s.npy", "s.exr"])
def test_heights(made, tmp_path, name):
    arguments = () if name == "s.png" else ("--pixel-size", "0.5")
    with warnings.catch_warnings():
        warnings.simplefilter("error", nm.NormalMeshWarning)
        succeed("report", made / name, "-o", tmp_path / "r.html", *arguments)
    text = (tmp_path / "r.html").read_text("utf-8")
    assert int(figure(text, "Vertices")) == pytest.approx(np.isfinite(nm.read_depth_map(made / name)).sum(), abs=8)
    assert float(figure(text, "Extent").split()[0]) == pytest.approx(23.5, rel=0.05)
    if name != "s.png":
        with pytest.warns(nm.NormalMeshWarning, match="has no pixel size"):
            succeed("report", made / name, "-o", tmp_path / "r.html")
        assert "has no pixel size" in (tmp_path / "r.html").read_text("utf-8")


@pytest.mark.parametrize("name", ["s.glb", "s.png", "s.tif", "tiles"])
def test_comparison_with_the_normal_map(made, tmp_path, name):
    common = ("--normals", made / "map.png", "--pixel-size", "0.5")
    succeed("report", made / name, *common, "--texture", made / "map.png", "-o", tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text("utf-8")
    assert 0 < float(figure(text, "Mean angular error").rstrip("°")) < 20
    assert 'value="photo"' in text
    assert ("Bad area" in text) == (name in ("s.glb", "tiles"))


def test_the_pixel_size_of_a_surface_in_millimetres(made, tmp_path):
    result = succeed("report", made / "s.png", "--normals", made / "map.png", "-o", tmp_path / "p.html")
    assert messages(result) == ""
    assert float(figure((tmp_path / "p.html").read_text("utf-8"), "Mean angular error").rstrip("°")) < 20
    with pytest.warns(nm.NormalMeshWarning, match=r"s.glb covers only .* check --camera, and --pixel-size"):
        succeed("report", made / "s.glb", "--normals", made / "map.png", "-o", tmp_path / "g.html")
    assert "covers only" in (tmp_path / "g.html").read_text("utf-8")


def test_a_normal_map_is_reconstructed_and_the_report_is_beside_it(made, tmp_path, monkeypatch):
    (tmp_path / "n.png").write_bytes((made / "map.png").read_bytes())
    monkeypatch.chdir(tmp_path)
    assert succeed("report", "n.png").stdout == "wrote        n.html\n"
    assert "Mean angular error" in Path("n.html").read_text("utf-8")
    assert pages.page_of(Path("n.html"), MapReading(), Console()) == Path("n.html").read_bytes()


def test_large_results_are_thinned_and_the_page_says_so(made, monkeypatch, tmp_path):
    monkeypatch.setattr(page, "MAX_FACES", 60)
    thinned = pages.page_of(made / "s.ply", MapReading(), Console()).decode()
    assert re.search(r"The viewer shows \d\d of 1\d\d faces", thinned)
    with pytest.warns(nm.NormalMeshWarning, match="heights, .* are shown"):
        pages.page_of(made / "s.png", MapReading(), Console())
    surface = nm.reconstruct(nm.read_normal_map(made / "map.png"), vertices=200)
    write_tileset(surface, tmp_path / "tiles", max_faces=40)
    with pytest.warns(nm.NormalMeshWarning, match="coarser level"):
        pages.page_of(tmp_path / "tiles", MapReading(), Console())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("r.html",), "is a report already"),
        (("missing.glb",), "no such file"),
        ((".",), "is no folder of 3D Tiles"),
        (("s.glb", "-o", "s.glb"), "this file is read, too"),
        (("both.npz", "--mask", "missing.png"), "missing.png: there is no such file"),
        (("both.npz", "--convention", "opengll"), "opengll"),
        (("s.glb", "--texture", "map.png"), "--texture requires --normals"),
        (("s.png", "--normals", "other.png"), "give the map that it was reconstructed from"),
        (("s.glb", "--camera", "K.txt", "--pixel-size", "2"), "give only one of"),
    ],
    ids=str,
)
def test_refused(made, tmp_path, monkeypatch, arguments, message):
    np.savez(tmp_path / "both.npz", normals=np.tile([0.0, 0.0, 1.0], (8, 8, 1)), depth=np.ones((8, 8)))
    for name in ("s.glb", "s.png", "map.png"):
        (tmp_path / name).write_bytes((made / name).read_bytes())
    write_medallion(tmp_path / "other.png", 40)
    monkeypatch.chdir(tmp_path)
    result = invoke("report", *arguments)
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert not list(tmp_path.glob("*.html"))
