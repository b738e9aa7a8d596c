"""Workers: who does jobs. This process one after another, or the processes of a Dask cluster."""

from __future__ import annotations

import math
import os
import signal
import time
import warnings
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normalmesh.engine.jobs import Job, Outcome, done
from normalmesh.engine.task_arguments import SharedArguments
from normalmesh.errors import NormalMeshError, count_text, repr_for_error
from normalmesh.runtime.memory import bytes_text
from normalmesh.runtime.threads import MAX_THREADS

if TYPE_CHECKING:
    from distributed import Client, Future

#: Number of workers that one job may end, such as by taking too much memory, before it ends all work.
ALLOWED_DEATHS = 10
#: Number of times that a job is given to the scheduler of a cluster again, when it refuses to try more workers.
ANEW = 2
#: Number of further attempts after an error that may not come again.
RETRIES = 2
#: Jobs that the scheduler knows, for each that can be done at the same time: workers need not wait for the next one.
AHEAD = 2
#: Seconds after which the workers of a cluster are counted again: some may have joined or left.
RECOUNTING = 5.0
#: Seconds to wait for the scheduler of a cluster.
CONNECTING = 10.0


class ThisProcess:
    """Does one job after another, each on all cores. Arguments need not travel."""

    is_here = True

    def sharing(self, jobs: int) -> int:
        """Return how many of so many jobs share the cores of a machine."""
        return 1

    def outcomes(self, jobs: Iterator[Job], folder: Path) -> Generator[Outcome]:
        """Do jobs, and yield the outcome of each when it is done."""
        for job in jobs:
            with warnings.catch_warnings():
                outcome = done(job)
            yield outcome


class DaskWorkers:
    """The workers of a Dask cluster. Large arguments travel through files in a folder.

    ``count`` is their number if each has one thread, and is started again when it dies; else they are counted, and must
    have ``memory`` bytes for each job.
    """

    is_here = False

    def __init__(self, client: Client, count: int | None = None, memory: float = 0.0) -> None:
        self._client, self._count, self._memory = client, count, memory

    def sharing(self, jobs: int) -> int:
        if self._count is not None:
            return min(jobs, self._count)
        by_host: Counter[str] = Counter()
        for worker in self._workers():
            self._check_memory(worker)
            by_host[worker["host"]] += worker["nthreads"]
        return min(jobs, max(by_host.values(), default=1))

    def outcomes(self, jobs: Iterator[Job], folder: Path) -> Generator[Outcome]:
        from distributed import KilledWorker, as_completed

        given: dict[Future[Any], Job] = {}
        shared, anew, completed = SharedArguments(folder), Counter[str](), as_completed()
        most, counted = 0, -math.inf

        def give(job: Job) -> None:
            # A scheduler takes two jobs of one name for the same.
            name = f"normalmesh_{job.name}-{os.urandom(8).hex()}".replace(" ", "-")
            future = self._client.submit(done, job, key=name, pure=False, retries=RETRIES)
            given[future] = job
            completed.add(future)

        def give_some() -> None:
            nonlocal most, counted
            if time.monotonic() - counted > RECOUNTING:
                most = AHEAD * max(self._count or sum(self._client.nthreads().values()), 1)
                counted = time.monotonic()
            for job in islice(jobs, max(most - len(given), 0)):
                give(replace(job, arguments=shared.handed(job.arguments)))

        try:
            give_some()
            for future in completed:
                job = given.pop(future)
                error = future.exception() if future.status != "cancelled" else None
                if isinstance(error, KilledWorker) and anew[job.name] < ANEW:
                    anew[job.name] += 1
                    give(job)
                    continue
                yield _outcome(future, job, error)
                give_some()
        finally:
            if given:
                self._client.cancel(list(given), force=True)
            shared.remove()

    def _check_memory(self, worker: Mapping[str, Any]) -> None:
        """Raise an error if the threads of a worker need more than its memory."""
        threads, limit = worker["nthreads"], worker["memory_limit"]
        if limit and threads * self._memory > limit:
            fitting = int(limit // self._memory)
            remedy = f"start it with --nthreads {fitting}" if fitting else "give it more, or ask for smaller tiles"
            raise NormalMeshError(
                f"the worker {worker['name']} on {worker['host']} has {count_text(threads, 'thread')} and "
                f"{bytes_text(limit)} of memory, but a tile needs about {bytes_text(self._memory)}: {remedy}"
            )

    def _workers(self) -> list[dict[str, Any]]:
        return list(self._client.scheduler_info(n_workers=-1)["workers"].values())


Workers = ThisProcess | DaskWorkers


def _outcome(future: Future[Any], job: Job, error: BaseException | None) -> Outcome:
    """Return the outcome of a job, or raise what kept it from having one."""
    from distributed import KilledWorker

    if future.status == "cancelled":
        raise NormalMeshError("the cluster was closed, or cannot be reached any more; start again to go on from here")
    if isinstance(error, KilledWorker):
        raise NormalMeshError(
            f"every worker that tried {job.name} died, probably for want of memory: use fewer workers or smaller tiles"
        )
    if error is not None:
        raise error
    outcome: Outcome = future.result()
    return outcome


@contextmanager
def started_workers(
    count: int | None, cluster: Client | str | None, cores: int | None, fitting: int, memory: float = 0.0
) -> Iterator[Workers]:
    """Yield workers for as long as the block lasts: of a cluster, given by its client or address, or of this machine.

    Here there are ``count`` processes, 0 for this one only. By default there are as many as ``cores``, or as the work
    and the memory are ``fitting`` for, or this one only if these are fewer than two, or Dask is missing. A job needs so
    many bytes of ``memory``.
    """
    if cluster is not None:
        with _connected(cluster) as client:
            yield DaskWorkers(client, memory=memory)
        return
    wanted = min(cores or MAX_THREADS, fitting) if count is None else count
    if wanted < (1 if count else 2) or (count is None and not _has_dask()):
        yield ThisProcess()
        return
    with _local_cluster(wanted) as client:
        yield DaskWorkers(client, wanted)


def _has_dask() -> bool:
    return find_spec("distributed") is not None


def _require_dask(what: str) -> None:
    if not _has_dask():
        raise NormalMeshError(f"{what} requires Dask: pip install 'normalmesh[cluster]'")


@contextmanager
def _connected(cluster: Client | str) -> Iterator[Client]:
    """Yield the client of a cluster that has workers, given itself or by its address."""
    _require_dask("a cluster")
    from distributed import Client

    with ExitStack() as stack:
        if isinstance(cluster, str):
            try:
                cluster = stack.enter_context(Client(cluster, timeout=CONNECTING))
            except (OSError, ValueError, TypeError) as error:
                raise NormalMeshError(f"cannot reach a Dask scheduler at {cluster!r}: {error}") from error
        if not isinstance(cluster, Client) or cluster.asynchronous:
            raise NormalMeshError(
                "client must be a distributed.Client that is not asynchronous, or the address of a scheduler, not "
                f"{repr_for_error(cluster)}"
            )
        if not cluster.nthreads():
            address = cluster.scheduler.address if cluster.scheduler else ""
            raise NormalMeshError(f"the cluster has no workers: start some, such as by 'dask worker {address}'")
        yield cluster


@contextmanager
def _local_cluster(count: int) -> Iterator[Client]:
    """Start processes on this machine, which are started again if they die, and end them at the end."""
    _require_dask("workers")
    import logging

    import dask
    from distributed import Client, LocalCluster

    settings = {"distributed.scheduler.allowed-failures": ALLOWED_DEATHS}
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(settings))
        try:
            _start_tracker()
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Port .* is already in use")
                cluster = LocalCluster(
                    n_workers=count,
                    threads_per_worker=1,
                    processes=True,
                    memory_limit=None,  # jobs are few enough to fit, and Dask holds none of their results
                    dashboard_address="127.0.0.1:8787",
                    silence_logs=logging.CRITICAL,
                )
            client: Client = stack.enter_context(Client(stack.enter_context(cluster)))
        except RuntimeError as error:
            raise NormalMeshError(
                f"processes for the work cannot be started ({error}): a program that uses them must be a file, and "
                "call normalmesh below if __name__ == '__main__'; workers=0 needs no processes"
            ) from error
        client.register_worker_callbacks(_ignore_interrupts)
        yield client


def _start_tracker() -> None:
    """Start the process that removes what processes share, such that it is silent if this one ends suddenly."""
    from multiprocessing import resource_tracker

    before = os.environ.get("PYTHONWARNINGS", "")
    os.environ["PYTHONWARNINGS"] = f"{before},ignore:resource_tracker"
    try:
        resource_tracker.ensure_running()
    finally:
        os.environ["PYTHONWARNINGS"] = before


def _ignore_interrupts() -> None:
    """Leave Ctrl-C, which a terminal sends to all processes, to the process that leads."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
