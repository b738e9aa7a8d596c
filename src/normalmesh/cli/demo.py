"""``normalmesh demo``: reconstruct a synthetic medallion from its normal map, and draw it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from normalmesh.cli import option_types as types
from normalmesh.cli.console import Console
from normalmesh.cli.option_tables import option
from normalmesh.cli.printing import print_field, print_text
from normalmesh.errors import NormalMeshError, count_text, path_text

if TYPE_CHECKING:
    from normalmesh.array_types import UInt8
    from normalmesh.evaluation.synthetic.medallion import Medallion
    from normalmesh.mesh.surface import Surface


@click.command(short_help="Make a normal map, and reconstruct it.")
@option(
    "--output -o",
    "Folder for the files.",
    click.Path(file_okay=False, path_type=Path),
    default=Path("demo"),
    show_default=True,
)
@option("--size", "Side of the image, in pixels.", click.IntRange(16, 8192), default=512, show_default=True)
@option("--compression PERCENT", "Vertices to remove: 98 or 0.98.", types.compression, default="98", show_default=True)
def demo(output: Path, size: int, compression: float) -> None:
    """Make a normal map with exact ground truth, reconstruct its surface, and write files and pictures."""
    import numpy as np

    from normalmesh import read_normal_map, reconstruct
    from normalmesh.evaluation.synthetic.medallion import Medallion
    from normalmesh.files.atomic import write_atomically
    from normalmesh.files.encoding import encode_normals
    from normalmesh.pictures.panels import normal_colours, shaded, wireframe, write_picture

    truth = Medallion(size)
    output.mkdir(parents=True, exist_ok=True)
    path = output / "normals.png"
    content = encode_normals(path, truth.normal_map.normals, truth.normal_map.mask)
    # The usual name of a map is not to be taken for the one that a demo has written before.
    if path.exists() and not (output / "medallion.ply").exists() and path.read_bytes() != content:
        raise NormalMeshError(f"{path_text(path)} is a file of yours: choose another folder with --output")
    write_atomically({path: content})

    console = Console()
    with console.running():
        normal_map = read_normal_map(path)
        surface = reconstruct(normal_map, compression=compression, progress=console.progress)
        surface.save(output / "medallion.ply")
        surface.save(output / "medallion.glb", normals=normal_map)
        error = _report(surface, truth)
        with console.working("drawing"):
            pictures = {
                "input": normal_colours(normal_map.normals),
                "wireframe": wireframe(surface),
                "shaded": shaded(surface.normal_map()),
                "error": error,
            }
            panels = list(pictures.values())
            pictures["overview"] = np.vstack([np.hstack(panels[:2]), np.hstack(panels[2:])])
            for name, image in pictures.items():
                write_picture(output / f"{name}.png", image)
    first, then = path_text(output / "overview.png"), path_text(output / "medallion.glb")
    print_text(f"wrote medallion.ply, medallion.glb, overview.png and its four pictures to {path_text(output)}")
    print_text(f"open {first} first, then {then} in a glTF viewer")


def _report(surface: Surface, truth: Medallion) -> UInt8:
    """Print the figures of the run, and return a heat map of the height error up to one pixel."""
    import numpy as np

    from normalmesh import evaluate
    from normalmesh.pictures.panels import heat

    found = evaluate(surface, truth.normal_map, truth.height)
    seconds = {**surface.decimation.seconds, **surface.integration.seconds}  # type: ignore[union-attr]
    span = np.nanmax(truth.height) - np.nanmin(truth.height)
    print_field("vertices", f"{found.vertices} for {count_text(found.foreground, 'pixel')}")
    print_field("compression", f"{100 * found.compression:.2f} %")
    print_field("RMSE", f"{found.rmse:.4f} px of height (range {span:.0f} px)")
    print_field("MAE", f"{found.mae:.2f}° between face and pixel normals")
    print_field("seconds", ", ".join(f"{name} {value:.2f}" for name, value in seconds.items()))
    return heat(found.depth_error, 1.0)
