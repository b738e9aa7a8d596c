"""``normalmesh report``: write an HTML report of a surface that has been reconstructed before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from normalmesh.cli.console import Console
from normalmesh.cli.map_reading import MapReading
from normalmesh.cli.option_tables import max_pixels_option, option, reading_options, require
from normalmesh.cli.option_types import FILE, POSITIVE
from normalmesh.cli.printing import print_field
from normalmesh.errors import path_text


@click.command(short_help="Write an HTML report of a surface.")
@click.argument("file", type=FILE)
@option("--output -o", "HTML file to write; default: FILE.html.", FILE)
@option("--normals", "Normal map that FILE was reconstructed from.", FILE)
@reading_options
@option("--pixel-size", "Size of a pixel, in the unit of FILE, if it is not 1.", POSITIVE)
@option("--texture", "Photo to show on the surface; requires --normals.", FILE)
@max_pixels_option
def report(file: Path, output: Path | None, normals: Path | None, texture: Path | None, **options: Any) -> None:
    """Write an HTML report of FILE, which any browser opens offline: what reconstruct writes, or a normal map.

    FILE is a mesh (PLY, OBJ, GLB, STL, 3MF, …), heights (TIFF, EXR, NPY, PNG), a folder of 3D Tiles, or a normal
    map, which is reconstructed first. With --normals, the angles to the normal map are shown, too; --mask, --alpha,
    --camera, --focal-px, --fov and --convention are those of the normal map.
    """
    from normalmesh.cli.pages import PAGES, compared_page, page_of
    from normalmesh.files.atomic import check_targets, write_atomically

    if file.suffix.lower() in PAGES:
        raise click.UsageError(f"{path_text(file)} is a report already: normalmesh view shows it")
    require("--texture", texture is not None, "--normals", normals)
    reading = MapReading(**options)
    output = output or _beside(file)
    check_targets([output], [file, normals, texture, reading.mask, reading.camera])
    if output.suffix.lower() not in PAGES:
        raise click.UsageError(f"cannot write a report to {path_text(output)}: the suffix must be {' or '.join(PAGES)}")
    console = Console()
    with console.running():
        if normals is None:
            page = page_of(file, reading, console)
        else:
            page = compared_page(file, reading.or_stored(file).normal_map(normals), texture, console)
    write_atomically({output: page})
    print_field("wrote", path_text(output))


def _beside(file: Path) -> Path:
    """Return the report beside a file or a folder of 3D Tiles."""
    from normalmesh.output.tileset import TILESET

    place = file.parent if file.name == TILESET else file
    return place.with_suffix(".html") if place.name not in ("", "..") else Path("report.html")
