"""The scoreboard as text."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.scoreboard.figures import Better, Figure, verdict
from benchmarks.scoreboard.history import Run, last_kept

HEAD = ("figure", "now", "unit", "better", "kept", "commit", "change", "noise", "", "note")


def table(figures: Sequence[Figure], runs: list[Run]) -> str:
    """Return a Markdown table: one line for each figure, compared with the newest kept run that has it."""
    lines = [HEAD, *(_cells(figure, runs) for figure in figures)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(HEAD))]
    texts = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([texts[0], rule, *texts[1:]])


def _cells(figure: Figure, runs: list[Run]) -> tuple[str, ...]:
    kept = last_kept(runs, figure.name)
    start = (figure.name, f"{figure.value:#.4g}", figure.unit, figure.better.value)
    if kept is None:
        return (*start, "", "", "", f"{figure.noise:.1%}", "new", figure.note)
    commit, before = kept
    change = f"{figure.value / before['value'] - 1:+.1%}" if before["value"] else ""
    noise = f"{max(figure.noise, before['noise']):.1%}"
    return (*start, f"{before['value']:#.4g}", commit, change, noise, verdict(figure, before), figure.note)


def summary(figures: Sequence[Figure], runs: list[Run]) -> str:
    """Return how many figures got better, got worse or stayed the same, and which got worse."""
    verdicts: dict[str, list[str]] = {"better": [], "worse": [], "same": []}
    for figure in figures:
        kept = last_kept(runs, figure.name)
        if kept is not None and figure.better is not Better.NEITHER:
            verdicts[verdict(figure, kept[1])].append(figure.name)
    counts = ", ".join(f"{len(names)} {name}" for name, names in verdicts.items())
    worse = f"; worse: {', '.join(verdicts['worse'])}" if verdicts["worse"] else ""
    return counts + worse
