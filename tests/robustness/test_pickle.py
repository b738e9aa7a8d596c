"""Test that no pickle of an input file is loaded: its code does not run."""

from __future__ import annotations

import ast
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import normalmesh
from invocation import invoke, write_medallion
from normalmesh import NormalMeshError, read_normal_map
from normalmesh.evaluation.rendering.triangle_model import TriangleModel
from normalmesh.files.masks import read_mask
from normalmesh.maps.cameras import read_camera_matrix
from normalmesh.output.heights import read_depth_map
from normalmesh.output.mesh_writing import convert_mesh


class Payload:
    """An object that creates a folder when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.trace),)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Return the folder that a payload creates."""
    return tmp_path / "loaded"


def payloads(trace: Path) -> np.ndarray:
    """Return an array (2, 2, 3) of payloads."""
    array = np.empty((2, 2, 3), object)
    array[...] = Payload(trace)
    return array


READERS: list[Callable[[Path], object]] = [
    read_normal_map,
    normalmesh.NormalMap.open,
    read_depth_map,
    read_mask,
    read_camera_matrix,
    lambda path: read_normal_map(path, variable="normals"),
    lambda path: read_depth_map(path, variable="depth"),
]


def test_the_payload_runs_if_it_is_loaded(trace: Path) -> None:
    pickle.loads(pickle.dumps(Payload(trace)))
    assert trace.is_dir()


@pytest.mark.parametrize("read", READERS)
def test_arrays_of_objects(tmp_path: Path, trace: Path, read: Callable[[Path], object]) -> None:
    array = payloads(trace)
    np.save(tmp_path / "n.npy", array, allow_pickle=True)
    np.savez(tmp_path / "n.npz", normals=array, depth=array[..., 0], mask=array[..., 0])
    record = np.array([(1.0, Payload(trace))], [("x", "f4"), ("o", "O")])
    np.save(tmp_path / "record.npy", record, allow_pickle=True)
    for name in ("n.npy", "n.npz", "record.npy"):
        with pytest.raises(NormalMeshError):
            read(tmp_path / name)
    assert not trace.exists()


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".mat", ".png", ".txt", ".json", ".yml", ".pkl", ".ply", ".glb"])
def test_bare_pickles(tmp_path: Path, trace: Path, suffix: str) -> None:
    path = tmp_path / f"p{suffix}"
    for protocol in (0, 2, 5):
        path.write_bytes(pickle.dumps(Payload(trace), protocol))
        for read in (*READERS, TriangleModel.of, lambda path: convert_mesh(path, path.with_name("out.ply"))):
            with pytest.raises(NormalMeshError):
                read(path)
    assert not trace.exists()


def test_commands(tmp_path: Path, trace: Path) -> None:
    path, source = tmp_path / "n.npy", write_medallion(tmp_path / "n.png")
    np.save(path, payloads(trace), allow_pickle=True)
    for arguments in (
        ("inspect", path),
        ("reconstruct", path),
        *(("reconstruct", source, option, path) for option in ("--mask", "--camera", "--prior", "--texture")),
        ("evaluate", path, "--normals", source),
        ("convert", path, tmp_path / "d.exr"),
    ):
        assert invoke(*arguments).exit_code == 1
    assert not trace.exists()


def test_no_module_loads_pickles() -> None:
    """No module imports pickle or the MAT reader of SciPy, and all calls of NumPy's readers forbid pickles.

    The cache of compiled kernels is an exception: it contains machine code in any case. So are arguments and results
    of tasks, which processes of one reconstruction send each other, as Dask does; they lie in its work folder.
    """
    root = Path(normalmesh.__file__).parent
    readers = 0
    own = ("runtime/kernel_cache.py", "engine/task_arguments.py", "engine/array_file.py")
    for file in set(root.rglob("*.py")) - {root / name for name in own}:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names = {node.module, *(alias.name for alias in node.names)}
            else:
                names = set()
            assert not names & {"pickle", "marshal", "shelve", "dill", "joblib", "loadmat", "whosmat"}, file
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("np.load", "np.lib.format.read_array"):
                allowed = {each.arg: ast.unparse(each.value) for each in node.keywords}
                assert allowed["allow_pickle"] == "False", file
                readers += 1
    assert readers > 0
