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


class Positive(click.FloatRange):
    """A finite number above zero."""

    def __init__(self) -> None:
        super().__init__(0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


def limiting(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option ``--max-pixels``: larger images are refused before they are decoded."""
    return click.option(
        "--max-pixels",
        type=Positive(),
        expose_value=False,
        callback=_limit,
        help="Refuse images that claim more, such as 5e8; default: NORMALMESH_MAX_PIXELS, or 2e9.",
    )(command)


def _limit(context: click.Context, option: click.Parameter, value: float | None) -> None:
    if value is not None:
        from normalmesh.files.size_limits import pixels_limited

        context.with_resource(pixels_limited(value))


class ByteSize(click.ParamType):
    """A number of bytes as people write it: 12GB, 500 MB; ``none`` for any number."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip().lower()
        if text in ("none", "inf"):
            return math.inf
        parts = re.fullmatch(r"(\d+\.?\d*)\s*([kmgt]?)b?", text)
        if parts is None or float(parts[1]) == 0:
            self.fail(f"{value!r} is not a size such as 12GB or 500MB, nor none", param, ctx)
        return float(parts[1]) * 1000 ** " kmgt".index(parts[2] or " ")


class Compression(click.ParamType):
    """The share of vertices to save: 98, 98% or 0.98."""

    name = "PERCENT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        try:
            number = float(text.removesuffix("%"))
        except ValueError:
            number = math.nan
        share = number / 100 if number >= 1 or text.endswith("%") else number
        if not 0 < share < 1:
            self.fail(f"{value!r} is not in the range between 0 and 100 percent, such as 98 or 0.98", param, ctx)
        return share


class Levels(click.ParamType):
    """Levels of detail: shares of the pixels in percent, or numbers of vertices, such as 1%,0.3%,500."""

    name = "LEVELS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float | int, ...]:
        if isinstance(value, tuple):
            return value
        return tuple(self._level(word.strip(), param, ctx) for word in str(value).split(","))

    def _level(self, word: str, param: click.Parameter | None, ctx: click.Context | None) -> float | int:
        """A share as a float, or a number of vertices."""
        if re.fullmatch(r"\d{1,10}", word) and int(word) >= 3:
            return int(word)
        percent = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*%", word)
        if percent is None or not 0 < float(percent[1]) <= 100:
            self.fail(f"{word!r} is neither a share such as 0.3% nor a number of vertices from 3 on", param, ctx)
        return float(percent[1]) / 100


def stopping(command: Callable[..., Any]) -> Callable[..., Any]:
    """How fine the mesh is: ``compression``, ``vertices``, ``threshold``, ``max_angle``, ``max_error``, ``lod``."""
    positive = Positive()
    for option in (
        click.option("--lod", type=Levels(), help="A chain of meshes, as OUT.lod0.glb and so on: 1%,0.3%,0.1%."),
        click.option(
            "--max-error",
            type=positive,
            help="RMS deviation in height from a far finer mesh, in px, or mm with --pixel-size.",
        ),
        click.option("--max-angle", type=positive, help="Mean angle between faces and normals, in degrees."),
        click.option("--threshold", type=positive, help="Largest cost in px⁴, as in the paper."),
        click.option("--vertices", type=click.IntRange(3), help="Number of vertices."),
        click.option("--compression", type=Compression(), help="Vertices to save: 98 or 0.98.  [default: 98]"),
    ):
        command = option(command)
    return command
