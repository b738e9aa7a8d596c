"""Print figures to standard output, as labelled lines or as JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import click

from normalmesh.errors import escaped


def print_field(label: str, text: str) -> None:
    """Print a label and a text in two columns. Further lines of the text are indented to the second column."""
    for line in text.splitlines():
        click.echo(f"{label:<12} {escaped(line)}")
        label = ""


def print_json(figures: dict[str, Any]) -> None:
    """Print a JSON object on one line. Numbers that are not finite become null."""
    click.echo(json.dumps(_serialisable(figures), allow_nan=False))


def _serialisable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _serialisable(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_serialisable(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def count_text(number: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: 1 hole, 3 holes."""
    return f"{number} {one if number == 1 else many or one + 's'}"
