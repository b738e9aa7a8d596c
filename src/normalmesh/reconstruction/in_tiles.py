"""InTiles: the stages of a reconstruction whose map is read in tiles, and whose mesh is worked on in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Float, Int32
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.engine.array_file import Arrays
from normalmesh.engine.engine import Engine
from normalmesh.evaluation.metrics import mean_of_angles, sum_of_angles
from normalmesh.integration.height_noise import component_noises
from normalmesh.integration.integration_options import IntegrationOptions
from normalmesh.integration.uncertainty import with_rounding
from normalmesh.maps.maps_on_disk import MapOnDisk
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.repeats import Repeats
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.mesh.surface import Surface
from normalmesh.normals.noise import MapNoise, given_noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.pieces.clean_map import CleanMap, at_points, labels_at
from normalmesh.pieces.map_windows import Window, WindowedMap, filled_window
from normalmesh.pieces.mask_components import find_components
from normalmesh.pieces.mesh_in_pieces import DECIMATE, MeshInPieces
from normalmesh.pieces.repeating_map import level_map
from normalmesh.pieces.tile_faces import TileFaces, TileMesh
from normalmesh.pieces.tile_grid import TileGrid
from normalmesh.pieces.tile_jumps import tiled_jumps, tiled_jumps_along
from normalmesh.pieces.tile_levelling import levelled_tiles, warn_of_sides
from normalmesh.pieces.tile_noise import find_noise
from normalmesh.pieces.tiled_decimation import decimate_in_pieces
from normalmesh.pieces.tiled_prior import TiledPrior
from normalmesh.pieces.whole_mesh import WholeMesh
from normalmesh.reconstruction.driver import GivenJumps
from normalmesh.reconstruction.presets import Preset
from normalmesh.runtime.monitor import Monitor, OnProgress


class Decimated(NamedTuple):
    """A decimated mesh, the number of vertices asked for if any, and who runs the stages that follow."""

    mesh: WholeMesh
    target: int | None
    engine: Engine


@dataclass
class InTiles:
    """The stages of a reconstruction in tiles; see :class:`.Stages`."""

    normal_map: WindowedMap  # which all workers can read
    options: Preset
    engine: Engine
    side: int  # of a tile in px

    def __post_init__(self) -> None:
        self.components = find_components(self.normal_map, self.engine.run, self.side)
        self.repeats = Repeats.of(self.options.decimation.tileable, self.normal_map.shape)
        if self.repeats is not None:
            warn_of_sides(self.normal_map, self.repeats, self.engine.run, self.side)
        self.noise: MapNoise | None = None
        self.jumps: Jumps | None = None
        self.prior: TiledPrior | None = None

    @classmethod
    def of(cls, normal_map: NormalMap | MapOnDisk, options: Preset, engine: Engine, side: int) -> InTiles:
        """Return the stages for a map: one in memory is copied to the work folder for other processes."""
        if isinstance(normal_map, NormalMap) and not engine.workers.is_here:
            normal_map = MapOnDisk.of(normal_map, engine.folder.path / "map")
        return cls(normal_map, options, engine, side)

    @property
    def monitor(self) -> Monitor:
        return self.engine.monitor

    @property
    def foreground(self) -> int:
        return int(self.components.areas.sum())

    @property
    def integration(self) -> IntegrationOptions:
        return self.options.integration

    def find_noise(self) -> MapNoise:
        if self.noise is None:
            if self.integration.noise is None:
                self.noise = find_noise(self.normal_map, self.components, self.engine.run, self.side)
            else:
                self.noise = given_noise(self.integration.noise, self.foreground)
            self.clean = CleanMap(self.normal_map, self.components, self.noise, repeats=self.repeats)
            self.grid = TileGrid(self.components.rectangle, self.side)
        return self.noise

    def find_jumps(self, given: GivenJumps) -> Jumps:
        """Find the jumps, and where a prior holds the parts between them."""
        if self.jumps is None:
            self.jumps = self.engine.kept("jumps", partial(self._jumps, given))
            if self.integration.prior is not None:
                run = self.engine.under("prior-").run
                self.prior = TiledPrior.of(self.integration, self.clean, self.grid, self.jumps, run)
        return self.jumps

    def _jumps(self, given: GivenJumps) -> Jumps:
        """Return the jumps, given or found."""
        if not self.integration.cuts:
            return Jumps()
        if isinstance(given, Jumps):
            return given
        run = self.engine.under("search-").run
        if given is not None:
            return tiled_jumps_along(given, self.clean, run, self.side)
        return tiled_jumps(self.clean, self.integration.discontinuities, run, self.side, self.integration.min_certainty)

    def decimate(self, rules: Sequence[StoppingRule]) -> Iterator[Decimated]:
        """Yield the mesh of each rule, cut along the jumps; each begins with the pixels."""
        assert self.jumps is not None
        for number, rule in enumerate(rules):
            engine = self.engine.under(f"{number}-") if len(rules) > 1 else self.engine
            run = engine.under(DECIMATE).run
            arguments = self.clean, self.grid, rule, self.options.decimation, run, self.jumps.lines
            mesh = engine.kept("decimated", partial(decimate_in_pieces, *arguments)).cut()
            yield Decimated(mesh, rule.target(self.foreground), engine)

    def solve(self, mesh: Decimated) -> MeshInPieces:
        assert self.noise is not None
        assert self.jumps is not None
        whole, target, engine = mesh
        run = engine.run
        labels = partial(at_points, self.clean, self.grid, stage="labels", task=labels_at, run=run)
        noises = component_noises(self.noise, whole.screen(), whole.component, labels)
        of_heights, jumps = with_rounding(noises, self.noise.rounding), self.jumps
        if whole.repeats is not None:
            jumps, whole.repeats = levelled_tiles(self.clean, whole.repeats, jumps, self.grid, run)
        return MeshInPieces(whole, self.clean, self.grid, noises, of_heights, jumps, self.prior, target, engine)

    def trial(self, rule: StoppingRule, on_progress: OnProgress | None) -> InTiles:
        other = copy(self)
        other.engine = self.engine.under(f"{rule.vertices}-")
        return other

    def mean_angle(self, surface: Surface) -> float:
        mesh, camera = ScreenMesh(surface.screen, surface.faces), self.normal_map.camera
        faces, unknown = TileFaces.of(mesh, self.grid), camera.unknown_of_depth(camera.depth(surface.vertices))
        normal_map, run = (
            level_map(self.normal_map, surface.repeats),
            self.engine.under(f"{len(surface.vertices)}-").run,
        )
        arguments = tile_angles, normal_map, lambda _, part: (unknown[part.corners],)
        found = faces.ask(run, "angles", *arguments, rings=False).values()
        total, covered = (sum(float(each[name]) for each in found) for name in ("total", "covered"))
        return mean_of_angles(total, covered, self.foreground)

    def labels(self) -> Int32:
        return self.components.labels(Window.whole(self.normal_map.shape))


def tile_angles(source: WindowedMap, part: TileMesh, unknown: Float) -> Arrays:
    """Return the sum ``total`` of the angles between faces of a tile and their normals, and ``covered`` pixels."""
    area = part.window(source)
    normal_map = filled_window(source, area)
    surface = Surface.from_unknown(part.screen(area), unknown, normal_map.camera, area.shape)
    total, covered = sum_of_angles(surface, normal_map)
    return {"total": np.array(total), "covered": np.array(covered)}
