"""Numbers that options take."""

from __future__ import annotations

import math
from typing import Any

import click


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


def number_or_percentage(value: str) -> float:
    """Parse a number such as 0.5, or a percentage such as 50%; NaN for anything else."""
    text = value.strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        return math.nan
    return number / 100 if text.endswith("%") else number
