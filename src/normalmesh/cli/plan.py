"""What reconstructions would take: ``normalmesh reconstruct --dry-run``."""

from __future__ import annotations

import json
from collections.abc import Sequence

from normalmesh.cli.console import Console
from normalmesh.cli.failures import failure_text, print_trace
from normalmesh.cli.inputs import Task
from normalmesh.cli.needs import Needs
from normalmesh.cli.settings import Settings


def plan(tasks: Sequence[Task], settings: Settings, console: Console, as_json: bool) -> int:
    """Say what each task would take; how many cannot be told."""
    failed = 0
    for task in tasks:
        try:
            lines, content = _plan(task, settings)
        except Exception as error:
            failed += 1
            print_trace(error)
            console.alert(f"normalmesh: {failure_text(error, task.source if len(tasks) > 1 else None)}")
            lines, content = [], {"input": str(task.source), "error": failure_text(error)}
        if as_json:
            console.output(json.dumps(content))
        elif lines:
            console.output("\n".join([f"input        {task.source}"] * (len(tasks) > 1) + lines))
    return failed


def _plan(task: Task, settings: Settings) -> tuple[list[str], dict[str, object]]:
    """The plan of a task in lines, and for programs."""
    from normalmesh.files.normal_maps import read_foreground
    from normalmesh.runtime.memory import available_memory, bytes_text

    foreground = read_foreground(task.source, task.mask)
    count, pixels = int(foreground.sum()), foreground.size
    rows, columns = foreground.shape
    vertices, guessed = settings.aimed_at(count)
    counts = settings.levels(count) if settings.lod is not None else [vertices]
    available, needs = available_memory(), Needs.of(pixels, count, vertices)
    lines = [
        f"size         {columns} × {rows} pixels, {100 * count / pixels:.1f} % foreground ({count})",
        f"vertices     {'about ' * guessed}{', '.join(map(str, counts))}",
        f"needs        {needs}",
        f"available    {'unknown' if available is None else bytes_text(available)}",
    ]
    content = {"input": str(task.source), "output": str(task.output), "size": [columns, rows], "foreground": count}
    content |= {
        "vertices": counts,
        "memory": needs.memory,
        "seconds": needs.seconds,
        "available": available,
        "error": None,
    }
    return lines, content
