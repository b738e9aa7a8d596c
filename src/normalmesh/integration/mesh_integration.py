"""Integration: depth at the vertices of a mesh from the normals of its pixels."""

from __future__ import annotations

from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_bool, checked_choice, checked_instance, options_of
from normalmesh.decimation.rounds import MOST_ROUNDS, DecimatedMesh
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.integration.cotangent import CotangentSystem, check_system
from normalmesh.integration.gluing import Gluing
from normalmesh.integration.mesh_solver import MeshSolver
from normalmesh.integration.prior import Prior, check_prior
from normalmesh.integration.refinement import refine as refine_once
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.cut_mesh import CutMesh
from normalmesh.mesh.origin import Integration
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.mesh.surface import Surface, check_units
from normalmesh.normals.camera import checked_distance
from normalmesh.normals.noise import checked_noise, closure_error, estimate_noise, without_noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.progress import Progress, Teller
from normalmesh.runtime.stopwatch import Stopwatch

Float = NDArray[np.float64]

FORMULATIONS = ("facets", "vertices")

#: Rounds of refinement, how many of them go by before the mesh is integrated anew, and the share of vertices that must
#: still improve for others to follow.
ROUNDS = 4
ROUNDS_A_SOLVE = 2
LEAST_CHANGE = 0.005

#: Time of a round of refinement, of its solves, and of the noise estimate, in solves: what progress is told by.
_REFINE, _RESOLVE, _NOISE = 3.0, 2.0, 2.0
#: Solves of the first system; more of them are not told apart.
_SOLVES = 20


def integrate(
    mesh: ScreenMesh,
    normal_map: NormalMap,
    *,
    formulation: str = "facets",
    parameters: str = "gradient",
    metric: str = "screen",
    clamp: tuple[float, float] | None = None,
    discontinuities: bool | None = None,
    noise: float | None = None,
    refine: int = ROUNDS,
    prior: ArrayLike | None = None,
    prior_weight: float | None = None,
    distance: float = 1.0,
    units: str = "px",
    progress: Progress | None = None,
) -> Surface:
    """Depth for a mesh, so that its faces fit the normals of the pixels that they cover.

    Minimises ``∫ ‖⟨n, r⟩ ∇z + (⟨n, τ_u⟩, ⟨n, τ_v⟩)‖²`` (eq. 10) over the mesh; then, with depths known, improves it.

    Parameters
    ----------
    mesh
        On the screen; from :func:`decimate`, or any other sound mesh.
    formulation
        ``"facets"``: every face is a plane with the mean gradient of its pixels, and neighbours agree where they meet.
        ``"vertices"``: the paper's cotangent system (supplement A).
    parameters, metric, clamp
        Of the vertex formulation, see :class:`normalmesh.integration.cotangent.CotangentSystem`.
    discontinuities
        Cut the mesh where depth jumps, instead of bending the surface from one side to the other. Facets only, and
        their default: where nothing jumps the surface is the continuous one.
    noise
        Deviation of the normals' noise in degrees; default: estimated. Above 1° normals are averaged before gradients
        are taken from them.
    refine
        Rounds of flips and moves that lower the angle between the normals of pixels and faces, at most; 0: none.
        Boundary vertices, and locked ones of a :class:`DecimatedMesh`, stay.
    prior
        Control points (K, 3 or 4) as u, v, depth[, weight], or a depth map (H, W), NaN where unknown. Depth as
        ``Surface.depth_map`` counts it. Added as a quadratic term.
    prior_weight
        Weight of each point (default 100) or pixel of the depth map (default 0.01).
    distance
        Mean distance along the optical axis behind a perspective camera, of each component without prior.
    units
        Name of the unit of the surface.
    progress
        Called with a :class:`Step` again and again; what it raises ends the work.

    Returns
    -------
    Surface
        Components without prior: orthographic, mean height zero; perspective, mean distance ``distance``; means are
        taken over the area on the screen. Where depth jumps vertices are split, and new ones follow those of the mesh.
        ``surface.integration`` says how it was made, ``surface.discontinuities`` where it is cut.
    """
    checked_instance(mesh, ScreenMesh, "mesh")
    checked_instance(normal_map, NormalMap, "normal_map")
    _check_options(formulation, parameters, metric, clamp, discontinuities, noise, refine, distance, units)
    if discontinuities is None:
        discontinuities = formulation == "facets"
    if not isinstance(mesh, DecimatedMesh):
        _check_mesh(mesh)
    points = None if prior is None else Prior.of(prior, prior_weight, normal_map)
    seconds = Stopwatch("noise", "solve", "refine")
    solved = _NOISE + _SOLVES
    teller = Teller(progress, solved + refine * _REFINE + -(-refine // ROUNDS_A_SOLVE) * _RESOLVE)
    teller.begin("noise", len(mesh.vertices))
    with seconds.stage("noise"):
        noise = estimate_noise(normal_map) if noise is None else float(noise)
        clean = without_noise(normal_map, noise)
    vertex_system = None
    if formulation == "vertices":
        vertex_system = partial(CotangentSystem.of, parameters=parameters, metric=metric, clamp=clamp)
    gluing = Gluing.against(closure_error(normal_map, noise)) if discontinuities else None
    solver = MeshSolver(clean, vertex_system, gluing, points, lambda: teller.reach(min(teller.done + 1, solved)))
    teller.advance(_NOISE)
    teller.begin("solve")
    with seconds.stage("solve"):
        cut, unknown = solver.solve(mesh, last=refine == 0)
    teller.reach(solved)
    history: tuple[tuple[int, int], ...] = ()
    if refine:
        closed = ClosedMesh.from_screen(mesh, normal_map.shape, getattr(mesh, "locked", None))
        cut, unknown, history = _refined(closed, cut, unknown, solver, refine, noise, seconds, teller)
    shift = _gauge(cut, unknown, solver.fixed, normal_map, float(distance))
    unknown = unknown - shift[cut.mesh.components[cut.origin]]
    _refuse_out_of_range(unknown, normal_map)
    made = Integration(noise, solver.method, solver.residual, history, seconds.seconds, seconds.cpu_seconds)
    surface = Surface.from_unknown(
        cut.screen(),
        unknown,
        normal_map.camera,
        normal_map.shape,
        units,
        integration=made,
        decimation=getattr(mesh, "report", None),
        discontinuities=solver.discontinuities(cut, shift),
    )
    teller.finish(len(surface.vertices))
    return surface


def _refined(
    mesh: ClosedMesh,
    cut: CutMesh,
    unknown: Float,
    solver: MeshSolver,
    rounds: int,
    noise: float,
    seconds: Stopwatch,
    teller: Teller,
) -> tuple[CutMesh, Float, tuple[tuple[int, int], ...]]:
    """Rounds of refinement, with solves between them: the mesh, the unknown, and the flips and moves of each round."""
    history: list[tuple[int, int]] = []
    last = False
    while not last:
        teller.begin("refine")
        corners = unknown[cut.faces.ravel()]
        for _ in range(ROUNDS_A_SOLVE):
            with seconds.stage("refine"):
                history.append(refine_once(mesh, corners, cut.strain, solver.normal_map, len(history), noise))
            teller.advance(_REFINE)
            last = len(history) == rounds or sum(history[-1]) < LEAST_CHANGE * len(mesh.vertices)
            if last:
                break
        with seconds.stage("solve"):
            cut, unknown = solver.solve(mesh.to_screen(), cut.strain, last)
        teller.advance(_RESOLVE)
    return cut, unknown, tuple(history)


def checked_integration(
    normal_map: NormalMap, options: dict[str, Any], preset: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Options of :func:`integrate`, over those of a preset; or the error that it would raise, before longer work."""
    chosen = {**(preset or {}), **options_of(integrate, options, "integration", ("progress",))}
    names = signature(_check_options).parameters
    defaults = {name: each.default for name, each in signature(integrate).parameters.items() if name in names}
    _check_options(**{**defaults, **{name: value for name, value in chosen.items() if name in names}})
    if chosen.get("prior") is not None:
        check_prior(chosen["prior"], chosen.get("prior_weight"), normal_map)
    return chosen


def _check_options(
    formulation: str,
    parameters: str,
    metric: str,
    clamp: tuple[float, float] | None,
    discontinuities: bool | None,
    noise: float | None,
    refine: int,
    distance: float,
    units: str,
) -> None:
    checked_choice(formulation, FORMULATIONS, "formulation")
    check_system(parameters, metric, clamp)
    if discontinuities is not None and checked_bool(discontinuities, "discontinuities") and formulation != "facets":
        raise NormalMeshError('discontinuities need formulation="facets"')
    if noise is not None:
        checked_noise(noise)
    checked_distance(distance)
    check_units(units)
    if isinstance(refine, bool) or not isinstance(refine, int | np.integer) or not 0 <= refine <= MOST_ROUNDS:
        raise NormalMeshError(
            f"refine must be a number of rounds from 0 to {MOST_ROUNDS}, not {repr_for_error(refine)}"
        )


def _check_mesh(mesh: ScreenMesh) -> None:
    faults = [fault for fault in mesh.check().problems if "without a face" not in fault]
    if faults or len(mesh.faces) == 0:
        raise NormalMeshError(f"the mesh cannot be integrated: {', '.join(faults) or 'it has no faces'}")


def _refuse_out_of_range(unknown: Float, normal_map: NormalMap) -> None:
    """Raise where points would not be finite: a prior whose points contradict each other can ask for any depth."""
    if not np.abs(unknown).max() < normal_map.camera.max_unknown:
        raise NormalMeshError(
            "the surface would reach farther than numbers do: points of the prior contradict each other, or the "
            "normals, by far; check their depths and units, or lower prior_weight"
        )


def _gauge(
    cut: CutMesh, unknown: Float, fixed: NDArray[np.int32] | None, normal_map: NormalMap, distance: float
) -> Float:
    """What to take from the unknown of each component (C,), as it was before it was cut, for its documented mean.

    Nothing where a prior holds one of its faces.
    """
    mesh, component = cut.mesh, cut.mesh.components
    count = int(component.max()) + 1
    of_face = component[mesh.faces[:, 0]]
    area = np.bincount(of_face, mesh.areas, count)
    # A vertex without faces is a component without area, and gets the mean itself.
    bare = area == 0

    def means(values: Float) -> Float:
        total = np.bincount(of_face, mesh.areas * values[cut.faces].mean(axis=1), count)
        return total / np.where(bare, 1.0, area)

    # Logarithms are centred first, so that their exponentials stay in range.
    shift = means(unknown)
    if normal_map.camera.is_central:
        centred = normal_map.camera.depth_of_unknown(unknown - shift[component[cut.origin]])
        shift += normal_map.camera.unknown_of_depth(np.where(bare, 1.0, means(centred)) / distance)
    if fixed is not None:
        shift[of_face[fixed]] = 0.0
    return shift
