"""``normalmesh reconstruct --dry-run``: estimate the memory and time of reconstructions."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

import numpy as np

from normalmesh.cli.console import Console
from normalmesh.cli.error_handling import error_text
from normalmesh.cli.job import Job
from normalmesh.cli.output_files import check_formats
from normalmesh.cli.printing import field_text, json_text
from normalmesh.cli.run_summary import table_of
from normalmesh.cli.settings import Settings
from normalmesh.decimation.mask_counts import MaskCounts
from normalmesh.errors import path_text
from normalmesh.maps.normal_maps import read_foreground
from normalmesh.maps.stored_normals import read_array
from normalmesh.reconstruction.tiling import TiledEstimate
from normalmesh.runtime.memory import available_memory, bytes_text
from normalmesh.runtime.progress_bar import duration_text

#: Number of pixels up to which a file is decoded to count its foreground, which takes 17 bytes per pixel.
EXACT_PIXELS = 1 << 24
#: What is said of larger files.
HEADER_ONLY = "; only the header was read, --mask makes it exact"


def estimate_all(jobs: Sequence[Job], console: Console, as_json: bool) -> int:
    """Print the estimate of each job, and return the exit status: 1 if one has failed."""
    failed = 0
    columns = ("pixels", "foreground", "vertices", "memory", "time")
    table = table_of([job.source for job in jobs], columns, (-13, -10, -8, -7)) if len(jobs) > 1 else None
    for job in jobs:
        try:
            check_formats(job)
            fields, content = _estimate(job)
        except Exception as error:
            failed += 1
            console.failure(error, None if table is None else job.source)
            fields, content = {}, {"input": str(job.source), "error": error_text(error)}
        if as_json:
            console.output(json_text(content))
        elif fields and table is not None:
            table.print_row(_cells(content))
        elif fields:
            console.output("\n".join(field_text(label, text) for label, text in fields.items()))
    return int(failed > 0)


def _cells(content: dict[str, Any]) -> list[str]:
    """Return the row of an estimate in the table."""
    columns, rows = content["size"]
    sure = "" if content["exact"] else "≤"
    return [
        path_text(content["input"]),
        f"{columns} × {rows}",
        f"{sure}{content['foreground']}",
        f"{sure}{', '.join(map(str, content['vertices']))}",
        bytes_text(content["memory"] + content.get("worker_memory", 0)),
        duration_text(content["seconds"]),
    ]


def _estimate(job: Job) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the estimate of a job as texts by label, and as a dictionary for JSON."""
    if job.settings.tiles and job.source.is_dir():
        foreground, is_known = np.broadcast_to(np.array(True), read_array(job.source, in_memory=False).size), False
    else:
        foreground, is_known = read_foreground(job.source, job.mask, job.settings.alpha, most=EXACT_PIXELS)
    (rows, columns), settings = foreground.shape, job.settings
    count = int(foreground.sum()) if is_known else foreground.size
    estimate = settings.estimate(
        (rows, columns), count, lambda: MaskCounts.of(foreground) if is_known else MaskCounts.solid(count, count)
    )
    available = available_memory()
    bound = "" if is_known else "at most "
    share = f"{bound}{100 * count / foreground.size:.1f} % foreground ({count})"
    fields = {"size": f"{columns} × {rows} pixels, {share}{'' if is_known else HEADER_ONLY}"}
    text = "unknown" if available is None else bytes_text(available)
    vertices, found = [estimate.vertices], dict[str, Any]()
    if isinstance(estimate, TiledEstimate):
        fields["tiles"] = f"{estimate.tiles} of {settings.tile_side} × {settings.tile_side} pixels"
        folders = (folder for folder in settings.work_folder(job.output).absolute().parents if folder.is_dir())
        disk = shutil.disk_usage(next(folders)).free
        of_memory = "unknown memory" if available is None else f"{text} of memory"
        text = f"{of_memory}, {bytes_text(disk)} on disk"
        found |= {"tiles": estimate.tiles, "memory": estimate.leader_memory, "worker_memory": estimate.worker_memory}
        found |= {"disk": estimate.disk, "seconds": estimate.seconds(1), "available_disk": disk}
    else:
        vertices = vertices if settings.lod is None else settings.levels(count)
        found |= {"memory": estimate.memory, "seconds": estimate.seconds}
    fields["vertices"] = f"{bound or _certainty(settings)}{', '.join(map(str, vertices))}"
    fields |= {"needs": f"{bound}{settings.needs_text(estimate)}", "available": text}
    content = {"input": str(job.source), "output": str(job.output), "size": [columns, rows], "foreground": count}
    content |= {"exact": is_known, "vertices": vertices, **found, "available": available, "error": None}
    return fields, content


def _certainty(settings: Settings) -> str:
    """Return how certain the number of vertices is: with tolerances it is that of a trial, and content decides."""
    if settings.max_error is not None:
        return "at most "
    return "about " if settings.max_angle is not None or settings.threshold is not None else ""
