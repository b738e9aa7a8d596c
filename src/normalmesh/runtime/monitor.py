"""Monitor: the progress of long work, and the time that its stages take."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from normalmesh.errors import NormalMeshError, repr_for_error

logger = logging.getLogger(__name__)

#: The stage of the last step.
DONE = "done"


@dataclass(frozen=True)
class Step:
    """The progress of long work.

    Attributes
    ----------
    share
        Approximate fraction of the total time that has passed: from 0 to 1, never decreasing. It is 1 only at the end.
    stage
        The current stage, such as ``"collapse"``; ``"done"`` at the end.
    vertices
        Current number of vertices of the mesh; None while there is none.
    """

    share: float
    stage: str
    vertices: int | None = None


#: A callback for progress. An exception that it raises ends the work and reaches the caller.
OnProgress = Callable[[Step], None]
#: An argument ``progress``: a callback, or whether to show a bar.
Progress = OnProgress | bool | None


class Monitor:
    """Reports progress to a callback and measures the time of stages.

    ``work`` is the total amount of work, in any unit. :meth:`stage` and :meth:`timed` measure the ``stages``:
    ``seconds`` and ``cpu_seconds``, of all threads of the process, are by stage.
    """

    def __init__(self, on_progress: OnProgress | None = None, work: float = 1.0, stages: Sequence[str] = ()) -> None:
        if on_progress is not None and not callable(on_progress):
            raise NormalMeshError(
                f"progress must be True, False or a function of a normalmesh.Step, not {repr_for_error(on_progress)}"
            )
        self.on_progress = on_progress
        self._began = time.perf_counter()
        self.work = work
        self.done = 0.0
        self.name = ""
        self.vertices: int | None = None
        self.seconds = dict.fromkeys(stages, 0.0)
        self.cpu_seconds = dict.fromkeys(stages, 0.0)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self._began

    @contextmanager
    def stage(self, name: str, work: float = 0.0) -> Iterator[None]:
        """Report the beginning of a stage, measure it, and count its work at its end."""
        self.begin(name)
        with self.timed(name):
            yield
        self.advance(work)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Measure a stage without reporting it."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        seconds = time.perf_counter() - wall
        self.seconds[name] += seconds
        logger.debug("%s: %.3f s", name, seconds)
        self.cpu_seconds[name] += time.process_time() - cpu

    def begin(self, name: str, vertices: int | None = None) -> None:
        """Report the beginning of a stage."""
        self.name = name
        self.advance(0.0, vertices)

    def advance(self, work: float, vertices: int | None = None) -> None:
        """Report that more work has been done, and the number of vertices if it has changed."""
        self.reach(self.done + work, vertices)

    def reach(self, done: float, vertices: int | None = None) -> None:
        """Report the work done in total. It never decreases."""
        self.done = max(self.done, done)
        self.vertices = self.vertices if vertices is None else vertices
        self._report(self.done)

    def finish(self, vertices: int | None = None) -> None:
        """Report the end."""
        if self.on_progress is not None:
            self.on_progress(Step(1.0, DONE, self.vertices if vertices is None else vertices))

    def part(self, work: float) -> OnProgress:
        """Return a callback for a function that reports its own progress and makes up ``work`` of this work."""
        before = self.done
        self.done += work

        def report(step: Step) -> None:
            if step.stage != DONE:
                self.name, self.vertices = step.stage, step.vertices
                self._report(before + work * step.share)

        return report

    def _report(self, done: float) -> None:
        if self.on_progress is not None:
            # The estimate of the total may be too low, but only the end may be reported as 1.
            self.on_progress(Step(min(done / self.work, 0.99), self.name, self.vertices))
