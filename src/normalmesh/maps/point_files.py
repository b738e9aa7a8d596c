"""Reading points: control points u, v, depth[, weight] of CSV files; lines of jumps, as text or as an edge image."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import numpy as np

from normalmesh.array_types import Bool, Float
from normalmesh.files.formats import file_format, read_text, unusable
from normalmesh.files.images import IMAGE_FORMATS
from normalmesh.files.masks import read_mask

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
    points: list[list[float]] = []
    may_be_header = True
    for number, words in _lines(path, "lines of u,v,depth or u,v,depth,weight"):
        if not words:
            continue
        if not may_be_header or any(_number(word) is not None for word in words):
            points.append(_point(path, number, words, len(points[0]) if points else None))
        may_be_header = False
    if not points:
        raise unusable(path, "holds no control point; expected lines of u,v,depth or u,v,depth,weight")
    return np.array(points)


def read_jump_lines(path: str | PathLike[str]) -> Bool | list[Float]:
    """Read lines along which the depth jumps, for ``jumps`` of :func:`reconstruct`.

    An image is an edge image: what a mask would count as foreground lies beside a jump. A text file holds one point
    u, v in a line, separated by a comma, semicolon or blanks; an empty line begins the next polyline, ``#`` a comment.

    Raises
    ------
    NormalMeshError
        The file cannot be read, or a line is not a point; the message has its number.
    """
    path = Path(path)
    if file_format(path) in (*IMAGE_FORMATS, "NPY"):
        return read_mask(path)
    polylines: list[list[list[float]]] = [[]]
    for number, words in _lines(path, "lines of u,v"):
        if not words:
            polylines.append([])
            continue
        try:
            u, v = map(float, words)
        except ValueError as error:
            raise unusable(path, f"line {number} is not a point u,v: {' '.join(words)!r}") from error
        polylines[-1].append([u, v])
    found = [np.array(points) for points in polylines if points]
    if not found:
        raise unusable(path, "holds no polyline; expected lines of u,v, and an empty line between two polylines")
    return found


def _lines(path: Path, expected: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line of a text, and its words without a comment."""
    for number, line in enumerate(read_text(path, expected).splitlines(), start=1):
        words = SEPARATORS.split(line.split("#")[0].strip())
        yield number, [] if words == [""] else words


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _point(path: Path, number: int, words: list[str], width: int | None) -> list[float]:
    """Return the numbers of a line, or raise :class:`NormalMeshError` unless they are as many as before."""
    values = [value for word in words if (value := _number(word)) is not None and math.isfinite(value)]
    fault = ""
    if len(values) != len(words):
        fault = f"{' '.join(words)[:40]!r} are not all finite numbers"
    elif len(values) not in (3, 4):
        fault = f"expected u,v,depth or u,v,depth,weight, not {len(values)} numbers"
    elif width not in (None, len(values)):
        fault = f"has {len(values)} numbers but lines before have {width}"
    elif len(values) == 4 and values[3] <= 0:
        fault = f"the weight must be positive, not {values[3]:g}"
    if fault:
        raise unusable(path, f"line {number}: {fault}")
    return values
