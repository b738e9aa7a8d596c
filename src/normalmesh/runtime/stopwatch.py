"""Stopwatch: wall and processor time by stages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Adds up the wall seconds of named stages, and the processor seconds of all threads of the process."""

    def __init__(self, *stages: str) -> None:
        self.seconds = dict.fromkeys(stages, 0.0)
        self.cpu_seconds = dict.fromkeys(stages, 0.0)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time inside as part of a stage."""
        began, worked = time.perf_counter(), time.process_time()
        yield
        self.seconds[name] += time.perf_counter() - began
        self.cpu_seconds[name] += time.process_time() - worked
