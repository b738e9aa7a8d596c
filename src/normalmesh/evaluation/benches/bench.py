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
from normalmesh.evaluation.benches.machine import machine
from normalmesh.evaluation.benches.sources import Source
from normalmesh.evaluation.benches.tables import Table
from normalmesh.files.atomic import write_atomically

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
        Where results go. Rows found there are kept, and their tasks not run again, if they were made with the same
        settings, versions and machine.
    settings
        What the data and options are, for the record.
    restart
        Throw away what is there.
    say
        Told about each task: how many are done, what came out, how long the rest will take.

    Returns
    -------
    str
        The tables in Markdown, with the machine and the versions below them.
    """
    record = {"bench": bench.name, **settings, **machine()}
    folder.mkdir(parents=True, exist_ok=True)
    rows = [] if restart else _rows_so_far(bench, folder, record)
    write_atomically({_record_path(bench, folder): json.dumps(record, indent=1).encode()})
    tasks = list(bench.tasks(sources, folder))
    done = {_key(bench, row) for row in rows}
    left = [task for task in tasks if task.key not in done]
    if len(left) < len(tasks):
        say(f"{bench.name}: {len(tasks) - len(left)} of {len(tasks)} tasks are done already")
    start = time.perf_counter()
    for number, task in enumerate(left, 1):
        made = [{**dict(zip(bench.keys, task.key, strict=True)), **row} for row in task.run()]
        rows += made
        write_atomically({_csv_path(bench, folder): _csv(rows).encode()})
        seconds = time.perf_counter() - start
        remaining = seconds / number * (len(left) - number)
        say(f"[{len(tasks) - len(left) + number}/{len(tasks)}] {', '.join(task.key)}; {remaining / 60:.1f} min left")
    order = {task.key: place for place, task in enumerate(tasks)}
    known = [row for row in rows if _key(bench, row) in order]
    known.sort(key=lambda row: order[_key(bench, row)])
    bench.draw(known, folder)
    text = _report(bench, known, record)
    write_atomically({folder / f"{bench.name}.md": text.encode()})
    return text


def _report(bench: Bench, rows: list[Row], record: dict[str, str]) -> str:
    tables = "\n\n".join(table.markdown() for table in bench.tables(rows))
    facts = ", ".join(f"{name} {value}" for name, value in record.items() if name != "bench")
    return f"# {bench.name}: {bench.summary}\n\n{tables}\n\nMade with {facts}.\n"


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
