"""The driver: how a surface is made of a map, whether that is in memory or read in tiles."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from numpy.typing import ArrayLike

from normalmesh.array_types import Integer
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.integration.integration_options import IntegrationOptions
from normalmesh.integration.lifting import LiftedMesh, lift
from normalmesh.integration.refinement_rounds import RefinedMesh, refine_in_rounds
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.surface import Surface
from normalmesh.normals.noise import MapNoise
from normalmesh.pieces.map_windows import WindowedMap
from normalmesh.runtime.monitor import Monitor, OnProgress

logger = logging.getLogger(__name__)

#: Where the depth jumps, as callers give it: lines with their placement, an edge image, polylines, or nothing.
GivenJumps = Jumps | ArrayLike | Sequence[ArrayLike] | None


class SolvedMesh(RefinedMesh, LiftedMesh, Protocol):
    """A mesh, in one piece or in many, with the unknown at its vertices."""


class Stages(Protocol):
    """The stages of a reconstruction, which know where the map and the mesh are, and who does the work."""

    @property
    def normal_map(self) -> WindowedMap: ...

    @property
    def foreground(self) -> int: ...

    @property
    def monitor(self) -> Monitor: ...

    @property
    def integration(self) -> IntegrationOptions: ...

    def find_noise(self) -> MapNoise:
        """Return the noise of the map; later stages see the map without it."""
        ...

    def find_jumps(self, given: GivenJumps) -> Jumps:
        """Return the jumps of the depth, given or found; later stages respect them."""
        ...

    def decimate(self, rules: Sequence[StoppingRule]) -> Iterator[Any]:
        """Yield the mesh of each rule, finest first."""
        ...

    def solve(self, mesh: Any) -> SolvedMesh:
        """Cut a mesh along the jumps, and solve it for the first time."""
        ...

    def trial(self, rule: StoppingRule, on_progress: OnProgress | None) -> Stages:
        """Return the stages of another surface of the same map, whose noise and jumps are known."""
        ...

    def mean_angle(self, surface: Surface) -> float:
        """Return the mean angle in degrees between faces and normals; pixels that no face covers count as 90°."""
        ...

    def labels(self) -> Integer:
        """Return the 4-connected component (H, W) of each pixel of the mask, from 1 on."""
        ...


def surfaces_of(stages: Stages, rules: Sequence[StoppingRule], jumps: GivenJumps = None) -> Iterator[Surface]:
    """Yield the surface of each rule, finest first: noise, jumps, decimate, solve, refine, lift."""
    noise = stages.find_noise()
    stages.find_jumps(jumps)
    for mesh in stages.decimate(rules):
        solved = stages.solve(mesh)
        refine_in_rounds(solved, stages.integration.refine)
        surface = lift(solved, stages.integration, noise)
        monitor, counts = stages.monitor, (len(surface.vertices), len(surface.faces))
        monitor.vertices = counts[0]
        logger.info("surface of %d vertices, %d faces: %.2f s", *counts, monitor.elapsed)
        yield surface
