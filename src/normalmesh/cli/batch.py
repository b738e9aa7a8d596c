"""Reconstructing one input after another: a file that fails does not stop the others."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from normalmesh import NormalMeshError, NormalMeshWarning
from normalmesh.cli.console import Console, compilation_announced, progress_removed
from normalmesh.cli.failures import failure_text, print_trace
from normalmesh.cli.inputs import Task
from normalmesh.cli.needs import Needs
from normalmesh.cli.outcome import Outcome
from normalmesh.cli.results import check_targets, written
from normalmesh.cli.settings import Settings

if TYPE_CHECKING:
    from normalmesh.runtime.monitor import OnProgress


def run(tasks: Sequence[Task], settings: Settings, console: Console, as_json: bool) -> int:
    """Carry out all tasks; how many failed."""
    batch = _Batch(settings, console, as_json, several=len(tasks) > 1)
    console.detail("settings     " + ", ".join(f"{name} {value}" for name, value in settings.given.items()))
    failed = 0
    with progress_removed(console), compilation_announced(console):
        for number, task in enumerate(tasks):
            outcome = batch.outcome_of(task, console.part(number, len(tasks), task.source.name))
            batch.tell(outcome)
            failed += outcome.error is not None
    if batch.several:
        console.notice(
            f"{len(tasks) - failed} of {len(tasks)} reconstructed" + (f", {failed} failed" if failed else "")
        )
    return failed


@dataclass
class _Batch:
    """What all tasks have in common."""

    settings: Settings
    console: Console
    as_json: bool
    several: bool

    def outcome_of(self, task: Task, progress: OnProgress) -> Outcome:
        """Carry out a task, whatever comes of it."""
        outcome = Outcome(task.source)
        try:
            with self._warnings_noted(outcome):
                self._carry_out(task, outcome, progress)
        except Exception as error:
            outcome.error = str(error) if isinstance(error, NormalMeshError) else failure_text(error)
            self.console.clear()
            print_trace(error)
            self.console.alert(f"normalmesh: {failure_text(error, task.source if self.several else None)}")
        return outcome

    def tell(self, outcome: Outcome) -> None:
        stages = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in outcome.seconds.items())
        if stages:
            self.console.detail(f"seconds      {stages}")
        if self.as_json:
            self.console.output(outcome.as_json())
        elif outcome.error is None:
            self.console.result(outcome.line() if self.several else "\n".join(outcome.lines()))

    def _carry_out(self, task: Task, outcome: Outcome, progress: OnProgress) -> None:
        """Read, reconstruct and write one input; the outcome learns of each step."""
        from normalmesh import read_normal_map
        from normalmesh.files.mesh_writing import check_texture
        from normalmesh.files.priors import read_control_points

        settings, console = self.settings, self.console
        began = time.perf_counter()
        check_targets(task, settings)
        prior = None if task.prior is None else read_control_points(task.prior)
        normal_map = read_normal_map(task.source, task.mask, settings.camera_of(), settings.convention)
        outcome.read(normal_map)
        if task.texture is not None:
            check_texture(task.texture, normal_map.shape)
        outcome.seconds["read"] = time.perf_counter() - began
        tell = console.detail if self.several else console.notice
        vertices, _ = settings.aimed_at(normal_map.foreground)
        tell(f"needs        {Needs.of(normal_map.mask.size, normal_map.foreground, vertices)}")
        surfaces = settings.surfaces(normal_map, prior, progress)
        outcome.made(surfaces)
        if self.as_json or not console.quiet:
            outcome.measured(surfaces, normal_map)
        writing = time.perf_counter()
        for path in written(task, settings, surfaces, normal_map, outcome.warnings):
            outcome.outputs.append(path)
        outcome.seconds |= {"write": time.perf_counter() - writing, "total": time.perf_counter() - began}

    @contextmanager
    def _warnings_noted(self, outcome: Outcome) -> Iterator[None]:
        """Show warnings in a line each, with the input's name if there are several, and keep them."""
        with warnings.catch_warnings():
            # Python shows a warning once; each input is to have its own.
            warnings.simplefilter("always", NormalMeshWarning)
            show_other = warnings.showwarning

            def show(message: Warning | str, category: type[Warning], *place: object) -> None:
                if not issubclass(category, NormalMeshWarning):
                    show_other(message, category, *place)  # type: ignore[arg-type]
                    return
                text = str(message)
                outcome.warnings.append(text)
                about = f"{outcome.source}: " if self.several and str(outcome.source) not in text else ""
                self.console.alert(f"normalmesh: warning: {about}{text}")

            warnings.showwarning = show  # type: ignore[assignment]
            yield
