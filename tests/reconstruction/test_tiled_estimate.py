"""Test the estimates of tiled reconstructions, and what they refuse."""

import math
from types import SimpleNamespace

import pytest

from normalmesh import NormalMeshError
from normalmesh.reconstruction.tiling import DISK_BYTES, PIXEL_BYTES, SHARED_BYTES, TILE_BYTES, TiledEstimate
from normalmesh.runtime.memory_budget import limited_memory

GIGAPIXEL = TiledEstimate((32_000, 32_000), 1_000_000_000, 10_000_000, 4096)


def test_a_gigapixel_needs_less_than_eight_gigabytes_on_two_cores():
    assert GIGAPIXEL.tiles == 64
    assert TILE_BYTES * 4096**2 < GIGAPIXEL.worker_memory < 2.5e9
    assert GIGAPIXEL.memory(2) == GIGAPIXEL.leader_memory + 2 * GIGAPIXEL.worker_memory < 8e9
    assert GIGAPIXEL.memory(0) == GIGAPIXEL.memory(1)
    assert GIGAPIXEL.disk == DISK_BYTES * 10_000_000 + PIXEL_BYTES * 32_000**2
    assert GIGAPIXEL.seconds(2) < 3600
    assert GIGAPIXEL.seconds(1000) == GIGAPIXEL.seconds(64)


def test_maps_smaller_than_a_tile_need_less():
    small = TiledEstimate((100, 300), 30_000, 300, 4096, is_copied=True)
    assert small.tiles == 1
    assert small.worker_memory < GIGAPIXEL.worker_memory / 4
    assert small.disk == DISK_BYTES * 300 + (PIXEL_BYTES + SHARED_BYTES) * 30_000


def test_as_many_workers_as_fit():
    for workers in (1, 2, 7, 64):
        with limited_memory(GIGAPIXEL.memory(workers) + 1):
            assert GIGAPIXEL.fitting_workers() == workers
    with limited_memory(1e6):
        assert GIGAPIXEL.fitting_workers() == 1
    with limited_memory(math.inf):
        assert GIGAPIXEL.fitting_workers() == 64


def test_too_little_memory_is_refused(tmp_path):
    with limited_memory(GIGAPIXEL.memory(2)):
        GIGAPIXEL.check(tmp_path, 2, elsewhere=False)
        GIGAPIXEL.check(tmp_path, None, elsewhere=False)
        with pytest.raises(NormalMeshError, match=r"needs about .* of memory but .* fewer workers"):
            GIGAPIXEL.check(tmp_path, 3, elsewhere=False)
    with limited_memory(GIGAPIXEL.leader_memory):
        GIGAPIXEL.check(tmp_path, None, elsewhere=True)


def test_a_disk_that_is_too_small_is_refused(tmp_path, monkeypatch):
    free = GIGAPIXEL.disk - 100
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=free))
    with limited_memory(math.inf):
        with pytest.raises(NormalMeshError, match=r"needs about 14\.1 GB on the disk of .*--work"):
            GIGAPIXEL.check(tmp_path / "new", None, elsewhere=False)
        (tmp_path / "stage").mkdir()
        (tmp_path / "stage" / "result").write_bytes(bytes(200))
        GIGAPIXEL.check(tmp_path, None, elsewhere=False)
