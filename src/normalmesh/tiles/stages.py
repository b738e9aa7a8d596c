"""The stages of a tiled reconstruction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.decimation.rounds import decimate_with
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.files.maps_on_disk import MapOnDisk
from normalmesh.integration.mesh_integration import integrate_with
from normalmesh.jumps.finding import jumps_along, jumps_of
from normalmesh.jumps.given_lines import given_paths
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.surface import Surface
from normalmesh.normals.noise import noise_of, without_noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.monitor import Monitor
from normalmesh.tiles.array_file import Arrays
from normalmesh.tiles.engine import Engine

if TYPE_CHECKING:
    from normalmesh.reconstruction.pipeline import Preset


def reconstruct_in_pieces(
    opened: NormalMap | MapOnDisk,
    rule: StoppingRule,
    options: Preset,
    engine: Engine,
    monitor: Monitor,
    tile_side: int,
    jumps: Jumps | ArrayLike | Sequence[ArrayLike] | None = None,
) -> Surface:
    """Reconstruct a surface.

    A placeholder for the stages that work in tiles: it counts the foreground in tiles, and reconstructs in memory.
    """
    rows, columns = opened.shape
    shared = engine.shared("map", opened)
    tiles = {
        (row, column): (shared, row * tile_side, column * tile_side, tile_side)
        for row in range(-(-rows // tile_side))
        for column in range(-(-columns // tile_side))
    }
    engine.run("count", count_foreground, tiles, work=0.5)
    monitor.begin("surface")
    normal_map = opened if isinstance(opened, NormalMap) else opened.read()
    noise = noise_of(normal_map, options.integration.noise)
    smooth = without_noise(normal_map, noise)
    known = Jumps()
    if isinstance(jumps, Jumps):
        known = jumps
    elif jumps is not None:
        known = jumps_along(given_paths(jumps, smooth), smooth)
    elif options.integration.cuts:
        known = jumps_of(smooth, options.integration.discontinuities)
    mesh = decimate_with(smooth, rule, options.decimation, None, known.lines)
    return integrate_with(mesh, normal_map, replace(options.integration, noise=noise), None, known)


def count_foreground(opened: NormalMap | MapOnDisk, top: int, left: int, side: int) -> Arrays:
    """Return the number of foreground pixels of a tile."""
    mask = opened.mask_window(slice(top, top + side), slice(left, left + side))
    return {"count": np.array(np.count_nonzero(mask))}
