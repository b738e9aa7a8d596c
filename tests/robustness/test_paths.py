"""Test unusual file names: spaces, other scripts, line breaks, leading dashes, bytes that are not UTF-8, links."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import trimesh

from invocation import invoke, medallion, succeed, write_medallion
from normal_map_files import dome, layer, write_exr
from normalmesh import Surface, reconstruct
from normalmesh.errors import escaped, path_text
from normalmesh.maps.stored_normals import read_array
from normalmesh.output.mesh_formats import plain_stem
from normalmesh.output.mesh_writing import convert_mesh

STEMS = {
    "spaces": "two words ",
    "unicode": "Μέδουσα ü 浮雕 🗿",
    "line break": "two\nlines",
    "escape": "\x1b[31mred",
    "dash": "-o",
    "hash": "a#1 50%",
    "quotes": 'it\'s "so"',
    "braces": "{x} [1] *?",
    "not UTF-8": os.fsdecode(b"caf\xe9\xff"),
    "dots": "..a..b",
    "html": "<script>alert(1)</script>&amp;".replace("/", "∕"),
}


@pytest.fixture(params=STEMS)
def stem(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a stem, after writing a normal map of that name to the current folder."""
    monkeypatch.chdir(tmp_path)
    name = STEMS[request.param]
    try:
        write_medallion(Path("plain.png")).rename(f"{name}.png")
    except (OSError, ValueError):
        pytest.skip("the file system does not allow this name")
    return name


@pytest.fixture(scope="module")
def surface() -> Surface:
    return reconstruct(medallion().normal_map, vertices=60)


@pytest.mark.parametrize("stem", ["line break", "not UTF-8", "html"], indirect=True)
def test_all_outputs_with_unusual_names(stem: str) -> None:
    result = succeed(
        "reconstruct", "--json", "--preview", "--report", "--jumps", f"{stem}.jumps.png", "--", f"{stem}.png"
    )
    expected = [f"{stem}.glb", f"{stem}.jumps.png", f"{stem}.preview.png", f"{stem}.html"]
    assert json.loads(result.stdout)["outputs"] == expected
    assert sorted(os.listdir()) == sorted([*expected, f"{stem}.png"])
    assert len(trimesh.load_scene(f"./{stem}.glb").geometry) == 1
    page = Path(f"{stem}.html").read_text("utf-8")
    assert "<script>alert" not in page


def test_an_obj_finds_its_material_and_texture(stem: str, surface: Surface) -> None:
    target = Path(f"{stem}.obj")
    PIL.Image.new("RGB", (8, 8)).save(f"{stem}.png")
    surface.save(target, texture=f"{stem}.png")
    surface.save(f"{stem}.glb")
    assert len(trimesh.load_scene(f"./{stem}.glb").geometry) == 1
    Path(f"{stem}.glb").unlink()
    assert len(os.listdir()) == 4
    lines = target.read_text("utf-8").splitlines()
    material = next(line.removeprefix("mtllib ") for line in lines if line.startswith("mtllib"))
    described = Path(material).read_text("utf-8").splitlines()
    assert Path(next(line.removeprefix("map_Kd ") for line in described if line.startswith("map_Kd"))).is_file()
    used = next(line.removeprefix("usemtl ") for line in lines if line.startswith("usemtl"))
    assert f"newmtl {used}" in described
    convert_mesh(target, Path("out.glb"))
    assert b"image/png" in Path("out.glb").read_bytes()


def test_errors_about_unusual_names_are_one_line(stem: str) -> None:
    Path(f"{stem}.png").write_bytes(b"junk")
    for arguments in (("inspect",), ("reconstruct", "-o", "x.glb"), ("reconstruct", "-o", f"{stem}/x.glb")):
        result = invoke(*arguments, "--", f"{stem}.png")
        assert result.exit_code == 1
        assert len(result.stderr.splitlines()) == 1
        assert "\x1b" not in result.stderr


#: Commands that succeed, with NAME for the name of all files, and what they print on a terminal.
SUCCEEDING = [
    "reconstruct NAME.png --vertices 60 -v --camera NAME.txt",
    "reconstruct NAME.png c.png --vertices 60 --convention auto",
    "reconstruct NAME.png c.png --dry-run --mask NAME.png",
    "inspect NAME.png c.png --mask NAME.png --convention directx",
    "convert NAME.ply NAME.obj",
    "evaluate NAME.ply --normals NAME.png --error-map NAME.e.png",
    "convert NAME.ply NAME.npy --size 96",
    "render NAME.ply --size 16 -o NAME.r.png --mask NAME.m.png",
]


@pytest.mark.filterwarnings("ignore:.*neither black nor white")
@pytest.mark.parametrize("command", SUCCEEDING)
@pytest.mark.parametrize("stem", ["two\nlines", "\x1b[31mred", "\u202egnp.x", "it's\r"], ids=repr)
def test_unusual_names_are_quoted_on_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, surface: Surface, stem: str, command: str
) -> None:
    """The output is that for a plain name, but with the quoted one in its place."""
    if command.startswith("render") or command.endswith("--size 96"):
        pytest.importorskip("embreex")
    monkeypatch.chdir(tmp_path)
    printed = []
    for name in (stem, "plain"):
        for copy in (f"{name}.png", "c.png"):
            write_medallion(tmp_path / copy)
        (tmp_path / f"{name}.txt").write_text("900 0 48 0 900 48 0 0 1")
        surface.save(f"{name}.ply")
        result = succeed(*(word.replace("NAME", name) for word in command.split()))
        text = result.stdout + re.sub(r"needs .*|compiling .*\n", "", result.stderr)
        printed.append(re.sub(r"\d+\.\d+ s\b|seconds .*", "TIME", text))
    found, plain = printed
    assert "\x1b" not in found
    assert len(found.splitlines()) == len(plain.splitlines())
    for suffix in (".png", ".txt", ".ply", ".glb", ".obj", ".e.png", ".npy", ".r.png", ".m.png", ""):
        found = found.replace(path_text(stem + suffix), f"plain{suffix}")
    # Tables are as wide as their names, and hold seconds.
    assert _layout_left_out(found) == _layout_left_out(plain)


def _layout_left_out(text: str) -> str:
    return re.sub(r"\d\.\d(?=  )", "TIME", re.sub(r" {2,}", "  ", text))


@pytest.mark.parametrize("stem", ["line break"], indirect=True)
def test_unusual_names_are_quoted_in_warnings_reports_and_usage_errors(stem: str) -> None:
    quoted = path_text(f"{stem}.png")
    write_medallion(Path(f"{stem}.png"), axes=(1, -1, 1))
    result = succeed("reconstruct", f"{stem}.png", "--report", "--vertices", 60)
    assert f"normalmesh: warning: {quoted}: the data contradict" in result.stderr
    assert html.escape(quoted) in Path(f"{stem}.html").read_text("utf-8")
    assert path_text(f"{stem}.glb") in result.stdout
    result = invoke("convert", f"{stem}.png", "x.ply")
    assert f"{quoted} is not a mesh" in result.stderr
    assert "\x1b" not in invoke("inspect", "-\x1b[31m").stderr


@pytest.mark.parametrize("stem", ["escape"], indirect=True)
def test_names_inside_files_are_escaped(stem: str) -> None:
    """A file can hold names, too, which errors list."""
    np.savez("n.npz", **{f"{stem}1": np.zeros((4, 4, 3)), f"{stem}2": np.zeros((4, 4, 3))})
    result = invoke("inspect", "n.npz")
    assert result.exit_code == 1
    assert "\\x1b[31mred1" in result.stderr
    assert "\x1b" not in result.stderr


def test_how_names_are_printed() -> None:
    for ordinary in (
        "a b-1.png",
        "Μέδουσα ü 浮雕 🗿",
        'it\'s "so"',
        "back\\n",
        "caf\udce9",
        "می\u200cخواهم",
        "名\u3000前",
    ):
        assert path_text(ordinary) == ordinary
    assert path_text(Path("a\nb\x1b ü")) == r"'a\nb\x1b ü'"
    assert path_text("\x9b31m") == r"'\x9b31m'"
    assert path_text(os.fsdecode(b"\x9b31m")) == r"'\udc9b31m'"
    assert escaped("a\nb\x1b") == "a\nb\\x1b"


def test_names_are_printed_unchanged(tmp_path: Path) -> None:
    """The standard streams of the process accept only valid UTF-8."""
    name = b"caf\xe9.png"
    try:
        write_medallion(tmp_path / "n.png").rename(tmp_path / os.fsdecode(name))
    except OSError:
        pytest.skip("the file system does not allow this name")
    for arguments in (["inspect", name], ["inspect", b"missing \xe9"]):
        done = subprocess.run(
            [sys.executable, "-m", "normalmesh", *arguments],
            cwd=tmp_path,
            capture_output=True,
            env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
            check=False,
        )
        assert arguments[1] in done.stdout + done.stderr
        assert b"Traceback" not in done.stderr
        assert b"internal error" not in done.stderr


def test_an_exr_whose_name_is_not_utf8(tmp_path: Path) -> None:
    path = write_exr(tmp_path / "n.exr", layer(dome()))
    try:
        path = path.rename(tmp_path / os.fsdecode(b"n\xff.exr"))
    except OSError:
        pytest.skip("the file system does not allow this name")
    assert read_array(path).size == (12, 17)


def test_outputs_that_are_links(tmp_path: Path) -> None:
    """The target of a link is replaced or, if it is missing, created; the link itself is kept."""
    source, folder = write_medallion(tmp_path / "n.png"), tmp_path / "folder"
    folder.mkdir()
    (folder / "there.glb").write_bytes(b"old")
    for name in ("there", "new"):
        (tmp_path / f"{name}.glb").symlink_to(folder / f"{name}.glb")
        succeed("reconstruct", source, "-o", tmp_path / f"{name}.glb", "-q")
        assert (tmp_path / f"{name}.glb").is_symlink()
        assert (folder / f"{name}.glb").read_bytes().startswith(b"glTF")
    assert sorted(os.listdir(folder)) == ["new.glb", "there.glb"]


def test_names_inside_text_files() -> None:
    assert plain_stem(Path("plain name-1.2.obj")) == "plain name-1.2"
    assert plain_stem(Path("a#\n%.obj")) == "a%23%0A%25"
    stems = [plain_stem(Path(f"{stem}.obj")) for stem in STEMS.values()]
    assert len(set(stems)) == len(stems)
    assert all(stem.isprintable() for stem in stems)
