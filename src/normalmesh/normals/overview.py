"""Overview of a large map: a sample of its pixels, and where its foreground is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from normalmesh.normals.integrability import foreground_of

Bool = NDArray[np.bool_]

#: Number of pixels sampled for lengths, directions and the outline.
SAMPLED = 2**19
#: Number of foreground pixels in a sample below which it should be taken around the foreground only.
FEW = 2**14
#: Pixels around the foreground, and rows that are looked at together to find it.
MARGIN, ROWS = 32, 256


def overview_of(channels: NDArray[np.floating], usable: Bool | None) -> tuple[int, NDArray[np.float32], Bool]:
    """Return a step, every ``step``-th pixel (h, w, 3) of a map along rows and columns, and its foreground (h, w)."""
    rows, columns = channels.shape[:2]
    step = max(1, int(np.ceil(np.sqrt(rows * columns / SAMPLED))))
    overview = channels[::step, ::step].astype(np.float32)
    return step, overview, foreground_of(overview, None if usable is None else usable[::step, ::step])


def foreground_window(channels: NDArray[np.floating], usable: Bool | None) -> tuple[slice, slice]:
    """Return rows and columns of the foreground with a margin; of the whole map if it has none."""
    rows, columns = (np.zeros(length, np.bool_) for length in channels.shape[:2])
    for start in range(0, len(rows), ROWS):
        part = slice(start, start + ROWS)
        found = foreground_of(channels[part].astype(np.float32), None if usable is None else usable[part])
        rows[part] = found.any(axis=1)
        columns |= found.any(axis=0)
    if not rows.any():
        return slice(0, len(rows)), slice(0, len(columns))
    tops, lefts = np.flatnonzero(rows), np.flatnonzero(columns)
    return _around(tops), _around(lefts)


def _around(places: NDArray[np.int64]) -> slice:
    return slice(max(int(places[0]) - MARGIN, 0), int(places[-1]) + 1 + MARGIN)
