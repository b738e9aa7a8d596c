"""Runner: does the tasks of stages in this process, and measures and reports them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Self, TypeVar

from normalmesh.engine.array_file import Arrays
from normalmesh.runtime.monitor import Monitor

Key = TypeVar("Key")
Kept = TypeVar("Kept")
#: What does the tasks of a stage: :meth:`Runner.run`.
Run = Callable[..., Mapping[Any, Arrays]]


class Runner:
    """Runs the stages of a reconstruction in memory, one task after the other; see :class:`.Engine` for others.

    Parameters
    ----------
    monitor
        Where progress is reported.

    Attributes
    ----------
    is_here
        Whether this process does all work.
    prefix
        What the names of all stages and results begin with.
    seconds, cpu_seconds
        Wall and CPU seconds of the tasks that have been done, in total, by stage.
    """

    def __init__(self, monitor: Monitor | None = None) -> None:
        self.monitor, self.is_here, self.prefix = monitor or Monitor(), True, ""
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.cpu_seconds: defaultdict[str, float] = defaultdict(float)

    def under(self, prefix: str) -> Self:
        """Return the same runner for stages and results whose names begin with a further prefix."""
        other = copy(self)
        other.prefix = self.prefix + prefix
        return other

    def run(
        self,
        stage: str,
        function: Callable[..., Arrays],
        arguments: Mapping[Key, tuple[Any, ...]],
        *,
        work: float = 0.0,
    ) -> Mapping[Key, Arrays]:
        """Do the tasks of a stage, and return their results by the same keys.

        Parameters
        ----------
        stage
            Name of the stage, in the progress and in ``seconds``.
        function
            A function of a module, whose calls return arrays by name. They depend on the arguments only.
        arguments
            Its arguments by the key of the task, a name or a tuple of numbers. They are looked up once, when the task
            is about to be done, and may be made only then: see :class:`.LazyArguments`.
        work
            The work of the stage, in the unit of the monitor.
        """
        results: dict[Key, Arrays] = {}
        stage = self.prefix + stage
        self._report(stage, 0, len(arguments), 0.0)
        for key in arguments:
            wall, cpu = time.perf_counter(), time.process_time()
            results[key] = function(*arguments[key])
            self.seconds[stage] += time.perf_counter() - wall
            self.cpu_seconds[stage] += time.process_time() - cpu
            self._report(stage, len(results), len(arguments), work)
        return results

    def kept(self, name: str, make: Callable[[], Kept]) -> Kept:
        """Return what ``make`` returns, or what was kept by its name.

        The results of stages that ``make`` runs may be gone afterwards.
        """
        return make()

    def seconds_by_stage(self, prefix: str, among: bool = True) -> tuple[dict[str, float], dict[str, float]]:
        """Return wall and CPU seconds of the stages below a further prefix, or of all others below that of this."""
        wall, cpu = (
            {
                name: each
                for name, each in found.items()
                if name.startswith(self.prefix) and name.startswith(self.prefix + prefix) == among
            }
            for found in (self.seconds, self.cpu_seconds)
        )
        return wall, cpu

    def _report(self, stage: str, finished: int, count: int, work: float) -> None:
        """Report that the share ``work / count`` of the work has been done."""
        self.monitor.name = stage if count == 1 else f"{stage} {finished}/{count}"
        self.monitor.advance(work / max(count, 1))
