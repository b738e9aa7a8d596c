"""The output files of a reconstruction: meshes, pictures and reports."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from normalmesh import NormalMeshError
from normalmesh.cli.inputs import PREVIEW, Task
from normalmesh.cli.settings import Settings
from normalmesh.errors import path_text

if TYPE_CHECKING:
    from normalmesh.array_types import UInt8
    from normalmesh.maps.maps_on_disk import MapOnDisk
    from normalmesh.mesh.solid import Solid
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
    for task in tasks:
        _reject_files_among_tiles(task, settings)
    inputs = InputFiles(path for task in tasks for path in _inputs(task, settings))
    reject([target for task in tasks for target in _all_targets(task, settings)], inputs)


def _reject_files_among_tiles(task: Task, settings: Settings) -> None:
    """Raise an error if a file would be written to a folder of 3D Tiles, which has only them."""
    from normalmesh.output.tileset import TILESET

    tilesets = [output.parent for output in task.outputs if output.name == TILESET]
    folders = {Path(os.path.realpath(folder)): folder for folder in tilesets}
    if settings.lod is not None:  # 3D Tiles are refused
        return
    for target in _all_targets(task, settings):
        inside = [folders[each] for each in Path(os.path.realpath(target)).parents if each in folders]
        if inside and target.name != TILESET:
            raise click.UsageError(
                f"{path_text(target)} is in {path_text(inside[0])}, a folder for 3D Tiles only: choose another place"
            )


def check_targets(task: Task, settings: Settings) -> None:
    """Raise an error if an output file of a task cannot be written, before the reconstruction starts."""
    from normalmesh.files.encoding import DEPTH_SUFFIXES, checked_suffix
    from normalmesh.output.mesh_writing import check_surface_target

    check_formats(task, settings)
    for folder in task.folders:
        folder.mkdir(parents=True, exist_ok=True)
    if task.jumps is not None:
        checked_suffix(task.jumps, (".png",), "pictures")
    if task.depth is not None:
        checked_suffix(task.depth, DEPTH_SUFFIXES, "depths")
    for target in _all_targets(task, settings):
        check_surface_target(target)


def check_formats(task: Task, settings: Settings) -> None:
    """Raise an error if an output cannot be written in its format, or none can hold the texture."""
    for output in task.outputs:
        _check_format(output, settings)
    _check_texture(task)


def _check_format(output: Path, settings: Settings) -> None:
    """Raise an error if an output cannot be written in its format."""
    from normalmesh.files.encoding import DEPTH_SUFFIXES
    from normalmesh.output.mesh_formats import TILES_3D, WRITTEN_SUFFIXES, written_format
    from normalmesh.output.solid_writing import check_solid_suffix
    from normalmesh.output.three_mf import THREE_MF
    from normalmesh.output.tileset import TILESET

    if settings.solid is not None:
        if _is_depth(output):
            raise NormalMeshError(
                f"cannot write a solid to {path_text(output)}: its suffix is that of heights, which --depth writes"
            )
        check_solid_suffix(output)
        return
    known = (*WRITTEN_SUFFIXES, *DEPTH_SUFFIXES)
    if output.name != TILESET and output.suffix.lower() not in known:
        hint = {
            THREE_MF: "; 3MF holds solids only: add --solid",
            "": f"; the name of a folder of 3D Tiles must end with {os.sep}",
        }
        raise NormalMeshError(
            f"cannot write {path_text(output)}: the suffix must be one of {', '.join(known)}"
            + hint.get(output.suffix.lower(), "")
        )
    if not _is_depth(output) and written_format(output) is TILES_3D and settings.lod is not None:
        raise NormalMeshError("3D Tiles have levels of detail already: leave out --lod")


def _check_texture(task: Task) -> None:
    """Raise an error if there is a texture, but no output can hold it."""
    from normalmesh.output.mesh_formats import written_format

    if task.texture is not None and not any(map(_holds_colours, task.outputs)):
        path = task.output
        format_name = "a depth map" if _is_depth(path) else written_format(path).name
        raise NormalMeshError(
            f"{path_text(path)} cannot have a texture: {format_name} has no colours; write GLB, OBJ or PLY instead"
        )


def _holds_colours(path: Path) -> bool:
    from normalmesh.output.mesh_formats import written_format

    return not _is_depth(path) and written_format(path).holds_colours


def _is_depth(path: Path) -> bool:
    """Check whether an output is a depth map."""
    from normalmesh.files.encoding import DEPTH_SUFFIXES

    return path.suffix.lower() in DEPTH_SUFFIXES


def _inputs(task: Task, settings: Settings) -> list[Path | str | None]:
    """Return all files that a task reads."""
    return [task.source, task.mask, task.texture, task.prior, task.jump_lines, settings.camera]


def _all_targets(task: Task, settings: Settings) -> list[Path]:
    """Return all files that a task writes, with those beside its meshes and heights."""
    from normalmesh.files.height_png import depth_companions
    from normalmesh.output.mesh_formats import companions_of

    results = [path for output in task.outputs for path in _levels(output, settings)]
    results += [] if task.depth is None else [task.depth]
    beside = [
        each
        for path in results
        for each in (depth_companions(path) if _is_depth(path) else companions_of(path, task.texture is not None))
    ]
    return [*results, *_pictures(task, settings).values(), *beside]


def _levels(output: Path, settings: Settings) -> list[Path]:
    """Return the files of an output, one for each level of detail."""
    if settings.lod is None:
        return [output]
    return [output.with_name(f"{output.stem}.lod{number}{output.suffix}") for number in range(len(settings.lod))]


def _pictures(task: Task, settings: Settings) -> dict[str, Path]:
    """Return the picture of jumps, the preview and the report, which are beside a folder of 3D Tiles."""
    from normalmesh.output.tileset import TILESET

    beside = task.output.parent if task.output.name == TILESET else task.output
    pictures = {} if task.jumps is None else {"jumps": task.jumps}
    pictures |= {"preview": beside.with_suffix(PREVIEW)} if settings.preview else {}
    return pictures | ({"report": beside.with_suffix(".html")} if settings.report else {})


def write_outputs(
    task: Task,
    settings: Settings,
    surfaces: Sequence[Surface],
    solids: Sequence[Solid],
    opened: NormalMap | MapOnDisk,
    warnings: list[str],
) -> Iterator[Path]:
    """Write all files of a task, and yield each path once it is written. Pictures show the finest surface.

    If there are solids, they are written instead of the surfaces.

    Meshes of a map that stays on disk have no normals of vertices, which take the whole map.
    """
    from normalmesh.normals.normal_map import NormalMap

    normal_map = opened if isinstance(opened, NormalMap) else None
    georeference = None if isinstance(opened, NormalMap) else opened.georeference
    for output in task.outputs:
        for level, path in enumerate(_levels(output, settings)):
            if solids:
                solids[level].save(path)
            elif _is_depth(path):
                surfaces[level].save_depth(path, georeference)
            else:
                _write_mesh(path, surfaces[level], task, normal_map, settings)
            yield path
    if task.depth is not None:
        surfaces[0].save_depth(task.depth, georeference)
        yield task.depth
    yield from _write_pictures(task, settings, surfaces[0], normal_map, warnings)


def _write_pictures(
    task: Task, settings: Settings, surface: Surface, normal_map: NormalMap | None, warnings: list[str]
) -> Iterator[Path]:
    """Write the picture of jumps, the preview and the report."""
    from normalmesh.pictures import panels

    paths = _pictures(task, settings)
    if "jumps" in paths:
        _write_picture(paths["jumps"], panels.jumps(surface))
        yield paths["jumps"]
    if "preview" in paths and normal_map is not None:
        from normalmesh.pictures.preview import preview

        _write_picture(paths["preview"], preview(surface, normal_map))
        yield paths["preview"]
    if "report" in paths and normal_map is not None:
        from normalmesh import write_report

        write_report(
            paths["report"],
            surface,
            normal_map,
            source=task.source,
            settings=settings.given,
            warnings=warnings,
            texture=task.texture,
        )
        yield paths["report"]


def _write_mesh(path: Path, surface: Surface, task: Task, normal_map: NormalMap | None, settings: Settings) -> None:
    """Write a surface as a mesh, with the normals of the map if the format holds them."""
    from normalmesh.output.mesh_formats import written_format

    mesh_format = written_format(path)
    surface.save(
        path,
        texture=task.texture if mesh_format.holds_colours else None,
        normals=normal_map if mesh_format.holds_normals else None,
        scale=settings.scale or "auto",
        centred=not settings.no_centre,
    )


def _write_picture(path: Path, image: UInt8) -> None:
    from normalmesh.files.atomic import write_atomically
    from normalmesh.files.encoding import encode_png

    write_atomically({path: encode_png(image)})
