"""Reconstruction within a tolerance: the surface with the fewest vertices that satisfies a bound on its error."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.arguments import checked_positive
from normalmesh.array_types import Int, Integer
from normalmesh.decimation.decimation_options import DecimationKeywords, DecimationOptions
from normalmesh.decimation.stopping import RULES, StoppingRule
from normalmesh.errors import NormalMeshError
from normalmesh.evaluation.gauges import DepthGauge
from normalmesh.integration.integration_options import IntegrationKeywords
from normalmesh.mesh.cut_mesh import edge_ends, slits
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.origin import Decimation, Tolerance
from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map_like import NormalMapLike
from normalmesh.reconstruction.driver import Stages, surfaces_of
from normalmesh.reconstruction.estimates import FINEST, FINEST_COMPARED, FIRST, USUAL_TRIALS, Estimate
from normalmesh.reconstruction.prelude import Request
from normalmesh.reconstruction.shortfalls import report_shortfalls
from normalmesh.reconstruction.tiling import Tiling
from normalmesh.runtime.memory_budget import hold_memory
from normalmesh.runtime.monitor import Progress

logger = logging.getLogger(__name__)

#: Bytes of the surface that others are compared with, for each pixel of the image.
REFERENCE_BYTES = 20
#: The search ends when this ratio of the vertices of a good and of a too coarse surface is reached.
CLOSE_ENOUGH = 1.05
#: Maximal number of trials.
MAX_TRIALS = 16
#: Maximal and minimal factor between the vertices of two trials while only one side of the bound is known.
_MAX_STRIDE, _MIN_STRIDE = 8.0, 1.3
#: Errors are clipped at this multiple of the bound.
_MAX_RATIO = 1e6


def reconstruct_within(
    normal_map: NormalMapLike,
    *,
    max_angle: float | None = None,
    max_error: float | None = None,
    preset: str = "default",
    tileable: bool | str = False,
    decimation: DecimationOptions | DecimationKeywords | None = None,
    threads: int | None = None,
    memory_limit: float | None = None,
    tiles: int | Tiling | None = None,
    jumps: Jumps | ArrayLike | Sequence[ArrayLike] | None = None,
    progress: Progress = None,
    **integration: Unpack[IntegrationKeywords],
) -> Surface:
    """Reconstruct the surface with the fewest vertices, to about 5 %, that stays within one or two bounds.

    Each trial is a :func:`reconstruct` with another number of vertices; most searches take five to nine.

    Parameters
    ----------
    normal_map
        As for :func:`reconstruct`.
    max_angle
        Maximal mean angle in degrees between faces and the normals of their pixels, as the MAE of :func:`evaluate`,
        but foreground pixels that no face covers count as 90°. It includes the noise of the normals, so it cannot be
        far below that.
    max_error
        Maximal RMS deviation in depth from the surface with one vertex per four pixels, in the unit of the surface
        (pixels unless the camera has a pixel size); trials have at most half as many vertices. It measures the cost of
        sparsity: errors that the fine surface shares, such as those of the normals, are not included. Pixels beside a
        cut do not count. A constant or scale is removed for each component, and for each part whose distance the
        normals do not determine.
    preset, tileable, decimation, threads, memory_limit, tiles, jumps, progress, **integration
        As for :func:`reconstruct`.

    Returns
    -------
    Surface
        As from ``reconstruct(normal_map, vertices=…)``. If not even the finest surface satisfies the bounds, the best
        one that was found, with a :class:`NormalMeshWarning`: ``surface.decimation.tolerance`` has the figures.

    Raises
    ------
    NormalMeshError
        No bound is given.
    """
    bounds = {"max_angle": max_angle, "max_error": max_error}
    given = {name: checked_positive(value, name) for name, value in bounds.items() if value is not None}
    if not given:
        raise NormalMeshError("give max_angle, max_error or both")
    if rules := [name for name in RULES if name in integration]:
        raise NormalMeshError(f"{rules[0]} is not for reconstruct_within: max_angle and max_error say where to stop")
    request = Request.of(
        normal_map, preset, decimation, integration, tileable, jumps, tiles, threads, memory_limit, progress
    )
    estimated = partial(Estimate.within, compared=max_error is not None)
    finest = [StoppingRule(vertices=_share(FINEST, request.normal_map.foreground))]
    with request.stages(finest, estimated) as stages:
        stages.find_noise()
        stages.find_jumps(jumps)
        monitor = stages.monitor
        work = (monitor.work - monitor.done) / USUAL_TRIALS

        def surface_of(vertices: int) -> Surface:
            rule = StoppingRule(vertices=vertices)
            (surface,) = surfaces_of(stages.trial(rule, monitor.part(work)), [rule])
            return surface

        best, reached = _fewest(stages, given, surface_of)
        monitor.vertices = len(best.vertices)
    # The number of vertices is a result here, not a request.
    if isinstance(best.decimation, Decimation):
        best = replace(best, decimation=replace(best.decimation, target=None, tolerance=Tolerance(given, reached)))
    report_shortfalls(best)
    return best


def _share(share: float, foreground: int) -> int:
    """Return a number of vertices as a share of the foreground."""
    return max(round(share * foreground), 3)


def _fewest(
    stages: Stages, bounds: dict[str, float], surface_of: Callable[[int], Surface]
) -> tuple[Surface, dict[str, float]]:
    """Return the surface with the fewest vertices within the named bounds, or the one nearest to them; its measures."""
    foreground, finest = stages.foreground, FINEST
    measures: dict[str, Callable[[Surface], float]] = {}
    if "max_angle" in bounds:
        measures["max_angle"] = stages.mean_angle
    if "max_error" in bounds:
        measures["max_error"] = _deviation_from(surface_of(_share(FINEST, foreground)), stages.labels())
        hold_memory(REFERENCE_BYTES * math.prod(stages.normal_map.shape))
        finest = FINEST_COMPARED

    def ratio(surface: Surface) -> float:
        return float(np.max([measure(surface) / bounds[name] for name, measure in measures.items()]))

    best = _Search(surface_of, ratio, _share(finest, foreground)).run(_share(FIRST, foreground))
    return best, {name: measure(best) for name, measure in measures.items()}


def _deviation_from(reference: Surface, components: Integer) -> Callable[[Surface], float]:
    """Return what measures the RMS of the difference in depth of surfaces, zero if no pixel can be compared.

    ``components`` (H, W) are the 4-connected components of the mask.
    """
    expected, loose = reference.depth_map(), _loose_parts(reference)

    def deviation(surface: Surface) -> float:
        depth, parts = surface.depth_map(), _loose_parts(surface)
        both = np.isfinite(expected) & np.isfinite(depth) & (loose >= 0) & (parts >= 0)
        if not both.any():
            return 0.0
        labels = [labels[both] for labels in (components, loose, parts)]
        combined = np.ravel_multi_index(labels, [int(each.max()) + 1 for each in labels])
        _, group = np.unique(combined, return_inverse=True)
        gauge = DepthGauge(depth[both], expected[both], group, is_scale=surface.camera.gauge == "scale")
        return float(np.sqrt(np.mean(gauge.squares() ** 2)))

    return deviation


def _loose_parts(surface: Surface) -> Int:
    """Return the number (H, W), from 1, of each part whose distance is undetermined; 0 elsewhere, −1 beside a cut."""
    found = surface.discontinuities
    if found is None or len(found.screen) == 0:
        return np.zeros(surface.shape, np.int64)
    of_part = np.where(found.undetermined, np.arange(1, len(found.undetermined) + 1), 0)
    mesh = surface.mesh
    beside = np.zeros(len(mesh.vertices), np.bool_)
    beside[edge_ends(mesh, np.concatenate(slits(mesh)))] = True
    of_face = np.where(beside[mesh.faces].any(axis=1), -1, of_part[found.parts])
    _, owners = surface.owners()
    return np.where(owners >= 0, of_face[owners], 0)


@dataclass(frozen=True, eq=False)
class _Trial:
    """A surface, its requested number of vertices, and its error as a multiple of the bound."""

    vertices: int
    surface: Surface
    ratio: float


class _Search:
    """Searches for the fewest vertices whose error ratio is at most one: a bracketed secant method in logarithms."""

    def __init__(self, surface_of: Callable[[int], Surface], ratio_of: Callable[[Surface], float], finest: int) -> None:
        self.surface_of, self.ratio_of, self.finest = surface_of, ratio_of, finest
        self.enough: _Trial | None = None
        self.too_few: _Trial | None = None
        self.lowest: _Trial
        self.sides: list[bool] = []

    def run(self, first: int) -> Surface:
        """Return the surface with the fewest vertices that is good enough; if none is, the one of the lowest ratio."""
        following: int | None = min(first, self.finest)
        while following is not None and (len(self.sides) < MAX_TRIALS or self.enough is None):
            following = self._after(self._try(following))
        return (self.enough or self.lowest).surface

    def _try(self, vertices: int) -> _Trial:
        surface = self.surface_of(vertices)
        ratio = self.ratio_of(surface)
        # The error of a surface that covers no pixel centre is undefined: it is too coarse.
        trial = _Trial(vertices, surface, _MAX_RATIO if math.isnan(ratio) else ratio)
        good = trial.ratio <= 1
        logger.info("trial of %d vertices: %.3g times the bound", vertices, trial.ratio)
        self.sides.append(good)
        if good:
            self.enough = trial
        else:
            self.too_few = trial
        if len(self.sides) == 1 or trial.ratio < self.lowest.ratio:
            self.lowest = trial
        return trial

    def _after(self, trial: _Trial) -> int | None:
        """Return the number of vertices to try next; None at the end."""
        enough, too_few = self.enough, self.too_few
        if too_few is None:
            # Each hole and component needs a minimal number of vertices.
            coarsest = trial.vertices == 3 or len(trial.surface.vertices) > CLOSE_ENOUGH * trial.vertices
            return None if coarsest else max(round(trial.vertices / self._stride(trial)), 3)
        if enough is None:
            if trial.vertices == self.finest:
                return None
            return min(max(round(trial.vertices * self._stride(trial)), trial.vertices + 1), self.finest)
        if enough.vertices <= max(CLOSE_ENOUGH * too_few.vertices, too_few.vertices + 1):
            return None
        return min(max(round(self._between(enough, too_few)), too_few.vertices + 1), enough.vertices - 1)

    @staticmethod
    def _stride(trial: _Trial) -> float:
        """Return the factor to the next trial: angles fall with the root of the number of vertices, depths faster."""
        off = min(trial.ratio, _MAX_RATIO) if trial.ratio > 1 else 1 / max(trial.ratio, 1e-6)
        return float(min(max(off**1.5, _MIN_STRIDE), _MAX_STRIDE))

    def _between(self, enough: _Trial, too_few: _Trial) -> float:
        """Return the number of vertices between two trials at which the ratio should be one."""
        low, high = math.log(too_few.vertices), math.log(enough.vertices)
        fraction = 0.5
        # If the same side was found twice in a row, the curve is far from linear: bisect.
        if len(self.sides) < 2 or self.sides[-1] != self.sides[-2]:
            above, below = math.log(too_few.ratio), -math.log(max(enough.ratio, 1e-6))
            fraction = above / max(above + below, 1e-12)
        # A margin towards the other side, so that the next trial tightens the bracket there.
        margin = math.log(CLOSE_ENOUGH) / 2
        guess = low + fraction * (high - low) + (margin if not self.sides[-1] else -margin) / 2
        return math.exp(min(max(guess, low + margin), high - margin))
