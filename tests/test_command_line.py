"""The command line as a newcomer meets it: in a process of its own."""

import subprocess
import sys

import imagecodecs
import numpy as np
import pytest

import normalmesh
from test_robust import flap


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "normalmesh", *map(str, arguments)], capture_output=True, text=True, **options
    )


def test_help_imports_nothing_heavy():
    code = "import sys, normalmesh.cli; print([m for m in ('numpy', 'numba', 'scipy', 'trimesh') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
    help_text = run("--help")
    assert help_text.returncode == 0
    assert "inspect" in help_text.stdout


def test_version():
    assert run("--version").stdout.strip() == f"normalmesh, version {normalmesh.__version__}"


def test_demo_then_inspect(tmp_path):
    demo = run("demo", "--size", 64, "--output", tmp_path / "made")
    assert demo.returncode == 0, demo.stderr
    names = {path.name for path in (tmp_path / "made").iterdir()}
    assert names == {"normals.png", "medallion.ply", "medallion.glb"} | {
        f"{picture}.png" for picture in ("input", "wireframe", "shaded", "error", "overview")
    }
    assert "RMSE" in demo.stdout
    inspect = run("inspect", tmp_path / "made" / "normals.png")
    assert inspect.returncode == 0
    assert "64 × 64 pixels" in inspect.stdout
    assert "sound mesh: 1 components, 0 holes" in inspect.stdout


def test_reconstruct_says_where_depth_jumps(tmp_path):
    normals = flap(64)[1].normals
    image = np.round((normals.astype(np.float64) + 1) / 2 * 65535).astype(np.uint16)
    imagecodecs.imwrite(tmp_path / "flap.png", image)
    result = run("reconstruct", tmp_path / "flap.png", "--compression", 0.95, "--jumps", tmp_path / "jumps.png")
    assert result.returncode == 0, result.stderr
    assert "edges cut" in result.stdout
    assert (tmp_path / "flap.glb").stat().st_size > 1000
    picture = imagecodecs.imread(tmp_path / "jumps.png")
    assert picture.shape == (64, 64, 3)
    assert np.ptp(picture.astype(int), axis=-1).max() > 50
    flat = run("reconstruct", tmp_path / "flap.png", "-o", tmp_path / "flat.ply", "--continuous")
    assert flat.returncode == 0, flat.stderr
    assert "jumps" not in flat.stdout
    assert run("reconstruct", tmp_path / "flap.png", "-o", tmp_path / "no" / "where.ply").returncode == 1


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
    assert result.stderr.startswith("normalmesh: warning: 1 normals")
