"""``normalmesh view``: show a mesh, a normal map or a report in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from normalmesh.cli.console import Console, compilation_announced, progress_line_removed
from normalmesh.cli.settings import DEFAULT_COMPRESSION
from normalmesh.cli.shared_options import max_pixels_option, reading_options

if TYPE_CHECKING:
    from normalmesh.report.page_server import PageServer

PAGES = (".html", ".htm")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@reading_options
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to serve on; default: a free port.")
@max_pixels_option
@click.option("--no-browser", is_flag=True, help="Print the address, but do not open a browser.")
def view(file: Path, port: int, no_browser: bool, **reading: Any) -> None:
    """Show FILE in the browser: a mesh, a normal map, which is reconstructed first, or a report.

    Meshes are PLY, OBJ, GLB, STL, glTF and OFF files.
    The page is served on this machine only, until Ctrl-C. --mask, --alpha, --camera and --convention apply
    to normal maps.
    """
    from normalmesh.report.page_server import PageServer

    console = Console()
    # Open the port first, so that a port in use is reported before the reconstruction.
    with progress_line_removed(console), PageServer(port) as server:
        server.page = _page(file, reading, console)
        _serve(server, console, no_browser)


def _page(file: Path, reading: dict[str, Any], console: Console) -> bytes:
    from normalmesh.files.formats import file_format
    from normalmesh.files.mesh_formats import MESH_SUFFIXES

    file_format(file)  # raises if the file is missing or empty
    if file.suffix.lower() in PAGES:
        return file.read_bytes()
    if file.suffix.lower() in MESH_SUFFIXES:
        from normalmesh.evaluation.rendering.triangle_model import TriangleModel
        from normalmesh.report.page import mesh_page

        return mesh_page(TriangleModel.of(file), file)
    return _reconstructed(file, reading, console)


def _reconstructed(file: Path, reading: dict[str, Any], console: Console) -> bytes:
    import warnings

    import normalmesh as nm
    from normalmesh.report.page import surface_page

    with compilation_announced(console), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", nm.NormalMeshWarning)
        normal_map = nm.read_normal_map(file, **reading)
        surface = nm.reconstruct(normal_map, compression=DEFAULT_COMPRESSION, progress=console.progress)
    for each in caught:
        warnings.showwarning(each.message, each.category, each.filename, each.lineno)
    messages = [each.message for each in caught if issubclass(each.category, nm.NormalMeshWarning)]
    settings = {"compression": DEFAULT_COMPRESSION, **reading}
    given = {name: value for name, value in settings.items() if value is not None}
    return surface_page(surface, normal_map, source=file, settings=given, warnings=messages)


def _serve(server: PageServer, console: Console, no_browser: bool) -> None:
    """Serve until Ctrl-C."""
    import webbrowser

    click.echo(server.address)
    console.notice("press Ctrl-C to stop")
    if not no_browser and not webbrowser.open(server.address):
        console.notice("no browser could be opened: open the address manually")
    server.serve_forever()
