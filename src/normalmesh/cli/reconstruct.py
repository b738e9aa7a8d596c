"""``normalmesh reconstruct``: reconstruct surfaces from normal maps, and write mesh files."""

from __future__ import annotations

from typing import Any

import click

from normalmesh.cli.console import Console
from normalmesh.cli.option_tables import (
    SectionedCommand,
    flag,
    max_pixels_option,
    option,
    output_options,
    reading_options,
    reject_several,
    repeat_options,
    solid_options,
    stopping_options,
    tiling_options,
)
from normalmesh.cli.option_types import POSITIVE, byte_size

#: What may become of gaps, as `mesh.walls.GAPS`, which takes longer to import.
GAPS = ("auto", "open", "walls")
#: Headings of the help, and the options below them.
SECTIONS = {
    "Output": ("outputs", "depth", "texture", "scale", "no_centre", "strength", "preview", "report", "jumps"),
    "Normal map": ("mask", "alpha", "convention", "max_pixels"),
    "Camera and lengths": ("camera", "focal_px", "fov", "pixel_size", "distance"),
    "Resolution": ("compression", "vertices", "threshold", "max_angle", "max_error", "lod"),
    "Surface": (
        "continuous",
        "min_certainty",
        "jump_lines",
        "gaps",
        "prior",
        "flatten",
        "solid",
        "width",
        "tile_both",
        "tile_x",
        "tile_y",
    ),
    "Large maps": ("tiles", "tile_size", "scheduler", "workers", "work", "keep_work"),
}
#: Files that each input has. All other options are fields of `Settings`.
COMPANIONS = ("mask", "texture", "prior", "jump_lines", "depth", "jumps")


@click.command(cls=SectionedCommand, sections=SECTIONS, short_help="Reconstruct surfaces from normal maps.")
@click.argument("normals", nargs=-1, required=True, metavar="NORMALS...")
@output_options
@reading_options
@stopping_options
@option("--pixel-size MM", "Size of a pixel of an orthographic map, in mm.", POSITIVE)
@option("--distance MM", "Mean distance from a perspective camera, in mm.", POSITIVE)
@solid_options
@option("--prior", "CSV file of control points, u,v,depth[,weight] per line.", click.Path())
@option(
    "--texture", "Photo for the colours: a texture of GLB, OBJ and 3D Tiles, colours of vertices in PLY.", click.Path()
)
@flag("--continuous", "Never cut the surface, even at apparent depth discontinuities.")
@option(
    "--min-certainty", "Least certainty, from 0 to 1, of lines along which the surface is cut.", click.FloatRange(0, 1)
)
@option("--jump-lines", "Where the depth jumps: edge image, or text file of polylines u,v.", click.Path())
@option(
    "--gaps",
    "Close the gaps at jumps by walls, or leave them open; default: walls for reliefs, --solid and --tile.",
    click.Choice(GAPS),
)
@option("--depth", "The same as another -o with heights, of the finest level.", click.Path())
@option("--jumps", "Write a PNG of the edges along which the surface is cut.", click.Path())
@flag("--preview", "Write a preview picture, OUT.preview.png.")
@flag("--report", "Write an HTML report, OUT.html.")
@option("--threads", "Threads to use; default: all, or NUMBA_NUM_THREADS.", click.IntRange(1))
@option(
    "--memory-limit SIZE", "Largest memory to use, such as 12GB, or none; default: the available memory.", byte_size
)
@max_pixels_option
@repeat_options
@tiling_options
@flag("--dry-run", "Print the estimated memory and time, and stop.")
@flag("--json as_json", "Print one line of JSON per input to standard output.")
@flag("--verbose -v", "Also print the settings and the seconds by stage.")
@flag("--quiet -q", "Print only warnings and errors.")
@click.pass_context
def reconstruct(
    context: click.Context,
    /,
    normals: tuple[str, ...],
    outputs: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
    verbose: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Reconstruct surfaces from normal maps, and print their figures.

    NORMALS are files, or patterns such as 'coins/*.png'. If there are several, {stem} in -o, --mask, --texture,
    --prior, --jump-lines, --depth and --jumps is replaced by the name of each: --mask 'masks/{stem}.png'. An input that
    fails does not stop the others.

    Choose the resolution with at most one of these options: --compression, --vertices, --threshold, --max-angle,
    --max-error or --lod.

    The exit status is 1 if an input failed, 2 for bad usage, and 3 if all is written, but not within --max-angle or
    --max-error.
    """
    from normalmesh.cli.batch import run
    from normalmesh.cli.dry_run import estimate_all
    from normalmesh.cli.job import jobs_of
    from normalmesh.cli.output_files import reject_clashes
    from normalmesh.cli.settings import Settings

    reject_several(verbose=verbose, quiet=quiet)
    companions = {name: options.pop(name) for name in COMPANIONS}
    jobs = jobs_of(normals, outputs, companions, Settings(**options))
    if len(jobs) > 1 and jobs[0].settings.work is not None:
        raise click.UsageError("--work is for one input only; without it, each has its own next to its output")
    for job in jobs:
        job.check()
    reject_clashes(jobs)
    process = estimate_all if dry_run else run
    context.exit(process(jobs, Console(quiet, verbose), as_json))
