"""``normalmesh view``: show what ``reconstruct`` reads and writes in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from normalmesh.cli.console import Console
from normalmesh.cli.map_reading import MapReading
from normalmesh.cli.option_tables import flag, max_pixels_option, option, reading_options
from normalmesh.cli.option_types import FILE, POSITIVE


@click.command(short_help="Show a surface in the browser.")
@click.argument("file", type=FILE)
@reading_options
@option("--port", "Port to serve on; default: a free port.", click.IntRange(0, 65535), default=0)
@max_pixels_option
@option("--pixel-size", "Size of a pixel of heights that have none, in their unit.", POSITIVE)
@flag("--no-browser", "Print the address, but do not open a browser.")
def view(file: Path, port: int, no_browser: bool, **options: Any) -> None:
    """Show FILE in the browser: what reconstruct writes, or a normal map, which is reconstructed first.

    FILE is a mesh (PLY, OBJ, GLB, STL, 3MF, …), heights (TIFF, EXR, NPY, PNG), a folder of 3D Tiles, a report
    (HTML), or a normal map. The page is served on this machine only, until Ctrl-C. --mask, --alpha and --convention
    apply to normal maps, --camera, --focal-px and --fov to them and to heights.
    """
    import webbrowser

    from normalmesh.cli.pages import page_of
    from normalmesh.report.page_server import PageServer

    reading, console = MapReading(**options), Console()
    # Open the port first, so that a port in use is reported before the reconstruction.
    with console.running(), PageServer(port) as server:
        server.page = page_of(file, reading, console)
        click.echo(server.address)
        console.notice("press Ctrl-C to stop")
        if not no_browser and not webbrowser.open(server.address):
            console.notice("no browser could be opened: open the address manually")
        server.serve_forever()
