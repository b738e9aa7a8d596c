"""Jobs: tasks of a stage as workers do them, and what they report of them."""

from __future__ import annotations

import socket
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from normalmesh.engine.array_file import ArrayFile, Arrays
from normalmesh.engine.description import code_description
from normalmesh.engine.task_arguments import received
from normalmesh.errors import NormalMeshError, NormalMeshWarning, path_text
from normalmesh.runtime.threads import MAX_THREADS, limited_threads

#: Errors that may not come again: the disk or the memory of one machine.
PASSING = (OSError, MemoryError)


@dataclass(frozen=True)
class Job:
    """A task: ``function(*arguments)`` returns arrays by name, which become the result."""

    name: str  # names of the stage and of the task
    function: Callable[..., Arrays]
    arguments: tuple[Any, ...]
    result: ArrayFile  # to be written
    cores: int | None  # of a machine that may be used, by default all
    sharing: int  # number of jobs that share them
    code: str  # of the process that made the job


@dataclass(frozen=True)
class Outcome:
    """What a worker reports of a job: its warnings, wall and CPU seconds, and the error that ends all work."""

    warnings: tuple[tuple[type[Warning], str], ...] = ()
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    error: Exception | None = None


def done(job: Job) -> Outcome:
    """Do a job, and write its result. Errors that would come again are returned, others are raised."""
    wall, cpu = time.perf_counter(), time.process_time()
    collected: list[tuple[type[Warning], str]] = []
    error: Exception | None = None
    try:
        _check_worker(job)
        threads = max(min(job.cores or MAX_THREADS, MAX_THREADS) // job.sharing, 1)
        with limited_threads(threads), _warnings_collected(collected):
            job.result.save(job.function(*map(received, job.arguments)))
    except PASSING:
        raise
    except Exception as raised:
        raised.add_note(f"in {job.name}\n{traceback.format_exc()}")
        error = raised
    unique = tuple(dict.fromkeys(collected))
    return Outcome(unique, time.perf_counter() - wall, time.process_time() - cpu, error)


def _check_worker(job: Job) -> None:
    """Raise an error if this process has other code than the one that made a job, or another disk."""
    if job.code != code_description():
        raise NormalMeshError(
            f"a worker on {socket.gethostname()} has another normalmesh ({code_description()}) than the process that "
            f"sends it work ({job.code}): install the same everywhere, and restart the workers"
        )
    if not job.result.path.parent.is_dir():
        raise NormalMeshError(
            f"a worker on {socket.gethostname()} finds no folder {path_text(job.result.path.parent)}: "
            "give a folder for work (--work) on a disk that all workers share"
        )


_collected: ContextVar[list[tuple[type[Warning], str]] | None] = ContextVar("collected", default=None)


@contextmanager
def _warnings_collected(collected: list[tuple[type[Warning], str]]) -> Iterator[None]:
    """Collect warnings of normalmesh, of this thread only: others of the same process may do other jobs."""
    if not isinstance(warnings.showwarning, _Collector):
        warnings.showwarning = _Collector(warnings.showwarning)
        warnings.simplefilter("always", NormalMeshWarning)
    token = _collected.set(collected)
    try:
        yield
    finally:
        _collected.reset(token)


@dataclass(frozen=True)
class _Collector:
    """Shows warnings but those that are collected."""

    show_other: Callable[..., None]

    def __call__(self, message: Warning | str, category: type[Warning], *place: Any, **further: Any) -> None:
        collected = _collected.get()
        if collected is None or not issubclass(category, NormalMeshWarning):
            self.show_other(message, category, *place, **further)
        else:
            collected.append((category, str(message)))
