"""Kernels on several threads. Results never depend on the number of threads.

A *range kernel* is ``kernel(first, last, *arguments)``: it processes the elements first … last − 1 of a loop, writes
their results into arrays that it is given, and returns nothing. Elements are independent of each other, so
:func:`in_parallel` may divide them among threads in any way. Range kernels compile far faster than Numba's own parallel
loops, and idle threads sleep. They release the global interpreter lock, as all kernels do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import numba

from normalmesh.arguments import checked_int
from normalmesh.errors import NormalMeshError, repr_for_error

#: Vertices or faces that a thread works on at once, at least: what most kernels do with one of them takes far longer
#: than to share them out.
GRAIN = 4096

#: Number of ranges per thread: some take longer than others.
RANGES = 32

#: Number of threads that may be used: as many as Numba may use, the cores or ``NUMBA_NUM_THREADS``.
MAX_THREADS = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]  # set when Numba is imported

_limit: ContextVar[int] = ContextVar("limit", default=MAX_THREADS)


def in_parallel(kernel: Callable[..., None], count: int, *arguments: Any, grain: int = GRAIN) -> None:
    """Run a range kernel on the elements 0 … count − 1, on as many threads as :func:`limited_threads` allows.

    A thread takes ranges of at least ``grain`` elements, so a short loop is a single call. An exception in a range is
    raised when all threads have finished.
    """
    threads, length = _division(count, grain)
    if threads <= 1:
        kernel(0, count, *arguments)
        return
    starts = iter(range(0, count, length))

    def work() -> None:
        try:
            for first in starts:
                kernel(first, min(first + length, count), *arguments)
        finally:
            # After a failure, no other thread begins another range.
            for _ in starts:
                pass

    # This thread works, too, so the loop ends even if the pool is busy with other callers or has no thread left.
    others: list[Future[None]] = []
    try:
        # The system may refuse to start more threads.
        with suppress(RuntimeError, MemoryError):
            others += (_pool.submit(work) for _ in range(threads - 1))
        work()
    finally:
        # One that is cancelled never begins. To wait for it would be to wait for a thread of the pool, which may be
        # waiting, too, if it runs such a loop inside another one.
        begun = [other for other in others if not other.cancel()]
        wait(begun)
    for other in begun:
        other.result()


def _division(count: int, grain: int) -> tuple[int, int]:
    """Return the number of threads for a loop, and the length of the ranges that they take."""
    threads = max(min(allowed_threads(), count // grain), 1)
    return threads, max(grain, -(-count // (RANGES * threads)))


def allowed_threads() -> int:
    """Return the number of threads that kernels may use here."""
    return _limit.get()


@contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """Limit the number of threads of all kernels inside; None leaves it as it is."""
    if threads is None:
        yield
        return
    if checked_int(threads, 1, "threads") > MAX_THREADS:
        raise NormalMeshError(
            f"threads is {repr_for_error(threads)}, but there are at most {MAX_THREADS} here; "
            "set NUMBA_NUM_THREADS before Python starts to change that"
        )
    before = _limit.set(int(threads))
    try:
        yield
    finally:
        _limit.reset(before)


def _new_pool() -> ThreadPoolExecutor:
    """Return the threads that all callers share; they start when they are needed."""
    return ThreadPoolExecutor(max(MAX_THREADS - 1, 1), thread_name_prefix="normalmesh")


def _after_fork() -> None:
    """Start over: a forked process has none of its parent's threads."""
    global _pool
    _pool = _new_pool()


_pool = _new_pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
