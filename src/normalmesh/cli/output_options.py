"""``normalmesh reconstruct -o``: what is written, how GLB files place it, and the strength of the relief."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from normalmesh.cli.number_types import Positive, number_or_percentage

if TYPE_CHECKING:
    from normalmesh.cli.inputs import Task
    from normalmesh.cli.settings import Settings
    from normalmesh.maps.maps_on_disk import MapOnDisk
    from normalmesh.normals.normal_map import NormalMap
    from normalmesh.output.glb_placement import Scale


def glb_scale(value: str) -> Scale:
    """Parse ``auto``, ``none`` or a positive number."""
    if value == "auto":
        return "auto"
    try:
        return "none" if value == "none" else Positive().convert(value, None, None)
    except click.BadParameter:
        raise click.BadParameter(f"{value!r} is neither auto, none nor a positive number") from None


def relief_strength(value: str) -> float:
    """Parse a factor of the relief, such as 0.5, 50% or -1."""
    from normalmesh.errors import NormalMeshError
    from normalmesh.mesh.relief import checked_strength

    try:
        return checked_strength(number_or_percentage(value))
    except NormalMeshError:
        raise click.BadParameter(f"{value!r} is not a factor of the relief, such as 0.5 or 2") from None


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--output``, ``--scale``, ``--no-centre`` and ``--strength``."""
    for option in (
        click.option(
            "--strength",
            type=relief_strength,
            metavar="FACTOR",
            help="Multiply the heights of an orthographic map: 0.5 flattens, 2 exaggerates, -1 inverts. "
            "The result is no measurement.",
        ),
        click.option("--no-centre", is_flag=True, help="GLB: do not move the centre of the surface to the origin."),
        click.option(
            "--scale",
            type=glb_scale,
            metavar="auto|none|FACTOR",
            help="GLB: metres per unit. auto: as the unit says; px: longest side 1.  [default: auto]",
        ),
        click.option(
            "--output",
            "-o",
            "outputs",
            type=click.Path(),
            multiple=True,
            help="Mesh (PLY, OBJ, GLB, STL), heights (TIFF, EXR, NPY, PNG), folder/ for 3D Tiles, or folder for "
            "several inputs; repeat for several outputs; default: GLB, or STL with --solid, next to NORMALS.",
        ),
    ):
        command = option(command)
    return command


def reject_unused_placement(task: Task, settings: Settings) -> None:
    """Raise a usage error for options of GLB files if no surface is written to one."""
    given = ["--scale"] * (settings.scale not in (None, "auto")) + ["--no-centre"] * settings.no_centre
    if not given:
        return
    if settings.solid is not None:
        raise click.UsageError(f"{given[0]} has no effect on a solid: leave it out; --width scales a solid")
    if not any(output.suffix.lower() == ".glb" for output in task.outputs):
        raise click.UsageError(f"{given[0]} is for GLB files only: write one with -o, or leave {given[0]} out")


def check_strength(strength: float | None, normal_map: NormalMap | MapOnDisk) -> None:
    """Raise an error if the relief cannot be exaggerated, before the reconstruction starts."""
    from normalmesh.mesh.relief import check_parallel

    if strength is not None:
        check_parallel(normal_map.camera)
