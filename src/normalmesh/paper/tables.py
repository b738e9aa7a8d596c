"""Tables in Markdown, and the format of their figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np


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
