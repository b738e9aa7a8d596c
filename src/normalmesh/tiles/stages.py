"""The stages of a tiled reconstruction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from normalmesh.decimation.rounds import decimate_with
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.integration.mesh_integration import integrate_with
from normalmesh.jumps.finding import jumps_of
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.surface import Surface
from normalmesh.normals.noise import noise_of, without_noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.monitor import Monitor
from normalmesh.tiles.array_file import Arrays
from normalmesh.tiles.engine import Engine
from normalmesh.tiles.shared_map import SharedMap

if TYPE_CHECKING:
    from normalmesh.reconstruction.pipeline import Preset


def reconstruct_in_pieces(
    opened: NormalMap | SharedMap,
    rule: StoppingRule,
    options: Preset,
    engine: Engine,
    monitor: Monitor,
    tile_side: int,
    jumps: Jumps | None = None,
) -> Surface:
    """Reconstruct a surface.

    A placeholder for the stages that work in tiles: it counts the foreground in tiles, and reconstructs in memory.
    """
    rows, columns = opened.shape
    tiles = {
        (row, column): (opened, row * tile_side, column * tile_side, tile_side)
        for row in range(-(-rows // tile_side))
        for column in range(-(-columns // tile_side))
    }
    engine.run("count", count_foreground, tiles, work=0.5)
    monitor.begin("surface")
    normal_map = opened if isinstance(opened, NormalMap) else opened.read()
    noise = noise_of(normal_map, options.integration.noise)
    smooth = without_noise(normal_map, noise)
    known = jumps
    if known is None:
        known = jumps_of(smooth, options.integration.discontinuities) if options.integration.cuts else Jumps()
    mesh = decimate_with(smooth, rule, options.decimation, None, known.lines)
    return integrate_with(mesh, normal_map, replace(options.integration, noise=noise), None, known)


def count_foreground(opened: NormalMap | SharedMap, top: int, left: int, side: int) -> Arrays:
    """Return the number of foreground pixels of a tile."""
    window = slice(top, top + side), slice(left, left + side)
    mask = opened.mask[window] if isinstance(opened, NormalMap) else opened.mask_window(*window)
    return {"count": np.array(np.count_nonzero(mask))}
