"""Engine: runs the stages of a reconstruction in tiles. What is in the work folder is not done again."""

from __future__ import annotations

import logging
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from copy import copy
from typing import Any, TypeVar

from normalmesh.engine.array_file import ArrayFile, Arrays, packed, unpacked
from normalmesh.engine.description import code_description
from normalmesh.engine.jobs import Job, Outcome
from normalmesh.engine.work_folder import SHARED, WorkFolder
from normalmesh.engine.workers import ThisProcess, Workers
from normalmesh.errors import count_text
from normalmesh.runtime.monitor import Monitor

logger = logging.getLogger(__name__)

Key = TypeVar("Key")
Kept = TypeVar("Kept")
#: Folder of what is kept after the stages that led to it.
KEPT = "kept"


class Engine:
    """Runs stages whose results are files in a folder, on a disk that all workers share.

    Results that are missing there, or damaged, are made by the workers, by default this process, with so many cores of
    a machine, by default all. Names of all stages and results begin with ``prefix``. ``seconds`` and ``cpu_seconds``
    are the wall and CPU seconds of the tasks that have been done, in total, by stage.
    """

    def __init__(
        self,
        folder: WorkFolder,
        workers: Workers | None = None,
        monitor: Monitor | None = None,
        cores: int | None = None,
    ) -> None:
        self.folder, self.monitor, self.prefix = folder, monitor or Monitor(), ""
        self.workers: Workers = workers or ThisProcess()
        self.seconds, self.cpu_seconds = defaultdict[str, float](float), defaultdict[str, float](float)
        self._cores = cores
        self._warned: set[tuple[type[Warning], str]] = set()
        self._stages: list[str] = []

    def under(self, prefix: str) -> Engine:
        """Return the same engine for stages and results whose names begin with a further prefix."""
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
    ) -> dict[Key, ArrayFile]:
        """Do the tasks of a stage whose results are missing, and return all results by the same keys.

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

        Raises
        ------
        NormalMeshError
            A task raised it, or workers died repeatedly. Results of other tasks stay, and are not done again.
        """
        stage = self.prefix + stage
        self._stages.append(stage)
        (self.folder.path / stage).mkdir(exist_ok=True)
        results = {key: self.folder.result(stage, key) for key in arguments}
        missing = [key for key, result in results.items() if not result.is_whole]
        finished = len(results) - len(missing)
        self._report(stage, finished, len(results), work * finished)
        if not missing:
            return results
        began = time.perf_counter()
        sharing = self.workers.sharing(len(missing))

        def jobs() -> Iterator[Job]:
            for key in missing:
                name, given = f"{stage} {key}", arguments[key]
                yield Job(name, function, given, results[key], self._cores, sharing, code_description())

        with closing(self.workers.outcomes(jobs(), self.folder.path / SHARED)) as outcomes:
            for outcome in outcomes:
                self._note(stage, outcome)
                finished += 1
                self._report(stage, finished, len(results), work)
        logger.info("%s, %s: %.2f s", stage, count_text(len(missing), "task"), time.perf_counter() - began)
        return results

    def kept(self, name: str, make: Callable[[], Kept]) -> Kept:
        """Return what is kept by a name, or make it, keep it, and remove the stages that led to it."""
        file = self.folder.result(KEPT, self.prefix + name)
        if file.is_whole:
            kept: Kept = unpacked(file)
            return kept
        before = len(self._stages)
        value = make()
        self.folder.save(KEPT, self.prefix + name, packed(value))
        for stage in self._stages[before:]:
            self.folder.remove_stage(stage)
        del self._stages[before:]
        return value

    def seconds_by_stage(self, prefix: str, among: bool = True) -> tuple[dict[str, float], dict[str, float]]:
        """Return wall and CPU seconds of the stages below a further prefix, or of all others below that of this."""
        chosen = [
            name
            for name in self.seconds
            if name.startswith(self.prefix) and name.startswith(self.prefix + prefix) == among
        ]
        return {name: self.seconds[name] for name in chosen}, {name: self.cpu_seconds[name] for name in chosen}

    def _report(self, stage: str, finished: int, count: int, work: float) -> None:
        """Report that the share ``work / count`` of the work has been done."""
        self.monitor.name = stage if count == 1 else f"{stage} {finished}/{count}"
        self.monitor.advance(work / max(count, 1))

    def _note(self, stage: str, outcome: Outcome) -> None:
        """Count the time of a task, issue its warnings if they are new, and raise its error."""
        self.seconds[stage] += outcome.seconds
        self.cpu_seconds[stage] += outcome.cpu_seconds
        for category, text in outcome.warnings:
            if (category, text) not in self._warned:
                self._warned.add((category, text))
                warnings.warn(text, category, stacklevel=3)
        if outcome.error is not None:
            raise outcome.error
