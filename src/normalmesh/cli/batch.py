"""Reconstruct one input after another. An input that fails does not stop the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from normalmesh import NormalMeshError
from normalmesh.cli.console import Console, compilation_announced, each_warning, progress_line_removed
from normalmesh.cli.error_handling import error_text, print_traceback
from normalmesh.cli.inputs import Task
from normalmesh.cli.output_files import check_targets, write_outputs
from normalmesh.cli.output_options import check_strength
from normalmesh.cli.print_options import check_camera, finished, solids_of
from normalmesh.cli.printing import PrintedTable, field_text
from normalmesh.cli.run_summary import RunSummary, table_of
from normalmesh.cli.settings import Settings
from normalmesh.cli.tile_options import open_normal_map
from normalmesh.errors import path_text
from normalmesh.runtime.monitor import OnProgress, Step

#: Exit statuses: an input has failed; all are written, but one is not within ``--max-angle`` or ``--max-error``.
FAILED, TOLERANCE_MISSED = 1, 3


def run(tasks: Sequence[Task], settings: Settings, console: Console, as_json: bool) -> int:
    """Run all tasks and return the exit status."""
    table = table_of([task.source for task in tasks]) if len(tasks) > 1 else None
    batch = _Batch(settings, console, as_json, table)
    given = (f"{name} {path_text(str(value))}" for name, value in settings.given.items())
    console.detail(field_text("settings", ", ".join(given)))
    failed = missed = 0
    with progress_line_removed(console), compilation_announced(console):
        for number, task in enumerate(tasks):
            summary = batch.run_task(task, console.part(number, len(tasks), task.source.name))
            batch.report(summary)
            failed += summary.error is not None
            missed += summary.tolerance is not None and not summary.tolerance["met"]
    if batch.several:
        parts = [f"{len(tasks) - failed} of {len(tasks)} reconstructed"]
        parts += [f"{failed} failed"] * bool(failed) + [f"{missed} beyond the tolerance"] * bool(missed)
        console.notice(", ".join(parts))
    return FAILED if failed else TOLERANCE_MISSED if missed else 0


@dataclass
class _Batch:
    """The settings and the console that all tasks share."""

    settings: Settings
    console: Console
    as_json: bool
    table: PrintedTable | None

    @property
    def several(self) -> bool:
        """Whether there are several inputs, which share a table."""
        return self.table is not None

    def run_task(self, task: Task, progress: OnProgress) -> RunSummary:
        """Run a task and return its summary, which holds the error if the task fails."""
        summary = RunSummary(task.source)
        try:
            with each_warning(self._recorder(summary), shown=False):
                self._run(task, summary, progress)
        except Exception as error:
            summary.error = str(error) if isinstance(error, NormalMeshError) else error_text(error)
            self.console.progress.clear()
            print_traceback(error)
            self.console.alert(f"normalmesh: {error_text(error, task.source if self.several else None)}")
        return summary

    def report(self, summary: RunSummary) -> None:
        """Print the summary of a task."""
        stages = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in summary.seconds.items())
        if stages:
            self.console.detail(field_text("seconds", stages))
        if self.as_json:
            self.console.output(summary.as_json())
        elif summary.error is None and self.table is not None:
            self.console.row(self.table, summary.cells())
        elif summary.error is None:
            self.console.result("\n".join(summary.lines()))

    def _run(self, task: Task, summary: RunSummary, progress: OnProgress) -> None:
        """Read, reconstruct and write one input, and fill its summary."""
        from normalmesh.maps.point_files import read_control_points, read_jump_lines
        from normalmesh.output.mesh_writing import check_texture

        settings, console, tiling = self.settings, self.console, self.settings.tiling
        began = time.perf_counter()
        check_targets(task, settings)
        prior = None if task.prior is None else read_control_points(task.prior)
        jumps = None if task.jump_lines is None else read_jump_lines(task.jump_lines)
        normal_map = open_normal_map(task, settings)
        summary.add_normal_map(normal_map)
        check_strength(settings.strength, normal_map)
        check_camera(settings, normal_map.camera)
        summary.strength = settings.strength or 1.0
        if task.texture is not None:
            check_texture(task.texture, normal_map.shape)
        summary.seconds["read"] = time.perf_counter() - began
        notify = console.detail if self.several else console.notice
        notify(field_text("needs", settings.needs_text(normal_map)))
        with nullcontext() if tiling is None else tiling.work_kept(task.output, console):
            surfaces = settings.surfaces(normal_map, task.output, prior, jumps, progress)
            summary.add_surfaces(surfaces)
            measured, surfaces = surfaces, finished(surfaces, settings)
            if self.as_json or not console.quiet:
                progress(Step(0.99, "measuring"))
                summary.add_figures(measured, surfaces, normal_map)
            solids = solids_of(surfaces, settings)
            summary.add_print(surfaces[0], solids)
            progress(Step(0.99, "writing"))
            reconstructed = time.perf_counter()
            for path in write_outputs(task, settings, surfaces, solids, normal_map, summary.warnings):
                summary.outputs.append(path)
        summary.seconds |= {"write": time.perf_counter() - reconstructed, "total": time.perf_counter() - began}

    def _recorder(self, summary: RunSummary) -> Callable[[str], None]:
        """Return what records a warning, and prints it on one line, with the name of the input if there are several."""

        def record(text: str) -> None:
            summary.warnings.append(text)
            name = path_text(summary.source)
            about = f"{name}: " if self.several and name not in text else ""
            self.console.alert(f"normalmesh: warning: {about}{text}")

        return record
