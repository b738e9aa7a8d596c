"""Reconstruction of levels of detail: surfaces with ever fewer vertices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Unpack

from numpy.typing import ArrayLike

from normalmesh.decimation.decimation_options import DecimationKeywords, DecimationOptions
from normalmesh.decimation.rounds import checked_levels
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.integration.integration_options import IntegrationKeywords
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map_like import NormalMapLike
from normalmesh.reconstruction.estimates import Estimate
from normalmesh.reconstruction.prelude import Request
from normalmesh.runtime.monitor import Progress

if TYPE_CHECKING:
    from normalmesh.reconstruction.tiling import Tiling


def reconstruct_levels(
    normal_map: NormalMapLike,
    vertices: Sequence[int],
    *,
    tileable: bool | str = False,
    decimation: DecimationOptions | DecimationKeywords | None = None,
    threads: int | None = None,
    memory_limit: float | None = None,
    tiles: int | Tiling | None = None,
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
    tileable, decimation, threads, memory_limit, tiles, jumps, progress, **integration
        As for :func:`reconstruct`.

    Returns
    -------
    list of Surface
        Finest first; the first is the same as from :func:`reconstruct`.
    """
    targets = checked_levels(vertices)
    rules, estimated = [StoppingRule(vertices=target) for target in targets], partial(Estimate.levels, vertices=targets)
    request = Request.of(normal_map, "default", decimation, integration, tileable, jumps, tiles)
    return request.surfaces(rules, estimated, threads, memory_limit, progress)
