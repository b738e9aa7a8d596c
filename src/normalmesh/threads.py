"""How many threads a kernel gets. Results never depend on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numba

from normalmesh.errors import NormalMeshError, whole_number

#: Loops over fewer elements than this are done before a second thread has woken up.
PARALLEL_FROM = 2_000_000


@contextmanager
def threads_for(size: int) -> Iterator[None]:
    """One thread for parallel kernels on small arrays, all that the caller allows on large ones.

    On a busy machine waking a thread takes longer than a whole loop over a small array.
    """
    allowed = numba.get_num_threads()
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
    before = numba.get_num_threads()
    if threads is not None:
        most = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]  # set when it is imported
        if whole_number(threads, 1, "threads") > most:
            raise NormalMeshError(
                f"threads is {threads}, but there are at most {most} here; NUMBA_NUM_THREADS changes that at the start"
            )
        numba.set_num_threads(threads)
    try:
        yield
    finally:
        numba.set_num_threads(before)
