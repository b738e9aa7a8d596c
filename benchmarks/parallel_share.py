"""Derive from a run on one thread how long a reconstruction takes on several, stage by stage.

Every loop that threads share is run range by range, as on the largest number of threads, and each range is timed by the
clock of its thread. Ranges are then handed out as ``in_parallel`` does, one to each thread as soon as it is free; all
work in between is serial. Caches and memory that cores share are not considered: the result is an upper bound of the
speed-up, and shows what is left on one thread. ``--kernels`` lists the loops, ``--serial`` the Python functions between
them.
"""

from __future__ import annotations

import argparse
import cProfile
import heapq
import pstats
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from benchmarks.speed import side_of
from normalmesh import NormalMap, reconstruct
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.runtime import threads
from normalmesh.runtime.monitor import Step

THREADS = (1, 2, 4, 8, 16)
#: Seconds until a further thread works on a loop.
WAKING = 10e-6


@dataclass
class Stage:
    """Seconds of a stage: its loops, each as kernel and seconds of its ranges, and everything else."""

    loops: list[tuple[str, list[float]]] = field(default_factory=list)
    serial: float = 0.0

    def seconds(self, count: int) -> float:
        """Return the derived seconds on so many threads."""
        return self.serial + sum(makespan(ranges, count) for _, ranges in self.loops)


class Recorder:
    """Replaces ``in_parallel``, and records the seconds of ranges by stage."""

    def __init__(self) -> None:
        self.stages: dict[str, Stage] = defaultdict(Stage)
        self._name, self._since = "", time.thread_time()

    def begin(self, step: Step) -> None:
        """Begin a stage: the callback of progress."""
        self._end_serial()
        self._name = step.stage

    def in_parallel(self, kernel: Callable[..., None], count: int, *arguments: Any, grain: int) -> None:
        """Run a range kernel on this thread, and record its ranges."""
        self._end_serial()
        wanted = max(min(max(THREADS), count // grain), 1)
        length = max(grain, -(-count // (threads.RANGES * wanted)), 1) if wanted > 1 else max(count, 1)
        ranges = []
        for first in range(0, max(count, 1), length):
            began = time.thread_time()
            kernel(first, min(first + length, count), *arguments)
            ranges.append(time.thread_time() - began)
        self.stages[self._name].loops.append((kernel.__name__, ranges))
        self._since = time.thread_time()

    def _end_serial(self) -> None:
        now = time.thread_time()
        self.stages[self._name].serial += now - self._since
        self._since = now


def makespan(ranges: list[float], count: int) -> float:
    """Return the seconds until all ranges are done, if each goes to the thread that is free first."""
    free = [WAKING * thread for thread in range(min(count, len(ranges)))]
    for seconds in ranges:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


@contextmanager
def recorded() -> Iterator[Recorder]:
    """Record all loops inside."""
    recorder, original = Recorder(), threads.in_parallel
    users = [module for module in list(sys.modules.values()) if getattr(module, "in_parallel", None) is original]
    patches = [patch.object(module, "in_parallel", recorder.in_parallel) for module in users]
    for each in patches:
        each.start()
    try:
        yield recorder
    finally:
        for each in patches:
            each.stop()


def measure(normal_map: NormalMap, compression: float) -> dict[str, Stage]:
    """Reconstruct, and return the stages."""
    with recorded() as recorder:
        reconstruct(normal_map, compression=compression, progress=recorder.begin, threads=1)
    return {name: stage for name, stage in recorder.stages.items() if stage.seconds(1) > 0}


def table(stages: dict[str, Stage]) -> Iterator[str]:
    """Yield the lines of the table by stage."""
    yield "| stage | serial, s |" + "".join(f" {count} |" for count in THREADS) + f" speed-up on {THREADS[-1]} |"
    yield "|---" * (3 + len(THREADS)) + "|"
    total = [sum(stage.seconds(count) for stage in stages.values()) for count in THREADS]
    rows = [(name, stage.serial, [stage.seconds(count) for count in THREADS]) for name, stage in stages.items()]
    for name, serial, seconds in [*rows, ("all", sum(stage.serial for stage in stages.values()), total)]:
        cells = " | ".join(f"{each:.2f}" for each in (serial, *seconds))
        yield f"| {name} | {cells} | {seconds[0] / seconds[-1]:.1f} |"


def kernels(stages: dict[str, Stage], most: int = 15) -> Iterator[str]:
    """Yield the loops of each stage that take longest on the largest number of threads."""
    for name, stage in stages.items():
        sums: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
        for kernel, ranges in stage.loops:
            found = sums[kernel]
            for place, more in enumerate((1, sum(ranges), makespan(ranges, THREADS[-1]))):
                found[place] += more
        for kernel, (calls, alone, several) in sorted(sums.items(), key=lambda item: -item[1][2])[:most]:
            yield f"{name:12} {kernel:28} {calls:5} calls, {alone:7.3f} s → {several:6.3f} s on {THREADS[-1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megapixels", type=float, default=16.0)
    parser.add_argument("--compression", type=float, default=0.99)
    parser.add_argument("--kernels", action="store_true", help="list the loops that take longest")
    parser.add_argument("--serial", action="store_true", help="list the functions between them, by their own seconds")
    options = parser.parse_args()
    for size, compression in ((320, 0.98), (512, options.compression)):
        reconstruct(Medallion(size).normal_map, compression=compression)
    normal_map = Medallion(side_of(options.megapixels)).normal_map
    stages = measure(normal_map, options.compression)
    print("\n".join(table(stages)))
    if options.kernels:
        print("\n".join(kernels(stages)))
    if options.serial:
        profile = cProfile.Profile(time.thread_time)
        with recorded() as recorder:
            profile.runcall(
                reconstruct, normal_map, compression=options.compression, progress=recorder.begin, threads=1
            )
        pstats.Stats(profile).sort_stats("tottime").print_stats(50)


if __name__ == "__main__":
    main()
