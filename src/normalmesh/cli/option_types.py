"""Values of options: numbers, sizes, lengths and shares, parsed from what is typed."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from normalmesh.errors import NormalMeshError

if TYPE_CHECKING:
    from normalmesh.mesh.lengths import Length
    from normalmesh.output.glb import Scale


class Positive(click.FloatRange):
    """A finite number above zero."""

    name = "number"

    def __init__(self) -> None:
        super().__init__(0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


POSITIVE = Positive()
FILE = click.Path(path_type=Path)


def number_or_percentage(value: str) -> float:
    """Parse a number such as 0.5, or a percentage such as 50%; NaN for anything else."""
    text = value.strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        return math.nan
    return number / 100 if text.endswith("%") else number


def byte_size(value: str) -> float:
    """Parse a number of bytes, such as 12GB or 500 MB; ``none`` is infinite."""
    text = value.strip().lower()
    if text in ("none", "inf"):
        return math.inf
    parts = re.fullmatch(r"(\d+\.?\d*)\s*([kmgt]?)b?", text)
    if parts is None or float(parts[1]) == 0:
        raise click.BadParameter(f"{value!r} is neither a size such as 12GB or 500MB nor none")
    return float(parts[1]) * 1000.0 ** " kmgt".index(parts[2] or " ")


def compression(value: str) -> float:
    """Parse the fraction of vertices to remove: 98, 98% or 0.98."""
    number = number_or_percentage(value)
    fraction = number / 100 if number >= 1 and "%" not in value else number
    if not 0 < fraction < 1:
        raise click.BadParameter(f"{value!r} is not in the range between 0 and 100 percent, such as 98 or 0.98")
    return fraction


def levels(value: str) -> tuple[float | int, ...]:
    """Parse levels of detail, such as 1%,0.3%,500: fractions of the pixels as floats, numbers of vertices as ints."""
    return tuple(_level(word.strip()) for word in value.split(","))


def _level(word: str) -> float | int:
    if re.fullmatch(r"\d{1,10}", word) and int(word) >= 3:
        return int(word)
    percent = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*%", word)
    if percent is None or not 0 < float(percent[1]) <= 100:
        raise click.BadParameter(f"{word!r} is neither a percentage such as 0.3% nor a number of at least 3 vertices")
    return float(percent[1]) / 100


def image_size(value: str) -> tuple[int, int]:
    """Parse an image size in pixels, ``512`` (square) or ``640x480`` (columns × rows), to (rows, columns)."""
    parts = re.fullmatch(r"(\d+)(?:\s*[x×]\s*(\d+))?", value.strip().lower())
    if parts is None or int(parts[1]) == 0 or int(parts[2] or 1) == 0:
        raise click.BadParameter(f"{value!r} is not a size such as 512 or 640x480 (columns x rows)")
    return int(parts[2] or parts[1]), int(parts[1])


def factor_or_size(value: str) -> float | tuple[int, int]:
    """Parse a new size: a factor such as 0.5 or 50%, or columns × rows such as 640x480, returned as (rows, columns)."""
    text = value.strip().lower()
    if "x" in text or "×" in text:
        return image_size(text)
    factor = number_or_percentage(text)
    if not 0 < factor < 1e6:
        raise click.BadParameter(f"{value!r} is neither a factor such as 0.5 or 50% nor a size such as 640x480")
    return factor


def rectangle(value: str) -> tuple[int, int, int, int] | None:
    """Parse a rectangle COLUMNSxROWS+LEFT+TOP, returned as (top, left, height, width); ``mask`` is None."""
    if value.strip().lower() == "mask":
        return None
    parts = re.fullmatch(r"(\d+)[x×](\d+)\+(\d+)\+(\d+)", value.strip().lower())
    if parts is None:
        raise click.BadParameter(f"{value!r} is neither mask nor a rectangle such as 640x480+20+10")
    width, height, left, top = map(int, parts.groups())
    return top, left, height, width


def length(value: str) -> Length:
    """Parse a length, such as 3mm, 0.2cm, 12px or 5, in the unit of the surface."""
    from normalmesh.mesh.lengths import Length

    try:
        return Length.parse(value, "the length")
    except NormalMeshError as error:
        raise click.BadParameter(str(error)) from error


def glb_scale(value: str) -> Scale:
    """Parse ``auto``, ``none`` or a positive number."""
    if value == "auto":
        return "auto"
    try:
        return "none" if value == "none" else POSITIVE.convert(value, None, None)
    except click.BadParameter:
        raise click.BadParameter(f"{value!r} is neither auto, none nor a positive number") from None


def relief_strength(value: str) -> float:
    """Parse a factor of the relief, such as 0.5, 50% or -1."""
    from normalmesh.mesh.relief import checked_strength

    try:
        return checked_strength(number_or_percentage(value))
    except NormalMeshError:
        raise click.BadParameter(f"{value!r} is not a factor of the relief, such as 0.5 or 2") from None
