"""How many threads a kernel gets. Results never depend on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numba

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
