"""Jobs: tasks of a stage as workers do them, and what they report of them."""

from __future__ import annotations

import socket
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TextIO

from normalmesh.engine.array_file import ArrayFile, Arrays
from normalmesh.engine.description import code_description
from normalmesh.engine.shared_value import given
from normalmesh.errors import NormalMeshError, NormalMeshWarning, path_text
from normalmesh.runtime.threads import MAX_THREADS, limited_threads

#: Errors that may not come again: the disk or the memory of one machine.
PASSING = (OSError, MemoryError)


@dataclass(frozen=True)
class Job:
    """A task: ``function(*arguments)`` returns arrays by name, which become the result.

    Attributes
    ----------
    stage, key
        Names of the stage and of the task.
    result
        The file to write.
    cores, sharing
        Number of cores of a machine that may be used, by default all, and of jobs that share them.
    code
        The code of the process that made the job.
    """

    stage: str
    key: object
    function: Callable[..., Arrays]
    arguments: tuple[Any, ...]
    result: ArrayFile
    cores: int | None
    sharing: int
    code: str

    def __str__(self) -> str:
        return f"{self.stage} {self.key}"


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
            job.result.save(job.function(*map(given, job.arguments)))
    except PASSING:
        raise
    except Exception as raised:
        raised.add_note(f"in {job}\n{traceback.format_exc()}")
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


_collecting: ContextVar[list[tuple[type[Warning], str]] | None] = ContextVar("collecting", default=None)
_installing = threading.Lock()


@contextmanager
def _warnings_collected(collected: list[tuple[type[Warning], str]]) -> Iterator[None]:
    """Collect warnings of normalmesh, of this thread only: others of the same process may do other jobs."""
    with _installing:
        if getattr(warnings.showwarning, "collects", False) is False:
            _install_collector()
    token = _collecting.set(collected)
    try:
        yield
    finally:
        _collecting.reset(token)


def _install_collector() -> None:
    show_other = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        collected = _collecting.get()
        if collected is None or not issubclass(category, NormalMeshWarning):
            show_other(message, category, filename, lineno, file, line)
        else:
            collected.append((category, str(message)))

    show.collects = True  # type: ignore[attr-defined]
    warnings.showwarning = show
    warnings.simplefilter("always", NormalMeshWarning)
