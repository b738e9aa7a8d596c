"""The output files of a reconstruction: solids, meshes, heights, pictures and the report.

`targets` lists them, for the checks before the work as for the writing after it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import click

import normalmesh as nm
from normalmesh.cli.job import PREVIEW, Job
from normalmesh.errors import NormalMeshError, path_text
from normalmesh.files.clashes import InputFiles, place_of
from normalmesh.files.clashes import reject_clashes as reject
from normalmesh.files.encoding import DEPTH_SUFFIXES, checked_suffix
from normalmesh.files.height_png import depth_companions
from normalmesh.maps.maps_on_disk import MapOnDisk
from normalmesh.mesh.solid import Solid
from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map import NormalMap
from normalmesh.output.mesh_formats import TILES_3D, WRITTEN_SUFFIXES, companions_of, written_format
from normalmesh.output.mesh_writing import check_solid_suffix, check_surface_target
from normalmesh.output.three_mf import THREE_MF
from normalmesh.output.tileset import TILESET
from normalmesh.pictures import panels
from normalmesh.pictures.panels import write_picture
from normalmesh.pictures.preview import preview


class Target(NamedTuple):
    """A file to write: its path, what it holds, and the level of detail, 0 for the finest."""

    path: Path
    kind: Literal["solid", "depth", "mesh", "jumps", "preview", "report"]
    level: int = 0


def targets(job: Job) -> list[Target]:
    """Return the files of a job, in the order in which they are written."""
    settings, found = job.settings, []
    for output in job.outputs:
        whole = Target(output, "solid" if settings.solid is not None else "depth" if _is_depth(output) else "mesh")
        names = [f"{output.stem}.lod{level}{output.suffix}" for level in range(len(settings.lod or ()))]
        found += [Target(output.with_name(name), whole.kind, level) for level, name in enumerate(names)] or [whole]
    beside = job.output.parent if job.output.name == TILESET else job.output
    found += [] if job.depth is None else [Target(job.depth, "depth")]
    found += [] if job.jumps is None else [Target(job.jumps, "jumps")]
    found += [Target(beside.with_suffix(PREVIEW), "preview")] * settings.preview
    found += [Target(beside.with_suffix(".html"), "report")] * settings.report
    return found


def write_outputs(
    job: Job,
    surfaces: Sequence[Surface],
    solids: Sequence[Solid],
    normal_map: NormalMap | MapOnDisk,
    warnings: Sequence[str],
) -> Iterator[Path]:
    """Write surfaces and, if asked for, their solids, finest first; yield the path of each file once it is written."""
    for path, kind, level in targets(job):
        surface = surfaces[level]
        if kind == "solid":
            solids[level].save(path)
        elif kind == "depth":
            surface.save_depth(path, getattr(normal_map, "georeference", None))
        elif kind == "mesh":
            mesh_format = written_format(path)
            surface.save(
                path,
                texture=job.texture if mesh_format.holds_colours else None,
                normals=normal_map if mesh_format.holds_normals and isinstance(normal_map, NormalMap) else None,
                scale=job.settings.scale or "auto",
                centred=not job.settings.no_centre,
            )
        elif kind == "jumps":
            write_picture(path, panels.jumps(surface))
        else:
            assert isinstance(normal_map, NormalMap)  # --tiles refuses previews and reports
            if kind == "preview":
                write_picture(path, preview(surface, normal_map))
            else:
                about: dict[str, Any] = {"settings": job.settings.given, "warnings": warnings, "texture": job.texture}
                nm.write_report(path, surface, normal_map, source=job.source, **about)
        yield path


def _all_paths(job: Job) -> list[Path]:
    """Return all files that a job writes, with those beside its meshes and heights."""
    found = targets(job)
    beside: list[Path] = []
    for path, kind, _ in found:
        if kind in ("mesh", "solid"):
            beside += companions_of(path, job.texture is not None)
        elif kind == "depth":
            beside += depth_companions(path)
    return [*(target.path for target in found), *beside]


def reject_clashes(jobs: Sequence[Job]) -> None:
    """Raise an error if a file that any job writes is read by a job, or written by another one."""
    writer: dict[str, Job] = {}
    for job in jobs:
        for path in _all_paths(job):
            other = writer.setdefault(place_of(path), job)
            if other is not job:
                raise click.UsageError(
                    f"{path_text(other.source)} and {path_text(job.source)} would both be written to "
                    f"{path_text(path)}: rename one of them, or run them separately with -o"
                )
    for job in jobs:
        _reject_files_among_tiles(job)
    inputs = InputFiles(path for job in jobs for path in job.inputs)
    reject([path for job in jobs for path in _all_paths(job)], inputs)


def _reject_files_among_tiles(job: Job) -> None:
    """Raise an error if a file would be written to a folder of 3D Tiles, which has only them."""
    if job.settings.lod is not None:  # 3D Tiles are refused
        return
    folders = {Path(os.path.realpath(path.parent)): path.parent for path in job.outputs if path.name == TILESET}
    for path in _all_paths(job):
        inside = [folders[each] for each in Path(os.path.realpath(path)).parents if each in folders]
        if inside and path.name != TILESET:
            raise click.UsageError(
                f"{path_text(path)} is in {path_text(inside[0])}, a folder for 3D Tiles only: choose another place"
            )


def check_targets(job: Job) -> None:
    """Raise an error if an output file of a job cannot be written, before the reconstruction starts."""
    check_formats(job)
    for folder in job.folders:
        folder.mkdir(parents=True, exist_ok=True)
    if job.jumps is not None:
        checked_suffix(job.jumps, (".png",), "pictures")
    if job.depth is not None:
        checked_suffix(job.depth, DEPTH_SUFFIXES, "depths")
    for path in _all_paths(job):
        check_surface_target(path)


def check_formats(job: Job) -> None:
    """Raise an error if an output cannot be written in its format, or none can hold the texture."""
    for output in job.outputs:
        if job.settings.solid is None:
            _check_surface_format(output, job)
        elif _is_depth(output):
            raise NormalMeshError(
                f"cannot write a solid to {path_text(output)}: its suffix is that of heights, which --depth writes"
            )
        else:
            check_solid_suffix(output)
    if job.texture is None or any(written_format(path).holds_colours for path in job.outputs if not _is_depth(path)):
        return
    format_name = "a depth map" if _is_depth(job.output) else written_format(job.output).name
    raise NormalMeshError(
        f"{path_text(job.output)} cannot have a texture: {format_name} has no colours; write GLB, OBJ or PLY instead"
    )


def _check_surface_format(output: Path, job: Job) -> None:
    """Raise an error if a surface cannot be written in the format of an output."""
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
    if not _is_depth(output) and written_format(output) is TILES_3D and job.settings.lod is not None:
        raise NormalMeshError("3D Tiles have levels of detail already: leave out --lod")


def _is_depth(path: Path) -> bool:
    """Check whether an output is a depth map."""
    return path.suffix.lower() in DEPTH_SUFFIXES
