"""read_normal_map: conventions, cameras, memory."""

from __future__ import annotations

import tracemalloc
import warnings
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

from normal_map_files import assert_reads, dome, encode, write_png
from normalmesh import NormalMeshError, NormalMeshWarning, Orthographic, Perspective, read_normal_map
from normalmesh.normals.conventions import Convention

pytestmark = pytest.mark.usefixtures("no_diagnosis")


def ball(size: int = 128) -> np.ndarray:
    """Normals (size, size, 3) of a ball up to 80° from the viewer; zero outside."""
    v, u = np.mgrid[0:size, 0:size] + 0.5
    x, y = (u - size / 2) / (0.45 * size), (size / 2 - v) / (0.45 * size)
    z = np.sqrt(np.clip(1 - x * x - y * y, 0, None))
    return np.where(z[..., None] > np.cos(np.radians(80)), np.dstack([x, y, z]), 0)


class TestConventions:
    @pytest.mark.parametrize("convention", ["opengl", "directx", "opencv", "-y+z+x", "-z+x-y"])
    @pytest.mark.parametrize("dtype", [np.uint16, np.float32])
    def test_stated(self, tmp_path, convention, dtype):
        channels = Convention.parse(convention).from_project(dome())
        np.save(tmp_path / "n.npy", channels.astype(dtype) if dtype == np.float32 else encode(channels, dtype))
        assert_reads(tmp_path / "n.npy", 2.5e-5, convention=convention)

    def test_unknown(self, tmp_path):
        with pytest.raises(NormalMeshError, match="unknown convention 'vulkan'"):
            read_normal_map(tmp_path / "none.png", convention="vulkan")

    def use(self, monkeypatch, axes=None, candidates=(), excluded=()):
        seen = []

        def diagnose_pixels(pixels, camera, raw):
            seen.append((*(each.copy() for each in pixels.every(1)), camera))
            excludes = lambda convention: convention.axes in excluded  # noqa: E731
            return SimpleNamespace(axes=axes, candidates=candidates, strongly_excludes=excludes)

        monkeypatch.setattr(import_module("normalmesh.normals.diagnosis"), "diagnose_pixels", diagnose_pixels)
        return seen

    def test_auto_takes_what_the_data_show(self, tmp_path, monkeypatch):
        seen = self.use(monkeypatch, "+x-y+z", ("+x-y+z",))
        channels = 1.01 * Convention.parse("directx").from_project(dome())
        np.save(tmp_path / "n.npy", channels)
        assert_reads(tmp_path / "n.npy", 1e-6, convention="auto")
        np.testing.assert_allclose(seen[0][0], channels, rtol=1e-6)
        assert seen[0][1].all()
        assert seen[0][2] == Orthographic()

    @pytest.mark.parametrize(
        ("candidates", "assumed"),
        [(("-x+y+z", "+x-y-z", "+x-y+z"), "directx"), ((), "opengl"), (("+y+x+z",), r"\+y\+x\+z")],
    )
    def test_auto_says_what_it_assumes(self, tmp_path, monkeypatch, candidates, assumed):
        self.use(monkeypatch, None, candidates)
        np.save(tmp_path / "n.npy", dome())
        with pytest.warns(NormalMeshWarning, match=f"do not determine the convention; {assumed} was assumed") as caught:
            read_normal_map(tmp_path / "n.npy", convention="auto")
        assert caught[0].filename == __file__

    def test_a_contradiction_is_reported_once(self, tmp_path, monkeypatch):
        self.use(monkeypatch, "+x-y+z", ("+x-y+z",), ("+x+y+z",))
        np.save(tmp_path / "n.npy", dome())
        with pytest.warns(NormalMeshWarning, match="contradict the convention opengl; directx fits") as caught:
            assert_reads(tmp_path / "n.npy", 1e-6)
        assert len(caught) == 1

    def test_a_contradiction_is_reported_before_the_map_is_refused(self, tmp_path, monkeypatch):
        self.use(monkeypatch, "+x-y-z", ("+x-y-z",), ("+x+y+z",))
        np.save(tmp_path / "n.npy", Convention.parse("opencv").from_project(dome()))
        with (
            pytest.warns(NormalMeshWarning, match="contradict the convention opengl; opencv fits"),
            pytest.raises(NormalMeshError, match=r"n\.npy: all normals point away from the viewer"),
        ):
            read_normal_map(tmp_path / "n.npy")

    @pytest.mark.usefixtures("real_diagnosis")
    @pytest.mark.parametrize("convention", ["opengl", "directx", "opencv"])
    def test_a_ball_is_recognised(self, tmp_path, convention):
        path = write_png(tmp_path / "n.png", encode(Convention.parse(convention).from_project(ball()), np.uint16))
        mask = ball()[..., 2] > 0
        result = read_normal_map(path, mask, convention="auto")
        np.testing.assert_allclose(result.normals[mask], ball()[mask], atol=3e-5)

    @pytest.mark.usefixtures("real_diagnosis")
    def test_a_ball_read_wrongly_is_reported(self, tmp_path):
        path = write_png(tmp_path / "n.png", encode(ball(), np.uint16))
        with pytest.warns(NormalMeshWarning, match="contradict the convention directx; opengl fits"):
            read_normal_map(path, ball()[..., 2] > 0, convention="directx")


class TestCameras:
    def test_objects_and_files(self, tmp_path):
        path = write_png(tmp_path / "n.png", encode(dome(), np.uint16))
        assert read_normal_map(path).camera == Orthographic()
        assert read_normal_map(path, camera=Orthographic(0.5)).camera == Orthographic(0.5)
        (tmp_path / "K.txt").write_text("900 0 8\n0 900 6\n0 0 1\n")
        assert read_normal_map(path, camera=tmp_path / "K.txt").camera == Perspective(900, 900, 8.5, 6.5)
        assert read_normal_map(path, camera=str(tmp_path / "K.txt")).camera == Perspective(900, 900, 8.5, 6.5)

    def test_refused(self, tmp_path):
        path = write_png(tmp_path / "n.png", encode(dome(), np.uint16))
        with pytest.raises(NormalMeshError, match=r"camera must be Orthographic.* or a file, not ndarray"):
            read_normal_map(path, camera=np.eye(3))
        with pytest.raises(NormalMeshError, match="there is no such file"):
            read_normal_map(path, camera="none.txt")
        (tmp_path / "K.txt").write_text("900 0 0\n0 900 0\n8 6 1\n")
        with pytest.raises(NormalMeshError, match=r"K\.txt: the camera matrix must read .*transposed"):
            read_normal_map(path, camera=tmp_path / "K.txt")


def test_memory_stays_below_two_copies(tmp_path):
    """Two float32 copies of the normals and two masks; the diagnosis, which has a fixed budget, is not counted."""
    values = np.tile(encode(np.full((500, 500, 3), (0, 0.6, 0.8)), np.uint16), (4, 4, 1))
    path = write_png(tmp_path / "n.png", values)
    read_normal_map(path)  # compiles the kernel
    pixels = values.shape[0] * values.shape[1]
    del values
    tracemalloc.start()
    try:
        result = read_normal_map(path, convention="directx")
        peak = tracemalloc.get_traced_memory()[1] / pixels
    finally:
        tracemalloc.stop()
    assert result.foreground == pixels
    assert peak <= 26.5


@pytest.mark.usefixtures("real_diagnosis")
def test_shared_cases_read_as_stated(continuous_cases):
    for folder in continuous_cases[:4]:
        camera = folder / "K.txt"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = read_normal_map(folder / "normals.png", folder / "mask.png", camera if camera.exists() else None)
        assert result.foreground > 1000
        assert not any("convention" in str(warning.message) for warning in caught)
