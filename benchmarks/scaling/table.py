"""Tables in Markdown that are printed line by line, and verdicts on figures with limits."""

from __future__ import annotations

from dataclasses import dataclass

from normalmesh.paper.tables import figure


@dataclass(frozen=True)
class Table:
    """A table with columns of these names and widths."""

    columns: dict[str, int]

    def head(self) -> str:
        return "\n".join([self.row(*self.columns), self.row(*("-" * width for width in self.columns.values()))])

    def row(self, *cells: object) -> str:
        return (
            "| " + " | ".join(_text(cell).rjust(w) for cell, w in zip(cells, self.columns.values(), strict=True)) + " |"
        )


def _text(cell: object) -> str:
    return figure(cell) if isinstance(cell, float) else str(cell)


@dataclass(frozen=True)
class Verdict:
    """A figure and the largest, or the smallest, value that is allowed."""

    name: str
    value: float
    most: float | None = None
    least: float | None = None

    @property
    def is_met(self) -> bool:
        return (self.most is None or self.value <= self.most) and (self.least is None or self.value >= self.least)

    def __str__(self) -> str:
        limit = f"≤ {self.most:g}" if self.most is not None else f"≥ {self.least:g}"
        return f"{'ok' if self.is_met else 'MISSED':6} {self.name}: {self.value:.4g} ({limit})"
