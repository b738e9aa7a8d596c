"""What tasks find at points of an image, each in the tile of the point."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from normalmesh.array_types import Float, Int32
from normalmesh.pieces.clean_map import CleanMap
from normalmesh.pieces.map_windows import Arrays, Run
from normalmesh.pieces.tile_grid import TileGrid


def at_points(
    clean: CleanMap,
    grid: TileGrid,
    points: Float,
    stage: str,
    task: Callable[..., Arrays],
    name: str,
    run: Run,
) -> Int32:
    """Return the numbers (K,) that a task finds, under a name, at the points (K, 2) of each tile."""
    tile, keys = grid.tile_of(points), list(grid.tile_keys())
    chosen = {int(each): np.flatnonzero(tile == each) for each in np.unique(tile)}
    found = run(stage, task, {key: (clean, grid.tile(keys[key]), points[own]) for key, own in chosen.items()})
    values = np.empty(len(points), np.int32)
    for key, own in chosen.items():
        values[own] = found[key][name]
    return values
