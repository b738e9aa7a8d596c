"""Options that several commands share."""

from __future__ import annotations

import math
import re
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


class ByteSize(click.ParamType):
    """A number of bytes as people write it: 12GB, 500 MB; ``none`` for any number."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip().lower()
        if text in ("none", "inf"):
            return math.inf
        parts = re.fullmatch(r"(\d+\.?\d*)\s*([kmgt]?)b?", text)
        if parts is None:
            self.fail(f"{value!r} is not a size such as 12GB or 500MB, nor none", param, ctx)
        return float(parts[1]) * 1000 ** " kmgt".index(parts[2] or " ")
