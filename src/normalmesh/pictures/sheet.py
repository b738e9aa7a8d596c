"""Sheet: a canvas for pictures, captions and colour scales."""

from __future__ import annotations

from functools import cache
from math import ceil, floor, log10

import numpy as np
from PIL import Image as Canvas
from PIL import ImageDraw, ImageFont

from normalmesh.array_types import Float, UInt8
from normalmesh.pictures.panels import coloured

Colour = tuple[int, int, int]

PAPER: Colour = (255, 255, 255)
INK: Colour = (25, 28, 35)
PALE_INK: Colour = (105, 110, 120)


class Sheet:
    """A white sheet of ``width`` × ``height`` pixels."""

    def __init__(self, width: int, height: int) -> None:
        self._canvas = Canvas.new("RGB", (width, height), PAPER)
        self._draw = ImageDraw.Draw(self._canvas)

    @property
    def image(self) -> UInt8:
        """The sheet as an image (H, W, 3)."""
        return np.array(self._canvas)

    def put(self, image: UInt8, left: int, top: int) -> None:
        """Draw a picture."""
        self._canvas.paste(Canvas.fromarray(image), (left, top))

    def write(self, text: str, left: float, top: float, size: int, colour: Colour = INK, anchor: str = "la") -> None:
        """Write a line of text; the anchor is one of Pillow's."""
        self._draw.text((left, top), text, fill=colour, font=_font(size), anchor=anchor)

    def width(self, text: str, size: int) -> float:
        """Return the width of a line of text in pixels."""
        return self._draw.textlength(text, font=_font(size))

    def rule(self, start: tuple[float, float], end: tuple[float, float], colour: Colour, width: int = 1) -> None:
        """Draw a line."""
        self._draw.line([*start, *end], fill=colour, width=width)

    def outline(self, corners: Float) -> None:
        """Draw a polygon (K, 2) that is visible on any colour."""
        points = [tuple(point) for point in [*corners, *corners[:2]]]
        self._draw.line(points, fill=PAPER, width=7, joint="curve")
        self._draw.line(points, fill=INK, width=3, joint="curve")

    def scale(self, colours: Float, ticks: dict[float, str], label: str, left: int, top: int, width: int) -> None:
        """Draw a colour bar with labelled ticks, whose keys are between 0 and 1, and a label."""
        bar = coloured(np.linspace(0, 1, width)[None].repeat(14, axis=0), colours)
        self.put(bar, left, top)
        for place, text in ticks.items():
            at = left + place * (width - 1)
            self.rule((at, top + 14), (at, top + 19), INK)
            self.write(text, at, top + 21, 16, anchor="ma")
        self.write(label, left + width + 22, top + 7, 16, PALE_INK, "lm")


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size=size)


def round_up(value: float) -> float:
    """Round up to the next of … 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15 …"""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= value * (1 - 1e-9))


def linear_ticks(end: float) -> dict[float, str]:
    """Return positions between 0 and 1 and labels of round numbers from 0 to a round ``end``."""
    power = 10.0 ** floor(log10(end))
    step = next(each * power for each in (0.1, 0.2, 0.25, 0.5, 1, 2, 5) if end / (each * power) <= 5 + 1e-9)
    return {k * step / end: f"{k * step:.4g}" for k in range(floor(end / step + 1e-9) + 1)}


def logarithmic_ticks(low: float, high: float) -> dict[float, str]:
    """Return positions between 0 and 1 and labels of round numbers on a logarithmic scale from ``low`` to ``high``."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    ratio = high / low
    steps = (1, 1.5, 2, 3, 5, 7) if ratio < 10 else (1, 2, 5) if ratio < 300 else (1,)
    values = [step * 10.0**power for power in powers for step in steps]
    return {np.log(each / low) / np.log(ratio): f"{each:.4g}" for each in values if low <= each <= high}
