"""``normalmesh inspect``: what is in a normal map."""

from __future__ import annotations

import click


@click.command()
@click.argument("normals", type=click.Path())
@click.option("--mask", type=click.Path(), help="Image of the foreground; default: the alpha channel.")
@click.option("--camera", type=click.Path(), help="File with the 3×3 matrix of a perspective camera.")
@click.option("--convention", default="opengl", show_default=True, help="opengl, directx, opencv, auto or e.g. +x-y+z.")
def inspect(normals: str, mask: str | None, camera: str | None, convention: str) -> None:
    """Say what is in the file NORMALS: size, mask, repairs, and which convention the data fits."""
    from normalmesh import ScreenMesh, diagnose, read_normal_map

    normal_map = read_normal_map(normals, mask=mask, camera=camera, convention=convention)
    rows, columns = normal_map.shape
    share = 100 * normal_map.foreground / (rows * columns)
    repairs = normal_map.repairs
    click.echo(f"size         {columns} × {rows} pixels, {share:.1f} % foreground ({normal_map.foreground})")
    click.echo(f"camera       {normal_map.camera}")
    click.echo(
        f"normals      {repairs.invalid} invalid, {repairs.rescaled} rescaled, {repairs.back_facing} back-facing, "
        f"{repairs.grazing} grazing"
    )
    click.echo(f"start mesh   {ScreenMesh.from_mask(normal_map.mask).check()}")
    click.echo(f"convention   as read with {convention!r}:")
    for line in str(diagnose(normal_map)).splitlines():
        click.echo(f"             {line}")
