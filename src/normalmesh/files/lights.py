"""Reading light directions and intensities from text files."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from normalmesh.arguments import checked_path
from normalmesh.files.formats import read_text, unusable


def read_lights(path: str | PathLike[str]) -> NDArray[np.float64]:
    """Read the directions of lights: text, one light a line, x y z separated by spaces or commas, ``#`` for comments.

    This is the ``light_directions.txt`` of DiLiGenT, whose directions point from the object to the light with x right,
    y up and z towards the viewer, as everything does here.

    Returns
    -------
    (K, 3) float64
        Directions as they are in the file.

    Raises
    ------
    NormalMeshError
        The file cannot be read, or a line does not have three numbers.
    """
    return read_rows(checked_path(path), (3,), "three numbers: the direction x y z of a light")


def read_rows(path: Path, widths: tuple[int, ...], expected: str) -> NDArray[np.float64]:
    """Return finite numbers (K, width) from a text file; each line holds as many as one of the widths."""
    lines = read_text(path, f"lines of {expected}").splitlines()
    rows: list[list[float]] = []
    for number, line in enumerate(lines, start=1):
        words = line.split("#")[0].replace(",", " ").replace(";", " ").split()
        if not words:
            continue
        try:
            row = [float(word) for word in words]
        except ValueError:
            row = []
        if len(row) not in widths or (rows and len(row) != len(rows[0])) or not np.all(np.isfinite(row)):
            raise unusable(path, f"line {number} must have {expected}, not {line.strip()[:60]!r}")
        rows.append(row)
    if not rows:
        raise unusable(path, f"holds no numbers; each line must have {expected}")
    return np.array(rows)
