"""MeshSolver: assemble and solve the system of a mesh, and of the meshes that it is refined to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_matrix, diags

from normalmesh.array_types import Float, Int32, Integer
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.facets.plane_surface import PlaneSurface
from normalmesh.integration.cotangent import CotangentSystem
from normalmesh.integration.prior import Prior
from normalmesh.integration.prior_correction import Equations, MatrixEquations, corrected
from normalmesh.integration.prior_faces import PointFaces
from normalmesh.integration.prior_terms import FacePoints, face_terms
from normalmesh.jumps.placement import placed_offsets
from normalmesh.mesh.jumps import Placement
from normalmesh.mesh.repeats import Repeats
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.workspace import Workspace
from normalmesh.solvers.gauge import Gauge
from normalmesh.solvers.sparse_system import PreparedSystem

#: Samples along each side of a pixel, for the mean gradients of small faces.
SAMPLES = 2
#: Weight of a point of a prior from which on it bends faces rather than leave them to the normals,
STIFF = 1000.0
#: and change of slope (px per px) from which on they count as bent.
STEEP = 0.5
#: Weight, for each px², with which faces are held in the planes of a placement. Normals weigh an edge by its length.
HOLD = 0.03
#: Error of the unknowns, in px, that is small enough.
MAX_ERROR = 1e-7
#: Number of faces from which on the factor is in float32: less memory does not pay for further kernels before.
SINGLE_FROM = 50_000


@dataclass(eq=False)
class MeshSolver:
    """Solver for the unknown of the camera at the vertices of a mesh.

    Attributes
    ----------
    normal_map
        Normals to fit, denoised as far as possible.
    vertex_system
        Function that assembles the paper's system, or None for the facet system.
    placement
        Where jumps place the parts of the surface, or None for a continuous surface.
    prior
        Depths to respect, or None.
    repeats
        Directions in which the surface repeats, or None.
    on_solve
        Called after each solve.
    method, error
        Method of the last solve, and the estimated error of its unknowns in px.
    bent
        Largest share of a component that points of large weight bend against the normals.
    points
        Faces that the prior fixes, and where, or None.
    levels : (C,) or None
        What has to be added to the unknown of each connected component that the prior fixes.
    """

    normal_map: NormalMap
    vertex_system: Callable[[FaceMeans], CotangentSystem] | None
    placement: Placement | None
    prior: Prior | None
    repeats: Repeats | None = None
    on_solve: Callable[[], None] = lambda: None
    method: str = ""
    error: float = 0.0
    bent: float = 0.0
    points: PointFaces | None = None
    levels: Float | None = None
    _workspace: Workspace = field(default_factory=Workspace)

    @property
    def fixed(self) -> Int32 | None:
        """Faces (K,) that the prior fixes, or None."""
        return None if self.points is None else self.points.faces

    def solve(self, mesh: ScreenMesh, component: Integer) -> Float:
        """Return the height, or logarithm of the depth, (N,) at the vertices of a mesh.

        ``component`` (N,) is the connected component of each vertex before the mesh was cut. Those that a prior fixes
        are relative to :attr:`levels`.
        """
        self.find_fixed(mesh)
        if self.repeats is not None:
            mesh = self.repeats.wrap(mesh)
        of_face = component[mesh.faces[:, 0]]
        if self.vertex_system is not None:
            system = self.vertex_system(FaceMeans.of(mesh, self.normal_map))
            matrix, right = system.matrix(), system.right_side()
            unknown = self._solved(matrix, right, mesh.vertices)
            if self.prior is None:
                return unknown
            equations = MatrixEquations(matrix, right, Gauge.of(matrix).component, mesh.vertices, self._workspace)
            return self._with_prior(system, equations, unknown, of_face)
        surface, equations = self._facets(FaceMeans.of(mesh, self.normal_map, SAMPLES, planes_only=True))
        offsets = self._offsets(surface, equations, of_face)
        # Values at the vertices, and the means and equations of the next mesh, need memory of their own.
        del equations
        self._workspace.release()
        return surface.at_vertices(offsets)

    def find_fixed(self, mesh: ScreenMesh) -> None:
        """Find the faces of a mesh that the prior fixes."""
        if self.prior is not None:
            # Points out of reach are left out with a warning. That happens once, because refinement keeps the outline.
            self.prior, self.points = self.prior.on_faces(mesh)

    def _offsets(self, surface: PlaneSurface, equations: MatrixEquations, component: Integer) -> Float:
        """Return the offsets (M,) of faces; ``component`` (M,) is that of the faces before the mesh was cut."""
        means, matrix, right = surface.means, equations.matrix, equations.right
        gauge = Gauge(equations.part.astype(np.int32, copy=False), np.bincount(equations.part) > 0)
        if self.placement is not None:
            values, areas = placed_offsets(self.placement, means, self.normal_map.shape)
            weights = HOLD * areas * means.mobilities
            matrix, right = _held(matrix, right, weights, values)
            gauge = Gauge(gauge.component, gauge.floating & (np.bincount(gauge.component, weights) == 0))
        offsets = self._solved(matrix, right, equations.coordinates, gauge)
        if self.prior is None:
            return offsets
        return self._with_prior(surface, equations, offsets, component)

    def _with_prior(
        self, system: PlaneSurface | CotangentSystem, equations: Equations, x: Float, component: Integer
    ) -> Float:
        """Return unknowns (n,) that respect the prior, relative to :attr:`levels`, from those without it.

        Parts on which the prior has several points are not held by the placement any more. Those with one are shifted,
        and those without any move along with the others of their component. ``component`` (M,) is that of the faces
        before the mesh was cut.
        """
        assert self.prior is not None
        assert self.points is not None
        faces, feet = self.points
        points = FacePoints(faces, feet, self.prior.screen - feet, self.prior.unknown, self.prior.weights)
        terms = face_terms(system, x, points)
        scale = self.normal_map.camera.pixel_length
        found = corrected(x, equations, terms, component, self.placement is not None, MAX_ERROR * scale)
        self.levels, self.error = found.levels, max(self.error, found.error / scale)
        if self.prior.weights.max() > STIFF:
            change = (system.at_vertices(found.x) - system.at_vertices(x)) / scale
            self.bent = steep_share(system.means.mesh, change, component)
        return found.x

    def _facets(self, means: FaceMeans) -> tuple[PlaneSurface, MatrixEquations]:
        """Return the planes of a mesh and their equations; the facet system itself would need memory beside them."""
        system = FacetSystem.of(means)
        matrix, right, workspace = system.matrix(), system.right_side(), self._workspace
        coordinates = means.centroids if self.repeats is None else self.repeats.folded(means.centroids)
        return PlaneSurface(means), MatrixEquations(matrix, right, system.component, coordinates, workspace)

    def _solved(self, matrix: csr_matrix, right: Float, coordinates: Float, gauge: Gauge | None = None) -> Float:
        # Only facet systems, whose gauge is known, are Laplacians.
        single = gauge is not None and len(right) >= SINGLE_FROM
        system = PreparedSystem(matrix, coordinates=coordinates, gauge=gauge, workspace=self._workspace, single=single)
        scale = self.normal_map.camera.pixel_length
        solution = system.solve(right, max_error=MAX_ERROR * scale)
        self.method, self.error = solution.method, solution.error / scale
        self.on_solve()
        return solution.x


def steep_share(mesh: ScreenMesh, heights: Float, component: Integer) -> float:
    """Return the largest share of a component on which heights (N,), in px, are steeper than :data:`STEEP`.

    ``component`` (M,) is that of the faces.
    """
    first, second, third = (mesh.faces[:, k] for k in range(3))
    (au, av), (bu, bv) = ((mesh.vertices[other] - mesh.vertices[first]).T for other in (second, third))
    a, b = (heights[other] - heights[first] for other in (second, third))
    steep = np.hypot(a * bv - b * av, b * au - a * bu) > STEEP * np.abs(au * bv - av * bu)
    bent, areas = np.bincount(component, mesh.areas * steep), np.bincount(component, mesh.areas)
    return float((bent / np.maximum(areas, np.finfo(np.float64).tiny)).max())


def _held(matrix: csr_matrix, right: Float, weights: Float, values: Float) -> tuple[csr_matrix, Float]:
    """Return a system with ``Σ weight (x − value)²`` over all unknowns."""
    return csr_matrix(matrix + diags(weights)), right + weights * values
