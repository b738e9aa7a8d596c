"""InMemory: the stages of a reconstruction whose map and mesh are in memory, each in one piece."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from normalmesh.array_types import Integer
from normalmesh.decimation.decimated_mesh import DecimatedMesh
from normalmesh.decimation.hierarchy import Hierarchy
from normalmesh.decimation.rounds import decimate_levels
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.evaluation.metrics import mean_angle
from normalmesh.integration.integrated_mesh import IntegratedMesh
from normalmesh.integration.integration_options import IntegrationOptions
from normalmesh.integration.levelling import without_slope
from normalmesh.integration.mesh_integration import integration_monitor
from normalmesh.integration.solving import solve
from normalmesh.jumps.finding import jumps_along, jumps_of
from normalmesh.jumps.jump_pixels import PixelsInMemory
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.repeats import Repeats, wrapped
from normalmesh.mesh.surface import Surface
from normalmesh.normals.noise import NEGLIGIBLE, MapNoise, noise_of, without_noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.reconstruction.driver import GivenJumps
from normalmesh.reconstruction.estimates import REMEDY, Estimate
from normalmesh.reconstruction.presets import Preset
from normalmesh.runtime.memory_budget import hold_memory, require_memory
from normalmesh.runtime.monitor import Monitor, OnProgress

if TYPE_CHECKING:
    from normalmesh.engine.engine import Engine

Kept = TypeVar("Kept")
logger = logging.getLogger(__name__)


@dataclass
class InMemory:
    """The stages of a reconstruction in one piece; see :class:`.Stages`."""

    normal_map: NormalMap
    options: Preset
    estimate: Estimate  # of what the work takes, for the progress and for checks of the memory
    monitor: Monitor
    repeats: Repeats | None = None
    engine: Engine | None = None  # keeps results, if work can go on after an interruption
    noise: MapNoise | None = None
    clean: NormalMap | None = None
    jumps: Jumps | None = None
    hierarchy: Hierarchy | None = None

    @property
    def foreground(self) -> int:
        return self.estimate.counts.foreground

    @property
    def integration(self) -> IntegrationOptions:
        return self.options.integration

    def begin(self) -> None:
        """Report the beginning of work, unless it needs too much memory in any case."""
        require_memory(replace(self.estimate, smooths=False).memory, "the reconstruction", REMEDY)
        self.monitor.begin("noise")
        logger.info("reconstruction of %d foreground pixels begins", self.estimate.counts.foreground)

    def find_noise(self) -> MapNoise:
        """Find the noise of the map, and the map without it; count the memory that is in use from now on."""
        if self.noise is None:
            self.noise = noise_of(self.normal_map, self.integration.noise)
            logger.info("noise of %.2f°", self.noise.usual.degrees)
            known = replace(self.estimate, smooths=self.noise.largest.degrees >= NEGLIGIBLE)
            require_memory(known.memory, "the reconstruction", REMEDY)
            hold_memory(replace(known, kept_vertices=0).lasting_bytes)
            self.clean = without_noise(self.normal_map, self.noise, wrapped=wrapped(self.repeats))
        return self.noise

    def find_jumps(self, given: GivenJumps) -> Jumps:
        if self.jumps is None:
            self.monitor.begin("jumps")
            self.jumps = self._kept("jumps", partial(self._jumps, given))
            self.monitor.advance(self.estimate.jump_seconds)
        return self.jumps

    def _kept(self, name: str, make: Callable[[], Kept]) -> Kept:
        return make() if self.engine is None else self.engine.kept(name, make)

    def _jumps(self, given: GivenJumps) -> Jumps:
        """Return the jumps, given or found; the hierarchy is kept if it was needed."""
        assert self.clean is not None
        if not self.integration.cuts:
            return Jumps()
        if isinstance(given, Jumps):
            return given
        if given is not None:
            return jumps_along(given, PixelsInMemory(self.clean))
        began = time.perf_counter()
        self.hierarchy = Hierarchy.of(self.clean)
        found = jumps_of(self.clean, self.integration.discontinuities, self.integration.min_certainty, self.hierarchy)
        logger.info("%s found: %.2f s", found, time.perf_counter() - began)
        return found

    def decimate(self, rules: Sequence[StoppingRule]) -> Iterator[DecimatedMesh]:
        """Yield the mesh of each rule, after all have been made; the search for jumps has left memory in use."""
        assert self.clean is not None
        assert self.jumps is not None
        hold_memory(self.estimate.kept_jump_bytes if self.jumps.lines else 0)
        part = self.monitor.part(self.estimate.decimation_seconds)
        hierarchy, self.hierarchy = self.hierarchy, None
        decimated = partial(decimate_levels, self.clean, rules, self.options.decimation, part, self.jumps.lines)
        meshes = self._kept("meshes", lambda: list(decimated(hierarchy)))
        hierarchy = None
        while meshes:
            yield meshes.pop(0)

    def solve(self, mesh: DecimatedMesh) -> IntegratedMesh:
        assert self.clean is not None
        assert self.noise is not None
        part = self.monitor.part(self.estimate.integration_seconds(len(mesh.vertices)))
        monitor = integration_monitor(part, self.integration.refine, len(mesh.vertices))
        return solve(mesh, self.normal_map, self.clean, self.noise, self.integration, self.jumps, monitor)

    def trial(self, rule: StoppingRule, on_progress: OnProgress | None) -> InMemory:
        estimate = Estimate.of(self.estimate.counts, rule, self.options.decimation.start, cuts=False)
        require_memory(estimate.mesh_bytes, "the reconstruction", REMEDY)
        return replace(self, estimate=estimate, monitor=Monitor(on_progress, estimate.seconds))

    def mean_angle(self, surface: Surface) -> float:
        """Return the mean angle in degrees between faces and normals, without a mean slope that was taken away."""
        if surface.repeats is None:
            return mean_angle(surface, self.normal_map)
        return mean_angle(surface, without_slope(self.normal_map, surface.repeats.mean_slope))

    def labels(self) -> Integer:
        return self.normal_map.component_labels[0]
