"""Options that several commands share, and the types of their values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import click

from normalmesh.cli.camera_options import camera_options
from normalmesh.cli.number_types import Positive, number_or_percentage


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--mask``, ``--alpha``, the options of the camera and ``--convention``, with which a normal map is read."""
    for option in (
        click.option(
            "--convention",
            default="opengl",
            show_default=True,
            help="Axes of the channels: opengl, directx, opencv, auto or e.g. +x-y+z.",
        ),
        camera_options,
        alpha_option,
        click.option("--mask", type=click.Path(), help="Mask image of the foreground; default: see --alpha."),
    ):
        command = option(command)
    return command


def alpha_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--alpha``, which says what an alpha channel is."""
    return click.option(
        "--alpha",
        type=click.Choice(["auto", "mask", "ignore"]),
        default="auto",
        show_default=True,
        help="Whether an alpha channel is the mask: if it looks like one, always, or never.",
    )(command)


def max_pixels_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--max-pixels``: larger images are rejected before they are decoded."""
    return click.option(
        "--max-pixels",
        type=Positive(),
        expose_value=False,
        callback=_limit,
        help="Reject larger images, such as 5e8; default: NORMALMESH_MAX_PIXELS, or 2e9.",
    )(command)


def _limit(context: click.Context, option: click.Parameter, value: float | None) -> None:
    if value is not None:
        from normalmesh.files.size_limits import limited_pixels

        context.with_resource(limited_pixels(value))


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


def stopping_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose the resolution of the mesh, of which at most one may be given."""
    positive = Positive()
    for option in (
        click.option(
            "--lod",
            type=levels,
            metavar="LEVELS",
            help="Levels of detail, such as 1%,0.3%,0.1%, written to OUT.lod0.glb, OUT.lod1.glb, …",
        ),
        click.option(
            "--max-error",
            type=positive,
            help="Largest RMS deviation in height from a much finer mesh, in px, or mm with --pixel-size.",
        ),
        click.option("--max-angle", type=positive, help="Largest mean angle between faces and normals, in degrees."),
        click.option("--threshold", type=positive, help="Largest cost of a collapse in px⁴, as in the paper."),
        click.option("--vertices", type=click.IntRange(3), help="Number of vertices."),
        click.option(
            "--compression", type=compression, metavar="PERCENT", help="Vertices to remove: 98 or 0.98.  [default: 98]"
        ),
    ):
        command = option(command)
    return command
