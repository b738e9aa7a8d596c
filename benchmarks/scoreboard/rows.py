"""The groups of figures of the scoreboard, in the order of the table.

To add figures, write a function in a module of this package that yields one :class:`Figure` for each row, and a
:class:`Skipped` where something that it needs is missing, and name it here. It runs in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.scoreboard import accuracy, appearance, cost
from benchmarks.scoreboard.figures import Figure, Skipped

#: Name for ``--only`` → figures.
GROUPS: dict[str, Callable[[], Iterator[Figure | Skipped]]] = {
    "reference": accuracy.reference,
    "thresholds": accuracy.thresholds,
    "diligent": accuracy.diligent,
    "lines": appearance.lines,
    "looks": appearance.looks,
    "speed": cost.speed,
    "memory": cost.memory,
    "start": cost.start,
}


def collect(name: str) -> list[Figure | Skipped]:
    """Return all rows of a group."""
    return list(GROUPS[name]())
