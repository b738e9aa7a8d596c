"""Reconstructing one input after another: a file that fails does not stop the others."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from normalmesh import NormalMeshError, NormalMeshWarning
from normalmesh.cli.console import Console, compilation_announced, ended_cleanly
from normalmesh.cli.failures import failure_text, print_trace
from normalmesh.cli.inputs import PREVIEW, Task
from normalmesh.cli.outcome import Outcome
from normalmesh.cli.plan import needs
from normalmesh.cli.settings import Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from normalmesh.normalmap import NormalMap
    from normalmesh.progress import Progress
    from normalmesh.surface import Surface


def run(tasks: Sequence[Task], settings: Settings, console: Console, as_json: bool) -> int:
    """Carry out all tasks; how many failed."""
    failed = 0
    written: list[Path] = []
    several = len(tasks) > 1
    console.detail("settings     " + ", ".join(f"{name} {value}" for name, value in settings.given.items()))
    with ended_cleanly(console, written), compilation_announced(console):
        for number, task in enumerate(tasks):
            outcome = Outcome(task.source)
            progress = console.part(number, len(tasks), task.source.name)
            try:
                with _warnings_noted(outcome, console, several):
                    _carry_out(task, settings, outcome, written, console, progress, several)
            except Exception as error:
                failed += 1
                outcome.error = str(error) if isinstance(error, NormalMeshError) else failure_text(error)
                console.clear()
                print_trace(error)
                console.alert(f"normalmesh: {failure_text(error, task.source if several else None)}")
            _tell(outcome, console, as_json, several)
    if several:
        console.notice(f"{len(tasks) - failed} of {len(tasks)} reconstructed" + (f", {failed} failed" * bool(failed)))
    return failed


def _tell(outcome: Outcome, console: Console, as_json: bool, several: bool) -> None:
    if outcome.seconds:
        console.detail("seconds      " + ", ".join(f"{stage} {value:.2f}" for stage, value in outcome.seconds.items()))
    if as_json:
        console.result(outcome.as_json())
    elif outcome.error is None:
        console.result(outcome.line() if several else "\n".join(outcome.lines()))


def _carry_out(
    task: Task,
    settings: Settings,
    outcome: Outcome,
    written: list[Path],
    console: Console,
    progress: Progress,
    several: bool,
) -> None:
    """Read, reconstruct and write one input; the outcome learns of each step."""
    from normalmesh import read_normal_map
    from normalmesh.files.atomic import check_target
    from normalmesh.files.priors import read_control_points

    began = time.perf_counter()
    if task.make_folder:
        task.output.parent.mkdir(parents=True, exist_ok=True)
    for target in _targets(task, settings):
        check_target(target)
    if task.texture is not None and task.output.suffix.lower() == ".stl":
        raise NormalMeshError(f"{task.output} cannot have a texture: STL has no colours; write GLB or OBJ")
    prior = None if task.prior is None else read_control_points(task.prior)
    camera = settings.camera_of()
    normal_map = read_normal_map(task.source, task.mask, camera, settings.convention)
    outcome.read(normal_map)
    outcome.seconds["read"] = time.perf_counter() - began
    (console.detail if several else console.notice)(needs(normal_map.mask.size, normal_map.foreground, settings))
    surfaces = settings.surfaces(normal_map, prior, progress)
    outcome.made(surfaces, normal_map)
    writing = time.perf_counter()
    for path in _written(task, settings, surfaces, normal_map, outcome):
        outcome.outputs.append(path)
        written.append(path)
    outcome.seconds |= {"write": time.perf_counter() - writing, "total": time.perf_counter() - began}


def _targets(task: Task, settings: Settings) -> list[Path]:
    """All files that a task writes, the meshes first."""
    output = task.output
    meshes = [output] if settings.lod is None else [_level(output, k) for k in range(len(settings.lod))]
    extras = [task.jumps] if task.jumps is not None else []
    extras += [output.with_suffix(PREVIEW)] if settings.preview else []
    extras += [output.with_suffix(".html")] if settings.report else []
    return [*meshes, *extras]


def _level(output: Path, number: int) -> Path:
    return output.with_name(f"{output.stem}.lod{number}{output.suffix}")


def _written(
    task: Task, settings: Settings, surfaces: list[Surface], normal_map: NormalMap, outcome: Outcome
) -> Iterator[Path]:
    """Write all files of a task, one after the other. Pictures and reports are of the finest surface."""
    from normalmesh.pictures import panels

    targets = iter(_targets(task, settings))
    normals = normal_map if task.output.suffix.lower() == ".glb" else None
    for surface in surfaces:
        surface.save(path := next(targets), texture=task.texture, normals=normals)
        yield path
    if task.jumps is not None:
        _write_picture(path := next(targets), panels.jumps(surfaces[0]))
        yield path
    if settings.preview:
        from normalmesh.pictures.preview import preview

        _write_picture(path := next(targets), preview(surfaces[0], normal_map))
        yield path
    if settings.report:
        from normalmesh.report import write_report

        write_report(
            path := next(targets),
            surfaces[0],
            normal_map,
            source=task.source,
            settings=settings.given,
            warnings=outcome.warnings,
            texture=task.texture,
        )
        yield path


def _write_picture(path: Path, image: NDArray[np.uint8]) -> None:
    import imagecodecs

    from normalmesh.files.atomic import write_atomically

    write_atomically({path: bytes(imagecodecs.png_encode(image))})


@contextmanager
def _warnings_noted(outcome: Outcome, console: Console, several: bool) -> Iterator[None]:
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
            about = f"{outcome.source}: " if several and str(outcome.source) not in text else ""
            console.alert(f"normalmesh: warning: {about}{text}")

        warnings.showwarning = show  # type: ignore[assignment]
        yield
