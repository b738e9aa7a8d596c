"""Choose the part of a large mesh that a wireframe shows."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from normalmesh.array_types import Int32
from normalmesh.mesh.surface import Surface
from normalmesh.pictures.frame import Frame
from normalmesh.pictures.surface_fields import resized

#: Approximate number of vertices of the detail, and cells along each of its sides whose densities are compared.
VERTICES, CELLS = 4000, 4


def detail_frame(surface: Surface, frame: Frame, owners: Int32, box: tuple[int, int]) -> Frame:
    """Return the part of a frame where the vertex density varies most.

    Parameters
    ----------
    frame
        The frame to choose from.
    owners
        Faces (H, W) at the samples of the frame, −1 outside.
    box
        Width and height, whose ratio the detail gets.

    Returns
    -------
    Frame
    """
    covered = max((owners >= 0).mean(), 1e-6) * frame.columns * frame.rows
    height = np.sqrt(covered * VERTICES / len(surface.vertices) * box[1] / box[0])
    rows = int(np.clip(height, 1, frame.rows))
    columns = int(np.clip(height * box[0] / box[1], 1, frame.columns))
    # There is at least one window, even if the frame is narrower than the box.
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
