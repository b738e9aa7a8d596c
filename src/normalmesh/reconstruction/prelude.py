"""The prelude of all reconstructions: checks, limits and progress, and what runs the stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from normalmesh.decimation.decimation_options import DecimationKeywords, DecimationOptions
from normalmesh.decimation.mask_counts import MaskCounts
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.errors import NormalMeshError
from normalmesh.integration.integration_options import IntegrationKeywords
from normalmesh.integration.levelling import check_repeating_map
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.repeats import Repeats
from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.normal_map_like import NormalMapLike, as_normal_map
from normalmesh.reconstruction.driver import GivenJumps, Stages, surfaces_of
from normalmesh.reconstruction.estimates import Estimate
from normalmesh.reconstruction.in_memory import InMemory
from normalmesh.reconstruction.presets import Preset, check_in_tiles, checked_options
from normalmesh.reconstruction.shortfalls import report_shortfalls
from normalmesh.runtime.memory_budget import limited_memory
from normalmesh.runtime.monitor import Monitor, OnProgress, Progress
from normalmesh.runtime.progress_bar import progress_shown
from normalmesh.runtime.threads import limited_threads

if TYPE_CHECKING:
    from normalmesh.engine.engine import Engine
    from normalmesh.maps.maps_on_disk import MapOnDisk
    from normalmesh.reconstruction.tiling import Tiling

#: Default side of a tile in pixels.
TILE = 4096
#: Estimates work from the counts of a mask, the start mesh, and whether jumps are searched.
Estimated = Callable[..., Estimate]


@dataclass(frozen=True)
class Request:
    """What is asked for, beside the numbers of vertices: the arguments that all reconstructions have in common."""

    normal_map: NormalMap | MapOnDisk  # on disk if it is given by its path and reconstructed in tiles
    options: Preset
    jumps: GivenJumps
    tiling: Tiling | None
    threads: int | None
    memory_limit: float | None
    progress: Progress

    @classmethod
    def of(
        cls,
        normal_map: NormalMapLike,
        preset: str,
        decimation: DecimationOptions | DecimationKeywords | None,
        integration: IntegrationKeywords,
        tileable: bool | str,
        jumps: GivenJumps,
        tiles: int | Tiling | None,
        threads: int | None,
        memory_limit: float | None,
        progress: Progress,
    ) -> Request:
        """Return the request of a caller, or raise an error before work begins."""
        opened: NormalMap | MapOnDisk
        tiling = None
        if tiles is None:
            opened = as_normal_map(normal_map)
        else:
            from normalmesh.reconstruction.tiling import Tiling, opened_map

            tiling, opened = tiles if isinstance(tiles, Tiling) else Tiling(tiles), opened_map(normal_map)
        integration = {"units": getattr(opened, "units", "px"), **integration}
        options = checked_options(opened, preset, decimation, integration, tileable)
        if tiling is not None and not tiling.holds(opened.shape):
            check_in_tiles(opened, options)
        if jumps is not None and not options.integration.cuts:
            raise NormalMeshError('jumps need formulation="facets", and discontinuities other than False')
        return cls(opened, options, jumps, tiling, threads, memory_limit, progress)

    def surfaces(self, rules: Sequence[StoppingRule], estimated: Estimated) -> list[Surface]:
        """Return the surface of each rule, finest first, and warn of what they lack."""
        with self.stages(rules, estimated) as stages:
            surfaces = list(surfaces_of(stages, rules, self.jumps))
        for surface in surfaces:
            report_shortfalls(surface)
        return surfaces

    @contextmanager
    def stages(self, rules: Sequence[StoppingRule], estimated: Estimated) -> Iterator[Stages]:
        """Limit threads and memory, show progress, and yield the stages."""
        with (
            limited_memory(self.memory_limit),
            limited_threads(self.threads),
            progress_shown(self.progress) as on_progress,
            self._engine(rules, Monitor(on_progress)) as engine,
        ):
            stages: Stages
            if engine is None or self.tiling is None or self.tiling.holds(self.normal_map.shape):
                stages = self._in_memory(estimated, on_progress, engine)
            else:
                from normalmesh.reconstruction.in_tiles import InTiles

                stages = InTiles.of(self.normal_map, self.options, engine, self.tiling.side)
            yield stages
            stages.monitor.finish()

    def _engine(self, rules: Sequence[StoppingRule], monitor: Monitor) -> AbstractContextManager[Engine | None]:
        """Return what starts the engine that keeps results, if work is in tiles."""
        if self.tiling is None:
            return nullcontext()
        return self.tiling.started(self.normal_map, rules, self.options, self.jumps, monitor, self.threads)

    def _in_memory(self, estimated: Estimated, on_progress: OnProgress | None, engine: Engine | None) -> InMemory:
        """Return the stages of the whole map, whose work has begun."""
        given, options = as_normal_map(self.normal_map), self.options
        # What the map finds out about itself is kept for as long as the reconstruction, not as long as the map.
        normal_map = NormalMap.cleaned(given.normals, given.mask, given.camera, given.repairs)
        repeats = Repeats.of(options.decimation.tileable, normal_map.shape)
        if repeats is not None:
            check_repeating_map(normal_map, repeats)
        searched = options.integration.cuts and not isinstance(self.jumps, Jumps)
        estimate = estimated(
            MaskCounts.of(normal_map.mask, normal_map.component_labels), start=options.decimation.start, cuts=searched
        )
        stages = InMemory(normal_map, options, estimate, Monitor(on_progress, estimate.seconds), repeats, engine)
        stages.begin()
        return stages
