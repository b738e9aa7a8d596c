"""``normalmesh reconstruct --solid`` and ``--flatten``: options, and what they make of surfaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from normalmesh.cli.printing import field_text
from normalmesh.errors import NormalMeshError

if TYPE_CHECKING:
    from normalmesh.cli.inputs import Task
    from normalmesh.cli.settings import Settings
    from normalmesh.mesh.lengths import Length
    from normalmesh.mesh.solid import Solid
    from normalmesh.mesh.surface import Surface
    from normalmesh.normals.camera import Camera

#: Suffix of the output of ``--solid`` unless another one is given.
SOLID_SUFFIX = ".stl"

NEEDS_PERSPECTIVE = "--distance requires a perspective camera: add --camera, --focal-px or --fov"


def print_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--flatten``, ``--solid`` and ``--width``."""
    for option in (
        click.option("--width", type=length, metavar="LENGTH", help="Scale the solid to this width, such as 80mm."),
        click.option(
            "--solid",
            type=length,
            metavar="LENGTH",
            help="Write a watertight solid for printing. LENGTH is the thickness of its base: 3mm, 12px. "
            "Formats: STL (default), 3MF, PLY, OBJ, GLB.",
        ),
        click.option(
            "--flatten",
            type=click.Choice(["plane", "quadratic"]),
            help="Remove the tilt of the whole surface, or tilt and bend.",
        ),
    ):
        command = option(command)
    return command


def length(value: str) -> Length:
    """Parse a length, such as 3mm, 0.2cm, 12px or 5, in the unit of the surface."""
    from normalmesh.mesh.lengths import Length

    try:
        return Length.parse(value, "the length")
    except NormalMeshError as error:
        raise click.BadParameter(str(error)) from error


def reject_print_conflicts(settings: Settings) -> None:
    """Raise a usage error for options that contradict each other, before anything is read."""
    if settings.width is not None and settings.solid is None:
        raise click.UsageError("--width is an option of --solid: add that")
    if settings.flatten is not None and settings.tile is not None:
        raise click.UsageError(
            "--flatten would part the copies that --tile joins, which have no mean slope: give only one of them"
        )
    if (conflict := _camera_conflict(settings, settings.view.is_perspective)) is not None:
        raise click.UsageError(conflict)
    if settings.solid is None:
        return
    from normalmesh.mesh.lengths import MILLIMETRES

    # The unit of a map that stays on disk may be in its file.
    width_is_length = settings.width is not None and settings.width.unit in MILLIMETRES
    known = settings.tiling is not None or settings.units == "mm" or width_is_length
    if settings.solid.unit in MILLIMETRES and not known:
        raise click.UsageError(
            f"--solid {settings.solid} needs the size of the surface: add --pixel-size MM (or --distance MM of a "
            "perspective camera), or the width of the print, such as --width 80mm"
        )


def _camera_conflict(settings: Settings, is_perspective: bool) -> str | None:
    """Return what is wrong with the options for a kind of camera; None if nothing."""
    if is_perspective and settings.flatten is not None:
        return "--flatten requires an orthographic camera: leave it out, or the options of the camera"
    if is_perspective and settings.solid is not None and settings.distance is None and settings.width is None:
        return (
            "the size of a surface behind a perspective camera is unknown: add --distance MM, or the width of the "
            "print, such as --width 80mm"
        )
    return None


def check_camera(settings: Settings, camera: Camera) -> None:
    """Raise an error for options that contradict the camera, which the file of a map may hold."""
    if (conflict := _camera_conflict(settings, camera.gauge == "scale")) is not None:
        raise NormalMeshError(conflict)
    if settings.distance is not None and camera.gauge == "offset":
        raise NormalMeshError(NEEDS_PERSPECTIVE)


def reject_task_conflicts(task: Task, settings: Settings) -> None:
    """Raise an error for files of a task that contradict the options."""
    if settings.distance is not None and not settings.view.is_perspective and not _may_hold_camera(task, settings):
        raise click.UsageError(NEEDS_PERSPECTIVE)
    if settings.continuous and task.jump_lines is not None:
        raise click.UsageError("give only one of --continuous, --jump-lines")
    if settings.continuous and task.jumps is not None:
        raise click.UsageError("--continuous cuts nothing that --jumps could draw: give only one of them")
    if settings.flatten is not None and task.prior is not None:
        raise click.UsageError("--flatten takes away what --prior determines: give only one of them")
    if settings.solid is not None and task.texture is not None:
        raise click.UsageError("a solid has no texture: leave out --texture or --solid")


def _may_hold_camera(task: Task, settings: Settings) -> bool:
    """Check whether the camera of a task may be in the file of its map, which options override."""
    return not settings.view.is_given and task.source.suffix.lower() == ".npz"


def finished(surfaces: Sequence[Surface], settings: Settings) -> list[Surface]:
    """Return the surfaces flattened, then exaggerated, if that is asked for."""
    shape, strength = settings.flatten, settings.strength
    flat = list(surfaces) if shape is None else [surface.flattened(shape) for surface in surfaces]
    return flat if strength is None else [surface.exaggerated(strength) for surface in flat]


def solids_of(surfaces: Sequence[Surface], settings: Settings) -> list[Solid]:
    """Return the solid of each surface, if that is asked for."""
    if settings.solid is None:
        return []
    from normalmesh.mesh.solid import solid_of

    return [solid_of(surface, settings.solid, settings.width) for surface in surfaces]


def default_suffix(solid: object) -> str:
    """Return the suffix of outputs without a name."""
    return ".glb" if solid is None else SOLID_SUFFIX


def print_figures(surface: Surface, solids: Sequence[Solid]) -> dict[str, dict[str, Any] | None]:
    """Return what was taken away and the finest solid, for JSON."""
    found, solid = surface.flattening, solids[0] if solids else None
    return {
        "flattening": None
        if found is None
        else {
            "shape": found.shape,
            "tilt_degrees": found.tilt,
            "direction_degrees": found.direction,
            "bow": found.bow,
            "width": found.width,
            "units": found.units,
            "coefficients": found.coefficients.tolist(),
            "centre": found.centre.tolist(),
        },
        "solid": None
        if solid is None
        else {
            "extent": list(solid.extent),
            "volume": solid.volume,
            "pieces": len(solid.volumes),
            "units": solid.units,
            "scale": solid.scale,
            "vertices": len(solid.vertices),
            "faces": len(solid.faces),
        },
    }


def print_lines(surface: Surface, solids: Sequence[Solid]) -> list[str]:
    """Return what was taken away and the finest solid as lines of text."""
    lines = []
    if surface.flattening is not None:
        lines.append(field_text("flattened", str(surface.flattening)))
    if solids:
        lines.append(field_text("solid", f"{solids[0]}; watertight"))
    return lines
