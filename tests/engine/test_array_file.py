"""Test files of arrays: what is read is what was written, and a process that ends leaves whole files only."""

import os
import subprocess
import sys

import numpy as np
import pytest

from normalmesh import NormalMeshError
from normalmesh.engine.array_file import ArrayFile

ARRAYS = {
    "floats": np.random.default_rng(0).normal(size=(5, 3)),
    "columns first": np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
    "none": np.zeros((0, 3), np.float32),
    "flags": np.array([True, False, True]),
    "number": np.array(7),
}


def same(found, expected):
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_arrays_come_back(tmp_path):
    file = ArrayFile(tmp_path / "a.arrays")
    assert not file.is_whole
    file.save(ARRAYS)
    assert file.is_whole
    same(dict(file), ARRAYS)
    assert len(file) == len(ARRAYS)
    with pytest.raises(KeyError, match="other"):
        file["other"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.arrays"]


def test_the_same_arrays_give_the_same_bytes(tmp_path):
    first, second = ArrayFile(tmp_path / "a"), ArrayFile(tmp_path / "b")
    first.save(ARRAYS)
    second.save({name: np.array(array) for name, array in ARRAYS.items()})
    assert first.path.read_bytes() == second.path.read_bytes()


@pytest.mark.parametrize("content", [b"", b"{}\n", b"x" * 500, None])
def test_other_and_short_files_do_not_count(tmp_path, content):
    file = ArrayFile(tmp_path / "a.arrays")
    file.save(ARRAYS)
    file.path.write_bytes(file.path.read_bytes()[:-1] if content is None else content)
    assert not file.is_whole
    with pytest.raises(NormalMeshError, match="is damaged: start again"):
        dict(file)


def test_each_flipped_bit_is_found(tmp_path):
    file = ArrayFile(tmp_path / "a.arrays")
    file.save(ARRAYS)
    content = file.path.read_bytes()
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        file.path.write_bytes(changed)
        assert not file.is_whole
    same({"floats": file["floats"]}, {"floats": ARRAYS["floats"]})
    with pytest.raises(NormalMeshError, match="is damaged"):
        file["number"]


#: Ends in the middle of writing, as a process that is killed.
PROGRAM = """
import os, sys
import numpy as np
from pathlib import Path
from normalmesh.engine import array_file

array_file.np.ascontiguousarray = lambda array: os._exit(9) if array.ndim == 2 else array
array_file.ArrayFile(Path(sys.argv[1])).save({"first": np.arange(10), "second": np.ones((9, 9))})
"""


def test_a_process_that_ends_while_writing_leaves_no_result(tmp_path):
    path = tmp_path / "a.arrays"
    for before in (False, True):
        if before:
            ArrayFile(path).save(ARRAYS)
        assert subprocess.run([sys.executable, "-c", PROGRAM, path], check=False).returncode == 9
        assert ArrayFile(path).is_whole == before
    same(dict(ArrayFile(path)), ARRAYS)
    leftovers = [name for name in os.listdir(tmp_path) if name.startswith(".normalmesh-")]
    assert len(leftovers) == 2
