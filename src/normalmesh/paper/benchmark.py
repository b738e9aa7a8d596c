"""Define a benchmark for a table or figure of the paper, and run it so that it can be resumed task by task."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from normalmesh import __version__
from normalmesh.errors import NormalMeshError, path_text
from normalmesh.files.atomic import write_atomically
from normalmesh.paper.sources import Source, first_of_groups
from normalmesh.paper.tables import Row, Table
from normalmesh.runtime.monitor import Monitor, OnProgress
from normalmesh.runtime.threads import allowed_threads

#: The method of a row that stands for a picture, which is in no table.
PICTURE = "picture"


@dataclass(frozen=True)
class Task:
    """The smallest unit of work of a benchmark."""

    key: tuple[str, ...]  # the values of the key columns, unique to the task
    run: Callable[[], list[Row]]  # returns one or more rows without the key columns


@dataclass(frozen=True)
class Benchmark:
    """A table or figure of the paper."""

    name: str  # on the command line
    summary: str
    size: int  # default side in pixels of the project's own cases, or of the largest of them
    keys: tuple[str, ...]  # names of the columns that identify a task
    own_sources: Callable[[int], list[Source]]  # the project's own cases of a size
    tasks: Callable[[Sequence[Source], Path], Iterable[Task]]  # for cases; they write pictures to a folder
    tables: Callable[[list[Row]], list[Table]]  # of the rows
    draw: Callable[[list[Row], Path], None] | None = None  # writes plots of the rows to a folder


def case_tasks(
    runs: Mapping[str, Callable[[Source], list[Row]]], draw: Callable[[Source, Path], None] | None = None
) -> Callable[[Sequence[Source], Path], list[Task]]:
    """Return a function that makes a task of each run for each case, and one that draws one case of each group.

    The last key of their rows is the name of the run. Pictures have the names of their folder, group and camera.
    """

    def drawn(folder: Path, source: Source) -> list[Row]:
        draw(source, folder / f"{folder.name}_{source.group}_{source.camera}.png")  # type: ignore[misc]  # given
        return [{"method": PICTURE}]

    def tasks(sources: Sequence[Source], folder: Path) -> list[Task]:
        wanted = [(source, label, run) for source in sources for label, run in runs.items()]
        if draw is not None:
            wanted += [(source, PICTURE, partial(drawn, folder)) for source in first_of_groups(sources)]
        return [
            Task((source.camera, source.group, source.name, label), partial(run, source))
            for source, label, run in wanted
        ]

    return tasks


def run_benchmark(
    benchmark: Benchmark,
    sources: Sequence[Source],
    folder: Path,
    settings: dict[str, str],
    *,
    restart: bool = False,
    report: Callable[[str], None] = lambda line: None,
    progress: OnProgress | None = None,
) -> str:
    """Run a benchmark, or resume it, and write ``<name>.csv``, ``<name>.md`` and its pictures to a folder.

    Rows found in ``<name>.json`` are kept, and their tasks are not run again, unless ``restart`` is given; they must
    have been measured with the same settings, versions and machine. ``report`` is called with a line of text after each
    task. Return the tables in Markdown, followed by the machine and the versions. A task that fails, for example
    because a case is damaged, is listed there, and run again the next time.
    """
    record = {"bench": benchmark.name, **settings, **_machine()}
    folder.mkdir(parents=True, exist_ok=True)
    record_path, table_path = (folder / f"{benchmark.name}.{suffix}" for suffix in ("json", "csv"))
    if restart:
        record_path.unlink(missing_ok=True)
    rows = _rows_so_far(record_path, record)
    tasks = list(benchmark.tasks(sources, folder))

    def save() -> None:
        stored = json.dumps({**record, "rows": rows}, indent=1)
        write_atomically({table_path: _csv(rows).encode(), record_path: stored.encode()})

    failures = _run_tasks(benchmark, tasks, rows, save, report, Monitor(progress))
    order = {task.key: place for place, task in enumerate(tasks)}
    known = sorted((row for row in rows if _key(benchmark, row) in order), key=lambda row: order[_key(benchmark, row)])
    if not known:
        raise NormalMeshError(f"no task of {benchmark.name} succeeded; {failures[0]}")
    measured = [row for row in known if row.get("method") != PICTURE]
    if benchmark.draw is not None:
        benchmark.draw(measured, folder)
    text = _report(benchmark, measured, failures, record)
    write_atomically({folder / f"{benchmark.name}.md": text.encode()})
    return text


def _run_tasks(
    benchmark: Benchmark,
    tasks: list[Task],
    rows: list[Row],
    save: Callable[[], None],
    report: Callable[[str], None],
    monitor: Monitor,
) -> list[str]:
    """Run the tasks that have no rows yet, append and save their rows, and return a description of each failure."""
    done = {_key(benchmark, row) for row in rows}
    left = [task for task in tasks if task.key not in done]
    if len(left) < len(tasks):
        report(f"{benchmark.name}: {len(tasks) - len(left)} of {len(tasks)} tasks are already done")
    failures = []
    monitor.work = max(len(left), 1)
    for number, task in enumerate(left, len(tasks) - len(left) + 1):
        monitor.begin(f"{number}/{len(tasks)} {', '.join(task.key)}")
        try:
            rows += [{**dict(zip(benchmark.keys, task.key, strict=True)), **row} for row in task.run()]
            outcome = ""
        except NormalMeshError as error:
            failures.append(f"{', '.join(task.key)}: {error}")
            outcome = f" failed: {error}"
        save()
        report(f"[{number}/{len(tasks)}] {', '.join(task.key)}{outcome}")
        monitor.advance(1.0)
    monitor.finish()
    return failures


def _report(benchmark: Benchmark, rows: list[Row], failures: list[str], record: dict[str, str]) -> str:
    parts = [f"# {benchmark.name}: {benchmark.summary}", *(table.markdown() for table in benchmark.tables(rows))]
    if failures:
        parts.append("Failed and omitted:\n\n" + "\n".join(f"- {failure}" for failure in failures))
    parts.append(
        "Measured with " + ", ".join(f"{name} {value}" for name, value in record.items() if name != "bench") + "."
    )
    return "\n\n".join(parts) + "\n"


def _rows_so_far(path: Path, record: dict[str, str]) -> list[Row]:
    """Return the rows of an earlier run; raise if its settings differ."""
    try:
        before = json.loads(path.read_text())
    except (OSError, ValueError):
        return []
    rows: list[Row] = before.pop("rows", [])
    differing = [name for name in {**record, **before} if record.get(name) != before.get(name)]
    if rows and differing:
        name = differing[0]
        raise NormalMeshError(
            f"{path_text(path.parent)} holds results of {path.stem} with {name} {before.get(name, 'unknown')} "
            f"instead of {record.get(name, 'none')}; discard them with --restart, or choose another --output"
        )
    return rows


def _key(benchmark: Benchmark, row: Row) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in benchmark.keys)


def _csv(rows: list[Row]) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _machine() -> dict[str, str]:
    """Return the versions of the packages, the processor, and the numbers of cores and threads."""
    return {
        "normalmesh": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "numba")},
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "threads": str(allowed_threads()),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
