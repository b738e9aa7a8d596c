"""What reconstructions would take: ``normalmesh reconstruct --dry-run``."""

from __future__ import annotations

import json
from collections.abc import Sequence

from normalmesh.cli.console import Console, duration_text
from normalmesh.cli.failures import failure_text, print_trace
from normalmesh.cli.inputs import Task
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
    from normalmesh.memory import available_memory, bytes_text

    foreground = read_foreground(task.source, task.mask)
    count, pixels = int(foreground.sum()), foreground.size
    rows, columns = foreground.shape
    vertices, guessed = settings.aimed_at(count)
    counts = settings.levels(count) if settings.lod is not None else [vertices]
    available = available_memory()
    lines = [
        f"size         {columns} × {rows} pixels, {100 * count / pixels:.1f} % foreground ({count})",
        f"vertices     {'about ' * guessed}{', '.join(map(str, counts))}",
        needs(pixels, count, settings),
        f"available    {'unknown' if available is None else bytes_text(available)}",
    ]
    memory, seconds = _estimates(pixels, count, vertices)
    content = {"input": str(task.source), "output": str(task.output), "size": [columns, rows], "foreground": count}
    content |= {"vertices": counts, "memory": memory, "seconds": seconds, "available": available, "error": None}
    return lines, content


def needs(pixels: int, foreground: int, settings: Settings) -> str:
    """What a reconstruction takes, by estimate, in a line."""
    from normalmesh.memory import bytes_text

    memory, seconds = _estimates(pixels, foreground, settings.aimed_at(foreground)[0])
    return f"needs        about {bytes_text(memory)} of memory and, on one core, {duration_text(seconds)}"


def _estimates(pixels: int, foreground: int, vertices: int) -> tuple[int, float]:
    """Bytes and seconds."""
    from normalmesh.memory import estimate_memory
    from normalmesh.progress import estimate_seconds

    return estimate_memory(pixels, foreground, vertices), sum(estimate_seconds(foreground, vertices))
