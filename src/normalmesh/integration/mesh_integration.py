"""Integration: depth at the vertices of a mesh from the normals of its pixels."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_instance
from normalmesh.decimation.decimated_mesh import DecimatedMesh
from normalmesh.errors import NormalMeshError
from normalmesh.integration.cotangent import CotangentSystem
from normalmesh.integration.gluing import Gluing
from normalmesh.integration.integration_options import IntegrationOptions
from normalmesh.integration.mesh_solver import MeshSolver
from normalmesh.integration.prior import Prior
from normalmesh.integration.refinement import refine as refine_once
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.cut_mesh import CutMesh
from normalmesh.mesh.origin import Integration
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.mesh.surface import Surface
from normalmesh.normals.noise import Noise, closure_error, noise_of, without_noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.monitor import Monitor, OnProgress

Float = NDArray[np.float64]

#: Rounds of refinement between two solves.
ROUNDS_PER_SOLVE = 2
#: Fraction of vertices that must change in a round for more rounds to follow.
MIN_CHANGE = 0.005

#: Work of a round of refinement, of a later solve, and of the noise estimate, in first solves, for the progress.
_REFINE, _RESOLVE, _NOISE = 3.0, 2.0, 2.0
#: Expected number of solves with the first system; later ones are not reported.
_SOLVES = 20


def integrate(
    mesh: ScreenMesh,
    normal_map: NormalMap,
    *,
    formulation: str = IntegrationOptions.formulation,
    parameters: str = IntegrationOptions.parameters,
    metric: str = IntegrationOptions.metric,
    clamp: tuple[float, float] | None = None,
    discontinuities: bool | None = None,
    noise: float | Noise | None = None,
    refine: int = IntegrationOptions.refine,
    prior: ArrayLike | None = None,
    prior_weight: float | None = None,
    distance: float = IntegrationOptions.distance,
    units: str = IntegrationOptions.units,
    progress: OnProgress | None = None,
) -> Surface:
    """Compute the depth of a mesh so that its faces fit the normals of the pixels that they cover.

    Minimises ``∫ ‖⟨n, r⟩ ∇z + (⟨n, τ_u⟩, ⟨n, τ_v⟩)‖²`` (eq. 10) over the mesh, then refines the mesh with the depths
    known.

    Parameters
    ----------
    mesh
        A mesh on the screen, from :func:`decimate` or elsewhere. It must be valid.
    normal_map
    formulation
        ``"facets"``: every face is a plane with the mean gradient of its pixels, and neighbouring planes agree at
        their common edge. ``"vertices"``: the cotangent system of the paper (supplement A).
    parameters, metric, clamp
        Options of the formulation ``"vertices"``, see :class:`normalmesh.integration.cotangent.CotangentSystem`.
    discontinuities
        Whether to cut the mesh where the depth jumps, instead of bridging the jump. Only with ``"facets"``, and the
        default there: if there is no jump, the surface is the continuous one.
    noise
        Standard deviation of white noise on the normals in degrees; by default the noise is estimated, also if it is
        correlated. Above 1°, normals are averaged before gradients are computed.
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
    progress
        Called repeatedly with a :class:`Step`. An exception that it raises ends the work.

    Returns
    -------
    Surface
        Components without prior have mean height zero (orthographic) or mean distance ``distance`` (perspective),
        averaged over the area on the screen. Vertices are split where the mesh is cut; the new ones follow those of
        the mesh. ``surface.integration`` describes the integration, ``surface.discontinuities`` the cuts.
    """
    options = IntegrationOptions(
        formulation, parameters, metric, clamp, discontinuities, noise, refine, prior, prior_weight, distance, units
    )
    checked_instance(mesh, ScreenMesh, "mesh")
    return integrate_with(mesh, checked_instance(normal_map, NormalMap, "normal_map"), options, progress)


def integrate_with(
    mesh: ScreenMesh, normal_map: NormalMap, options: IntegrationOptions, on_progress: OnProgress | None = None
) -> Surface:
    """Integrate as :func:`integrate` does, with options that have been checked."""
    if not isinstance(mesh, DecimatedMesh):
        _check_mesh(mesh)
    prior = None if options.prior is None else Prior.of(options.prior, options.prior_weight, normal_map)
    solved = _NOISE + _SOLVES
    work = solved + options.refine * _REFINE + -(-options.refine // ROUNDS_PER_SOLVE) * _RESOLVE
    monitor = Monitor(on_progress, work, ("noise", "solve", "refine"))
    monitor.vertices = len(mesh.vertices)
    with monitor.stage("noise", _NOISE):
        noise = noise_of(normal_map, options.noise)
        clean = without_noise(normal_map, noise)
    vertex_system = None
    if options.formulation == "vertices":
        vertex_system = partial(
            CotangentSystem.of, parameters=options.parameters, metric=options.metric, clamp=options.clamp
        )
    gluing = Gluing.against(closure_error(normal_map, noise.as_white)) if options.cuts else None
    solver = MeshSolver(clean, vertex_system, gluing, prior, lambda: monitor.reach(min(monitor.done + 1, solved)))
    with monitor.stage("solve"):
        cut, unknown = solver.solve(mesh, last=options.refine == 0)
    monitor.reach(solved)
    rounds: tuple[tuple[int, int], ...] = ()
    if options.refine:
        closed = ClosedMesh.from_screen(mesh, normal_map.shape, getattr(mesh, "locked", None))
        cut, unknown, rounds = _refined(closed, cut, unknown, solver, options.refine, noise.degrees, monitor)
    shift = _gauge(cut, unknown, solver.fixed, normal_map, options.distance)
    unknown = unknown - shift[cut.mesh.components[cut.origin]]
    _check_range(unknown, normal_map)
    surface = Surface.from_unknown(
        cut.screen(),
        unknown,
        normal_map.camera,
        normal_map.shape,
        options.units,
        integration=Integration(
            noise.degrees, solver.method, solver.residual, rounds, monitor.seconds, monitor.cpu_seconds
        ),
        decimation=getattr(mesh, "report", None),
        discontinuities=solver.discontinuities(cut, shift),
    )
    monitor.finish(len(surface.vertices))
    return surface


def _refined(
    mesh: ClosedMesh,
    cut: CutMesh,
    unknown: Float,
    solver: MeshSolver,
    max_rounds: int,
    noise: float,
    monitor: Monitor,
) -> tuple[CutMesh, Float, tuple[tuple[int, int], ...]]:
    """Refine the mesh in rounds, and solve again after every second one.

    Returns
    -------
    The cut mesh, the unknown at its vertices, and the flips and moves of each round.
    """
    rounds: list[tuple[int, int]] = []
    last = False
    while not last:
        corners = unknown[cut.faces.ravel()]
        for _ in range(ROUNDS_PER_SOLVE):
            with monitor.stage("refine", _REFINE):
                rounds.append(refine_once(mesh, corners, cut.strain, solver.normal_map, len(rounds), noise))
            last = len(rounds) == max_rounds or sum(rounds[-1]) < MIN_CHANGE * len(mesh.vertices)
            if last:
                break
        with monitor.timed("solve"):
            cut, unknown = solver.solve(mesh.to_screen(), cut.strain, last)
        monitor.advance(_RESOLVE)
    return cut, unknown, tuple(rounds)


def _check_mesh(mesh: ScreenMesh) -> None:
    """Raise an error for a mesh that cannot be integrated."""
    faults = [fault for fault in mesh.check().problems if "without a face" not in fault]
    if faults or len(mesh.faces) == 0:
        raise NormalMeshError(f"the mesh cannot be integrated: {', '.join(faults) or 'it has no faces'}")


def _check_range(unknown: Float, normal_map: NormalMap) -> None:
    """Raise an error if points would not be finite: a contradictory prior can lead to any depth."""
    if not np.abs(unknown).max() < normal_map.camera.max_unknown:
        raise NormalMeshError(
            "the depths would exceed the range of numbers: the points of the prior contradict each other, or the "
            "normals; check their depths and units, or lower prior_weight"
        )


def _gauge(
    cut: CutMesh, unknown: Float, fixed: NDArray[np.int32] | None, normal_map: NormalMap, distance: float
) -> Float:
    """Return the shift (C,) of the unknown of each component that gives it its documented mean.

    Components are those of the mesh before it was cut. The shift is zero if a prior fixes a face of the component.
    """
    mesh, component = cut.mesh, cut.mesh.components
    count = int(component.max()) + 1
    of_face = component[mesh.faces[:, 0]]
    area = np.bincount(of_face, mesh.areas, count)
    # A vertex without faces is a component without area; its value becomes the mean itself.
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
