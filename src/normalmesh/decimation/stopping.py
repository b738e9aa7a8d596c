"""Stopping rules: a decimation ends at a number of vertices, at a cost, or at a fraction of vertices saved."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np

from normalmesh.arguments import checked_int, checked_positive
from normalmesh.errors import NormalMeshError, repr_for_error

#: The stopping rules, of which at most one is given.
RULES = ("vertices", "threshold", "compression")

#: Compression if no rule is given, in Python as on the command line.
DEFAULT_COMPRESSION = 0.98

#: Vertices are numbered in 32 bits.
MAX_VERTICES = 2**31 - 1

#: Estimated number of vertices per foreground pixel that a threshold leads to.
EXPECTED_SHARE = 0.05


@dataclass(frozen=True)
class StoppingRule:
    """Where a decimation ends: one of the three, else :data:`DEFAULT_COMPRESSION`. See :func:`normalmesh.decimate`."""

    vertices: int | None = None
    threshold: float | None = None
    compression: float | None = None

    def __post_init__(self) -> None:
        named = [name for name in RULES if getattr(self, name) is not None]
        if len(named) > 1:
            raise NormalMeshError(
                f"give at most one of {', '.join(RULES[:-1])} and {RULES[-1]}, not {' and '.join(named)}"
            )
        if not named:
            object.__setattr__(self, "compression", DEFAULT_COMPRESSION)
        if self.vertices is not None:
            checked_int(self.vertices, 3, "vertices", MAX_VERTICES)
        if self.threshold is not None:
            checked_positive(self.threshold, "threshold")
        share = self.compression
        if share is not None and not (isinstance(share, Real) and 0 < share < 1):
            raise NormalMeshError(
                f"compression must lie between 0 and 1, such as 0.98 for 98 %, not {repr_for_error(share)}"
            )

    def target(self, foreground: int) -> int | None:
        """Return the number of vertices to reach on ``foreground`` pixels; None for a threshold."""
        if self.compression is not None:
            return max(round((1 - self.compression) * foreground), 3)
        return None if self.vertices is None else int(self.vertices)

    @property
    def max_cost(self) -> float:
        """The cost (px⁴) below which edges are collapsed; infinite without a threshold."""
        return math.inf if self.threshold is None else float(self.threshold)

    def expected_vertices(self, foreground: int) -> int:
        """Return the number of vertices to expect on ``foreground`` pixels; a rough estimate for a threshold."""
        target = self.target(foreground)
        # A pixel has four corners.
        return max(round(EXPECTED_SHARE * foreground), 3) if target is None else min(target, 4 * foreground)


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
