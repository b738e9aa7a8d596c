"""The output files of a reconstruction: meshes, pictures and reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from normalmesh import NormalMeshError
from normalmesh.cli.inputs import PREVIEW, Task
from normalmesh.cli.settings import Settings
from normalmesh.errors import path_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from normalmesh.files.maps_on_disk import MapOnDisk
    from normalmesh.mesh.surface import Surface
    from normalmesh.normals.normal_map import NormalMap


def reject_clashes(tasks: Sequence[Task], settings: Settings) -> None:
    """Raise an error if a file that any task writes is read by a task, or written by another one."""
    from normalmesh.files.clashes import InputFiles, place_of
    from normalmesh.files.clashes import reject_clashes as reject

    writer: dict[str, Task] = {}
    for task in tasks:
        for target in _all_targets(task, settings):
            other = writer.setdefault(place_of(target), task)
            if other is not task:
                raise click.UsageError(
                    f"{path_text(other.source)} and {path_text(task.source)} would both be written to "
                    f"{path_text(target)}: rename one of them, or run them separately with -o"
                )
    inputs = InputFiles(path for task in tasks for path in _inputs(task, settings))
    reject([target for task in tasks for target in _all_targets(task, settings)], inputs)


def check_targets(task: Task, settings: Settings) -> None:
    """Raise an error if an output file of a task cannot be written, before the reconstruction starts."""
    from normalmesh.files.encoding import DEPTH_SUFFIXES, checked_suffix
    from normalmesh.files.mesh_writing import check_surface_target

    _check_format(task, settings)
    if task.make_folder:
        task.output.parent.mkdir(parents=True, exist_ok=True)
    if task.jumps is not None:
        checked_suffix(task.jumps, (".png",), "pictures")
    if task.depth is not None:
        checked_suffix(task.depth, DEPTH_SUFFIXES, "depths")
    for target in _all_targets(task, settings):
        check_surface_target(target)


def _check_format(task: Task, settings: Settings) -> None:
    """Raise an error if the format of a task's output cannot hold what is to be written."""
    from normalmesh.files.mesh_formats import TILES_3D, written_format

    if _is_depth(task.output):
        format_name, holds_colours = "a depth map", False
    else:
        mesh_format = written_format(task.output)
        format_name, holds_colours = mesh_format.name, mesh_format.holds_colours
        if settings.lod is not None and mesh_format is TILES_3D:
            raise NormalMeshError("3D Tiles have levels of detail already: leave out --lod")
    if task.texture is not None and not holds_colours:
        raise NormalMeshError(
            f"{path_text(task.output)} cannot have a texture: {format_name} has no colours; "
            "write GLB, OBJ or PLY instead"
        )


def _is_depth(path: Path) -> bool:
    """Check whether an output is a depth map."""
    from normalmesh.files.encoding import DEPTH_SUFFIXES

    return path.suffix.lower() in DEPTH_SUFFIXES


def _inputs(task: Task, settings: Settings) -> list[Path | str | None]:
    """Return all files that a task reads."""
    return [task.source, task.mask, task.texture, task.prior, task.jump_lines, settings.camera]


def _all_targets(task: Task, settings: Settings) -> list[Path]:
    """Return all files that a task writes, with those beside its meshes."""
    from normalmesh.files.mesh_formats import companions_of

    targets = _targets(task, settings)
    return [*targets, *(path for target in targets for path in companions_of(target, task.texture is not None))]


def _targets(task: Task, settings: Settings) -> list[Path]:
    """Return the meshes that a task writes, then its pictures and report, which are beside a folder of 3D Tiles."""
    from normalmesh.files.tileset import TILESET

    output = task.output
    meshes = [output] if settings.lod is None else [_level(output, k) for k in range(len(settings.lod))]
    beside = output.parent if output.name == TILESET else output
    extras = [path for path in (task.depth, task.jumps) if path is not None]
    extras += [beside.with_suffix(PREVIEW)] if settings.preview else []
    extras += [beside.with_suffix(".html")] if settings.report else []
    return [*meshes, *extras]


def _level(output: Path, number: int) -> Path:
    return output.with_name(f"{output.stem}.lod{number}{output.suffix}")


def write_outputs(
    task: Task, settings: Settings, surfaces: Sequence[Surface], opened: NormalMap | MapOnDisk, warnings: list[str]
) -> Iterator[Path]:
    """Write all files of a task, and yield each path once it is written. Pictures show the finest surface.

    Meshes of a map that stays on disk have no normals of vertices, which take the whole map.
    """
    from normalmesh.normals.normal_map import NormalMap
    from normalmesh.pictures import panels

    targets = iter(_targets(task, settings))
    normal_map = opened if isinstance(opened, NormalMap) else None
    georeference = None if isinstance(opened, NormalMap) else opened.georeference
    for surface in surfaces:
        path = next(targets)
        if _is_depth(path):
            surface.save_depth(path, georeference)
        else:
            _write_mesh(path, surface, task, normal_map)
        yield path
    if task.depth is not None:
        surfaces[0].save_depth(path := next(targets), georeference)
        yield path
    if task.jumps is not None:
        _write_picture(path := next(targets), panels.jumps(surfaces[0]))
        yield path
    if settings.preview and normal_map is not None:
        from normalmesh.pictures.preview import preview

        _write_picture(path := next(targets), preview(surfaces[0], normal_map))
        yield path
    if settings.report and normal_map is not None:
        from normalmesh import write_report

        write_report(
            path := next(targets),
            surfaces[0],
            normal_map,
            source=task.source,
            settings=settings.given,
            warnings=warnings,
            texture=task.texture,
        )
        yield path


def _write_mesh(path: Path, surface: Surface, task: Task, normal_map: NormalMap | None) -> None:
    """Write a surface as a mesh, with the normals of the map if the format holds them."""
    from normalmesh.files.mesh_formats import written_format

    normals = normal_map if written_format(path).holds_normals else None
    surface.save(path, texture=task.texture, normals=normals)


def _write_picture(path: Path, image: NDArray[np.uint8]) -> None:
    from normalmesh.files.atomic import write_atomically
    from normalmesh.files.encoding import encode_png

    write_atomically({path: encode_png(image)})
