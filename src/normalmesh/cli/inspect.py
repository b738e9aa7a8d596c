"""``normalmesh inspect``: what is in a normal map."""

from __future__ import annotations

import click

from normalmesh.cli.options import reading


@click.command()
@click.argument("normals", type=click.Path())
@reading
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
