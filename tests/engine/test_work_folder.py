"""Test the work folder: what it is for, who uses it, and what processes that were killed leave."""

import errno
import os
import subprocess
import sys

import numpy as np
import pytest

from normal_map_files import encode
from normalmesh import NormalMap, NormalMeshError, NormalMeshWarning
from normalmesh.engine.description import code_description, description_of
from normalmesh.engine.work_folder import WorkFolder, holds_results, remove_work
from surfaces import waves

ABOUT = {"input": "huge.tif", "tiles": 4096, "prior": None}


def bytes_of(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("lock", "process")
    }


def test_results_stay(tmp_path):
    with WorkFolder(tmp_path / "work", ABOUT) as folder:
        made = folder.save("decimate", (3, 4), {"x": np.arange(3)})
        assert made == folder.result("decimate", (3, 4))
    with WorkFolder(tmp_path / "work", ABOUT) as folder:
        again = folder.result("decimate", (3, 4))
        np.testing.assert_array_equal(again["x"], np.arange(3))
        assert not folder.result("decimate", (4, 3)).is_whole
        folder.remove_stage("decimate")
        assert not made.is_whole


def test_another_input_or_other_options_are_refused(tmp_path):
    with WorkFolder(tmp_path, ABOUT):
        pass
    with pytest.raises(NormalMeshError, match=r"tiles was 4096, now 2048.*another folder, or remove it"):
        WorkFolder(tmp_path, {**ABOUT, "tiles": 2048}).__enter__()
    with pytest.raises(NormalMeshError, match=r"further was None, now 1"):
        WorkFolder(tmp_path, {**ABOUT, "further": 1}).__enter__()
    with WorkFolder(tmp_path, ABOUT):
        pass


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_a_damaged_description_is_refused(tmp_path, content):
    (tmp_path / "folder.json").write_text(content)
    with pytest.raises(NormalMeshError, match=r"folder\.json is damaged"):
        WorkFolder(tmp_path, ABOUT).__enter__()


def test_a_folder_of_other_files_is_neither_used_nor_removed(tmp_path):
    (tmp_path / "photo.png").touch()
    with pytest.raises(NormalMeshError, match="not empty: give another one"):
        WorkFolder(tmp_path, ABOUT).__enter__()
    remove_work(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["photo.png"]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "missing" / "work", tmp_path / "file", tmp_path / "file" / "work"):
        with pytest.raises(NormalMeshError, match="cannot work in"):
            WorkFolder(path, ABOUT).__enter__()


#: Uses a folder until it is killed.
HOLDER = """
import sys, time
from pathlib import Path
from normalmesh.engine.work_folder import WorkFolder
with WorkFolder(Path(sys.argv[1]), {}):
    print("holds", flush=True)
    time.sleep(60)
"""


def test_one_process_at_a_time_until_it_is_killed(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "holds\n"
        with pytest.raises(NormalMeshError, match=rf"process {holder.pid} on .* uses the folder"):
            WorkFolder(tmp_path, {}).__enter__()
    finally:
        holder.kill()
        holder.communicate()
    with WorkFolder(tmp_path, {}), pytest.raises(NormalMeshError, match="another process"):
        WorkFolder(tmp_path, {}).__enter__()
    with WorkFolder(tmp_path, {}):
        pass


def test_a_disk_without_locks(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("filelock.FileLock.acquire", refused)
    with pytest.warns(NormalMeshWarning, match="knows no locks"), WorkFolder(tmp_path, ABOUT) as folder:
        assert folder.save("stage", 0, {"x": np.arange(3)}).is_whole


#: Is killed while it writes a result.
WRITER = """
import os, sys
import numpy as np
from pathlib import Path
from normalmesh.engine import array_file
from normalmesh.engine.work_folder import WorkFolder

with WorkFolder(Path(sys.argv[1]), {}) as folder:
    folder.save("stage", "first", {"x": np.arange(3)})
    array_file.os.fsync = lambda _: os._exit(9)
    folder.save("stage", "second", {"x": np.arange(3)})
"""


def test_what_a_killed_process_was_writing_is_removed(tmp_path):
    path = tmp_path / "work"
    assert subprocess.run([sys.executable, "-c", WRITER, path], check=False).returncode == 9
    assert len(list((path / "stage").iterdir())) == 2
    with WorkFolder(path, {}) as folder:
        assert [each.name for each in (path / "stage").iterdir()] == ["first.arrays"]
        assert folder.result("stage", "first").is_whole


def test_removal(tmp_path):
    with WorkFolder(tmp_path / "work", ABOUT) as folder:
        assert not holds_results(folder.path)
        folder.save("decimate", "all", {"x": np.arange(3)})
        assert holds_results(folder.path)
    remove_work(folder.path)
    assert not folder.path.exists()
    remove_work(folder.path)


#: Saves results one by one, and ends in the middle of one of them.
KILLED = """
import os, sys
import numpy as np
from pathlib import Path
from normalmesh.engine import array_file
from normalmesh.engine.work_folder import WorkFolder

end = int(sys.argv[2])
with WorkFolder(Path(sys.argv[1]), {"seed": 1}) as folder:
    for number in range(6):
        if number == end:
            array_file.os.fsync = lambda _: os._exit(9)
        folder.save("stage", number, {"x": np.random.default_rng(number).normal(size=100)})
"""


def test_a_resumed_run_gives_the_same_bytes(tmp_path):
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    for path, ends in ((whole, [9]), (resumed, [0, 3, 9])):
        for end in ends:
            killed = subprocess.run([sys.executable, "-c", KILLED, path, str(end)], check=False)
            assert killed.returncode == (9 if end < 6 else 0)
    assert bytes_of(whole) == bytes_of(resumed)
    assert len(bytes_of(whole)) == 7


def test_descriptions():
    from normalmesh import Perspective

    first = description_of(
        "a", {"x": np.arange(3), "camera": Perspective(9, 9, 4, 4), "y": [1, None], "z": [[1.5], "b"]}
    )
    assert first["a.camera"] == "Perspective"
    assert first["a.camera.fx"] == 9.0
    assert (first["a.y.1"], first["a.z.0.0"], first["a.z.1"]) == (None, 1.5, "b")
    long = [description_of("n", list(range(number)))["n"] for number in (50, 51)]
    assert long[0].startswith("50 items, hash ")
    assert long[0] != long[1]
    other = description_of("a", {"x": np.array([0, 1, 3])})
    assert str(first["a.x"]).startswith("int64 3, hash ")
    assert first["a.x"] != other["a.x"]
    assert description_of("n", np.float32(2)) == {"n": 2.0}
    assert "0.1" in code_description()


def write_later(path, content):
    """Write a file of the same length, a second later than it was."""
    after = path.stat().st_mtime_ns + 10**9
    path.write_bytes(content)
    os.utime(path, ns=(after, after))


def test_a_folder_is_described_by_all_that_is_in_it(tmp_path):
    (tmp_path / "c" / "0").mkdir(parents=True)
    for name in ("zarr.json", "c/0/0", "c/0/1"):
        (tmp_path / name).write_bytes(b"123")
    (tmp_path / "broken").symlink_to(tmp_path / "nothing")
    found = [description_of("map", tmp_path)]
    assert found[0]["map.files"].startswith("3 files, hash ")
    assert description_of("map", tmp_path) == found[0]
    write_later(tmp_path / "c" / "0" / "1", b"124")
    found.append(description_of("map", tmp_path))
    (tmp_path / "c" / "0" / "1").rename(tmp_path / "c" / "0" / "2")
    found.append(description_of("map", tmp_path))
    (tmp_path / "c" / "0" / "2").unlink()
    found.append(description_of("map", tmp_path))
    assert len({each["map.files"] for each in found}) == 4


@pytest.mark.parametrize("shards", [None, (64, 64, 3)])
def test_a_zarr_map_that_was_rewritten_in_place_is_another_map(tmp_path, shards):
    zarr = pytest.importorskip("zarr")
    values = waves((90, 130))[0].normals
    array = zarr.create_array(
        str(tmp_path / "map.zarr"), shape=values.shape, chunks=(32, 32, 3), shards=shards, dtype=values.dtype
    )
    array[...] = values

    def described():
        return description_of("map", NormalMap.open(tmp_path / "map.zarr"))

    status = (tmp_path / "map.zarr").stat()
    before = described()
    assert described() == before
    array[...] = values[::-1, ::-1] * [-1, -1, 1]
    assert (tmp_path / "map.zarr").stat().st_mtime_ns == status.st_mtime_ns
    assert described() != before


def test_masks_and_arrays_of_a_zarr_group_are_described(tmp_path):
    zarr = pytest.importorskip("zarr")
    values = encode(waves((90, 130))[0].normals, np.uint16)
    group = zarr.open_group(str(tmp_path / "maps.zarr"), mode="w")
    for name in "ab":
        group.create_array(name, shape=values.shape, chunks=(32, 32, 3), dtype=values.dtype)[...] = values
    mask = zarr.create_array(str(tmp_path / "mask.zarr"), shape=(90, 130), chunks=(32, 32), dtype="u1")

    def described(variable, first):
        mask[...] = np.repeat(np.arange(90)[:, None] >= first, 130, axis=1)
        return description_of("map", NormalMap.open(tmp_path / "maps.zarr", tmp_path / "mask.zarr", variable=variable))

    assert described("a", 20) == described("a", 20)
    assert described("a", 20) != described("a", 21)
    assert described("a", 20) != described("b", 20)
