"""The continuous surface of a facet system: planes of faces become values at vertices.

An offset is the mean of the three edge means, which is not the mean of the face: if z = c + g·δ + ½ δ·Hδ, a plane that
agrees with the edge means has the offset c + mean[δ·Hδ], the plane that agrees with the face mean has c +
½ mean[δ·Hδ], with means over the face. Planes are lowered by the difference (:attr:`.FaceMeans.bulges`) before they are
taken to the vertices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from normalmesh.array_types import Float, Integer
from normalmesh.facets import _facets
from normalmesh.facets.face_means import FaceMeans
from normalmesh.mesh.interpolation import barycentric_rows
from normalmesh.mesh.repeats import RepeatingMesh
from normalmesh.runtime.threads import in_parallel

#: Damping of the step of Jacobi's method that projects planes to the vertices.
DAMPING = 0.7


@dataclass(frozen=True, eq=False)
class PlaneSurface:
    """Planes of the faces of a mesh, whose offsets are not known yet.

    Attributes
    ----------
    means : FaceMeans
        The columns of planes suffice.
    """

    means: FaceMeans

    def at_vertices(self, offsets: Float) -> Float:
        """Return values (N,) at the vertices from offsets (M,) of the planes.

        The planes, moved to the means of their faces, are projected to functions that are continuous and linear on
        faces: ``Σ_f m_f ∫ (z − P_f)² + λ A_f ‖∇(z − P_f)‖²`` is reduced by a damped step of Jacobi's method from the
        means of the planes around each vertex, weighted by area · m_f.
        """
        means, faces, count = self.means, self.means.mesh.faces, len(self.means.mesh.vertices)
        twins = means.mesh.first_twins if isinstance(means.mesh, RepeatingMesh) else None
        planes = np.empty(faces.shape)
        moved, camera = offsets + means.bulges, means.camera.arrays
        in_parallel(_facets.fill_planes, len(planes), moved, means.triangles, means.table, camera, planes)
        # Twins get the value of the first of them, from the planes around all of them.
        if twins is not None:
            faces = twins[faces]
        importance, matrices = self._importance(), self._projections()

        def sums(at_corners: Float) -> Float:
            return np.bincount(faces.ravel(), at_corners.ravel(), count).astype(np.float64)

        values = sums(importance[:, None] * planes) * _inverse(sums(np.repeat(importance, 3)))
        rest = planes - values[faces]
        # Not by matrix products, which may round differently on other machines.
        residual = matrices[:, :, 0] * rest[:, :1]
        for k in (1, 2):
            residual += matrices[:, :, k] * rest[:, k : k + 1]
        values += DAMPING * sums(residual) * _inverse(sums(np.einsum("fii->fi", matrices)))
        return values if twins is None else values[twins]

    def prior_rows(self, screen: Float, faces: Integer) -> tuple[csr_matrix, Float]:
        """Return the surface at points (K, 2) on faces (K,) as an affine function of the offsets.

        Returns
        -------
        rows : (K, M) sparse
            Linear part, which multiplies the offsets.
        known : (K,)
            Constant part.
        """
        interpolated = barycentric_rows(self.means.mesh, screen, faces)
        level = self.at_vertices(np.zeros(len(self.means.mesh.faces)))
        return csr_matrix(interpolated @ self._to_vertices()), interpolated @ level

    def _importance(self) -> Float:
        """Return the weights (M,) of the faces in means over the faces around a vertex: area · m_f."""
        return self.means.areas * self.means.mobilities

    def _projections(self) -> Float:
        """Return the matrices (M, 3, 3) of the forms whose sum the projection to the vertices minimises."""
        matrices = np.empty((len(self.means.mesh.faces), 3, 3))
        triangles, table = self.means.triangles, self.means.table
        in_parallel(_facets.fill_projections, len(matrices), triangles, table, matrices)
        return matrices

    def _to_vertices(self) -> csr_matrix:
        """Return the linear part (N, M) of :meth:`at_vertices`."""
        faces, count = self.means.mesh.faces, len(self.means.mesh.vertices)
        importance = np.repeat(self._importance(), 3)
        shares = csr_matrix((importance, (faces.ravel(), np.arange(faces.size) // 3)), shape=(count, len(faces)))
        means = diags(_inverse(np.bincount(faces.ravel(), importance, count))) @ shares
        pairs = np.repeat(faces, 3, axis=1).ravel(), np.tile(faces, 3).ravel()
        projection = csr_matrix((self._projections().ravel(), pairs), shape=(count, count))
        # Constants have no slope: the rows of the matrix of a face add up to a third of its importance.
        residuals = shares / 3 - projection @ means
        return csr_matrix(means + diags(DAMPING * _inverse(projection.diagonal())) @ residuals)


def _inverse(values: NDArray[Any]) -> Float:
    """Return 1 / values, and 1 where a value is zero: vertices without faces."""
    return 1.0 / np.where(values > 0, values, 1.0)
