"""Stopping rules: where a decimation ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np

from normalmesh.arguments import checked_choice, checked_int, checked_positive
from normalmesh.errors import NormalMeshError, repr_for_error

#: The stopping rules, of which at most one is given.
RULES = ("vertices", "threshold", "compression", "detail")

#: The detail if no rule is given, in Python as on the command line.
DEFAULT_DETAIL = "medium"

#: Vertices are numbered in 32 bits.
MAX_VERTICES = 2**31 - 1

#: Vertices that a threshold of 1 px⁴ leaves on typical maps, and the exponent with which they depend on the threshold:
#: per foreground pixel, and per pixel side of the outline.
SURFACE_SHARE, SURFACE_EXPONENT = 0.036, -0.43
OUTLINE_SHARE, OUTLINE_EXPONENT = 0.045, -0.33
#: Vertices for each foreground pixel, at most, that a detail leads to: there is a pixel for each face.
FINEST_DETAIL = 0.5


@dataclass(frozen=True)
class Detail:
    """How much of a map a surface keeps.

    A surface is looked at on a screen, whatever the size of the map: small maps keep nearly all that they have, large
    ones no more than can be seen.

    Attributes
    ----------
    fine
        Cost (px⁴) up to which edges may collapse in any case: nothing can be seen of it.
    coarse
        Cost (px⁴) up to which they may collapse while there are more than ``enough`` vertices.
    enough
        Number of vertices that show a surface well on a screen.
    most
        Vertices for each foreground pixel, at most, if there are more than ``enough``.
    """

    fine: float
    coarse: float
    enough: int
    most: float

    def vertices(self, needed: Callable[[float], float], foreground: int) -> int:
        """Return the number of vertices, where ``needed`` returns how many a cost (px⁴) leaves."""
        vertices = needed(self.fine)
        if vertices > self.enough:
            vertices = max(min(needed(self.coarse), self.most * foreground), self.enough)
        return max(round(min(vertices, FINEST_DETAIL * foreground)), 3)


#: Each level has about four times the vertices of the one below: costs fall with the square of the vertices.
DETAILS = {
    "low": Detail(0.8, 32.0, 5_000, 0.02),
    "medium": Detail(0.05, 2.0, 20_000, 0.08),
    "high": Detail(0.003, 0.125, 80_000, 0.32),
}


@dataclass(frozen=True)
class StoppingRule:
    """Where a decimation ends: one of the first four, else :data:`DEFAULT_DETAIL`. See :func:`normalmesh.decimate`.

    ``needed`` is the number of vertices that the detail leads to; None before the content of the map is known.
    """

    vertices: int | None = None
    threshold: float | None = None
    compression: float | None = None
    detail: str | None = None
    needed: int | None = None

    def __post_init__(self) -> None:
        named = [name for name in RULES if getattr(self, name) is not None]
        if len(named) > 1:
            raise NormalMeshError(
                f"give at most one of {', '.join(RULES[:-1])} and {RULES[-1]}, not {' and '.join(named)}"
            )
        if not named:
            object.__setattr__(self, "detail", DEFAULT_DETAIL)
        if self.vertices is not None:
            checked_int(self.vertices, 3, "vertices", MAX_VERTICES)
        if self.threshold is not None:
            checked_positive(self.threshold, "threshold")
        if self.detail is not None:
            checked_choice(self.detail, DETAILS, "detail")
        share = self.compression
        if share is not None and not (isinstance(share, Real) and 0 < share < 1):
            raise NormalMeshError(
                f"compression must lie between 0 and 1, such as 0.98 for 98 %, not {repr_for_error(share)}"
            )

    def target(self, foreground: int) -> int | None:
        """Return the number of vertices to reach on ``foreground`` pixels; None if it is not known before."""
        if self.compression is not None:
            return max(round((1 - self.compression) * foreground), 3)
        return self.needed if self.vertices is None else int(self.vertices)

    def with_detail(self, needed: Callable[[float], float], foreground: int) -> StoppingRule:
        """Return the rule for a map, where ``needed`` returns how many vertices a cost (px⁴) leaves."""
        if self.detail is None or self.needed is not None:
            return self
        return replace(self, needed=DETAILS[self.detail].vertices(needed, foreground))

    @property
    def max_cost(self) -> float:
        """The cost (px⁴) below which edges are collapsed; infinite without a threshold."""
        return math.inf if self.threshold is None else float(self.threshold)

    def expected_vertices(self, foreground: int, sides: int = 0) -> int:
        """Return the number of vertices to expect on ``foreground`` pixels, with ``sides`` of pixels on the outline.

        Where the content decides, it is that of typical maps.
        """

        def typical(cost: float) -> float:
            share = min(SURFACE_SHARE * math.pow(cost, SURFACE_EXPONENT), 1.0)
            return share * foreground + min(OUTLINE_SHARE * math.pow(cost, OUTLINE_EXPONENT), 1.0) * sides

        target = self.with_detail(typical, foreground).target(foreground)
        # A pixel has four corners.
        return max(round(typical(self.max_cost)), 3) if target is None else min(target, 4 * foreground)


@dataclass(frozen=True)
class Goal:
    """Where the collapses of one round end: at a number of vertices (0: none), or at a cost (px⁴)."""

    target: int = 0
    max_cost: float = math.inf


def falling_targets(final: int, foreground: int, rounds: int, multiple: int) -> list[Goal]:
    """Return the goals of rounds: vertex counts that fall exponentially from a multiple of the final one."""
    # A pixel has at most four vertices of its own.
    first = min(multiple * final, 4 * foreground)
    fractions = np.linspace(0, 1, rounds) if rounds > 1 else np.ones(1)
    return [Goal(target=max(round(first * (final / first) ** fraction), final)) for fraction in fractions]
