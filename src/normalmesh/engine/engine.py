"""Engine: runs the stages of a tiled reconstruction. What is in the work folder is not done again."""

from __future__ import annotations

import logging
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any, TypeVar

from normalmesh.engine.array_file import ArrayFile, Arrays
from normalmesh.engine.description import code_description
from normalmesh.engine.jobs import Job, Outcome
from normalmesh.engine.work_folder import SHARED, WorkFolder
from normalmesh.engine.workers import ThisProcess, Workers
from normalmesh.errors import count_text
from normalmesh.runtime.monitor import Monitor

logger = logging.getLogger(__name__)

Key = TypeVar("Key")


class Engine:
    """Runs stages.

    Parameters
    ----------
    folder
        Where results are kept, on a disk that all workers share.
    workers
        Who does the work; by default this process.
    monitor
        Where progress is reported.
    cores
        Number of cores of a machine to use, by default all.
    memory
        Bytes that any task needs.

    Attributes
    ----------
    seconds, cpu_seconds
        Wall and CPU seconds of the tasks that have been done, in total, by stage.
    """

    def __init__(
        self,
        folder: WorkFolder,
        workers: Workers | None = None,
        monitor: Monitor | None = None,
        cores: int | None = None,
        memory: float = 0.0,
    ) -> None:
        self.folder, self.monitor = folder, Monitor() if monitor is None else monitor
        self._workers: Workers = ThisProcess() if workers is None else workers
        self._cores, self._memory = cores, memory
        self._warned: set[tuple[type[Warning], str]] = set()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.cpu_seconds: defaultdict[str, float] = defaultdict(float)

    @property
    def is_here(self) -> bool:
        """Whether this process does all work."""
        return self._workers.is_here

    def run(
        self,
        stage: str,
        function: Callable[..., Arrays],
        arguments: Mapping[Key, tuple[Any, ...] | Callable[[], tuple[Any, ...]]],
        *,
        memory: float = 0.0,
        work: float = 0.0,
    ) -> dict[Key, ArrayFile]:
        """Run the tasks of a stage whose results are missing, and return all results.

        Parameters
        ----------
        stage
            Name of the stage: of a subfolder, and in the progress.
        function
            A function of a module, whose calls return arrays by name. They depend on the arguments only.
        arguments
            Its arguments by the key of the task, a name or a tuple of numbers; or functions that make them when a task
            is about to be done, for arguments that take memory. Large ones reach other processes through the folder.
        memory
            Bytes that a task needs, if more than any does. As many tasks are done at the same time as fit.
        work
            The work of the stage, in the unit of the monitor.

        Raises
        ------
        NormalMeshError
            A task raised it, or workers died repeatedly. Results of other tasks stay, and are not done again.
        """
        results = {key: self.folder.result(stage, key) for key in arguments}
        missing = [key for key, result in results.items() if not result.exists]
        (self.folder.path / stage).mkdir(exist_ok=True)
        finished = len(results) - len(missing)
        self._report(stage, finished, len(results), work * finished)
        if not missing:
            return results
        began, memory = time.perf_counter(), max(memory, self._memory)
        together = self._workers.together(memory)
        sharing = self._workers.sharing(min(together, len(missing)))

        def jobs() -> Iterator[Job]:
            for key in missing:
                given = arguments[key]
                values = given() if callable(given) else given
                yield Job(stage, key, function, values, results[key], self._cores, sharing, code_description())

        with closing(self._workers.outcomes(jobs(), memory, self.folder.path / SHARED)) as outcomes:  # type: ignore[type-var]
            for job, outcome in outcomes:
                self._note(job, outcome)
                finished += 1
                self._report(stage, finished, len(results), work)
        logger.info("%s, %s: %.2f s", stage, count_text(len(missing), "task"), time.perf_counter() - began)
        return results

    def _note(self, job: Job, outcome: Outcome) -> None:
        """Count the time of a job, issue its warnings if they are new, and raise its error."""
        self.seconds[job.stage] += outcome.seconds
        self.cpu_seconds[job.stage] += outcome.cpu_seconds
        for category, text in outcome.warnings:
            if (category, text) not in self._warned:
                self._warned.add((category, text))
                warnings.warn(text, category, stacklevel=3)
        if outcome.error is not None:
            raise outcome.error

    def _report(self, stage: str, finished: int, count: int, work: float) -> None:
        """Report that the share ``work / count`` of the work has been done."""
        self.monitor.name = f"{stage} {finished}/{count}"
        self.monitor.advance(work / max(count, 1))
