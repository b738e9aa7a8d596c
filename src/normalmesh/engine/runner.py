"""Runners: what does the tasks of stages, and measures and reports them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

from normalmesh.engine.array_file import Arrays
from normalmesh.runtime.monitor import Monitor

Key = TypeVar("Key")


class Storable(Protocol):
    """What can be kept as arrays."""

    def arrays(self) -> Arrays:
        """Return the arrays from which the same can be made again."""
        ...


Kept = TypeVar("Kept", bound=Storable)


class Runner(ABC):
    """Runs the stages of a reconstruction.

    Parameters
    ----------
    monitor
        Where progress is reported.

    Attributes
    ----------
    seconds, cpu_seconds
        Wall and CPU seconds of the tasks that have been done, in total, by stage.
    """

    def __init__(self, monitor: Monitor | None = None) -> None:
        self.monitor = Monitor() if monitor is None else monitor
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.cpu_seconds: defaultdict[str, float] = defaultdict(float)

    @property
    @abstractmethod
    def is_here(self) -> bool:
        """Whether this process does all work."""

    @abstractmethod
    def run(
        self,
        stage: str,
        function: Callable[..., Arrays],
        arguments: Mapping[Key, tuple[Any, ...]],
        *,
        work: float = 0.0,
    ) -> Mapping[Key, Mapping[str, NDArray[Any]]]:
        """Do the tasks of a stage, and return their results by the same keys.

        Parameters
        ----------
        stage
            Name of the stage, in the progress and in ``seconds``.
        function
            A function of a module, whose calls return arrays by name. They depend on the arguments only.
        arguments
            Its arguments by the key of the task, a name or a tuple of numbers. They are looked up when the task is about
            to be done, once: those that take memory may be made then, see :class:`.LazyArguments`.
        work
            The work of the stage, in the unit of the monitor.
        """

    @abstractmethod
    def kept(self, name: str, make: Callable[[], Kept], load: Callable[[Arrays], Kept]) -> Kept:
        """Return what ``make`` returns. A runner that keeps results on disk does not make it again.

        Parameters
        ----------
        name
            Name by which it is kept.
        make
            Makes it, by stages whose results are not needed any more afterwards.
        load
            Makes it of its arrays.
        """

    def _report(self, stage: str, finished: int, count: int, work: float) -> None:
        """Report that the share ``work / count`` of the work has been done."""
        self.monitor.name = stage if count == 1 else f"{stage} {finished}/{count}"
        self.monitor.advance(work / max(count, 1))


class InMemory(Runner):
    """Does one task after the other in this process; results are the arrays that it returns."""

    is_here = True

    def run(
        self,
        stage: str,
        function: Callable[..., Arrays],
        arguments: Mapping[Key, tuple[Any, ...]],
        *,
        work: float = 0.0,
    ) -> dict[Key, Arrays]:
        results: dict[Key, Arrays] = {}
        self._report(stage, 0, len(arguments), 0.0)
        for key in arguments:
            wall, cpu = time.perf_counter(), time.process_time()
            results[key] = function(*arguments[key])
            self.seconds[stage] += time.perf_counter() - wall
            self.cpu_seconds[stage] += time.process_time() - cpu
            self._report(stage, len(results), len(arguments), work)
        return results

    def kept(self, name: str, make: Callable[[], Kept], load: Callable[[Arrays], Kept]) -> Kept:
        return make()
