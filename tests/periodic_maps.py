"""Normal maps that repeat, with their heights."""

import numpy as np

from normalmesh import NormalMap


def waves(shape, seed=0, creased=False, shift=(0, 0)):
    """Return heights (H, W) that repeat, and their slopes to the right and down; ``shift`` rolls them by rows, columns.

    They are a sum of cosines, and, if creased, a wave of slanted planes.
    """
    rows, columns = shape
    i, j = np.indices(shape) + 0.5
    row, column = (i - shift[0]) / rows, (j - shift[1]) / columns
    random = np.random.default_rng(seed)
    heights, right, down = np.zeros((3, *shape))
    for _ in range(5):
        along, across = random.integers(-3, 4, 2)
        size = random.uniform(0.004, 0.01) * columns
        turn = 2 * np.pi * (along * column + across * row) + random.uniform(0, 2 * np.pi)
        heights += size * np.cos(turn)
        right -= size * np.sin(turn) * 2 * np.pi * along / columns
        down -= size * np.sin(turn) * 2 * np.pi * across / rows
    if creased:
        phase, size = (2 * column + row) % 1, 0.1 * columns
        rising = np.where(phase < 0.5, 1, -1)
        heights += size * np.minimum(phase, 1 - phase)
        right, down = right + size * rising * 2 / columns, down + size * rising / rows
    return heights - heights.mean(), right, down


def map_of_slopes(right, down, mask=None):
    """Return the orthographic normal map of slopes (H, W) to the right and down."""
    normals = np.stack([-right, down, np.ones_like(right)], axis=2)
    normals /= np.linalg.norm(normals, axis=2, keepdims=True)
    return NormalMap(normals.astype(np.float32), mask)
