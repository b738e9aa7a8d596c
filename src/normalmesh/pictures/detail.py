"""Detail: the part of a large mesh that a wireframe shows."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from normalmesh.mesh.surface import Surface
from normalmesh.pictures.fields import resized
from normalmesh.pictures.framing import Frame

#: Vertices of a detail, about, and cells along its sides among which densities are compared.
VERTICES, CELLS = 4000, 4


def detail_of(surface: Surface, frame: Frame, owners: NDArray[np.int32], box: tuple[int, int]) -> Frame:
    """A frame of the shape of a box within another, on the surface, where the density of vertices varies most.

    Parameters
    ----------
    owners
        (H, W) faces at samples of the frame, −1 outside.
    """
    covered = max((owners >= 0).mean(), 1e-6) * frame.columns * frame.rows
    height = np.sqrt(covered * VERTICES / len(surface.vertices) * box[1] / box[0])
    rows = int(np.clip(height, 1, frame.rows))
    columns = int(np.clip(height * box[0] / box[1], 1, frame.columns))
    # At least one window, also where a frame is narrower than the box is.
    along = max(frame.columns * CELLS // columns, CELLS), max(frame.rows * CELLS // rows, CELLS)
    u, v = np.clip(np.floor(frame.places(surface.screen, along)).astype(np.int64), 0, np.subtract(along, 1)).T
    counts = np.bincount(v * along[0] + u, minlength=along[0] * along[1]).reshape(along[1], along[0])
    windows = sliding_window_view(counts, (CELLS, CELLS)).astype(np.float64)
    on_surface = sliding_window_view(resized((owners >= 0).astype(np.float32), along), (CELLS, CELLS)).mean(axis=(2, 3))
    score = np.where(on_surface >= 0.98 * on_surface.max(), windows.std(axis=(2, 3)), -1.0)
    i, j = np.unravel_index(int(score.argmax()), score.shape)
    left = min(int(j * frame.columns / along[0]), frame.columns - columns)
    top = min(int(i * frame.rows / along[1]), frame.rows - rows)
    return Frame(frame.left + left, frame.top + top, columns, rows)
