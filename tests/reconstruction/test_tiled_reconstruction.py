"""Test reconstruct_tiled: its work folder, its arguments, and the same surface whoever does the work."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import normalmesh as nm
from invocation import medallion

TILE = 256
OPTIONS = {"compression": 0.98, "tiles": TILE}


@pytest.fixture(scope="module")
def normal_map():
    return medallion(300).normal_map


@pytest.fixture(scope="module")
def surface(normal_map):
    return nm.reconstruct_tiled(normal_map, workers=0, **OPTIONS)


def test_the_same_surface_on_a_cluster(normal_map, surface, tmp_path):
    distributed = pytest.importorskip("distributed")
    steps = []
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        cluster.get_client() as client,
    ):
        there = nm.reconstruct_tiled(
            normal_map, client=client, work=tmp_path / "work", progress=steps.append, **OPTIONS
        )
    from_disk = nm.reconstruct_tiled(opened_map(normal_map, tmp_path), workers=0, **OPTIONS)
    for each in (there, from_disk):
        assert_array_equal(each.vertices, surface.vertices)
        assert_array_equal(each.faces, surface.faces)
    assert not (tmp_path / "work").exists()
    assert steps[-1] == nm.Step(1.0, "done", len(surface.vertices))
    assert any("/4" in step.stage for step in steps)


def opened_map(normal_map, folder):
    """Return the same map on disk."""
    from normalmesh.maps.maps_on_disk import MapOnDisk

    return MapOnDisk.of(normal_map, folder / "map")


def test_a_path_is_opened(normal_map, surface, tmp_path):
    path = tmp_path / "normals.npy"
    np.save(path, np.where(normal_map.mask[..., None], normal_map.normals, np.nan).astype(np.float32))
    found = nm.reconstruct_tiled(path, workers=0, **OPTIONS)
    assert len(found.vertices) == pytest.approx(len(surface.vertices), rel=0.02)


def test_work_is_kept_after_an_error_and_used_by_the_same_call(normal_map, surface, tmp_path):
    steps = []

    def fail(step):
        steps.append(step)
        if len(steps) == 20:
            raise nm.NormalMeshError("nothing works")

    work = tmp_path / "work"
    with pytest.raises(nm.NormalMeshError) as error:
        nm.reconstruct_tiled(normal_map, workers=0, work=work, progress=fail, **OPTIONS)
    assert str(error.value) == "nothing works"
    assert any(str(work) in note for note in error.value.__notes__)
    with pytest.raises(nm.NormalMeshError, match=r"tiles was 256, now 384; give|tiles was 256, now 384\)"):
        nm.reconstruct_tiled(normal_map, workers=0, work=work, **{**OPTIONS, "tiles": 384})
    with pytest.raises(nm.NormalMeshError, match=r"rules\.0\.compression was 0\.98, now None"):
        nm.reconstruct_tiled(normal_map, workers=0, work=work, vertices=99, tiles=TILE)
    with pytest.raises(nm.NormalMeshError, match=r"integration\.refine was 4, now 1"):
        nm.reconstruct_tiled(normal_map, workers=0, work=work, refine=1, **OPTIONS)
    with pytest.raises(nm.NormalMeshError, match=r"map\.normals was .* now"):
        nm.reconstruct_tiled(medallion(301).normal_map, workers=0, work=work, **OPTIONS)
    assert list(work.rglob("*.arrays"))
    again = nm.reconstruct_tiled(normal_map, workers=0, work=work, keep_work=True, **OPTIONS)
    assert_array_equal(again.vertices, surface.vertices)
    assert_array_equal(again.faces, surface.faces)
    assert (work / "folder.json").is_file()


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_damaged_results_are_made_again(normal_map, surface, tmp_path):
    work = tmp_path / "work"
    nm.reconstruct_tiled(normal_map, workers=0, work=work, keep_work=True, **OPTIONS)
    results = {path: path.read_bytes() for path in work.rglob("*.arrays")}
    kept = {path for path in results if path.parent.name == "kept"}
    assert len(kept) > 3
    assert len(results) > len(kept) + 4
    for damaged in (set(results) - kept, set(results), *({path} for path in kept)):
        for path in damaged:
            flip_a_bit(path)
        again = nm.reconstruct_tiled(normal_map, workers=0, work=work, keep_work=True, **OPTIONS)
        assert_array_equal(again.vertices, surface.vertices)
        assert_array_equal(again.faces, surface.faces)
        assert all(path.read_bytes() == results[path] for path in set(results) - kept)


def test_a_zarr_map_rewritten_in_place_is_refused(normal_map, tmp_path):
    zarr = pytest.importorskip("zarr")
    work, values = tmp_path / "work", normal_map.normals
    array = zarr.create_array(str(tmp_path / "map.zarr"), shape=values.shape, chunks=(64, 64, 3), dtype="f4")
    array[...] = values
    options = {"workers": 0, "work": work, "keep_work": True, **OPTIONS}
    nm.reconstruct_tiled(tmp_path / "map.zarr", **options)
    array[...] = values[::-1, ::-1] * [-1, -1, 1]
    with pytest.raises(nm.NormalMeshError, match="holds work of another reconstruction"):
        nm.reconstruct_tiled(tmp_path / "map.zarr", **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tiles": 200}, "tiles must be a whole number from 256"),
        ({"tiles": 300}, "tiles must be a multiple of 128, such as 4096, not 300"),
        ({"workers": -1}, "workers must be a whole number from 0"),
        ({"workers": 1, "client": "tcp://127.0.0.1:1"}, "only one of workers and client"),
        ({"decimation": {"start": "pixels"}}, "start='pixels' is not possible in several tiles"),
        ({"decimation": {"locked": np.zeros((0, 2))}}, "locked=.* is not possible in several tiles"),
        ({"formulation": "vertices"}, "formulation='vertices' is not possible in several tiles"),
        ({"jumps": [[[0, 0], [9, 9]]], "discontinuities": False}, "jumps need"),
        ({"work": "missing/work"}, "there is no folder missing"),
        ({"memory_limit": 1e6}, "the tiled reconstruction needs about"),
    ],
)
def test_what_is_refused_before_work_begins(normal_map, change, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(nm.NormalMeshError, match=message):
        nm.reconstruct_tiled(normal_map, **{**OPTIONS, **change})
    assert list(tmp_path.iterdir()) == []
