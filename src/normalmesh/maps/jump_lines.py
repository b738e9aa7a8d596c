"""Reading lines of jumps: an edge image, or polylines in a text file."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np

from normalmesh.array_types import Bool, Float
from normalmesh.files.formats import file_format, read_text, unusable
from normalmesh.files.images import IMAGE_FORMATS
from normalmesh.files.masks import read_mask
from normalmesh.maps.priors import SEPARATORS


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
        image: Bool = np.not_equal(read_mask(path), 0)
        return image
    polylines: list[list[list[float]]] = [[]]
    for number, line in enumerate(read_text(path, "lines of u,v").splitlines(), start=1):
        words = SEPARATORS.split(line.split("#")[0].strip())
        if words == [""]:
            polylines.append([])
            continue
        try:
            u, v = map(float, words)
        except ValueError as error:
            raise unusable(path, f"line {number} is not a point u,v: {line.strip()!r}") from error
        polylines[-1].append([u, v])
    found = [np.array(points) for points in polylines if points]
    if not found:
        raise unusable(path, "holds no polyline; expected lines of u,v, and an empty line between two polylines")
    return found
