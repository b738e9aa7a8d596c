"""``normalmesh reconstruct --dry-run``: estimate the memory and time of reconstructions."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from normalmesh.cli.console import Console
from normalmesh.cli.error_handling import error_text, print_traceback
from normalmesh.cli.inputs import Task
from normalmesh.cli.output_files import check_formats
from normalmesh.cli.printing import PrintedTable, field_text, json_text
from normalmesh.cli.resource_estimate import needs_text
from normalmesh.cli.run_summary import LONGEST_NAME
from normalmesh.cli.settings import Settings
from normalmesh.errors import path_text
from normalmesh.runtime.progress_bar import duration_text

if TYPE_CHECKING:
    from normalmesh.array_types import Bool
    from normalmesh.cli.tile_options import Tiling

#: Number of pixels up to which a file is decoded to count its foreground, which takes 17 bytes per pixel.
EXACT_PIXELS = 1 << 24
#: What is said of larger files.
HEADER_ONLY = "; only the header was read, --mask makes it exact"


def estimate_all(tasks: Sequence[Task], settings: Settings, console: Console, as_json: bool) -> int:
    """Print the estimate of each task, and return the exit status: 1 if one has failed."""
    failed = 0
    table = _table(tasks) if len(tasks) > 1 else None
    for task in tasks:
        try:
            check_formats(task, settings)
            lines, content = _estimate(task, settings)
        except Exception as error:
            failed += 1
            print_traceback(error)
            console.alert(f"normalmesh: {error_text(error, None if table is None else task.source)}")
            lines, content = [], {"input": str(task.source), "error": error_text(error)}
        if as_json:
            console.output(json_text(content))
        elif lines and table is not None:
            table.print_row(_cells(content))
        elif lines:
            console.output("\n".join(lines))
    return int(failed > 0)


def _table(tasks: Sequence[Task]) -> PrintedTable:
    """Return the table for the estimates of several tasks."""
    longest = max(len(path_text(task.source)) for task in tasks)
    return PrintedTable(
        ["input", "pixels", "foreground", "vertices", "memory", "time"],
        [min(longest, LONGEST_NAME), -13, -10, -8, -7],
    )


def _cells(content: dict[str, Any]) -> list[str]:
    """Return the row of an estimate in the table."""
    from normalmesh.runtime.memory import bytes_text

    columns, rows = content["size"]
    sure = "" if content["exact"] else "≤"
    vertices = ", ".join(map(str, content["vertices"]))
    memory = bytes_text(content["memory"] + content.get("worker_memory", 0))
    return [
        path_text(content["input"]),
        f"{columns} × {rows}",
        f"{sure}{content['foreground']}",
        f"{sure}{vertices}",
        memory,
        duration_text(content["seconds"]),
    ]


def _estimate(task: Task, settings: Settings) -> tuple[list[str], dict[str, Any]]:
    """Return the estimate of a task as lines of text and as a dictionary for JSON."""
    from normalmesh.decimation.mask_counts import MaskCounts
    from normalmesh.runtime.memory import available_memory, bytes_text

    foreground, known = _foreground(task, settings)
    bound = "" if known else "at most "
    if settings.tiling is not None:
        return _tiled(task, settings, settings.tiling, foreground, known)
    counts_of_mask = MaskCounts.of(foreground) if known else MaskCounts.solid(foreground.size, foreground.size)
    estimate = settings.estimate(counts_of_mask)
    count, (rows, columns) = estimate.counts.foreground, foreground.shape
    counts = settings.levels(count) if settings.lod is not None else [estimate.vertices]
    available = available_memory()
    share = f"{bound}{100 * count / foreground.size:.1f} % foreground ({count})"
    lines = [
        field_text("size", f"{columns} × {rows} pixels, {share}{'' if known else HEADER_ONLY}"),
        field_text("vertices", f"{bound or _certainty(settings)}{', '.join(map(str, counts))}"),
        field_text("needs", f"{bound}{needs_text(estimate)}"),
        field_text("available", "unknown" if available is None else bytes_text(available)),
    ]
    content = {"input": str(task.source), "output": str(task.output), "size": [columns, rows], "foreground": count}
    content |= {
        "exact": known,
        "vertices": counts,
        "memory": estimate.memory,
        "seconds": estimate.seconds,
        "available": available,
        "error": None,
    }
    return lines, content


def _foreground(task: Task, settings: Settings) -> tuple[Bool, bool]:
    """Return the foreground (H, W) of the map of a task, and whether it is known."""
    import numpy as np

    from normalmesh.files.windowed_arrays import open_array
    from normalmesh.maps.normal_maps import read_foreground

    if settings.tiling is not None and task.source.is_dir():
        return np.broadcast_to(np.bool_(True), open_array(task.source).size), False
    return read_foreground(task.source, task.mask, settings.alpha, most=EXACT_PIXELS)


def _tiled(
    task: Task, settings: Settings, tiling: Tiling, foreground: Bool, known: bool
) -> tuple[list[str], dict[str, Any]]:
    """Return the estimate of a reconstruction in tiles."""
    from normalmesh.runtime.memory import available_memory, bytes_text

    bound = "" if known else "at most "
    rows, columns = foreground.shape
    count = int(foreground.sum()) if known else foreground.size
    estimate = settings.tiled_estimate((rows, columns), count)
    folders = (folder for folder in tiling.folder(task.output).absolute().parents if folder.is_dir())
    free = shutil.disk_usage(next(folders)).free
    available = available_memory()
    text = "unknown memory" if available is None else f"{bytes_text(available)} of memory"
    share = f"{bound}{100 * count / foreground.size:.1f} % foreground ({count})"
    lines = [
        field_text("size", f"{columns} × {rows} pixels, {share}{'' if known else HEADER_ONLY}"),
        field_text("tiles", f"{estimate.tiles} of {tiling.side} × {tiling.side} pixels"),
        field_text("vertices", f"{bound or _certainty(settings)}{estimate.vertices}"),
        field_text("needs", f"{bound}{tiling.needs_text(estimate, settings.memory_limit, settings.threads)}"),
        field_text("available", f"{text}, {bytes_text(free)} on disk"),
    ]
    content = {"input": str(task.source), "output": str(task.output), "size": [columns, rows], "foreground": count}
    content |= {
        "exact": known,
        "vertices": [estimate.vertices],
        "tiles": estimate.tiles,
        "memory": estimate.leader_memory,
        "worker_memory": estimate.worker_memory,
        "disk": estimate.disk,
        "seconds": estimate.seconds(1),
        "available": available,
        "available_disk": free,
        "error": None,
    }
    return lines, content


def _certainty(settings: Settings) -> str:
    """Return how certain the number of vertices is: with tolerances it is that of a trial, and content decides."""
    if settings.max_error is not None:
        return "at most "
    return "about " if settings.max_angle is not None or settings.threshold is not None else ""
