"""Reading light directions, with the names of their photographs, and intensities from text files."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path

import numpy as np

from normalmesh.arguments import checked_path
from normalmesh.array_types import Float
from normalmesh.files.formats import read_text, unusable

#: What is between the numbers of a line, and a comment, which begins a line or follows white space.
SEPARATOR, COMMENT = r"[\s,;]+", re.compile(r"(^|\s)#.*")
#: A line with a name and three more words.
NAMED = re.compile(rf"(?P<name>\S.*?){SEPARATOR}(\S+?){SEPARATOR}(\S+?){SEPARATOR}(\S+?)[\s,;]*")
EXPECTED = "three numbers with decimal points: the direction x y z of a light"


def read_lights(path: str | PathLike[str]) -> Float:
    """Read the directions of lights from a text file.

    One light a line, x y z separated by spaces or commas, ``#`` for comments, as in ``light_directions.txt`` of
    DiLiGenT; or ``name x y z`` below a line with the number of lights, as in the ``.lp`` files of RTI. Directions point
    from the object to the light with x right, y up and z towards the viewer, as everything does here. Give the file
    itself to :func:`photometric_stereo` to match photographs by name.

    Returns
    -------
    (K, 3) float64
        Directions as they are in the file.

    Raises
    ------
    NormalMeshError
        The file cannot be read, a line does not have three numbers, or there are more or fewer lights than it says.
    """
    return read_light_list(checked_path(path))[0]


def read_light_list(path: Path) -> tuple[Float, tuple[str, ...] | None]:
    """Read the directions (K, 3) of lights and the names of their photographs, where there are any."""
    lines = [
        (number, text)
        for number, line in enumerate(read_text(path, f"lines of {EXPECTED}", latin=True).splitlines(), start=1)
        if (text := COMMENT.sub("", line).strip())
    ]
    count = int(lines.pop(0)[1]) if lines and re.fullmatch(r"\d{1,9}", lines[0][1]) else None
    if not lines:
        raise unusable(path, f"holds no lights; each line must have {EXPECTED}")
    rows: list[list[float]] = []
    names: list[str | None] = []
    for number, text in lines:
        name, row = _light(text)
        if row is None or (rows and (name is None) != (names[0] is None)):
            raise unusable(path, f"line {number} must have {EXPECTED}, not {text[:60]!r}")
        rows.append(row)
        names.append(name)
    if count is not None and count != len(rows):
        fault = f"says that it holds {count} lights on its first line, but has {len(rows)}"
        raise unusable(path, f"{fault}; correct that number, or add the lines that are missing")
    return np.array(rows), tuple(name for name in names if name is not None) or None


def _light(text: str) -> tuple[str | None, list[float] | None]:
    """Return name and direction of a line; no direction if it has none."""
    words, name = re.split(SEPARATOR, text.strip(",; ")), None
    if len(words) != 3:
        found = NAMED.fullmatch(text)
        # A fourth number is no name: files of x y z and something else are not read.
        if found is None or _is_fraction(found["name"]):
            return None, None
        name, *words = found.groups()
    try:
        row = [float(word) for word in words]
    except ValueError:
        return None, None
    return (None if name is None else name.strip("\"'")), row if np.all(np.isfinite(row)) else None


def _is_fraction(word: str) -> bool:
    try:
        return not float(word).is_integer() or "." in word
    except (ValueError, OverflowError):
        return False


def read_rows(path: Path, widths: tuple[int, ...], expected: str) -> Float:
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
