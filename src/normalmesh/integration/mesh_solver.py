"""MeshSolver: assemble and solve the systems of a mesh that is refined between solves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.integration.cotangent import CotangentSystem
from normalmesh.integration.discontinuities import find_discontinuities
from normalmesh.integration.gluing import Glued, Gluing
from normalmesh.integration.prior import Prior
from normalmesh.mesh.cut_mesh import CUT, CutMesh, without_isolated_cuts
from normalmesh.mesh.origin import Discontinuities
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.workspace import Workspace
from normalmesh.solvers.sparse_system import PreparedSystem

Float = NDArray[np.float64]

#: Samples along each side of a pixel, for the mean gradients of small faces.
SAMPLES = 2
#: Number of solves in which edges along cuts give way to a prior.
RELEASES = 6


@dataclass(eq=False)
class MeshSolver:
    """Solver for the depth of a mesh. It keeps the last system and its solution.

    Attributes
    ----------
    normal_map
        Normals to fit, denoised as far as possible.
    vertex_system
        Function that assembles the paper's system, or None for the facet system.
    gluing
        Robust solver that separates facets, or None for a continuous surface.
    prior
        Depths to respect, or None.
    on_solve
        Called after each solve.
    method, residual
        Method and relative residual of the last solve.
    fixed : (K,) int32 or None
        Faces that the prior fixes.
    glued
        The last facet system and its solution.
    """

    normal_map: NormalMap
    vertex_system: Callable[[FaceMeans], CotangentSystem] | None
    gluing: Gluing | None
    prior: Prior | None
    on_solve: Callable[[], None] = lambda: None
    method: str = ""
    residual: float = 0.0
    fixed: NDArray[np.int32] | None = None
    glued: Glued | None = None
    _workspace: Workspace = field(default_factory=Workspace)

    def solve(self, mesh: ScreenMesh, strain: Float | None = None, last: bool = False) -> tuple[CutMesh, Float]:
        """Solve for the depth of a mesh.

        Parameters
        ----------
        mesh
        strain
            (3M,) at the corners: the strains of the edges across in the last solution, or None for the first solve.
        last
            Whether the mesh will not be refined again.

        Returns
        -------
        cut
            The mesh, cut along edges across which depth jumps.
        unknown : (N',)
            Height, or logarithm of the depth, at its vertices.
        """
        if self.prior is not None:
            # Points off the mesh are left out with a warning. That happens once, because refinement keeps the outline.
            self.prior, self.fixed = self.prior.on_faces(mesh, self.normal_map.shape)
        if self.vertex_system is None:
            return self._solve_facets(FacetSystem.of(FaceMeans.of(mesh, self.normal_map, SAMPLES)), strain, last)
        whole = CutMesh.whole(mesh)
        return whole, self._held(self.vertex_system(FaceMeans.of(mesh, self.normal_map)), mesh.vertices, whole)

    def discontinuities(self, cut: CutMesh, shift: Float) -> Discontinuities | None:
        """Describe the jumps of the last solution, minus a shift for each component (C,); None if it is continuous."""
        if self.glued is None:
            return None
        offsets = self.glued.offsets - shift[self.glued.system.component]
        return find_discontinuities(self.glued, offsets, cut, self.fixed)

    def _solve_facets(self, facets: FacetSystem, strain: Float | None, last: bool) -> tuple[CutMesh, Float]:
        mesh, centroids = facets.means.mesh, facets.means.centroids
        if self.gluing is None:
            whole = CutMesh.whole(mesh)
            return whole, facets.at_vertices(self._held(facets, centroids, whole), whole)
        prepared: list[PreparedSystem] = []

        def solve(weighted: FacetSystem, guess: Float | None) -> Float:
            if prepared:
                prepared[0].reweigh(weighted.matrix())
            else:
                matrix = weighted.matrix()
                prepared.append(
                    PreparedSystem(matrix, coordinates=centroids, gauge=weighted.gauge, workspace=self._workspace)
                )
            return self._solved(prepared[0], weighted.right_side(), guess)

        if strain is None:
            glued = self.gluing.begin(facets, solve)
        else:
            glued = self.gluing.resume(facets, strain[facets.corners], solve, last)
        self.glued = glued = self._moved_by_prior(glued, self.gluing)
        strain = without_isolated_cuts(mesh, facets.corners, glued.strain) if last else glued.strain
        cut = CutMesh.of(mesh, facets.corners, strain)
        return cut, facets.at_vertices(glued.offsets, cut)

    def _moved_by_prior(self, glued: Glued, gluing: Gluing) -> Glued:
        """Apply the prior, to which edges along cuts give way.

        It is applied after the weights have converged, so that a face that it pulls is not mistaken for one behind an
        occlusion.
        """
        if self.prior is None:
            return glued
        means, corners = glued.system.means, glued.system.corners
        for _ in range(RELEASES if (glued.strain >= CUT).any() else 1):
            cut = CutMesh.of(means.mesh, corners, glued.strain)
            glued = gluing.release(glued, self._held(glued.system, means.centroids, cut))
        return glued

    def _held(self, system: FacetSystem | CotangentSystem, coordinates: Float, cut: CutMesh) -> Float:
        """Return the solution with the prior, if there is one."""
        matrix, right = system.matrix(), system.right_side()
        if self.prior is not None and self.fixed is not None:
            # Σ weight (row · x + known − value)² over the points of the prior.
            row, known = system.prior_rows(self.prior.screen, self.fixed, cut)
            weighted = row.multiply(self.prior.weights[:, None]).tocsr()
            matrix = csr_matrix(matrix + row.T @ weighted)
            right = right + weighted.T @ (self.prior.unknown - known)
        return self._solved(PreparedSystem(matrix, coordinates=coordinates), right)

    def _solved(self, system: PreparedSystem, right: Float, guess: Float | None = None) -> Float:
        solution = system.solve(right, guess)
        self.method, self.residual = solution.method, solution.residual
        self.on_solve()
        return solution.x
