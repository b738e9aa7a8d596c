"""``normalmesh demo``: the project's own medallion, from normal map to surface, with pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@click.command()
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), default=Path("demo"), show_default=True)
@click.option("--size", type=click.IntRange(16, 8192), default=512, show_default=True, help="Pixels on a side.")
def demo(output: Path, size: int) -> None:
    """Make a normal map, read it back, build its start mesh and write the surface with pictures."""
    import imagecodecs
    import numpy as np

    from normalmesh import ScreenMesh, Surface, diagnose, read_normal_map
    from normalmesh.evaluation.medallion import Medallion
    from normalmesh.files.atomic import write_atomically

    truth = Medallion(size)
    output.mkdir(parents=True, exist_ok=True)
    encoded = np.round((truth.normal_map.normals.astype(np.float64) + 1) / 2 * 65535).astype(np.uint16)
    alpha = np.where(truth.normal_map.mask, 65535, 0).astype(np.uint16)
    write_atomically({output / "normals.png": bytes(imagecodecs.png_encode(np.dstack([encoded, alpha])))})

    normal_map = read_normal_map(output / "normals.png")
    click.echo(f"{normal_map}\n{diagnose(normal_map)}")
    mesh = ScreenMesh.from_mask(normal_map.mask)
    click.echo(f"{mesh}: {mesh.check()}")
    heights, *_ = truth.relief(mesh.vertices)
    surface = Surface.from_unknown(mesh, heights, normal_map.camera, normal_map.shape)
    for name in ("medallion.ply", "medallion.glb"):
        surface.save(output / name)
    picture = _picture(normal_map.normals, surface.normal_map())
    write_atomically({output / "medallion.png": bytes(imagecodecs.png_encode(picture))})
    click.echo(f"wrote {output}/normals.png, medallion.ply, medallion.glb and the picture medallion.png")


def _picture(normals: NDArray[np.float32], of_surface: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The normal map in colours beside the surface, lit from the upper left."""
    import numpy as np

    colours = (normals + 1) / 2
    light = np.array([-0.5, 0.5, 0.7]) / np.linalg.norm([-0.5, 0.5, 0.7])
    shading = np.clip(of_surface @ light, 0, 1)[..., None].repeat(3, axis=-1)
    return np.round(255 * np.hstack([colours, shading])).astype(np.uint8)
