"""Test the command line in a process of its own."""

import json
import re
import subprocess
import sys

import click
import imagecodecs
import numpy as np
import pytest

import normalmesh
from invocation import invoke, messages, write_medallion
from invocation import medallion as truth
from normalmesh.cli import normalmesh as group
from normalmesh.cli.reconstruct import SECTIONS, reconstruct
from surfaces import flap


def command(*arguments):
    return [sys.executable, "-m", "normalmesh", *map(str, arguments)]


def run(*arguments, **options):
    return subprocess.run(command(*arguments), capture_output=True, text=True, **options)


@pytest.fixture(scope="module")
def medallion(tmp_path_factory):
    """Write a PNG of 96 × 96 pixels, with the mask in its alpha channel, and return its path."""
    return write_medallion(tmp_path_factory.mktemp("maps") / "medallion.png", 96)


def test_help_imports_nothing_heavy():
    heavy = ("numpy", "numba", "rich", "scipy", "trimesh")
    code = f"import sys, normalmesh.cli; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
    help_text = run("--help")
    assert help_text.returncode == 0
    assert "inspect" in help_text.stdout


def test_version():
    assert run("--version").stdout.strip() == f"normalmesh, version {normalmesh.__version__}"


def test_demo_then_inspect(tmp_path):
    demo = run("demo", "--size", 64, "--compression", 95, "--output", tmp_path / "made")
    assert demo.returncode == 0, demo.stderr
    names = {path.name for path in (tmp_path / "made").iterdir()}
    assert names == {"normals.png", "medallion.ply", "medallion.glb"} | {
        f"{picture}.png" for picture in ("input", "wireframe", "shaded", "error", "overview")
    }
    assert "compression  95." in demo.stdout
    assert "RMSE" in demo.stdout
    inspect = run("inspect", tmp_path / "made" / "normals.png")
    assert inspect.returncode == 0
    assert "64 × 64 pixels" in inspect.stdout
    assert "1 component, 0 holes" in inspect.stdout


def test_reconstruct_reports_depth_jumps(tmp_path):
    normals = flap(96)[1].normals
    image = np.round((normals.astype(np.float64) + 1) / 2 * 65535).astype(np.uint16)
    imagecodecs.imwrite(tmp_path / "flap.png", image)
    result = run("reconstruct", tmp_path / "flap.png", "--compression", 0.95, "--jumps", tmp_path / "jumps.png")
    assert result.returncode == 0, result.stderr
    assert "1 line, " in result.stdout
    assert re.search(r"^walls +\d+ faces closing \d+ px of jumps$", result.stdout, re.MULTILINE)
    assert (tmp_path / "flap.glb").stat().st_size > 1000
    picture = imagecodecs.imread(tmp_path / "jumps.png")
    assert picture.shape == (96, 96, 3)
    assert np.ptp(picture.astype(int), axis=-1).max() > 50
    flat = run("reconstruct", tmp_path / "flap.png", "-o", tmp_path / "flat.ply", "--continuous")
    assert flat.returncode == 0, flat.stderr
    assert "jumps" not in flat.stdout
    assert run("reconstruct", tmp_path / "flap.png", "-o", tmp_path / "no" / "where.ply").returncode == 1


def test_gaps_are_closed_or_left_open(tmp_path):
    normals = flap(96)[1].normals.astype(np.float64)
    image = np.round((normals + 1) / 2 * 65535).astype(np.uint16)
    foreground = np.full((96, 96, 1), 65535, np.uint16)
    foreground[:, :12] = 0
    imagecodecs.imwrite(tmp_path / "flap.png", np.dstack([image, foreground]))

    def walls(*options):
        result = run("reconstruct", tmp_path / "flap.png", "--compression", 0.95, "--json", *options)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)["walls"]

    assert walls() == walls("--gaps", "open") == {"faces": 0, "length": 0.0}
    closed = walls("--gaps", "walls")
    assert closed["faces"] > 10
    assert closed["length"] > 20
    assert walls("--solid", "5px", "-o", tmp_path / "flap.glb") == closed
    assert walls("--continuous", "--gaps", "walls") is None


def test_dry_run_prints_estimates(medallion, tmp_path):
    result = run("reconstruct", medallion, "-o", tmp_path / "a.glb", "--vertices", 300, "--dry-run")
    assert result.returncode == 0, result.stderr
    labels = [line.split()[0] for line in result.stdout.splitlines()]
    assert labels == ["size", "vertices", "needs", "available"]
    foreground = truth().normal_map.foreground
    assert f"96 × 96 pixels, {100 * foreground / 96**2:.1f} % foreground ({foreground})" in result.stdout
    assert "vertices     300\n" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_dry_run_considers_the_shape_of_the_mask(tmp_path):
    write_medallion(tmp_path / "n.png", 200)
    solid = np.full((200, 200), 255, np.uint8)
    thin = solid.copy()
    thin[1:, ::2] = 0
    needs = []
    for mask, rule in ((solid, "--vertices"), (thin, "--vertices"), (solid, "--max-error")):
        (tmp_path / "mask.png").write_bytes(imagecodecs.png_encode(mask))
        arguments = ("--mask", tmp_path / "mask.png", rule, 400, "--dry-run", "--json")
        needs.append(json.loads(run("reconstruct", tmp_path / "n.png", *arguments).stdout)["memory"])
    assert needs[1] > 1.5 * needs[0]
    assert needs[2] > 1.05 * needs[0]


def test_dry_run_reads_only_the_mask(tmp_path):
    """The normal map is truncated, so that its pixels cannot be read. Its size is in the header."""
    whole = write_medallion(tmp_path / "whole.png", 96).read_bytes()
    (tmp_path / "n.png").write_bytes(whole[:1000])
    (tmp_path / "m.png").write_bytes(imagecodecs.png_encode(np.pad(np.full((48, 48), 255, np.uint8), 24)))
    result = run("reconstruct", tmp_path / "n.png", "--mask", tmp_path / "m.png", "--threshold", 9, "--dry-run")
    assert "96 × 96 pixels, 25.0 % foreground (2304)" in result.stdout
    assert "vertices     about" in result.stdout
    (tmp_path / "small.png").write_bytes(imagecodecs.png_encode(np.full((30, 20), 255, np.uint8)))
    result = run("reconstruct", tmp_path / "n.png", "--mask", tmp_path / "small.png", "--dry-run")
    assert "mask is 30×20 but normals are 96×96" in result.stderr
    assert run("reconstruct", tmp_path / "n.png", "--dry-run").returncode == 1


def test_quiet_prints_nothing(medallion, tmp_path):
    result = run("reconstruct", medallion, "-o", tmp_path / "a.ply", "--vertices", 200, "--threads", 1, "-q")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert b"element vertex 200\n" in (tmp_path / "a.ply").read_bytes()[:300]


def test_estimate_comes_first_and_progress_needs_a_terminal(medallion, tmp_path):
    result = run("reconstruct", medallion, "-o", tmp_path / "a.ply", "--threshold", 30)
    notices = messages(result).splitlines()
    assert len(notices) == 1
    assert notices[0].startswith("needs        about ")
    assert "%" not in result.stderr


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--threads", 4000], 1, "normalmesh: error: threads is 4000, but there are at most"),
        (["--memory-limit", "2 MB"], 1, "but 2 MB are allowed"),
        (["--memory-limit", "much"], 2, "'much' is neither a size such as 12GB"),
        (["--vertices", 90, "--compression", 0.9], 2, "give only one of --vertices, --compression"),
        (["--vertices", 2], 2, "2 is not in the range"),
        (["--threshold", 0], 2, "0.0 is not in the range"),
    ],
    ids=str,
)
def test_reconstruct_rejects(options, status, message, medallion, tmp_path):
    result = run("reconstruct", medallion, "-o", tmp_path / "a.glb", *options)
    assert result.returncode == status
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["inspect", "missing.png"], 1, "normalmesh: error: missing.png: there is no such file"),
        (["inspect"], 2, "Missing argument"),
        (["nonsense"], 2, "No such command"),
    ],
)
def test_errors_are_one_line(arguments, status, message, tmp_path):
    result = run(*arguments, cwd=tmp_path)
    assert result.returncode == status
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_warnings_are_one_line(tmp_path):
    image = np.full((8, 8, 3), (128, 128, 255), np.uint8)
    image[2, 2] = (128, 200, 10)
    (tmp_path / "n.png").write_bytes(imagecodecs.png_encode(image))
    result = run("inspect", tmp_path / "n.png")
    assert result.returncode == 0
    assert messages(result).startswith("normalmesh: warning: 1 normal")


@pytest.mark.parametrize("words", [[], *([name] for name in group.commands)], ids=str)
def test_help_fits_80_columns(words):
    assert max(map(len, invoke(*words, "--help").stdout.splitlines())) <= 80


def test_help_of_reconstruct_has_sections_with_every_option_once():
    lines = invoke("reconstruct", "--help").stdout.splitlines()
    lines = lines[lines.index("Output:") :]
    assert [line for line in lines if line.endswith(":") and line[0] != " "] == [
        *(f"{heading}:" for heading in SECTIONS),
        "Other options:",
    ]
    listed = [found[1] for line in lines if (found := re.match(r"  (?:-\w, )?(--[\w-]+)", line))]
    options = [option for option in reconstruct.params if isinstance(option, click.Option)]
    names = [next(name for name in option.opts if name.startswith("--")) for option in options]
    assert sorted(listed) == sorted([*names, "--help"])
