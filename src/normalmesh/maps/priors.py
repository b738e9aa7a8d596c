"""Reading control points from CSV files: u, v, depth and an optional weight in each line."""

from __future__ import annotations

import math
import re
from os import PathLike
from pathlib import Path

import numpy as np

from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError
from normalmesh.files.formats import read_text, unusable

#: Separators of columns.
SEPARATORS = re.compile(r"\s*[,;\t]\s*|\s+")


def read_control_points(path: str | PathLike[str]) -> Float:
    """Read control points (K, 3 or 4) as u, v, depth[, weight], for the ``prior`` of :func:`integrate`.

    One point in a line, separated by commas, semicolons or blanks. The first line may name the columns; ``#`` begins
    a comment.

    Raises
    ------
    NormalMeshError
        The file cannot be read, or a line is not a point; the message has its number.
    """
    path = Path(path)
    lines = read_text(path, "lines of u,v,depth or u,v,depth,weight").splitlines()
    points: list[list[float]] = []
    may_be_header = True
    for number, line in enumerate(lines, start=1):
        words = SEPARATORS.split(line.split("#")[0].strip())
        if words == [""]:
            continue
        if not (may_be_header and _is_header(words)):
            points.append(_point(path, number, words, len(points[0]) if points else None))
        may_be_header = False
    if not points:
        raise unusable(path, "holds no control point; expected lines of u,v,depth or u,v,depth,weight")
    return np.array(points)


def _is_header(words: list[str]) -> bool:
    """Return whether a line holds names of columns: no word is a number."""
    return not any(_number(word) is not None for word in words)


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _point(path: Path, number: int, words: list[str], width: int | None) -> list[float]:
    """Return the numbers of a line, or raise :class:`NormalMeshError` unless they are as many as before."""
    values = [value for word in words if (value := _number(word)) is not None and math.isfinite(value)]
    if len(values) != len(words):
        raise _wrong_line(path, number, f"{' '.join(words)[:40]!r} are not all finite numbers")
    if len(values) not in (3, 4):
        raise _wrong_line(path, number, f"expected u,v,depth or u,v,depth,weight, not {len(values)} numbers")
    if width is not None and len(values) != width:
        raise _wrong_line(path, number, f"has {len(values)} numbers but lines before have {width}")
    if len(values) == 4 and values[3] <= 0:
        raise _wrong_line(path, number, f"the weight must be positive, not {values[3]:g}")
    return values


def _wrong_line(path: Path, number: int, reason: str) -> NormalMeshError:
    return unusable(path, f"line {number}: {reason}")
