"""``normalmesh reconstruct``: from normal maps to mesh files."""

from __future__ import annotations

from typing import Any

import click

from normalmesh.cli.batch import run
from normalmesh.cli.console import Console
from normalmesh.cli.inputs import tasks_of
from normalmesh.cli.option_types import ByteSize, Positive, limiting, reading, stopping
from normalmesh.cli.plan import plan
from normalmesh.cli.settings import Settings

POSITIVE = Positive()


@click.command()
@click.argument("normals", nargs=-1, required=True, metavar="NORMALS...")
@click.option(
    "--output",
    "-o",
    type=click.Path(),
    help="PLY, OBJ, GLB or STL; a folder for several inputs; default: NORMALS as GLB.",
)
@reading
@stopping
@click.option("--focal-px", type=POSITIVE, help="Focal length in pixels of a perspective camera, instead of --camera.")
@click.option("--pixel-size", type=POSITIVE, metavar="MM", help="Side of a pixel, seen orthographically.")
@click.option("--distance", type=POSITIVE, metavar="MM", help="Mean distance from a perspective camera.")
@click.option("--prior", type=click.Path(), help="CSV file of control points: u,v,depth[,weight] in each line.")
@click.option("--texture", type=click.Path(), help="Photo for the colours of GLB and OBJ.")
@click.option("--continuous", is_flag=True, help="Never cut the surface, even where depth seems to jump.")
@click.option("--jumps", type=click.Path(), help="Write a PNG of the edges along which it is cut.")
@click.option("--preview", is_flag=True, help="Write a picture, OUT.preview.png.")
@click.option("--report", is_flag=True, help="Write a page about the result, OUT.html.")
@click.option("--threads", type=click.IntRange(1), help="Threads to use; default: all, or NUMBA_NUM_THREADS.")
@click.option("--memory-limit", type=ByteSize(), help="Such as 12GB, or none; default: what is available.")
@limiting
@click.option("--dry-run", is_flag=True, help="Say what it would take, and stop.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON for each input on standard output.")
@click.option("--verbose", "-v", is_flag=True, help="Settings, and seconds by stage, too.")
@click.option("--quiet", "-q", is_flag=True, help="Nothing but warnings and errors.")
@click.pass_context
def reconstruct(
    context: click.Context,
    normals: tuple[str, ...],
    output: str | None,
    mask: str | None,
    prior: str | None,
    texture: str | None,
    jumps: str | None,
    dry_run: bool,
    as_json: bool,
    verbose: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Reconstruct the surfaces of normal maps, and say what came out.

    NORMALS are files, or patterns such as 'coins/*.png'. With several, {stem} in --mask, --texture, --prior and --jumps
    stands for the name of each: --mask 'masks/{stem}.png'. One that fails does not stop the others.

    How fine a mesh is, one of these says: --compression, --vertices, --threshold, --max-angle, --max-error or --lod.
    """
    if verbose and quiet:
        raise click.UsageError("give only one of --verbose, --quiet")
    settings = Settings(**options)
    tasks = tasks_of(normals, output, {"mask": mask, "texture": texture, "prior": prior, "jumps": jumps})
    console = Console(quiet, verbose)
    work = plan if dry_run else run
    context.exit(1 if work(tasks, settings, console, as_json) else 0)
