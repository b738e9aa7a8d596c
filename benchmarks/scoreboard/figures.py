"""A figure of the scoreboard: its value, which direction is better, and how far it moves by itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Better(Enum):
    """Which values of a figure are better."""

    LOWER = "lower"
    HIGHER = "higher"
    NEAR_ONE = "near 1"
    #: For information only: seconds of a machine that others use too.
    NEITHER = "–"


@dataclass(frozen=True)
class Figure:
    """One line of the scoreboard.

    Attributes
    ----------
    name
        What identifies it in the table and in the kept runs.
    value, unit
        What was measured.
    better
        Which direction is better.
    noise
        Relative change that means nothing.
    note
        A few words for the last column, such as the worst case.
    """

    name: str
    value: float
    unit: str
    better: Better = Better.LOWER
    noise: float = 0.01
    note: str = ""

    def kept(self) -> dict[str, Any]:
        """Return what a kept run holds of the figure."""
        note = {"note": self.note} if self.note else {}
        return {"value": float(f"{self.value:.4g}"), "noise": float(f"{self.noise:.2g}"), **note}


@dataclass(frozen=True)
class Skipped:
    """What a group could not measure, and why."""

    reason: str


def verdict(figure: Figure, kept: dict[str, Any]) -> str:
    """Compare a figure with a kept one: ``better``, ``worse`` or ``same``; empty where no direction is better.

    Changes up to the larger noise of the two are the same.
    """
    if figure.better is Better.NEITHER:
        return ""
    now, before = _loss(figure.value, figure.better), _loss(kept["value"], figure.better)
    if abs(now - before) <= max(figure.noise, kept["noise"]) * min(now, before):
        return "same"
    return "better" if now < before else "worse"


def _loss(value: float, better: Better) -> float:
    """Return a measure that is lower where the figure is better, and changes by the same ratio."""
    if better is Better.LOWER:
        return value
    inverse = 1 / value if value > 0 else math.inf
    return inverse if better is Better.HIGHER else max(value, inverse)
