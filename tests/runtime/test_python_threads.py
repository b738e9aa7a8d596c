"""Test that Python threads and forked and spawned processes give the same results as consecutive calls."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from normalmesh import decimate, integrate, integrate_pixels, read_normal_map, reconstruct, remesh_isotropic
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.files.encoding import encode_normals
from normalmesh.runtime.threads import MAX_THREADS, allowed_threads, limited_threads

SIZES = (40, 56, 72)


def digest(*arrays: np.ndarray) -> bytes:
    """Return the bytes of several arrays."""
    return b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)


def all_results(path: Path) -> bytes:
    """Return the results of all ways to process a file, as bytes."""
    normal_map = read_normal_map(path)
    surface = reconstruct(normal_map, vertices=90)
    mesh = decimate(normal_map, vertices=120)
    flat = integrate(mesh, normal_map, discontinuities=False)
    pixels = integrate_pixels(normal_map)
    return digest(surface.vertices, surface.faces, surface.depth_map(), mesh.vertices, flat.vertices, pixels)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("maps")
    paths = [folder / f"{size}.png" for size in SIZES]
    for size, path in zip(SIZES, paths, strict=True):
        normal_map = Medallion(size).normal_map
        path.write_bytes(encode_normals(path, normal_map.normals, normal_map.mask))
    return paths


@pytest.fixture(scope="module")
def expected(files: list[Path]) -> list[bytes]:
    return [all_results(path) for path in files]


def at_once(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Do work on ``count`` threads that begin at the same time, and return the results."""
    together = threading.Barrier(count)

    def begin(number: int) -> Any:
        together.wait()
        return work(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(begin, range(count)))


def test_threads_at_once(files: list[Path], expected: list[bytes]) -> None:
    assert at_once(6, lambda k: all_results(files[k % 3])) == [expected[k % 3] for k in range(6)]


def test_threads_at_once_on_the_baseline() -> None:
    normal_map = Medallion(48).normal_map
    expected = remesh_isotropic(normal_map, vertices=60).vertices
    for mesh in at_once(4, lambda _: remesh_isotropic(normal_map, vertices=60)):
        assert np.array_equal(mesh.vertices, expected)


def test_each_python_thread_has_its_own_limit_of_threads() -> None:
    entered, checked = threading.Barrier(2), threading.Barrier(2)

    def work(number: int) -> int:
        with limited_threads(1 if number else None):
            entered.wait()
            seen = allowed_threads()
            checked.wait()
        assert allowed_threads() == MAX_THREADS
        return seen

    assert at_once(2, work) == [MAX_THREADS, 1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forks_after_threads_were_used(files: list[Path], expected: list[bytes]) -> None:
    """The threads of Numba would abort such a process or block it."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(all_results, files).get(timeout=120) == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forks_while_threads_are_running(files: list[Path], expected: list[bytes]) -> None:
    with ThreadPoolExecutor(2) as threads:
        under_way = [threads.submit(all_results, path) for path in files]
        child = multiprocessing.get_context("fork").Process(target=_expect, args=(files[0], expected[0]))
        child.start()
        child.join(120)
        assert child.exitcode == 0
        assert [each.result() for each in under_way] == expected


def _expect(path: Path, expected: bytes) -> None:
    assert all_results(path) == expected


#: Imports the package and reconstructs in many threads at once, with a threading layer of Numba that supports only one,
#: and then in a spawned process.
FRESH = """
import hashlib, multiprocessing, sys, threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

def work(path):
    together.wait()
    import normalmesh as nm
    normal_map = nm.read_normal_map(path)
    surface, depth = nm.reconstruct(normal_map, vertices=90, threads=1), nm.integrate_pixels(normal_map)
    return hashlib.sha256(surface.vertices.tobytes() + depth.tobytes()).hexdigest()

together = threading.Barrier(int(sys.argv[2]) if __name__ == "__main__" else 1)
if __name__ == "__main__":
    with ThreadPoolExecutor(int(sys.argv[2])) as threads:
        print(*set(threads.map(work, [sys.argv[1]] * int(sys.argv[2]))))
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
        print(processes.submit(work, sys.argv[1]).result())
"""


def test_many_threads_in_a_new_process(files: list[Path], tmp_path: Path) -> None:
    script = tmp_path / "fresh.py"
    script.write_text(FRESH)
    environment = {**os.environ, "NUMBA_THREADING_LAYER": "workqueue", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(script), str(files[0]), "8"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    of_threads, of_process = result.stdout.splitlines()
    assert of_threads == of_process
