"""How many threads a kernel gets, and kernels that run on several. Results never depend on the number.

A *range kernel* is ``kernel(first, last, *arguments)``: it does the elements first … last − 1 of a loop, fills what
belongs to them in arrays that it is given, and returns nothing. Elements do not depend on each other, so
:func:`in_parallel` may share them out in any way. Such kernels are compiled far faster than Numba's own parallel loops,
and threads that have nothing to do sleep. They must be compiled with ``nogil=True``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Any

import numba
from numba.np.ufunc import parallel

from normalmesh.arguments import checked_int
from normalmesh.errors import NormalMeshError, repr_for_error

#: Loops over fewer elements than this are done before a second thread has woken up.
PARALLEL_FROM = 2_000_000
#: Ranges for each thread: some take longer than others.
RANGES = 32


def in_parallel(kernel: Callable[..., None], count: int, *arguments: Any, grain: int) -> None:
    """Run a range kernel on the elements 0 … count − 1, on as many threads as Numba may use.

    Threads take ranges of ``grain`` elements at least, so a short loop is one call. Returns, or raises what a range
    raised, when no thread is at work any more.
    """
    threads = min(_allowed(), count // grain)
    if threads <= 1:
        kernel(0, count, *arguments)
        return
    length = max(grain, -(-count // (RANGES * threads)))
    starts = iter(range(0, count, length))

    def work() -> None:
        try:
            for first in starts:
                kernel(first, min(first + length, count), *arguments)
        finally:
            # Nobody begins another range once one has failed; when all is done, there is none.
            for _ in starts:
                pass

    # This thread works, too: so all is done even if the pool is busy with other callers, or has no thread left.
    others: list[Future[None]] = []
    try:
        # No more threads where memory or a limit of the system ends.
        with suppress(RuntimeError, MemoryError):
            others += (_pool.submit(work) for _ in range(threads - 1))
        work()
    finally:
        for other in others:
            other.cancel()
        wait(others)
    for other in others:
        if not other.cancelled():
            other.result()


def _allowed() -> int:
    """As :func:`numba.get_num_threads`, which would start Numba's own threads; before that nobody can have set it."""
    if getattr(parallel, "_is_initialized", True):
        return numba.get_num_threads()
    return _most()


def _most() -> int:
    return int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]  # set when it is imported


def _new_pool() -> ThreadPoolExecutor:
    """The threads that all callers share; they start when they are needed."""
    return ThreadPoolExecutor(max(_most() - 1, 1), thread_name_prefix="normalmesh")


def _forget_threads() -> None:
    """A forked process has none of its parent's threads."""
    global _pool
    _pool = _new_pool()


_pool = _new_pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


@contextmanager
def threads_for(size: int) -> Iterator[None]:
    """One thread for Numba's parallel loops on small arrays, all that the caller allows on large ones.

    On a busy machine waking a thread takes longer than a whole loop over a small array.
    """
    allowed = _allowed()
    if allowed == 1:
        yield
        return
    numba.set_num_threads(allowed if size >= PARALLEL_FROM else 1)
    try:
        yield
    finally:
        numba.set_num_threads(allowed)


@contextmanager
def limited_threads(threads: int | None) -> Iterator[None]:
    """At most so many threads for all kernels inside; None: as many as before.

    Raises
    ------
    NormalMeshError
        There are fewer: as many as the machine has cores, or as ``NUMBA_NUM_THREADS`` says.
    """
    if threads is None:
        yield
        return
    if checked_int(threads, 1, "threads") > _most():
        raise NormalMeshError(
            f"threads is {repr_for_error(threads)}, but there are at most {_most()} here; "
            "NUMBA_NUM_THREADS changes that at the start"
        )
    before = numba.get_num_threads()
    numba.set_num_threads(threads)
    try:
        yield
    finally:
        numba.set_num_threads(before)
