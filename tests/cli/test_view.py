"""Test ``normalmesh view`` in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import imagecodecs
import numpy as np
import pytest

import normalmesh as nm
from normalmesh.evaluation.synthetic.medallion import Medallion


def command(*arguments):
    return [sys.executable, "-m", "normalmesh", "view", *map(str, arguments)]


@contextmanager
def viewed(*arguments):
    """Yield the page while it is served, then send Ctrl-C and check the exit status and the message."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command(*arguments, "--no-browser"), **options) as process:
        try:
            address = process.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:"), process.stderr.read()
            with urllib.request.urlopen(address) as answer:
                yield answer.read().decode()
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
            assert process.returncode == 130, errors
            assert errors.splitlines()[1:] == ["normalmesh: interrupted, nothing written"]
        finally:
            process.kill()


needs_signals = pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is sent as a POSIX signal")


@pytest.fixture(scope="module")
def surface():
    return nm.reconstruct(Medallion(64).normal_map, compression=0.9)


@needs_signals
@pytest.mark.parametrize("suffix", ["ply", "obj", "glb", "stl"])
def test_meshes(tmp_path, surface, suffix):
    surface.save(tmp_path / f"mesh.{suffix}")
    with viewed(tmp_path / f"mesh.{suffix}") as page:
        assert f"<h1>mesh.{suffix}</h1>" in page
        assert f"<dd>{len(surface.faces)}</dd>" in page.replace("\u202f", "")
        assert 'value="error"' not in page


@needs_signals
def test_a_normal_map_is_reconstructed(tmp_path):
    normal_map = Medallion(128).normal_map
    colours = np.round((normal_map.normals.astype(np.float64) + 1) / 2 * 65535)
    image = np.dstack([colours, 65535 * normal_map.mask]).astype(np.uint16)
    (tmp_path / "map.png").write_bytes(imagecodecs.png_encode(image))
    with viewed(tmp_path / "map.png") as page:
        assert 'value="error"' in page
        assert "Mean angular error" in page


@needs_signals
def test_a_report_is_served_unchanged(tmp_path, surface):
    nm.write_report(tmp_path / "report.html", surface, source="mine")
    with viewed(tmp_path / "report.html") as page:
        assert page == (tmp_path / "report.html").read_bytes().decode()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [("missing.ply", None, "no such file"), ("bad.ply", b"not a mesh", "bad.ply"), ("bad.png", b"?", "bad.png")],
)
def test_errors_are_one_line(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    result = subprocess.run(command(tmp_path / name, "--no-browser"), capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.startswith("normalmesh: error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
