"""Run a command, and measure time, memory and work folder of all its processes (Linux)."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

#: Seconds between two looks at the processes, and at the work folder.
MEMORY_PERIOD, FOLDER_PERIOD = 1.0, 5.0
#: Seconds between two lines that say how far a command is.
TELLING = 60.0
#: Seconds in which the busiest worker is found.
BUSY = 0.3
#: Words in the command line of a worker process.
WORKER = b"multiprocessing.spawn"


@dataclass
class Watched:
    """What a command did.

    Attributes
    ----------
    seconds, cpu_seconds
        Wall seconds, and processor seconds of all processes.
    peak, peak_after
        Largest memory of all processes together in bytes, and after how many seconds it was found.
    largest
        Largest memory of one process in bytes.
    folder_peak
        Largest size of the work folder in bytes.
    status, output
        Exit status, and what it printed.
    killed, killed_after
        Number of the process that was killed, None if none was, and after how many seconds.
    workers
        Numbers of all worker processes that were seen.
    """

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak: int = 0
    peak_after: float = 0.0
    largest: int = 0
    folder_peak: int = 0
    status: int = 0
    output: str = ""
    killed: int | None = None
    killed_after: float = 0.0
    workers: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Kill:
    """Kill the busiest worker as soon as a stage, a folder in the work folder, has so many results."""

    stage: str
    results: int

    def is_due(self, folder: Path) -> bool:
        return sum(1 for _ in (folder / self.stage).glob("[!.]*")) >= self.results


def watch(command: list[str], log: Path, folder: Path, kill: Kill | None = None) -> Watched:
    """Run a command in a session of its own, with its output in a file, and watch its processes and work folder."""
    found = Watched()
    before = _children_seconds()
    with open(log, "w+") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            _follow(process, found, folder, kill)
        finally:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
                process.wait()
        output.seek(0)
        found.output = output.read()
    found.cpu_seconds = _children_seconds() - before
    found.status = process.returncode
    return found


def _follow(process: subprocess.Popen[bytes], found: Watched, folder: Path, kill: Kill | None) -> None:
    """Note the memory of the processes and the size of the folder until the command ends."""
    start, looked, told = time.perf_counter(), 0.0, 0.0
    while process.poll() is None:
        elapsed = time.perf_counter() - start
        used = _note_memory(process.pid, found, elapsed)
        if elapsed - looked >= min(FOLDER_PERIOD, 0.1 * elapsed):
            found.folder_peak, looked = max(found.folder_peak, folder_size(folder)), elapsed
        if elapsed - told >= TELLING:
            told = elapsed
            print(f"{elapsed:6.0f} s: {used / 1e9:.2f} GB, {_newest(folder)}", file=sys.stderr, flush=True)
        if kill is not None and found.killed is None and kill.is_due(folder):
            found.killed, found.killed_after = _kill_busiest(process.pid), elapsed
        with suppress(subprocess.TimeoutExpired):
            process.wait(min(MEMORY_PERIOD, 0.05 + 0.1 * elapsed))
    found.seconds = time.perf_counter() - start


def _newest(folder: Path) -> str:
    """Return the name of the stage that has been worked on last, and the number of its results."""
    stages: list[tuple[float, str]] = []
    with suppress(OSError):
        stages = [(entry.stat().st_mtime, entry.path) for entry in os.scandir(folder) if entry.is_dir()]
    if not stages:
        return "no stage yet"
    newest = Path(max(stages)[1])
    with suppress(OSError):
        return f"{newest.name} {len(list(newest.iterdir()))}"
    return newest.name


def _note_memory(session: int, found: Watched, elapsed: float) -> int:
    """Note the memory of all processes of a session, and return it."""
    used = []
    for number in session_processes(session):
        used.append(memory_of(number))
        if number != session and is_worker(number):
            found.workers.add(number)
    if sum(used) > found.peak:
        found.peak, found.peak_after = sum(used), elapsed
    found.largest = max(found.largest, *used, 0)
    return sum(used)


def session_processes(session: int) -> Iterator[int]:
    """Yield the numbers of all processes of a session that have not ended."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                fields = _fields(int(entry.name))
                if int(fields[3]) == session and fields[0] != "Z":
                    yield int(entry.name)


def _fields(number: int) -> list[str]:
    """Return the fields of /proc/N/stat from the state on; the name before it may hold spaces."""
    return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()


def memory_of(number: int) -> int:
    """Return the bytes of a process, pages that are shared divided by the number that share them; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{number}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    with suppress(OSError):
        return int(Path(f"/proc/{number}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def is_worker(number: int) -> bool:
    """Return whether a process is one that Dask has started for work."""
    with suppress(OSError):
        return WORKER in Path(f"/proc/{number}/cmdline").read_bytes()
    return False


def _kill_busiest(session: int) -> int | None:
    """Kill the worker that works most at this moment, and return its number; None if there is none."""
    before = _worker_ticks(session)
    time.sleep(BUSY)
    after = _worker_ticks(session)
    busy = {number: after[number] - before[number] for number in before.keys() & after.keys()}
    if not busy:
        return None
    chosen = max(busy, key=lambda number: busy[number])
    os.kill(chosen, signal.SIGKILL)
    return chosen


def _worker_ticks(session: int) -> dict[int, int]:
    """Return the processor time of each worker of a session, in ticks of the system."""
    ticks = {}
    for number in session_processes(session):
        with suppress(OSError):
            if number != session and is_worker(number):
                ticks[number] = sum(map(int, _fields(number)[11:13]))
    return ticks


def folder_size(folder: Path) -> int:
    """Return the bytes of all files in a folder; files may vanish meanwhile."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.stat(os.path.join(parent, name)).st_size
    return total


def _children_seconds() -> float:
    """Return the processor seconds of all processes that have ended, and their own."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
