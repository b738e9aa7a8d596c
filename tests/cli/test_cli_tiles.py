"""Test ``normalmesh reconstruct --tiles``."""

import json

import pytest

from invocation import invoke, succeed, write_medallion
from normalmesh.engine.work_folder import WorkFolder


@pytest.fixture
def source(tmp_path):
    return write_medallion(tmp_path / "coin.tif", 300)


def tiled(source, *options):
    return ("reconstruct", source, "--tiles", "--tile-size", 256, "--workers", 0, *options)


def test_the_work_folder_lies_beside_the_output_and_is_removed(source, tmp_path):
    shown = succeed(*tiled(source, "-o", tmp_path / "coin.ply")).output
    assert "vertices     " in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["coin.ply", "coin.tif"]


def test_work_is_kept_on_request_and_after_a_failure(source, tmp_path, monkeypatch):
    work = tmp_path / "work"
    succeed(*tiled(source, "-o", tmp_path / "coin.ply", "--work", work, "--keep-work"))
    assert list(work.rglob("*.arrays"))
    monkeypatch.setattr("normalmesh.mesh.surface.Surface.save", lambda *_, **__: 1 / 0)
    result = invoke(*tiled(source, "-o", tmp_path / "coin.glb"))
    assert result.exit_code == 1
    assert f"work is kept in {tmp_path / 'coin.glb.work'}; the same command goes on from there" in result.output
    assert list((tmp_path / "coin.glb.work").rglob("*.arrays"))


def test_other_options_with_the_same_folder_are_refused(source, tmp_path):
    work = ("-o", tmp_path / "coin.ply", "--work", tmp_path / "work")
    succeed(*tiled(source, *work, "--keep-work"))
    result = invoke(*tiled(source, *work, "--vertices", 500))
    assert result.exit_code == 1
    assert "holds work of another reconstruction (rules.0.vertices was None, now 500" in result.output
    assert list((tmp_path / "work").rglob("*.arrays"))


def test_a_folder_in_use_is_refused(source, tmp_path):
    with WorkFolder(tmp_path / "work", {}):
        result = invoke(*tiled(source, "-o", tmp_path / "coin.ply", "--work", tmp_path / "work"))
    assert "uses the folder" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tiles", "--preview"], "--preview needs the whole map in memory: leave it out, or --tiles"),
        (["--tiles", "--report"], "--report needs the whole map"),
        (["--workers", "2"], "--workers is an option of --tiles: add that"),
        (["--scheduler", "tcp://far:8786"], "--scheduler is an option of --tiles"),
        (["--keep-work"], "--keep-work is an option of --tiles"),
        (["--tiles", "--scheduler", "tcp://far:8786", "--workers", "2"], "give only one of --scheduler, --workers"),
    ],
)
def test_options_that_do_not_go_together(source, options, message):
    result = invoke("reconstruct", source, *options)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_levels_and_tolerances(source, tmp_path):
    levels = json.loads(succeed(*tiled(source, "-o", tmp_path / "coin.ply", "--lod", "300,100", "--json")).stdout)
    assert [level["vertices"] for level in levels["levels"]] == pytest.approx([300, 100], abs=3)
    close = json.loads(succeed(*tiled(source, "-o", tmp_path / "close.ply", "--max-angle", 12, "--json")).stdout)
    assert close["tolerance"]["met"]


def test_one_work_folder_is_for_one_input(source, tmp_path):
    other = write_medallion(tmp_path / "other.tif", 96)
    result = invoke("reconstruct", source, other, "--tiles", "--work", tmp_path / "work")
    assert result.exit_code == 2
    assert "--work is for one input only" in result.output


def test_dry_run(source, tmp_path):
    shown = succeed(*tiled(source, "--dry-run")).output
    assert "tiles        4 of 256 × 256 pixels" in shown
    assert "on disk and, on" in shown
    told = json.loads(succeed(*tiled(source, "--dry-run", "--json")).output)
    assert told["tiles"] == 4
    assert min(told["memory"], told["worker_memory"], told["disk"], told["seconds"], told["available_disk"]) > 0
    cluster = ("reconstruct", source, "--tiles", "--scheduler", "tcp://far:8786", "--dry-run")
    assert "for each thread of a worker" in succeed(*cluster).output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["coin.tif"]


def test_a_tile_of_another_size_is_refused(source):
    result = invoke("reconstruct", source, "--tiles", "--tile-size", 1000, "--dry-run")
    assert "--tile-size must be a multiple of 128, such as 4096, not 1000" in result.output
