"""Bench: what makes up a table or figure, and running it so that an interruption costs one task at most."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from normalmesh.errors import NormalMeshError
from normalmesh.files.atomic import write_atomically
from normalmesh.paper.machine import machine
from normalmesh.paper.sources import Source
from normalmesh.paper.tables import Table

#: One line of results: column → name or figure.
Row: TypeAlias = dict[str, str | float]


@dataclass(frozen=True)
class Task:
    """The smallest piece of work of a bench.

    Attributes
    ----------
    key
        The values of the bench's key columns; no other task has the same.
    run
        Does the work; one row or more, without the key columns.
    """

    key: tuple[str, ...]
    run: Callable[[], list[Row]]


@dataclass(frozen=True)
class Bench:
    """A table or figure of the paper.

    Attributes
    ----------
    name, summary
        As the command line calls it, and what it shows.
    size
        Side in pixels of the project's own cases, or of the largest of them, unless another is asked for.
    keys
        Names of the columns that tell its tasks apart.
    own_sources
        The project's own cases of that size.
    tasks
        The tasks for the given data; pictures that need a surface go to the given folder as they run.
    tables
        What the rows show.
    draw
        Writes the plots of the rows to the given folder.
    """

    name: str
    summary: str
    size: int
    keys: tuple[str, ...]
    own_sources: Callable[[int], list[Source]]
    tasks: Callable[[Sequence[Source], Path], Iterable[Task]]
    tables: Callable[[list[Row]], list[Table]]
    draw: Callable[[list[Row], Path], None]


def run_bench(
    bench: Bench,
    sources: Sequence[Source],
    folder: Path,
    settings: dict[str, str],
    *,
    restart: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> str:
    """Run a bench, or what is left of it, and write ``<name>.csv``, ``<name>.md`` and its pictures to a folder.

    Parameters
    ----------
    bench, sources
        What to do, and on which data.
    folder
        Where results go. Rows found there are kept, and their tasks not run again; they must have been made with the
        same settings, versions and machine.
    settings
        What the data and options are, for the record.
    restart
        Throw away what is there.
    say
        Told about each task: how many are done, and how long the rest will take.

    Returns
    -------
    str
        The tables in Markdown, with the machine and the versions below them. A task that cannot be done, such as one of
        a damaged case, is listed there, and tried again the next time.
    """
    record = {"bench": bench.name, **settings, **machine()}
    folder.mkdir(parents=True, exist_ok=True)
    if restart:
        _csv_path(bench, folder).unlink(missing_ok=True)
    rows = _rows_so_far(bench, folder, record)
    write_atomically({_record_path(bench, folder): json.dumps(record, indent=1).encode()})
    tasks = list(bench.tasks(sources, folder))
    failures = _work_off(bench, tasks, rows, folder, say)
    order = {task.key: place for place, task in enumerate(tasks)}
    known = sorted((row for row in rows if _key(bench, row) in order), key=lambda row: order[_key(bench, row)])
    if not known:
        raise NormalMeshError(f"no task of {bench.name} succeeded; {failures[0]}")
    bench.draw(known, folder)
    text = _report(bench, known, failures, record)
    write_atomically({folder / f"{bench.name}.md": text.encode()})
    return text


def _work_off(bench: Bench, tasks: list[Task], rows: list[Row], folder: Path, say: Callable[[str], None]) -> list[str]:
    """Run the tasks that have no rows yet, and add theirs; what could not be done, and why."""
    done = {_key(bench, row) for row in rows}
    left = [task for task in tasks if task.key not in done]
    if len(left) < len(tasks):
        say(f"{bench.name}: {len(tasks) - len(left)} of {len(tasks)} tasks are done already")
    failures = []
    start = time.perf_counter()
    for number, task in enumerate(left, 1):
        try:
            rows += [{**dict(zip(bench.keys, task.key, strict=True)), **row} for row in task.run()]
            outcome = ""
        except NormalMeshError as error:
            failures.append(f"{', '.join(task.key)}: {error}")
            outcome = f" failed: {error}"
        write_atomically({_csv_path(bench, folder): _csv(rows).encode()})
        minutes = (time.perf_counter() - start) / number * (len(left) - number) / 60
        place = f"{len(tasks) - len(left) + number}/{len(tasks)}"
        say(f"[{place}] {', '.join(task.key)}{outcome}; {minutes:.1f} min left")
    return failures


def _report(bench: Bench, rows: list[Row], failures: list[str], record: dict[str, str]) -> str:
    parts = [f"# {bench.name}: {bench.summary}", *(table.markdown() for table in bench.tables(rows))]
    if failures:
        parts.append("Failed, and left out:\n\n" + "\n".join(f"- {failure}" for failure in failures))
    parts.append("Made with " + ", ".join(f"{name} {value}" for name, value in record.items() if name != "bench") + ".")
    return "\n\n".join(parts) + "\n"


def _rows_so_far(bench: Bench, folder: Path, record: dict[str, str]) -> list[Row]:
    """The rows of an earlier run, where it was made with the same settings."""
    if not _csv_path(bench, folder).exists():
        return []
    try:
        before = json.loads(_record_path(bench, folder).read_text())
    except (OSError, ValueError):
        before = {}
    differing = [name for name in {**record, **before} if record.get(name) != before.get(name)]
    if differing:
        name = differing[0]
        raise NormalMeshError(
            f"{folder} holds results of {bench.name} with {name} {before.get(name, 'unknown')} instead of "
            f"{record.get(name, 'none')}; start afresh with --restart, or choose another --output"
        )
    with _csv_path(bench, folder).open(newline="", encoding="utf-8") as file:
        return [
            {name: text if name in bench.keys else _value(text) for name, text in line.items() if text != ""}
            for line in csv.DictReader(file)
        ]


def _key(bench: Bench, row: Row) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in bench.keys)


def _csv_path(bench: Bench, folder: Path) -> Path:
    return folder / f"{bench.name}.csv"


def _record_path(bench: Bench, folder: Path) -> Path:
    return folder / f"{bench.name}.json"


def _csv(rows: list[Row]) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _value(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text
