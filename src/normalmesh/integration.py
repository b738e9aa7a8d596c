"""Integration: depth at the vertices of a mesh from the normals of its pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from normalmesh.camera import Perspective
from normalmesh.closedmesh import ClosedMesh
from normalmesh.cotangent import CotangentSystem
from normalmesh.errors import NormalMeshError
from normalmesh.facemeans import FaceMeans
from normalmesh.facets import FacetSystem
from normalmesh.noise import estimate_noise, without_noise
from normalmesh.normalmap import NormalMap
from normalmesh.prior import Prior
from normalmesh.refinement import refine as refine_once
from normalmesh.robust import RobustWeights
from normalmesh.screenmesh import ScreenMesh
from normalmesh.solve import PreparedSystem
from normalmesh.stopwatch import Stopwatch
from normalmesh.surface import Surface

Float = NDArray[np.float64]

FORMULATIONS = ("facets", "vertices")

#: Rounds of refinement, and the share of vertices that must still improve for another round.
ROUNDS = 6
LEAST_CHANGE = 0.005

#: Solves of the two robust stages, and after each round of refinement.
ONE_SIDED, SETTLINGS, RESETTLINGS = 10, 15, 3
#: Misfit (px) at which an edge begins to lose its weight; noise adds its own, about 1 px for each radian.
WIDTH = 0.05


@dataclass(frozen=True)
class Integration:
    """How a surface was integrated.

    Attributes
    ----------
    noise
        Noise of the normals in degrees, estimated or as given.
    method
        Solver that was used last.
    residual
        Its residual, relative to the right side.
    refinements
        Flips and moves of each round.
    seconds
        Wall time of the stages ``noise``, ``solve`` and ``refine``.
    """

    noise: float
    method: str
    residual: float
    refinements: tuple[tuple[int, int], ...]
    seconds: dict[str, float]


def integrate(
    mesh: ScreenMesh,
    normal_map: NormalMap,
    *,
    formulation: str = "facets",
    parameters: str = "gradient",
    metric: str = "screen",
    clamp: tuple[float, float] | None = None,
    robust: bool = True,
    noise: float | None = None,
    refine: int = ROUNDS,
    prior: ArrayLike | None = None,
    prior_weight: float | None = None,
    distance: float = 1.0,
    units: str = "px",
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
        Of the vertex formulation, see :class:`normalmesh.cotangent.CotangentSystem`.
    robust
        Let faces that do not fit together come apart instead of bending the surface between them: facets only. The same
        as without where nothing is occluded.
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

    Returns
    -------
    Surface
        Components without prior: orthographic, mean height zero; perspective, mean distance ``distance``; means are
        taken over the area on the screen. ``surface.integration`` says how it was made.
    """
    if formulation not in FORMULATIONS:
        raise NormalMeshError(f"formulation must be one of {', '.join(FORMULATIONS)}, not {formulation!r}")
    if not (np.isfinite(distance) and distance > 0):
        raise NormalMeshError(f"distance must be a positive number, not {distance}")
    if isinstance(refine, bool) or not isinstance(refine, int | np.integer) or refine < 0:
        raise NormalMeshError(f"refine must be a number of rounds, zero or more, not {refine!r}")
    _check_mesh(mesh)
    decimation = getattr(mesh, "report", None)
    points = None if prior is None else Prior.of(prior, prior_weight, normal_map)
    seconds = Stopwatch("noise", "solve", "refine")
    with seconds.stage("noise"):
        noise = estimate_noise(normal_map) if noise is None else noise
        clean = without_noise(normal_map, noise)
    width = WIDTH + math.radians(noise)
    solver = _Solver(clean, formulation, parameters, metric, clamp, points, robust, width)
    with seconds.stage("solve"):
        unknown = solver.solve(mesh)
    history: list[tuple[int, int]] = []
    if refine:
        closed = ClosedMesh.from_screen(mesh, normal_map.shape, getattr(mesh, "locked", None))
    while len(history) < refine and (not history or sum(history[-1]) >= LEAST_CHANGE * len(mesh.vertices)):
        with seconds.stage("refine"):
            history.append(refine_once(closed, unknown, clean, len(history), noise))
            mesh = closed.to_screen()
        with seconds.stage("solve"):
            unknown = solver.solve(mesh)
    unknown = _without_gauge(mesh, unknown, solver.fixed, normal_map, distance)
    made = Integration(noise, solver.method, solver.residual, tuple(history), seconds.seconds)
    return Surface.from_unknown(mesh, unknown, normal_map.camera, normal_map.shape, units, made, decimation)


def _check_mesh(mesh: ScreenMesh) -> None:
    faults = [fault for fault in mesh.check().problems if "without a face" not in fault]
    if faults or len(mesh.faces) == 0:
        raise NormalMeshError(f"the mesh cannot be integrated: {', '.join(faults) or 'it has no faces'}")


@dataclass(eq=False)
class _Solver:
    """Assembles and solves the system of a mesh; keeps what the last solution needed."""

    normal_map: NormalMap
    formulation: str
    parameters: str
    metric: str
    clamp: tuple[float, float] | None
    prior: Prior | None
    robust: bool
    width: float
    method: str = ""
    residual: float = 0.0
    fixed: NDArray[np.int32] | None = None
    last: FacetSystem | None = None
    last_offsets: Float = field(default_factory=lambda: np.zeros(0))

    def solve(self, mesh: ScreenMesh) -> Float:
        """The unknown (N,) at the vertices."""
        means = FaceMeans.of(mesh, self.normal_map.normals, self.normal_map.mask, self.normal_map.camera)
        if self.formulation == "facets":
            return self._solve_facets(FacetSystem.of(means))
        vertices = CotangentSystem.of(means, self.parameters, self.metric, self.clamp)
        added = self._prior_terms(means, vertices)
        system = PreparedSystem(csr_matrix(vertices.matrix() + added[0]), coordinates=mesh.vertices)
        return self._solved(system, vertices.right_side() + added[1])

    def _solve_facets(self, facets: FacetSystem) -> Float:
        """Plain, or with weights that settle: a full schedule at first, a few steps once offsets are known."""
        if not self.robust:
            return facets.at_vertices(self._held(facets))
        centroids = facets.means.centroids
        system = PreparedSystem(facets.matrix(), coordinates=centroids)

        def solve(weighted: FacetSystem, guess: Float | None = None) -> Float:
            system.update(weighted.matrix())
            return self._solved(system, weighted.right_side(), guess)

        weights = RobustWeights(facets)
        if self.last is None:
            offsets = solve(weights.even())
            for _ in range(ONE_SIDED):
                offsets = solve(weights.one_sided(offsets), offsets)
            widths = np.geomspace(4 * self.width, self.width, SETTLINGS)
        else:
            offsets = self.last_offsets + self.last.means.rise(np.arange(len(centroids)), centroids)
            widths = np.full(RESETTLINGS, self.width)
        for width in widths:
            settled = weights.cauchy(offsets, float(width))
            offsets = solve(settled, offsets)
        self.last, self.last_offsets = facets, offsets
        # The prior waits until weights have settled: a face that it pulls must not look like one behind an occlusion.
        return facets.at_vertices(offsets if self.prior is None else self._held(settled.scaled_like(facets)))

    def _held(self, facets: FacetSystem) -> Float:
        """Offsets (M,) with the prior, if there is one."""
        matrix, right = self._prior_terms(facets.means, facets)
        system = PreparedSystem(csr_matrix(facets.matrix() + matrix), coordinates=facets.means.centroids)
        return self._solved(system, facets.right_side() + right)

    def _prior_terms(self, means: FaceMeans, system: FacetSystem | CotangentSystem) -> tuple[csr_matrix, Float]:
        """``Σ weight (row · x + known − value)²`` over the points of the prior, as matrix and right side."""
        count = len(system.right_side())
        if self.prior is None:
            return csr_matrix((count, count)), np.zeros(count)
        # Points off the mesh are left out, and warned about, once: refinement keeps the outline.
        self.prior, faces = self.prior.on_faces(means.mesh, self.normal_map.shape)
        points = self.prior
        self.fixed = means.mesh.components[means.mesh.faces[faces, 0]]
        row, known = system.prior_rows(points.screen, faces)
        weighted = row.multiply(points.weights[:, None]).tocsr()
        return csr_matrix(row.T @ weighted), weighted.T @ (points.unknown - known)

    def _solved(self, system: PreparedSystem, right: Float, guess: Float | None = None) -> Float:
        solution = system.solve(right, guess)
        self.method, self.residual = solution.method, solution.residual
        return solution.x


def _without_gauge(
    mesh: ScreenMesh, unknown: Float, fixed: NDArray[np.int32] | None, normal_map: NormalMap, distance: float
) -> Float:
    """Give each component without prior its documented mean."""
    perspective = isinstance(normal_map.camera, Perspective)
    component = mesh.components
    count = int(component.max()) + 1
    of_face = component[mesh.faces[:, 0]]

    area = np.bincount(of_face, mesh.areas, count)
    # A vertex without faces is a component without area, and gets the mean itself.
    bare = area == 0

    def means(values: Float) -> Float:
        total = np.bincount(of_face, mesh.areas * values[mesh.faces].mean(axis=1), count)
        return total / np.where(bare, 1.0, area)

    # Logarithms are centred first, so that their exponentials stay in range.
    shift = means(unknown)
    if perspective:
        shift += np.log(np.where(bare, 1.0, means(np.exp(unknown - shift[component]))) / distance)
    if fixed is not None:
        shift[fixed] = 0.0
    return unknown - shift[component]
