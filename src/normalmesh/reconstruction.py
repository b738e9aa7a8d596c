"""The pipeline: decimate, then integrate."""

from __future__ import annotations

from typing import Any

from normalmesh.cotangent import PAPER_CLAMP
from normalmesh.decimation import decimate
from normalmesh.errors import NormalMeshError
from normalmesh.integration import integrate
from normalmesh.noise import estimate_noise, without_noise
from normalmesh.normalmap import NormalMap
from normalmesh.surface import Surface

#: Options of decimate() and integrate() under one word. ``paper``: all as the authors do it.
PRESETS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "default": ({}, {}),
    "paper": (
        {"start": "pixels", "rounds": 5, "passes": 10},
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
    **integration: Any,
) -> Surface:
    """From a normal map to a surface.

    Parameters
    ----------
    normal_map
    vertices, threshold, compression
        Where to stop, exactly one of them; see :func:`decimate`. Vertices that are split where depth jumps come on top.
    preset
        ``"default"``, or ``"paper"`` for the method exactly as published.
    decimation
        Further options of :func:`decimate`.
    **integration
        Options of :func:`integrate`: ``discontinuities``, ``refine``, ``prior``, ``distance``, ``noise``, ``units``, …

    Returns
    -------
    Surface
    """
    if preset not in PRESETS:
        raise NormalMeshError(f"preset must be one of {', '.join(PRESETS)}, not {preset!r}")
    for_decimation, for_integration = PRESETS[preset]
    options = {**for_integration, **integration}
    if options.get("noise") is None:
        options["noise"] = estimate_noise(normal_map)
    mesh = decimate(
        without_noise(normal_map, options["noise"]),
        vertices=vertices,
        threshold=threshold,
        compression=compression,
        **{**for_decimation, **(decimation or {})},
    )
    return integrate(mesh, normal_map, **options)
