"""MeshSolver: assemble and solve the system of a mesh, and of the meshes that it is refined to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.integration.cotangent import CotangentSystem
from normalmesh.integration.prior import Prior
from normalmesh.jumps.placement import placed_offsets
from normalmesh.mesh.jumps import Placement
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.workspace import Workspace
from normalmesh.solvers.gauge import Gauge
from normalmesh.solvers.sparse_system import PreparedSystem

Float = NDArray[np.float64]

#: Samples along each side of a pixel, for the mean gradients of small faces.
SAMPLES = 2
#: Weight, for each px², with which faces are held in the planes of a placement. Normals weigh an edge by its length.
HOLD = 0.03


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
    on_solve
        Called after each solve.
    method, residual
        Method and relative residual of the last solve.
    fixed : (K,) int32 or None
        Faces that the prior fixes.
    """

    normal_map: NormalMap
    vertex_system: Callable[[FaceMeans], CotangentSystem] | None
    placement: Placement | None
    prior: Prior | None
    on_solve: Callable[[], None] = lambda: None
    method: str = ""
    residual: float = 0.0
    fixed: NDArray[np.int32] | None = None
    _workspace: Workspace = field(default_factory=Workspace)

    def solve(self, mesh: ScreenMesh, component: NDArray[np.integer]) -> Float:
        """Return the height, or logarithm of the depth, (N,) at the vertices of a mesh.

        ``component`` (N,) is the connected component of each vertex before the mesh was cut.
        """
        self.find_fixed(mesh)
        if self.vertex_system is not None:
            system = self.vertex_system(FaceMeans.of(mesh, self.normal_map))
            matrix, right = self._with_prior(system, system.matrix(), system.right_side())
            return self._solved(matrix, right, mesh.vertices)
        facets = FacetSystem.of(FaceMeans.of(mesh, self.normal_map, SAMPLES))
        return facets.at_vertices(self._offsets(facets, component[mesh.faces[:, 0]]))

    def find_fixed(self, mesh: ScreenMesh) -> None:
        """Find the faces of a mesh that the prior fixes."""
        if self.prior is not None:
            # Points off the mesh are left out with a warning. That happens once, because refinement keeps the outline.
            self.prior, self.fixed = self.prior.on_faces(mesh, self.normal_map.shape)

    def _offsets(self, facets: FacetSystem, component: NDArray[np.integer]) -> Float:
        """Return the offsets (M,) of facets; ``component`` (M,) is that of the faces before the mesh was cut."""
        matrix, right, gauge = facets.matrix(), facets.right_side(), facets.gauge
        centroids = facets.means.centroids
        if self.placement is not None:
            values, areas = placed_offsets(self.placement, facets.means, self.normal_map.shape)
            weights = HOLD * areas * facets.means.mobilities
            if self.prior is not None:
                closed = self._solved(*_held(matrix, right, weights, values), centroids)
                values, weights = self._moved_by_prior(facets, closed, component, values, weights)
            matrix, right = _held(matrix, right, weights, values)
            gauge = Gauge(gauge.component, gauge.floating & (np.bincount(gauge.component, weights) == 0))
        if self.prior is not None:
            return self._solved(*self._with_prior(facets, matrix, right), centroids)
        return self._solved(matrix, right, centroids, gauge)

    def _moved_by_prior(
        self, facets: FacetSystem, offsets: Float, component: NDArray[np.integer], values: Float, weights: Float
    ) -> tuple[Float, Float]:
        """Return values and weights (M,) of the placement, to which the prior is added.

        Parts on which the prior has points are not held any more. The others of their component move along with them,
        from where the ``offsets`` (M,) without a prior place them.
        """
        assert self.prior is not None
        assert self.fixed is not None
        rows, known = facets.prior_rows(self.prior.screen, self.fixed)
        apart = self.prior.unknown - known - rows @ offsets
        of_point, count = component[self.fixed], int(component.max()) + 1
        total = np.bincount(of_point, self.prior.weights, count)
        shift = np.bincount(of_point, self.prior.weights * apart, count) / np.where(total > 0, total, 1.0)
        free = np.zeros(int(facets.component.max()) + 1, np.bool_)
        free[facets.component[self.fixed]] = True
        return values + shift[component], np.where(free[facets.component], 0.0, weights)

    def _with_prior(
        self, system: FacetSystem | CotangentSystem, matrix: csr_matrix, right: Float
    ) -> tuple[csr_matrix, Float]:
        """Return the system plus ``Σ weight (row · x + known − value)²`` over the points of the prior, if any."""
        if self.prior is None or self.fixed is None:
            return matrix, right
        row, known = system.prior_rows(self.prior.screen, self.fixed)
        weighted = row.multiply(self.prior.weights[:, None]).tocsr()
        return csr_matrix(matrix + row.T @ weighted), right + weighted.T @ (self.prior.unknown - known)

    def _solved(self, matrix: csr_matrix, right: Float, coordinates: Float, gauge: Gauge | None = None) -> Float:
        system = PreparedSystem(matrix, coordinates=coordinates, gauge=gauge, workspace=self._workspace)
        solution = system.solve(right)
        self.method, self.residual = solution.method, solution.residual
        self.on_solve()
        return solution.x


def _held(matrix: csr_matrix, right: Float, weights: Float, values: Float) -> tuple[csr_matrix, Float]:
    """Return a system with ``Σ weight (x − value)²`` over all unknowns."""
    return csr_matrix(matrix + diags(weights)), right + weights * values
