"""``normalmesh reconstruct``: from a normal map to a mesh file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from normalmesh.cli.options import reading

if TYPE_CHECKING:
    from normalmesh.surface import Surface


@click.command()
@click.argument("normals", type=click.Path(path_type=Path))
@click.option("--output", "-o", type=click.Path(path_type=Path), help="PLY, OBJ, GLB or STL; default: NORMALS as GLB.")
@reading
@click.option("--compression", type=click.FloatRange(0, 1, True, True), default=0.98, show_default=True)
@click.option("--continuous", is_flag=True, help="Never cut the surface, even where depth seems to jump.")
@click.option("--jumps", type=click.Path(path_type=Path), help="Write a PNG of the edges along which it is cut.")
def reconstruct(
    normals: Path,
    output: Path | None,
    mask: str | None,
    camera: str | None,
    convention: str,
    compression: float,
    continuous: bool,
    jumps: Path | None,
) -> None:
    """Reconstruct the surface of the normal map NORMALS, and say what came out."""
    import normalmesh as nm
    from normalmesh.files.atomic import check_target

    output = output or normals.with_suffix(".glb")
    for target in (output, jumps):
        if target is not None:
            check_target(target)
    normal_map = nm.read_normal_map(normals, mask=mask, camera=camera, convention=convention)
    surface = nm.reconstruct(normal_map, compression=compression, discontinuities=not continuous)
    surface.save(output, normals=normal_map if output.suffix.lower() == ".glb" else None)
    if jumps is not None:
        _write_jumps(surface, jumps)
    click.echo(f"vertices     {len(surface.vertices)} for {normal_map.foreground} pixels")
    if surface.discontinuities is not None:
        click.echo(f"jumps        {surface.discontinuities}")
    click.echo(f"wrote        {output}")


def _write_jumps(surface: Surface, path: Path) -> None:
    import imagecodecs

    from normalmesh.files.atomic import write_atomically
    from normalmesh.pictures import panels

    write_atomically({path: bytes(imagecodecs.png_encode(panels.jumps(surface)))})
