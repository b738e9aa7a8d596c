"""Summaries of rows: means over the views of an object, and comparisons of methods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from normalmesh.paper.benchmark import Row
from normalmesh.paper.tables import figure, geometric_mean


def names_of(rows: Sequence[Row], column: str) -> list[str]:
    """Return the distinct values of a column, in the order of the rows."""
    return list(dict.fromkeys(str(row[column]) for row in rows))


def mean_of(rows: Sequence[Row], column: str, **wanted: str | float) -> float:
    """Return the mean of a column over the rows with the wanted values; NaN if there are none or one is unknown."""
    values = [float(row[column]) for row in rows if all(row.get(name) == value for name, value in wanted.items())]
    return float(np.mean(values)) if values else float("nan")


def compared(rows: Sequence[Row], column: str, method: str, other: str, by: Sequence[str]) -> str:
    """Return a sentence: in how many cases a method is better than another, and the geometric mean of the ratios."""
    figures: dict[tuple[object, ...], dict[str, float]] = {}
    for row in rows:
        figures.setdefault(tuple(row[name] for name in by), {})[str(row["method"])] = float(row[column])
    ratios = [found[method] / found[other] for found in figures.values() if {method, other} <= set(found)]
    ratios = [ratio for ratio in ratios if np.isfinite(ratio)]
    if not ratios:
        return f"{method} and {other} cannot be compared"
    better = sum(ratio < 1 for ratio in ratios)
    return (
        f"{method} / {other}: geometric mean {figure(geometric_mean(ratios))}, "
        f"below 1 in {better} of {len(ratios)}, from {figure(min(ratios))} to {figure(max(ratios))}"
    )
