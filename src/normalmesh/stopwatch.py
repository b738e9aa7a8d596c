"""Stopwatch: wall time by stages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Adds up the seconds of named stages."""

    def __init__(self, *stages: str) -> None:
        self.seconds = dict.fromkeys(stages, 0.0)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time inside as part of a stage."""
        began = time.perf_counter()
        yield
        self.seconds[name] += time.perf_counter() - began
