"""Integration: depth at the vertices of a mesh from the normals of its pixels."""

from __future__ import annotations

import logging

from numpy.typing import ArrayLike

from normalmesh.arguments import checked_instance
from normalmesh.decimation.decimated_mesh import DecimatedMesh
from normalmesh.integration.integration_options import IntegrationOptions
from normalmesh.integration.levelling import check_repeating, check_repeating_map
from normalmesh.integration.lifting import lift
from normalmesh.integration.refinement_rounds import ROUNDS_PER_SOLVE, refine_in_rounds
from normalmesh.integration.solved_mesh import JUMPS_WORK, NOISE_WORK, REFINE_WORK, SOLVE_WORK, STAGES
from normalmesh.integration.solving import solve
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.repeats import wrapped
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.mesh.surface import Surface
from normalmesh.normals.noise import MapNoise, Noise, noise_of, without_noise
from normalmesh.normals.normal_map_like import NormalMapLike, as_normal_map
from normalmesh.runtime.monitor import Monitor, OnProgress, Progress
from normalmesh.runtime.progress_bar import progress_shown
from normalmesh.runtime.threads import limited_threads

logger = logging.getLogger(__name__)


def integrate(
    mesh: ScreenMesh,
    normal_map: NormalMapLike,
    *,
    formulation: str = IntegrationOptions.formulation,
    parameters: str = IntegrationOptions.parameters,
    metric: str = IntegrationOptions.metric,
    clamp: tuple[float, float] | None = None,
    discontinuities: bool | str = IntegrationOptions.discontinuities,
    gaps: str = IntegrationOptions.gaps,
    min_certainty: float = IntegrationOptions.min_certainty,
    jumps: Jumps | None = None,
    noise: float | Noise | MapNoise | None = None,
    refine: int = IntegrationOptions.refine,
    prior: ArrayLike | None = None,
    prior_weight: float | None = None,
    distance: float = IntegrationOptions.distance,
    units: str = IntegrationOptions.units,
    threads: int | None = None,
    progress: Progress = None,
) -> Surface:
    """Compute the depth of a mesh so that its faces fit the normals of the pixels that they cover.

    Minimises ``∫ ‖⟨n, r⟩ ∇z + (⟨n, τ_u⟩, ⟨n, τ_v⟩)‖²`` (eq. 10) over the mesh, then refines the mesh with the depths
    known.

    Parameters
    ----------
    mesh
        A mesh on the screen, from :func:`decimate` or elsewhere. It must be valid.
    normal_map
        As for :func:`reconstruct`.
    formulation
        ``"facets"``: every face is a plane with the mean gradient of its pixels, and neighbouring planes agree at
        their common edge. ``"vertices"``: the cotangent system of the paper (supplement A).
    parameters, metric, clamp
        Options of the formulation ``"vertices"``, see :class:`normalmesh.integration.cotangent.CotangentSystem`.
    discontinuities
        Whether the depth may jump: ``"auto"`` looks for jumps unless a first look finds no sign of any, ``True`` always
        does, and ``False`` leaves the surface continuous. Without a jump the surface is the continuous one. Only with
        ``"facets"``.
    min_certainty
        As for :func:`find_jumps`.
    jumps
        The jumps, from :func:`find_jumps`; found by default. A mesh that :func:`decimate` made with them is cut along
        their lines, another one along the edges that they hold apart.
    gaps
        What becomes of the gaps at jumps. ``"walls"``: they are closed by ``surface.walls`` along the viewing rays,
        the vertical sides of a relief. ``"open"``: they are left. ``"auto"``: walls for reliefs, which are seen by an
        orthographic camera and fill nine tenths of the image, and for maps that repeat; open for objects.
    noise
        Standard deviation of white noise on the normals in degrees; by default the noise of each component is
        estimated, also if it is correlated. Above 1°, normals are averaged before gradients are computed.
    refine
        Maximal number of rounds of flips and moves that reduce the angle between the normals of pixels and faces; 0
        for none. Boundary vertices and the locked vertices of a :class:`DecimatedMesh` are kept.
    prior
        Control points (K, 3 or 4) as u, v, depth[, weight], or a depth map (H, W) with NaN where it is unknown, in the
        convention of ``Surface.depth_map``. It is added as a quadratic term.
    prior_weight
        Weight of a control point (default 100) or of a pixel of the depth map (default 0.01).
    distance
        Mean distance along the optical axis of each component without prior; perspective cameras only.
    units
        Name of the unit of the surface.
    threads
        As for :func:`reconstruct`; the surface does not depend on it.
    progress
        True: show a progress bar, in a terminal or a notebook. A function: it is called repeatedly with a
        :class:`Step`; an exception that it raises ends the work.

    Returns
    -------
    Surface
        Components without prior have mean height zero (orthographic) or mean distance ``distance`` (perspective),
        averaged over the area on the screen. Vertices are split where the mesh is cut. ``surface.integration``
        describes the integration, ``surface.discontinuities`` the cuts, ``surface.coverage`` the pixels that are lost.
    """
    options = IntegrationOptions(
        formulation,
        parameters,
        metric,
        clamp,
        discontinuities,
        gaps,
        min_certainty,
        noise,
        refine,
        prior,
        prior_weight,
        distance,
        units,
    )
    checked_instance(mesh, ScreenMesh, "mesh")
    normal_map = as_normal_map(normal_map)
    if isinstance(mesh, DecimatedMesh) and mesh.repeats is not None:
        check_repeating(options)
        check_repeating_map(normal_map, mesh.repeats)
    if jumps is not None:
        checked_instance(jumps, Jumps, "jumps")
    with limited_threads(threads), progress_shown(progress) as on_progress:
        monitor = integration_monitor(on_progress, options.refine, len(mesh.vertices))
        with monitor.stage("noise", NOISE_WORK):
            known = noise_of(normal_map, options.noise)
            clean = without_noise(normal_map, known, wrapped=wrapped(getattr(mesh, "repeats", None)))
        solved = solve(mesh, normal_map, clean, known, options, jumps if options.cuts else None, monitor)
        refine_in_rounds(solved, options.refine)
        surface = lift(solved, options, known)
        monitor.finish(len(surface.vertices))
    return surface


def integration_monitor(on_progress: OnProgress | None, rounds: int, vertices: int) -> Monitor:
    """Return the monitor of an integration with some rounds of refinement."""
    resolves = -(-rounds // ROUNDS_PER_SOLVE)
    work = NOISE_WORK + JUMPS_WORK + SOLVE_WORK + rounds * REFINE_WORK + resolves * SOLVE_WORK
    monitor = Monitor(on_progress, work, STAGES)
    monitor.vertices = vertices
    return monitor
