"""Figures on standard output: labelled lines for people, JSON for programs."""

from __future__ import annotations

import json
import math
from typing import Any

import click


def say(label: str, text: str) -> None:
    """A line with its label in a column of its own; further lines of the text below it."""
    for line in text.splitlines():
        click.echo(f"{label:<12} {line}")
        label = ""


def say_json(figures: dict[str, Any]) -> None:
    """One object on one line; numbers that are not finite are null."""
    click.echo(json.dumps(_plain(figures), ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def count_text(number: int, one: str, many: str | None = None) -> str:
    """A number of things: 1 hole, 3 holes."""
    return f"{number} {one if number == 1 else many or one + 's'}"
