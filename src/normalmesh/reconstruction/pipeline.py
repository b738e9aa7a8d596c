"""The pipeline: decimate, then integrate."""

from __future__ import annotations

from typing import Any

from normalmesh.arguments import checked_choice, checked_instance
from normalmesh.decimation.rounds import checked_decimation, decimate
from normalmesh.decimation.stopping import expected_vertices
from normalmesh.integration.cotangent import PAPER_CLAMP
from normalmesh.integration.mesh_integration import checked_integration, integrate
from normalmesh.mesh.surface import Surface
from normalmesh.normals.noise import estimate_noise, without_noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.memory import estimate_memory, refuse_too_large
from normalmesh.runtime.progress import Progress, Teller, estimate_seconds
from normalmesh.runtime.threads import limited_threads

#: Options of decimate() and integrate() under one word. ``paper``: all as the authors do it.
PRESETS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "default": ({}, {}),
    "paper": (
        {"start": "pixels", "rounds": 5, "passes": 10, "align": "each"},
        {
            "formulation": "vertices",
            "parameters": "tight",
            "metric": "surface",
            "clamp": PAPER_CLAMP,
            "noise": 0.0,
            "refine": 0,
        },
    ),
}


def reconstruct(
    normal_map: NormalMap,
    *,
    vertices: int | None = None,
    threshold: float | None = None,
    compression: float | None = None,
    preset: str = "default",
    decimation: dict[str, Any] | None = None,
    threads: int | None = None,
    memory_limit: float | None = None,
    progress: Progress | None = None,
    **integration: Any,
) -> Surface:
    """From a normal map to a surface.

    Parameters
    ----------
    normal_map
        From :func:`read_normal_map`, :func:`photometric_stereo` or an array: any mask, either camera.
    vertices, threshold, compression
        Where to stop, exactly one of them; see :func:`decimate`. Vertices that are split where depth jumps come on top.
    preset
        ``"default"``, or ``"paper"`` for the method exactly as published.
    decimation
        Further options of :func:`decimate`.
    threads
        Threads to use; default: as many as Numba may (all cores, or ``NUMBA_NUM_THREADS``). The surface is the same.
    memory_limit
        Bytes that may be used beside the normal map, by estimate; default: what is available. ``math.inf``: any number.
    progress
        Called with a :class:`Step` again and again; what it raises ends the work.
    **integration
        Options of :func:`integrate`: ``discontinuities``, ``refine``, ``prior``, ``distance``, ``noise``, ``units``, …

    Returns
    -------
    Surface

    Raises
    ------
    NormalMeshError
        Options that make no sense, or, before work begins, more memory needed than there is.
    """
    checked_instance(normal_map, NormalMap, "normal_map")
    aimed_at = expected_vertices(normal_map.foreground, vertices, threshold, compression)
    for_decimation, for_integration = PRESETS[checked_choice(preset, PRESETS, "preset")]
    meshing = checked_decimation(decimation, for_decimation)
    options = checked_integration(normal_map, integration, for_integration)
    needed = estimate_memory(normal_map.mask.size, normal_map.foreground, aimed_at, meshing.get("start", "adaptive"))
    refuse_too_large(needed, memory_limit)
    decimating, integrating = estimate_seconds(normal_map.foreground, aimed_at)
    teller = Teller(progress, decimating + integrating)
    with limited_threads(threads):
        teller.begin("noise")
        if options.get("noise") is None:
            options["noise"] = estimate_noise(normal_map)
        mesh = decimate(
            without_noise(normal_map, options["noise"]),
            vertices=vertices,
            threshold=threshold,
            compression=compression,
            progress=teller.part(decimating),
            **meshing,
        )
        surface = integrate(mesh, normal_map, progress=teller.part(integrating), **options)
        teller.finish(len(surface.vertices))
    return surface
