"""Levels of detail: ever coarser surfaces of one normal map, from one decimation."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

from numpy.typing import ArrayLike

from normalmesh.decimation.decimation_options import DecimationKeywords, DecimationOptions
from normalmesh.decimation.mask_counts import MaskCounts
from normalmesh.decimation.rounds import checked_levels, decimate_levels
from normalmesh.integration.integration_options import IntegrationKeywords
from normalmesh.integration.mesh_integration import integrate_with
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map_like import NormalMapLike, as_normal_map
from normalmesh.reconstruction.estimates import Estimate
from normalmesh.reconstruction.pipeline import (
    begun,
    checked_options,
    checked_repeats,
    jumps_and_hierarchy,
    noise_and_smooth,
)
from normalmesh.reconstruction.shortfalls import report_shortfalls
from normalmesh.runtime.memory_budget import hold_memory, limited_memory
from normalmesh.runtime.monitor import Progress
from normalmesh.runtime.progress_bar import progress_shown
from normalmesh.runtime.threads import limited_threads

logger = logging.getLogger(__name__)


def reconstruct_levels(
    normal_map: NormalMapLike,
    vertices: Sequence[int],
    *,
    tileable: bool | str = False,
    decimation: DecimationOptions | DecimationKeywords | None = None,
    threads: int | None = None,
    memory_limit: float | None = None,
    jumps: Jumps | ArrayLike | Sequence[ArrayLike] | None = None,
    progress: Progress = None,
    **integration: Unpack[IntegrationKeywords],
) -> list[Surface]:
    """Reconstruct surfaces with ever fewer vertices, for viewers that choose one by its distance.

    One decimation passes through all of them, so that each mesh is a coarser version of the one before. Each mesh is
    integrated separately.

    Parameters
    ----------
    normal_map
        As for :func:`reconstruct`.
    vertices
        Decreasing numbers of vertices, cuts included.
    tileable, decimation, threads, memory_limit, jumps, progress, **integration
        As for :func:`reconstruct`.

    Returns
    -------
    list of Surface
        Finest first; the first is the same as from :func:`reconstruct`.
    """
    normal_map = as_normal_map(normal_map)
    targets = checked_levels(vertices)
    options = checked_options(normal_map, "default", decimation, integration, tileable)
    with limited_memory(memory_limit), limited_threads(threads), progress_shown(progress) as on_progress:
        repeats = checked_repeats(normal_map, options)
        searched = options.integration.cuts and not isinstance(jumps, Jumps)
        estimate = Estimate.levels(MaskCounts.of(normal_map.mask), targets, options.decimation.start, searched)
        monitor = begun(estimate, on_progress)
        noise, smooth = noise_and_smooth(normal_map, options.integration, estimate, repeats)
        monitor.begin("jumps")
        known, _ = jumps_and_hierarchy(smooth, options.integration, jumps)
        monitor.advance(estimate.jump_seconds)
        hold_memory(estimate.kept_jump_bytes if known.lines else 0)
        part = monitor.part(estimate.decimation_seconds)
        meshes = list(decimate_levels(smooth, targets, options.decimation, part, known.lines))
        integrating = replace(options.integration, noise=noise)
        surfaces = [
            integrate_with(mesh, normal_map, integrating, monitor.part(estimate.integration_seconds(target)), known)
            for mesh, target in zip(meshes, targets, strict=True)
        ]
        monitor.finish(len(surfaces[-1].vertices))
        logger.info("%d levels: %.2f s", len(surfaces), monitor.elapsed)
    for surface in surfaces:
        report_shortfalls(surface)
    return surfaces
