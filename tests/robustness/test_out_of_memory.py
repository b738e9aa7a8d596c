"""Test insufficient memory: it is detected before work begins, or reported, and the process can continue."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from normalmesh import NormalMeshError, available_memory, reconstruct
from normalmesh.cli import normalmesh
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.files.encoding import encode_normals
from normalmesh.runtime import memory
from normalmesh.runtime.threads import in_parallel


@pytest.fixture
def source(tmp_path: Path) -> Path:
    normal_map = Medallion(64).normal_map
    path = tmp_path / "map.png"
    path.write_bytes(encode_normals(path, normal_map.normals, normal_map.mask))
    return path


def exhausted(*_: object, **__: object) -> None:
    """Raise the error of NumPy for an array that is too large."""
    raise MemoryError("Unable to allocate 12.0 GiB for an array")


@pytest.mark.parametrize(
    "place",
    [
        "normalmesh.maps.normal_maps.NormalMap",
        "normalmesh.reconstruction.in_memory.decimate_levels",
        "normalmesh.reconstruction.in_memory.solve",
        "normalmesh.output.mesh_writing.write_atomically",
    ],
)
def test_commands_report_it_on_one_line(source: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setattr(place, exhausted)
    (source.parent / "out.ply").write_text("old")
    options = ["-o", str(source.parent / "out.ply"), "--compression", "0.9", "-q"]
    result = CliRunner().invoke(normalmesh, ["reconstruct", str(source), *options])
    assert result.exit_code == 1
    assert result.output.startswith("normalmesh: error: out of memory; ")
    assert result.output.count("\n") == 1
    assert (source.parent / "out.ply").read_text() == "old"
    assert sorted(path.name for path in source.parent.iterdir()) == ["map.png", "out.ply"]


def test_results_are_the_same_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    normal_map = Medallion(64).normal_map
    expected = reconstruct(normal_map, vertices=100)
    with monkeypatch.context() as patched:
        patched.setattr("normalmesh.reconstruction.in_memory.solve", exhausted)
        with pytest.raises(MemoryError):
            reconstruct(normal_map, vertices=100)
    assert np.array_equal(reconstruct(normal_map, vertices=100).vertices, expected.vertices)


def test_it_is_raised_from_a_thread_of_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("normalmesh.runtime.threads.allowed_threads", lambda: 3)
    caller, begun = threading.get_ident(), threading.Event()

    def work(first: int, last: int) -> None:
        if threading.get_ident() != caller:
            begun.set()
            exhausted()
        assert begun.wait(20)

    with pytest.raises(MemoryError):
        in_parallel(work, 100, grain=1)
    done = np.zeros(100, bool)
    in_parallel(lambda first, last: done[first:last].fill(True), 100, grain=1)
    assert done.all()


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError()])
def test_the_caller_does_all_work_if_no_thread_can_be_started(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    class Full:
        def submit(self, *_: object) -> None:
            raise error

    monkeypatch.setattr("normalmesh.runtime.threads.allowed_threads", lambda: 3)
    monkeypatch.setattr("normalmesh.runtime.threads._pool", Full())
    done = np.zeros(100, bool)
    in_parallel(lambda first, last: done[first:last].fill(True), 100, grain=1)
    assert done.all()


def test_limits_of_the_process_are_considered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_control_groups", list)
    monkeypatch.setattr(memory, "_process_limits", lambda: [(5000, 3000)])
    assert available_memory() == 2000
    with pytest.raises(NormalMeshError, match="1 MB are available"):
        reconstruct(Medallion(32).normal_map, vertices=50)


needs_limits = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits the address space")
#: Environment with one thread, so that the address space does not depend on the number of cores.
ONE_THREAD = {**os.environ, "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def limited(megabytes: int | None, *command: object) -> subprocess.CompletedProcess[str]:
    """Run Python with a limit of its address space."""
    import resource

    limit = resource.RLIM_INFINITY if megabytes is None else megabytes << 20
    return subprocess.run(
        [sys.executable, *map(str, command)],
        env=ONE_THREAD,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )


@needs_limits
def test_a_limit_too_low_to_begin_is_reported(source: Path) -> None:
    result = limited(300, "-m", "normalmesh", "reconstruct", source)
    assert result.returncode == 1
    assert result.stderr.startswith("normalmesh: error: this process is limited to 315 MB")
    assert result.stderr.count("\n") == 1


@needs_limits
def test_a_map_too_large_for_the_limit_is_refused() -> None:
    program = """
import numpy as np, normalmesh as nm
normals = np.zeros((2000, 2000, 3), np.float32)
normals[..., 2] = 1
try:
    nm.reconstruct(nm.NormalMap(normals), vertices=1000, decimation={"start": "pixels"})
except nm.NormalMeshError as error:
    print(error)
"""
    result = limited(1100, "-c", program)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("the reconstruction needs about ")


@needs_limits
def test_an_estimate_that_is_too_low() -> None:
    """Without the estimate, memory is exhausted during the work."""
    program = """
import math, resource, numpy as np, normalmesh as nm
from pathlib import Path
normals = np.zeros((1500, 1500, 3), np.float32)
normals[..., 2] = 1
normal_map = nm.NormalMap(normals)
small = nm.NormalMap(normals[:64, :64])
before = nm.reconstruct(small, vertices=50).vertices  # loads the kernels
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (30 << 20), resource.RLIM_INFINITY))
try:
    nm.reconstruct(normal_map, vertices=1000, memory_limit=math.inf, decimation={"start": "pixels"})
except MemoryError:
    print("memory ran out")
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
print(np.array_equal(nm.reconstruct(small, vertices=50).vertices, before))
"""
    result = limited(None, "-c", program)
    assert (result.returncode, result.stdout) == (0, "memory ran out\nTrue\n"), result.stderr
