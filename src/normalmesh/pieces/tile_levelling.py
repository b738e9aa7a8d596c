"""Levelling of a map that repeats in tiles: its mean slope, and whether it repeats at all."""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Float
from normalmesh.engine.array_file import Arrays, Run
from normalmesh.facets import _face_means as columns
from normalmesh.facets.face_means import FaceMeans
from normalmesh.integration.levelling import (
    coarse_mesh,
    compared_rows,
    levelled_by,
    steps_between,
    warn_of_step,
)
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.repeats import Repeats
from normalmesh.pieces.map_windows import Window, WindowedMap, filled_window, tiles_of
from normalmesh.pieces.repeating_map import RepeatingMap
from normalmesh.pieces.tile_faces import TileFaces, TileMesh
from normalmesh.pieces.tile_grid import TileGrid


def levelled_tiles(
    clean: WindowedMap, repeats: Repeats, jumps: Jumps, grid: TileGrid, run: Run
) -> tuple[Jumps, Repeats]:
    """Return the placement of jumps, and how a map repeats, after its mean slope has been taken away."""
    mesh = coarse_mesh(clean.mask_window, repeats)
    faces = TileFaces.of(mesh, grid)
    (table,) = faces.gathered(faces.ask(run, "level", tile_means, clean, rings=False), "table")
    return levelled_by(FaceMeans(mesh, clean.camera, table), repeats, jumps)


def tile_means(clean: WindowedMap, part: TileMesh) -> Arrays:
    """Return the ``table`` of the planes of the faces of a part, whose centroids are in the image."""
    area = part.window(clean)
    table = FaceMeans.of(part.screen(area), filled_window(clean, area), planes_only=True).table
    table[:, columns.CENTRE_U : columns.CENTRE_V + 1] += area.corner
    return {"table": table}


def warn_of_sides(source: WindowedMap, repeats: Repeats, run: Run, side: int) -> None:
    """Warn if a map does not seem to repeat; see :func:`.check_repeating_map`."""
    tiles = tiles_of(Window.whole(source.shape), side)
    found = run("sides", tile_steps, {key: (source, repeats, tile) for key, tile in tiles.items()})
    for axis, _ in repeats.axes:
        warn_of_step(np.sum([each[f"steps_{axis}"] for each in found.values()], axis=0), axis)


def tile_steps(source: WindowedMap, repeats: Repeats, tile: Window) -> Arrays:
    """Return sums and numbers (K, 2) of the steps between compared rows in a tile; see :func:`.steps_between`.

    ``steps_0`` are those between columns.
    """
    found: dict[str, Float] = {}
    area = Window(tile.top - repeats.y, tile.left - repeats.x, tile.bottom, tile.right)
    normal_map = RepeatingMap(source, repeats).window(area.rows, area.columns)
    for axis, _ in repeats.axes:
        rows = compared_rows(repeats, axis)
        steps = found[f"steps_{axis}"] = np.zeros((len(rows), 2))
        first, last = (tile.left, tile.right) if axis == 0 else (tile.top, tile.bottom)
        own = (rows >= first) & (rows < last)
        if normal_map is not None:
            # The window begins one row before the tile, and, in the other direction, maybe a pixel that is not its own.
            steps[own] = steps_between(normal_map, axis, rows[own] - first + 1)
    return found
