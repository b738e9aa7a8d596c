"""Rows of results, means and comparisons over them, and tables of these in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

#: One row of results: column → name or figure.
Row: TypeAlias = dict[str, str | float]
#: A line of a table: names and figures.
Line: TypeAlias = list[str | float]


@dataclass(frozen=True)
class Table:
    """A table with a title, a header, lines of names and figures, and remarks."""

    title: str
    head: Sequence[str]
    lines: Sequence[Sequence[str | float]]
    remarks: Sequence[str] = field(default_factory=tuple)

    def markdown(self) -> str:
        """Return the table in Markdown."""
        rows = [self.head, *([_cell(value) for value in line] for line in self.lines)]
        widths = [max(len(row[k]) for row in rows) for k in range(len(self.head))]
        texts = [
            "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
        ]
        rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
        parts = [f"## {self.title}", "\n".join([texts[0], rule, *texts[1:]])]
        if self.remarks:
            parts.append("\n".join(f"- {remark}" for remark in self.remarks))
        return "\n\n".join(parts)


def figure(value: float) -> str:
    """Format a number with three significant digits, with an exponent only if it is tiny; a dash for NaN."""
    if not np.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    digits = 2 - int(np.floor(np.log10(abs(value))))
    return f"{value:.{digits}f}" if 0 <= digits <= 6 else f"{value:.0f}" if digits < 0 else f"{value:.2e}"


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of the finite positive values; NaN if there are none."""
    known = np.array([value for value in values if np.isfinite(value) and value > 0])
    return float(np.exp(np.log(known).mean())) if len(known) else float("nan")


def _cell(value: str | float) -> str:
    return value if isinstance(value, str) else figure(value)


def names_of(rows: Sequence[Row], column: str) -> list[str]:
    """Return the distinct values of a column, in the order of the rows."""
    return list(dict.fromkeys(str(row[column]) for row in rows))


def mean_of(rows: Sequence[Row], column: str, **wanted: str | float) -> float:
    """Return the mean of a column over the rows with the wanted values; NaN if there are none or one is unknown."""
    values = [float(row[column]) for row in rows_with(rows, **wanted)]
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


def rows_with(rows: Sequence[Row], **wanted: str | float) -> list[Row]:
    """Return the rows with the wanted values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def lines_by(by: str, rows: Sequence[Row], measure: str, columns: Sequence[Mapping[str, str]]) -> list[Line]:
    """Return a line for each value of the column ``by``: it, the unit, and the mean of a measure for each column.

    A column is the values that its rows have.
    """
    lines: list[Line] = []
    for name in names_of(rows, by):
        seen = rows_with(rows, **{by: name})
        units = "°" if measure == "mae" else str(seen[0]["units"])
        lines.append([name, units, *(mean_of(seen, measure, **wanted) for wanted in columns)])
    return lines
