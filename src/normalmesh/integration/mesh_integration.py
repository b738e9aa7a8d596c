"""Integration: depth at the vertices of a mesh from the normals of its pixels."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_instance
from normalmesh.decimation.decimated_mesh import DecimatedMesh
from normalmesh.decimation.rounds import RESERVE
from normalmesh.decimation.start_mesh import REMEDY
from normalmesh.errors import NormalMeshError, NormalMeshWarning
from normalmesh.integration.cotangent import CotangentSystem
from normalmesh.integration.depth_levels import mean_levels, with_prior_levels
from normalmesh.integration.discontinuities import find_discontinuities
from normalmesh.integration.height_noise import height_noise_of
from normalmesh.integration.integration_options import IntegrationOptions
from normalmesh.integration.levelling import check_repeating_map, levelled, without_slope
from normalmesh.integration.mesh_solver import MeshSolver
from normalmesh.integration.pixel_jumps import pixel_parts
from normalmesh.integration.prior import Prior
from normalmesh.integration.solved_mesh import SolvedMesh
from normalmesh.integration.uncertainty import with_rounding
from normalmesh.jumps.finding import jumps_of
from normalmesh.jumps.seams import seams_of
from normalmesh.mesh.coverage import Coverage
from normalmesh.mesh.cut_mesh import CutMesh
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.origin import Decimation, Integration, Remeshing
from normalmesh.mesh.repeats import wrapped
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.mesh.surface import Surface
from normalmesh.normals.camera import Camera
from normalmesh.normals.mask_labels import component_labels
from normalmesh.normals.noise import MapNoise, Noise, noise_of, without_noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.normal_map_like import NormalMapLike, as_normal_map
from normalmesh.runtime.memory_budget import require_memory
from normalmesh.runtime.monitor import Monitor, OnProgress, Progress
from normalmesh.runtime.progress_bar import progress_shown
from normalmesh.runtime.threads import limited_threads

Float = NDArray[np.float64]

#: Rounds of refinement between two solves.
ROUNDS_PER_SOLVE = 2
#: Fraction of the vertices of a component that must change in a round for another one to follow.
MIN_CHANGE = 0.005
#: Bytes for each inner edge of a mesh: of its facet system, the factor of that, and its refinement.
INTEGRATION_BYTES = 480
#: Rounds of refinement after bad faces were cut off where the depth jumps.
ROUNDS_AFTER_CUTS = 2

#: Error of the solver (px) from which on it is reported.
VISIBLE_ERROR = 0.01
#: Largest share of the surface that a prior may bend without a warning.
MAX_BENT = 0.01

logger = logging.getLogger(__name__)

#: Work of the stages, in solves, for the progress.
_NOISE, _JUMPS, _SOLVE, _REFINE = 0.5, 0.5, 1.0, 1.5


def integrate(
    mesh: ScreenMesh,
    normal_map: NormalMapLike,
    *,
    formulation: str = IntegrationOptions.formulation,
    parameters: str = IntegrationOptions.parameters,
    metric: str = IntegrationOptions.metric,
    clamp: tuple[float, float] | None = None,
    discontinuities: bool | str = IntegrationOptions.discontinuities,
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
    jumps
        The jumps, from :func:`find_jumps`; found by default. A mesh that :func:`decimate` made with them is cut along
        their lines, another one along the edges that they hold apart.
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
        formulation, parameters, metric, clamp, discontinuities, noise, refine, prior, prior_weight, distance, units
    )
    checked_instance(mesh, ScreenMesh, "mesh")
    normal_map = as_normal_map(normal_map)
    if isinstance(mesh, DecimatedMesh) and mesh.repeats is not None:
        check_repeating(options)
        check_repeating_map(normal_map, mesh.repeats)
    if jumps is not None:
        checked_instance(jumps, Jumps, "jumps")
    with limited_threads(threads), progress_shown(progress) as on_progress:
        return integrate_with(mesh, normal_map, options, on_progress, jumps if options.cuts else None)


def integrate_with(
    mesh: ScreenMesh,
    normal_map: NormalMap,
    options: IntegrationOptions,
    on_progress: OnProgress | None = None,
    jumps: Jumps | None = None,
) -> Surface:
    """Integrate as :func:`integrate` does, with options that have been checked, and with jumps if they are known."""
    if not isinstance(mesh, DecimatedMesh):
        _check_mesh(mesh)
    prior = None if options.prior is None else Prior.of(options.prior, options.prior_weight, normal_map)
    resolves = -(-options.refine // ROUNDS_PER_SOLVE)
    repeats = mesh.repeats if isinstance(mesh, DecimatedMesh) else None
    work = _NOISE + _JUMPS + _SOLVE + options.refine * _REFINE + resolves * _SOLVE
    monitor = Monitor(on_progress, work, ("noise", "jumps", "solve", "refine", "tidy"))
    monitor.vertices = len(mesh.vertices)
    with monitor.stage("noise", _NOISE):
        noise = noise_of(normal_map, options.noise)
        clean = without_noise(normal_map, noise, wrapped=wrapped(repeats))
    with monitor.stage("jumps", _JUMPS):
        if jumps is None:
            jumps = jumps_of(clean, options.discontinuities) if options.cuts else Jumps()
        cut = CutMesh.along(mesh, seams_of(mesh, jumps, clean))
        if repeats is not None:
            clean, jumps, repeats = levelled(clean, repeats, jumps)
        whole = mesh if repeats is None else repeats.wrap(mesh)
        cut = replace(cut, component=whole.components[cut.origin])
        if prior is not None and jumps.lines:
            prior = prior.apart(pixel_parts(normal_map.mask, jumps.lines))
    _require_memory(cut.mesh)
    solver = MeshSolver(clean, _vertex_system(options), jumps.placement, prior, repeats)
    with monitor.stage("solve", _SOLVE):
        noises = _component_noises(noise, whole, normal_map)
        solved = SolvedMesh.of(mesh, cut, solver, noises[:, 0])
    rounds = _refined(solved, _target(mesh, cut), options.refine, monitor)
    warn_of_doubts(solver.error, solver.bent)
    report = Integration(noise.usual.degrees, solver.method, solver.error, rounds, monitor.seconds, monitor.cpu_seconds)
    noises = with_rounding(noises, noise.rounding)
    surface = _lifted(solved, normal_map, options, jumps, noises, report, getattr(mesh, "report", None))
    monitor.finish(len(surface.vertices))
    logger.info("depths of %d vertices by %s: %.2f s", len(surface.vertices), solver.method, monitor.elapsed)
    return surface


def _vertex_system(options: IntegrationOptions) -> Callable[..., CotangentSystem] | None:
    """Return what makes the system of the vertices, or None if that of the faces is asked for."""
    if options.formulation != "vertices":
        return None
    return partial(CotangentSystem.of, parameters=options.parameters, metric=options.metric, clamp=options.clamp)


def _lifted(
    solved: SolvedMesh,
    normal_map: NormalMap,
    options: IntegrationOptions,
    jumps: Jumps,
    noises: Float,
    integration: Integration,
    decimation: Decimation | Remeshing | None,
) -> Surface:
    """Return the surface of a solved mesh at its documented level, with the records that travel with it.

    ``noises`` (C, 2) are degrees and correlation of the noise of the components.
    """
    solver, final = solved.solver, solved.mesh.to_screen()
    solver.find_fixed(final)
    unknown = solved.unknown - _gauge(solved, final, options.distance)[solved.component]
    check_range(unknown, normal_map.camera)
    found, repeats = None, solver.repeats
    if options.cuts:
        found = find_discontinuities(jumps, final, unknown, normal_map.camera, solved.component, solver.fixed)
    measured = normal_map if repeats is None else without_slope(normal_map, repeats.mean_slope)
    heights = height_noise_of(final, unknown, measured, solved.component, noises, options.formulation, solver)
    return Surface.from_unknown(
        final,
        unknown,
        normal_map.camera,
        normal_map.shape,
        options.units,
        integration=replace(integration, height_noise=heights),
        decimation=decimation,
        discontinuities=found,
        coverage=Coverage.of(final, normal_map.mask),
        repeats=repeats,
    )


def check_repeating(options: IntegrationOptions) -> None:
    """Raise an error for options that a surface that repeats cannot have."""
    if options.formulation != "facets":
        raise NormalMeshError('tileable needs formulation="facets", and not preset="paper"')
    if options.prior is not None:
        raise NormalMeshError(
            "tileable surfaces take no prior: depths at some places are those of all copies; leave it out"
        )


def _target(mesh: ScreenMesh, cut: CutMesh) -> int | None:
    """Return the number of vertices that the surface should have, or None if each component keeps its own number."""
    if isinstance(mesh, DecimatedMesh) and mesh.report.target is not None and mesh.report.target_met:
        return max(mesh.report.target, len(cut.origin))
    return None


def _component_noises(noise: MapNoise, mesh: ScreenMesh, normal_map: NormalMap) -> Float:
    """Return degrees and correlation (C, 2) of the noise of each component of a mesh, from most of the pixels below."""
    known = np.array([(each.degrees, each.correlation) for each in noise.components])
    usual = noise.usual
    found = np.tile([usual.degrees, usual.correlation], (int(mesh.components.max()) + 1, 1))
    if len(known) == 1:
        return found
    labels, count = component_labels(normal_map.mask)
    rows, columns = normal_map.shape
    column, row = np.floor(mesh.vertices[mesh.faces].mean(axis=1)).astype(np.int64).T
    label = labels[np.clip(row, 0, rows - 1), np.clip(column, 0, columns - 1)].astype(np.int64)
    pair, number = np.unique(mesh.components[mesh.faces[:, 0]] * (count + 1) + label, return_inverse=True)
    by_area = pair[np.argsort(np.bincount(number, mesh.areas), kind="stable")]
    component, label = np.divmod(by_area[by_area % (count + 1) > 0], count + 1)
    # If several values are assigned to one place, the last one is kept.
    found[component] = known[label - 1]
    return found


def _refined(solved: SolvedMesh, target: int | None, max_rounds: int, monitor: Monitor) -> tuple[tuple[int, int], ...]:
    """Refine the mesh in rounds, remove bad faces, and add vertices up to the number asked for.

    Where the depth jumps, bad faces are also cut off from what the placement holds apart from them, and some more
    rounds follow. The last changes are not followed by a solve, which would make new bad faces.

    Returns
    -------
    The numbers of flips and moves in each round.
    """
    rounds = _rounds(solved, range(max_rounds), np.ones_like(solved.torn), monitor)
    placement = solved.solver.placement
    if max_rounds and placement is not None:
        with monitor.timed("tidy"):
            solved.detach(placement)
            solved.fill_up(target, RESERVE)
        with monitor.timed("solve"):
            solved.solve()
        rounds += _rounds(solved, range(max_rounds, max_rounds + ROUNDS_AFTER_CUTS), solved.torn, monitor)
    with monitor.timed("tidy"):
        costs = solved.tidy() if max_rounds else None
        solved.fill_up(target, costs=costs)
    return tuple(rounds)


def _rounds(solved: SolvedMesh, turns: range, chosen: NDArray[np.bool_], monitor: Monitor) -> list[tuple[int, int]]:
    """Run rounds of refinement, and solve again after every second one; return the flips and moves of each.

    Of the chosen components (C,), each rests as soon as few of its vertices change, whatever the others do.
    """
    rounds: list[tuple[int, int]] = []
    moving = unsolved = chosen
    for turn in turns:
        with monitor.stage("refine", _REFINE):
            flips, moves = solved.refine(turn, moving)
        rounds.append((int(flips.sum()), int(moves.sum())))
        have = solved.by_component(np.ones(solved.vertices, np.int64))
        moving = moving & (flips + moves >= MIN_CHANGE * have)
        last = turn == turns[-1] or not moving.any()
        if last or len(rounds) % ROUNDS_PER_SOLVE == 0:
            if solved.solver.placement is not None:
                with monitor.timed("tidy"):
                    solved.tidy(unsolved & solved.torn)
            with monitor.stage("solve", _SOLVE):
                solved.solve()
            unsolved = moving
        if last:
            break
    return rounds


def _require_memory(mesh: ScreenMesh) -> None:
    """Raise an error if a mesh is too large to be integrated."""
    edges = int(np.count_nonzero(mesh.opposite >= 0)) // 2
    task = f"the integration of {len(mesh.vertices)} vertices"
    require_memory(INTEGRATION_BYTES * edges, task, REMEDY)


def _check_mesh(mesh: ScreenMesh) -> None:
    """Raise an error for a mesh that cannot be integrated."""
    faults = [fault for fault in mesh.check().problems if "without a face" not in fault]
    if faults or len(mesh.faces) == 0:
        raise NormalMeshError(f"the mesh cannot be integrated: {', '.join(faults) or 'it has no faces'}")


def check_range(unknown: Float, camera: Camera) -> None:
    """Raise an error if points would not be finite: a contradictory prior can lead to any depth."""
    if not np.abs(unknown).max() < camera.max_unknown:
        raise NormalMeshError(
            "the depths would exceed the range of numbers: the points of the prior contradict each other, or the "
            "normals; check their depths and units, or lower prior_weight"
        )


def warn_of_doubts(error: float, bent: float) -> None:
    """Warn if equations could not be solved exactly, or if a prior bends the surface against the normals."""
    doubts = []
    if error > VISIBLE_ERROR:
        doubts.append(
            f"the depths may be off by {error:.2g} px, because the equations could not be solved more exactly; "
            "if there is a prior, check whether its points contradict each other, or lower prior_weight"
        )
    if bent > MAX_BENT:
        doubts.append(
            f"the prior changes the slope of {100 * bent:.2g} % of a component by more than a half, against the "
            "normals; check its depths and units, lower prior_weight, or ask for more vertices than there are points"
        )
    for doubt in doubts:
        warnings.warn(doubt, NormalMeshWarning, stacklevel=4)


def _gauge(solved: SolvedMesh, mesh: ScreenMesh, distance: float) -> Float:
    """Return the shift (C,) of the unknown of each component that gives it its documented mean.

    A component that a prior fixes gets its level back.
    """
    shift = mean_levels(solved.unknown, solved.component, mesh, solved.normal_map.camera, distance)
    solver = solved.solver
    if solver.fixed is None or solver.levels is None:
        return shift
    return with_prior_levels(shift, solver.levels, solved.component[mesh.faces[solver.fixed, 0]])
