"""``normalmesh reconstruct --tile``: options for maps that repeat, such as the normal map of a tileable material."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

#: Directions of the options.
DIRECTIONS = {"tile_both": "xy", "tile_x": "x", "tile_y": "y"}


def repeat_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say in which directions a map repeats, as ``tile``: None, ``"x"``, ``"y"`` or ``"xy"``."""
    common: dict[str, Any] = {"is_flag": True, "expose_value": False, "callback": _add_direction}
    for option in (
        click.option("--tile-y", help="As --tile, but upwards and downwards only.", **common),
        click.option("--tile-x", help="As --tile, but to the right and the left only.", **common),
        click.option(
            "--tile",
            "--tileable",
            "tile_both",
            help="The map is a texture that repeats: so does the surface, without a seam. (--tiles is for large maps.)",
            **common,
        ),
    ):
        command = option(command)
    return command


def _add_direction(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    """Add the directions of an option to those of the others."""
    if given:
        found = (context.params.get("tile") or "") + DIRECTIONS[str(parameter.name)]
        context.params["tile"] = "".join(sorted(set(found)))
