"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def reading(command: Callable[..., Any]) -> Callable[..., Any]:
    """How a normal map is read: ``mask``, ``camera`` and ``convention``."""
    for option in (
        click.option(
            "--convention", default="opengl", show_default=True, help="opengl, directx, opencv, auto or e.g. +x-y+z."
        ),
        click.option("--camera", type=click.Path(), help="File with the 3×3 matrix of a perspective camera."),
        click.option("--mask", type=click.Path(), help="Image of the foreground; default: the alpha channel."),
    ):
        command = option(command)
    return command
