"""``normalmesh reconstruct``: from a normal map to a mesh file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from normalmesh.cli.console import Console, compilation_announced, duration_text, ended_cleanly
from normalmesh.cli.options import ByteSize, reading

if TYPE_CHECKING:
    from normalmesh.surface import Surface

DEFAULT_COMPRESSION = 0.98


@click.command()
@click.argument("normals", type=click.Path(path_type=Path))
@click.option("--output", "-o", type=click.Path(path_type=Path), help="PLY, OBJ, GLB or STL; default: NORMALS as GLB.")
@reading
@click.option(
    "--compression",
    type=click.FloatRange(0, 1, True, True),
    help=f"Share of vertices to save.  [default: {DEFAULT_COMPRESSION}]",
)
@click.option("--vertices", type=click.IntRange(3), help="Number of vertices, instead of --compression.")
@click.option(
    "--threshold", type=click.FloatRange(0, min_open=True), help="Largest cost in px⁴, instead of --compression."
)
@click.option("--continuous", is_flag=True, help="Never cut the surface, even where depth seems to jump.")
@click.option("--jumps", type=click.Path(path_type=Path), help="Write a PNG of the edges along which it is cut.")
@click.option("--threads", type=click.IntRange(1), help="Threads to use; default: all, or NUMBA_NUM_THREADS.")
@click.option("--memory-limit", type=ByteSize(), help="Such as 12GB, or none; default: what is available.")
@click.option("--dry-run", is_flag=True, help="Say what it would take, and stop.")
@click.option("--quiet", "-q", is_flag=True, help="Nothing but warnings and errors.")
def reconstruct(
    normals: Path,
    output: Path | None,
    mask: str | None,
    camera: str | None,
    convention: str,
    compression: float | None,
    vertices: int | None,
    threshold: float | None,
    continuous: bool,
    jumps: Path | None,
    threads: int | None,
    memory_limit: float | None,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Reconstruct the surface of the normal map NORMALS, and say what came out."""
    rule = _stopping_rule(vertices=vertices, threshold=threshold, compression=compression)
    output = output or normals.with_suffix(".glb")
    console = Console(quiet)
    written: list[Path] = []
    with ended_cleanly(console, written):
        _check_targets(output, jumps)
        if dry_run:
            _plan(normals, mask, rule)
            return
        import normalmesh as nm

        with compilation_announced(console):
            normal_map = nm.read_normal_map(normals, mask=mask, camera=camera, convention=convention)
            console.notice(_needs(normal_map.mask.size, normal_map.foreground, rule))
            surface = nm.reconstruct(
                normal_map,
                **rule,
                discontinuities=not continuous,
                threads=threads,
                memory_limit=memory_limit,
                progress=console.progress,
            )
            surface.save(output, normals=normal_map if output.suffix.lower() == ".glb" else None)
            written.append(output)
            if jumps is not None:
                _write_jumps(surface, jumps)
    if not quiet:
        click.echo(f"vertices     {len(surface.vertices)} for {normal_map.foreground} pixels")
        if surface.discontinuities is not None:
            click.echo(f"jumps        {surface.discontinuities}")
        click.echo(f"wrote        {output}")


def _stopping_rule(**rules: Any) -> dict[str, Any]:
    """The one rule that was given, or the default."""
    given = {name: value for name, value in rules.items() if value is not None}
    if len(given) > 1:
        raise click.UsageError(f"give only one of {', '.join(f'--{name}' for name in given)}")
    return given or {"compression": DEFAULT_COMPRESSION}


def _check_targets(*targets: Path | None) -> None:
    from normalmesh.files.atomic import check_target

    for target in targets:
        if target is not None:
            check_target(target)


def _plan(normals: Path, mask: str | None, rule: dict[str, Any]) -> None:
    """Print what a reconstruction would take."""
    from normalmesh.files.normal_maps import read_foreground
    from normalmesh.memory import available_memory, bytes_text
    from normalmesh.stopping import expected_vertices

    foreground = read_foreground(normals, mask)
    count, pixels = int(foreground.sum()), foreground.size
    rows, columns = foreground.shape
    available = available_memory()
    about = "about " if "threshold" in rule else ""
    click.echo(f"size         {columns} × {rows} pixels, {100 * count / pixels:.1f} % foreground ({count})")
    click.echo(f"vertices     {about}{expected_vertices(count, **rule)}")
    click.echo(_needs(pixels, count, rule))
    click.echo(f"available    {'unknown' if available is None else bytes_text(available)}")


def _needs(pixels: int, foreground: int, rule: dict[str, Any]) -> str:
    """What a reconstruction takes, by estimate, in a line."""
    from normalmesh.memory import bytes_text, estimate_memory
    from normalmesh.progress import estimate_seconds
    from normalmesh.stopping import expected_vertices

    aimed_at = expected_vertices(foreground, **rule)
    memory = bytes_text(estimate_memory(pixels, foreground, aimed_at))
    seconds = duration_text(sum(estimate_seconds(foreground, aimed_at)))
    return f"needs        about {memory} of memory and, on one core, {seconds}"


def _write_jumps(surface: Surface, path: Path) -> None:
    import imagecodecs

    from normalmesh.files.atomic import write_atomically
    from normalmesh.pictures import panels

    write_atomically({path: bytes(imagecodecs.png_encode(panels.jumps(surface)))})
