"""Reconstruct one input after another. An input that fails does not stop the others."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from normalmesh import NormalMeshError
from normalmesh.cli.console import Console, each_warning
from normalmesh.cli.error_handling import error_text
from normalmesh.cli.job import Job
from normalmesh.cli.output_files import check_targets, write_outputs
from normalmesh.cli.printing import PrintedTable, field_text
from normalmesh.cli.run_summary import RunSummary, table_of
from normalmesh.decimation.mask_counts import MaskCounts
from normalmesh.errors import path_text
from normalmesh.maps.point_files import read_control_points, read_jump_lines
from normalmesh.mesh.solid import solid_of
from normalmesh.output.textures import colour_image
from normalmesh.runtime.monitor import OnProgress, Step

#: Exit statuses: an input has failed; all are written, but one is not within ``--max-angle`` or ``--max-error``.
FAILED, TOLERANCE_MISSED = 1, 3


def run(jobs: Sequence[Job], console: Console, as_json: bool) -> int:
    """Run all jobs and return the exit status."""
    table = table_of([job.source for job in jobs]) if len(jobs) > 1 else None
    batch = _Batch(console, as_json, table)
    given = (f"{name} {path_text(str(value))}" for name, value in jobs[0].settings.given.items())
    console.detail(field_text("settings", ", ".join(given)))
    failed = missed = 0
    with console.running():
        for number, job in enumerate(jobs):
            summary = batch.run_job(job, console.part(number, len(jobs), job.source.name))
            batch.report(summary)
            failed += summary.error is not None
            tolerance = summary.figures["tolerance"]
            missed += tolerance is not None and not tolerance["met"]
    if table is not None:
        parts = [f"{len(jobs) - failed} of {len(jobs)} reconstructed"]
        parts += [f"{failed} failed"] * bool(failed) + [f"{missed} beyond the tolerance"] * bool(missed)
        console.notice(", ".join(parts))
    return FAILED if failed else TOLERANCE_MISSED if missed else 0


@dataclass
class _Batch:
    """The console that all jobs share, and the table of their summaries if there are several."""

    console: Console
    as_json: bool
    table: PrintedTable | None

    def run_job(self, job: Job, progress: OnProgress) -> RunSummary:
        """Run a job and return its summary, which holds the error if the job fails."""
        summary = RunSummary(job.source)

        def record(text: str) -> None:
            """Record a warning, and print it on one line, with the name of the input if there are several."""
            summary.warnings.append(text)
            name = path_text(job.source)
            about = "" if self.table is None or name in text else f"{name}: "
            self.console.alert(f"normalmesh: warning: {about}{text}")

        try:
            with each_warning(record, shown=False):
                self._run(job, summary, progress)
        except Exception as error:
            summary.error = str(error) if isinstance(error, NormalMeshError) else error_text(error)
            self.console.failure(error, None if self.table is None else job.source)
        return summary

    def report(self, summary: RunSummary) -> None:
        """Print the summary of a job."""
        stages = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in summary.seconds.items())
        if stages:
            self.console.detail(field_text("seconds", stages))
        if self.as_json:
            self.console.output(summary.as_json())
        elif summary.error is None and self.table is not None:
            self.console.row(self.table, summary.cells())
        elif summary.error is None:
            self.console.result("\n".join(summary.lines()))

    def _run(self, job: Job, summary: RunSummary, progress: OnProgress) -> None:
        """Read, reconstruct and write one input, and fill its summary."""
        settings, console = job.settings, self.console
        began = time.perf_counter()
        check_targets(job)
        prior = None if job.prior is None else read_control_points(job.prior)
        jumps = None if job.jump_lines is None else read_jump_lines(job.jump_lines)
        normal_map = job.normal_map()
        settings.check_camera(normal_map.camera)
        if job.texture is not None:
            colour_image(job.texture, normal_map.shape)  # raises unless it fits
        summary.add_normal_map(normal_map, settings.strength)
        summary.seconds["read"] = time.perf_counter() - began
        notify = console.notice if self.table is None else console.detail
        everything = slice(None), slice(None)
        estimate = settings.estimate(
            normal_map.shape, normal_map.foreground, lambda: MaskCounts.of(normal_map.mask_window(*everything))
        )
        notify(field_text("needs", settings.needs_text(estimate)))
        with settings.work_kept(job.output, console):
            surfaces = settings.surfaces(normal_map, job.output, prior, jumps, progress)
            summary.add_surfaces(surfaces)
            measured = surfaces
            if settings.flatten is not None:
                surfaces = [surface.flattened(settings.flatten) for surface in surfaces]
            if settings.strength is not None:
                surfaces = [surface.exaggerated(settings.strength) for surface in surfaces]
            if self.as_json or not console.quiet:
                progress(Step(0.99, "measuring"))
                summary.add_figures(measured, surfaces, normal_map)
            solids = []
            if settings.solid is not None:
                solids = [solid_of(surface, settings.solid, settings.width) for surface in surfaces]
            summary.add_solid(surfaces[0], solids)
            progress(Step(0.99, "writing"))
            reconstructed = time.perf_counter()
            for path in write_outputs(job, surfaces, solids, normal_map, summary.warnings):
                summary.outputs.append(path)
        summary.seconds |= {"write": time.perf_counter() - reconstructed, "total": time.perf_counter() - began}
