"""``normalmesh reconstruct --tile``: options for maps that repeat, such as the normal map of a tileable material."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def repeat_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say in which directions a map repeats."""
    for option in (
        click.option("--tile-y", "tile", flag_value="y", help="As --tile, but upwards and downwards only."),
        click.option("--tile-x", "tile", flag_value="x", help="As --tile, but to the right and the left only."),
        click.option(
            "--tile",
            "--tileable",
            "tile",
            flag_value="xy",
            help="The map is a texture that repeats: so does the surface, without a seam. (--tiles is for large maps.)",
        ),
    ):
        command = option(command)
    return command
