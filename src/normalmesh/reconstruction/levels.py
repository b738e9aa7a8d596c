"""Levels of detail: ever coarser surfaces of one normal map, from one decimation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from normalmesh.arguments import checked_instance
from normalmesh.decimation.rounds import checked_decimation, decimate_levels, level_targets
from normalmesh.integration.mesh_integration import checked_integration, integrate
from normalmesh.mesh.surface import Surface
from normalmesh.normals.noise import estimate_noise, without_noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.memory import estimate_memory, refuse_too_large
from normalmesh.runtime.progress import Progress, Teller, estimate_seconds
from normalmesh.runtime.threads import limited_threads


def reconstruct_levels(
    normal_map: NormalMap,
    vertices: Sequence[int],
    *,
    decimation: dict[str, Any] | None = None,
    threads: int | None = None,
    memory_limit: float | None = None,
    progress: Progress | None = None,
    **integration: Any,
) -> list[Surface]:
    """Surfaces of ever fewer vertices, as viewers exchange them with distance.

    One decimation passes through all of them, so that a coarse mesh goes back to the one before; each is integrated
    on its own.

    Parameters
    ----------
    normal_map
    vertices
        Of the surfaces, finest first, each fewer than the one before. Those split where depth jumps come on top.
    decimation, threads, memory_limit, progress, **integration
        As for :func:`reconstruct`.

    Returns
    -------
    list of Surface
        Finest first; the first is what :func:`reconstruct` makes.
    """
    checked_instance(normal_map, NormalMap, "normal_map")
    targets, meshing = level_targets(vertices), checked_decimation(decimation)
    options = checked_integration(normal_map, integration)
    finest = min(targets[0], 4 * normal_map.foreground)
    needed = estimate_memory(normal_map.mask.size, normal_map.foreground, finest, meshing.get("start", "adaptive"))
    refuse_too_large(needed, memory_limit)
    decimating, _ = estimate_seconds(normal_map.foreground, 0)
    integrating = [estimate_seconds(normal_map.foreground, count)[1] for count in targets]
    teller = Teller(progress, decimating + sum(integrating))
    with limited_threads(threads):
        teller.begin("noise")
        if options.get("noise") is None:
            options["noise"] = estimate_noise(normal_map)
        clean = without_noise(normal_map, options["noise"])
        meshes = list(decimate_levels(clean, targets, progress=teller.part(decimating), **meshing))
        surfaces = [
            integrate(mesh, normal_map, progress=teller.part(work), **options)
            for mesh, work in zip(meshes, integrating, strict=True)
        ]
        teller.finish(len(surfaces[-1].vertices))
    return surfaces
