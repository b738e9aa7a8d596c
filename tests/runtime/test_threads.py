"""Test parallel loops: every element is processed once, by any thread, and errors reach the caller."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba import njit

from normalmesh import NormalMeshError, decimate, find_jumps, integrate, integrate_pixels, remesh_isotropic
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.runtime import threads
from normalmesh.runtime.threads import MAX_THREADS, allowed_threads, in_parallel, limited_threads


@njit(nogil=True)
def squares(first, last, filled):
    for i in range(first, last):
        filled[i] += i * i


@pytest.fixture
def four_threads(monkeypatch):
    monkeypatch.setattr("normalmesh.runtime.threads.allowed_threads", lambda: 4)


@pytest.mark.parametrize("count", [0, 1, 7, 1000, 1001])
@pytest.mark.parametrize("grain", [1, 7, 5000])
def test_every_element_is_processed_once(four_threads, count, grain):
    filled = np.zeros(count, np.int64)
    in_parallel(squares, count, filled, grain=grain)
    assert np.array_equal(filled, np.arange(count) ** 2)


def test_several_threads_run(four_threads):
    met = threading.Barrier(4, timeout=20)
    seen = set()

    def kernel(first, last):
        if threading.get_ident() not in seen and len(seen) < 4:
            seen.add(threading.get_ident())
            met.wait()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("normalmesh.runtime.threads._pool", ThreadPoolExecutor(3))
        in_parallel(kernel, 100, grain=1)
    assert len(seen) == 4


def test_short_loops_stay_in_the_calling_thread(four_threads):
    seen = []
    in_parallel(lambda first, last: seen.append((first, last, threading.get_ident())), 9, grain=5)
    assert seen == [(0, 9, threading.get_ident())]


def test_an_error_ends_the_loop_and_reaches_the_caller(four_threads):
    def kernel(first, last):
        if first <= 50 < last:
            raise KeyboardInterrupt
        done.append(first)

    done: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        in_parallel(kernel, 100, grain=1)
    count = len(done)
    assert count < 100
    # All threads have stopped, and the pool can be used again.
    filled = np.zeros(100, np.int64)
    in_parallel(squares, 100, filled, grain=1)
    assert len(done) == count
    assert np.array_equal(filled, np.arange(100) ** 2)


def test_many_callers_at_once(four_threads):
    def call(_):
        filled = np.zeros(1000, np.int64)
        in_parallel(squares, 1000, filled, grain=10)
        return filled

    with ThreadPoolExecutor(8) as callers:
        for filled in callers.map(call, range(40)):
            assert np.array_equal(filled, np.arange(1000) ** 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_loops_may_run_inside_loops(four_threads):
    filled = np.zeros((50, 200), np.int64)

    def rows(first, last):
        for row in filled[first:last]:
            in_parallel(squares, len(row), row, grain=1)

    # A daemon, so that a deadlock is a failure instead of a test that never ends.
    caller = threading.Thread(target=in_parallel, args=(rows, len(filled)), kwargs={"grain": 1}, daemon=True)
    caller.start()
    caller.join(60)
    assert not caller.is_alive()
    assert np.array_equal(filled, np.broadcast_to(np.arange(200) ** 2, filled.shape))


def test_a_forked_process_has_threads_of_its_own(four_threads):
    filled = np.zeros(1000, np.int64)
    in_parallel(squares, 1000, filled, grain=10)
    child = os.fork()
    if child == 0:
        filled[:] = 0
        in_parallel(squares, 1000, filled, grain=10)
        os._exit(0 if np.array_equal(filled, np.arange(1000) ** 2) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_more_threads_than_available_are_refused():
    with pytest.raises(NormalMeshError, match="at most"), limited_threads(MAX_THREADS + 1):
        pass


@pytest.mark.parametrize(
    "compute",
    [
        lambda given, **options: decimate(given, vertices=60, **options).vertices,
        lambda given, **options: integrate(decimate(given, vertices=60), given, **options).vertices,
        integrate_pixels,
        lambda given, **options: remesh_isotropic(given, error=1.0, rounds=1, **options).vertices,
        lambda given, **options: len(find_jumps(given, **options).lines),
    ],
    ids=["decimate", "integrate", "integrate_pixels", "remesh_isotropic", "find_jumps"],
)
def test_stages_limit_their_threads(compute, monkeypatch):
    given = Medallion(32).normal_map
    expected, division, seen = compute(given), threads._division, []
    monkeypatch.setattr(threads, "_division", lambda *loop: seen.append(allowed_threads()) or division(*loop))
    assert np.array_equal(compute(given, threads=1), expected, equal_nan=True)
    assert seen[-1] == 1
    assert allowed_threads() == MAX_THREADS
