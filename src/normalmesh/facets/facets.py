"""The facet system: each face is a plane with the mean gradient of its pixels; adjacent planes should meet.

The unknowns are the offsets c_f of the planes at the centroids b_f of the faces. Adjacent planes should agree at the
midpoint m_e of the common edge: minimise ``Σ_e w_e (c_f' − c_f − t_e)²`` with
``t_e = ḡ_f·(m_e − b_f) − ḡ_f'·(m_e − b_f')`` and ``w_e = length_e · min(m_f, m_f')``. The mean gradient of a face
determines the differences of its three edge means exactly, whatever the surface does inside (Crouzeix and Raviart
1973), so curved faces cost no accuracy. For a perspective camera the unknown is the logarithm of the depth, planes are
planes in space, and ``ḡ·δu`` becomes ``−log(1 − ḡ·δu)``.

An offset is the mean of the three edge means, which is not the mean of the face: if z = c + g·δ + ½ δ·Hδ, a plane that
agrees with the edge means has the offset c + mean[δ·Hδ], the plane that agrees with the face mean has c +
½ mean[δ·Hδ], with means over the face. Planes are lowered by the difference (:attr:`.FaceMeans.bulges`) before they are
taken to the vertices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from normalmesh.facets import _facets
from normalmesh.facets.face_means import FaceMeans
from normalmesh.mesh.interpolation import barycentric_rows
from normalmesh.runtime.threads import in_parallel
from normalmesh.solvers.gauge import Gauge

Float = NDArray[np.float64]

#: Minimum number of edges or faces for each thread.
GRAIN = 4096
#: Damping of the step of Jacobi's method that projects planes to the vertices.
DAMPING = 0.7


@dataclass(frozen=True, eq=False)
class FacetSystem:
    """The system of equations on the dual graph of a mesh.

    Attributes
    ----------
    means : FaceMeans
        Mesh, camera, and mean normals of the faces.
    corners : (E,) int32
        The corner of f across from each inner edge.
    ends : (E, 2) int32
        The two vertices of each inner edge.
    pairs : (E, 2) int32
        The two faces f, f' of each inner edge.
    lengths : (E,)
        Lengths of the edges on the screen, in px.
    rises : (E, 2)
        Rises of the planes of f and f' from their centroids to the midpoint of the edge.
    weights : (E,)
        Weights w_e of a continuous surface, or robust weights (:mod:`normalmesh.facets.robust_weights`).
    """

    means: FaceMeans
    corners: NDArray[np.int32]
    ends: NDArray[np.int32]
    pairs: NDArray[np.int32]
    lengths: Float
    rises: Float
    weights: Float

    @classmethod
    def of(cls, means: FaceMeans) -> FacetSystem:
        """Return the system with the weights of a continuous surface."""
        opposite = means.mesh.opposite
        corners = np.flatnonzero(opposite > np.arange(len(opposite))).astype(np.int32)
        count = len(corners)
        edges = _facets.Edges(
            corners,
            ends=np.empty((count, 2), np.int32),
            pairs=np.empty((count, 2), np.int32),
            lengths=np.empty(count),
            rises=np.empty((count, 2)),
            weights=np.empty(count),
        )
        central = means.camera.is_central
        in_parallel(_facets.fill_edges, count, means.triangles, opposite, means.table, central, edges, grain=GRAIN)
        return cls(means, *edges)

    @cached_property
    def steps(self) -> Float:
        """Steps t_e (E,): the difference c_f' − c_f at which the planes of f and f' meet."""
        return self.rises[:, 0] - self.rises[:, 1]

    @cached_property
    def component(self) -> NDArray[np.int32]:
        """Connected component (M,) of each face."""
        return self.means.mesh.components[self.means.mesh.faces[:, 0]]

    @property
    def gauge(self) -> Gauge:
        """Gauge of the system: one free constant for each component that has faces."""
        return Gauge(self.component, np.bincount(self.component) > 0)

    def misfits(self, offsets: Float) -> Float:
        """Return the gaps (E,) between the planes of two adjacent faces at the midpoint of their edge."""
        return offsets[self.pairs[:, 1]] - offsets[self.pairs[:, 0]] - self.steps

    @cached_property
    def face_edges(self) -> NDArray[np.int32]:
        """Inner edges (M, 3) across from the corners of each face, −1 at the boundary."""
        edges = np.full(3 * len(self.means.mesh.faces), -1, np.int32)
        edges[self.corners] = edges[self.means.mesh.opposite[self.corners]] = np.arange(len(self.corners))
        return edges.reshape(-1, 3)

    def matrix(self) -> csr_matrix:
        """Return the Laplacian (M, M) of the dual graph."""
        count = len(self.means.mesh.faces)
        indptr = np.zeros(count + 1, np.int32)
        np.cumsum(1 + (self.face_edges >= 0).sum(axis=1), out=indptr[1:])
        indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
        graph = self._graph(self.weights)
        in_parallel(_facets.fill_laplacian, count, np.arange(count), graph, indptr, indices, values, grain=GRAIN)
        return csr_matrix((values, indices, indptr), shape=(count, count))

    def right_side(self) -> Float:
        """Return the right-hand side (M,)."""
        count = len(self.means.mesh.faces)
        right = np.empty(count)
        in_parallel(_facets.fill_right_side, count, np.arange(count), self._graph(self.weights), right, grain=GRAIN)
        return right

    def reweigh(self, faces: NDArray[np.int64], weights: Float, matrix: csr_matrix, right_side: Float) -> None:
        """Write the rows of some faces (K,) for other weights (E,) into the matrix and the right-hand side, in place.

        A weight that changed stands in the rows of both faces of its edge.
        """
        graph = self._graph(weights)
        rows = (matrix.indptr, matrix.indices, matrix.data)
        in_parallel(_facets.fill_laplacian, len(faces), faces, graph, *rows, grain=GRAIN)
        in_parallel(_facets.fill_right_side, len(faces), faces, graph, right_side, grain=GRAIN)

    def _graph(self, weights: Float) -> _facets.DualGraph:
        return _facets.DualGraph(self.face_edges, self.pairs, self.steps, weights)

    @cached_property
    def _importance(self) -> Float:
        """Weights (M,) of the faces in means over the faces around a vertex: area · m_f."""
        return self.means.areas * self.means.mobilities

    def _projections(self) -> Float:
        """Return the matrices (M, 3, 3) of the forms whose sum the projection to the vertices minimises."""
        matrices = np.empty((len(self.means.mesh.faces), 3, 3))
        triangles, table = self.means.triangles, self.means.table
        in_parallel(_facets.fill_projections, len(matrices), triangles, table, matrices, grain=GRAIN)
        return matrices

    def at_vertices(self, offsets: Float) -> Float:
        """Return values (N,) at the vertices.

        The planes, moved to the means of their faces, are projected to functions that are continuous and linear on
        faces: ``Σ_f m_f ∫ (z − P_f)² + λ A_f ‖∇(z − P_f)‖²`` is reduced by a damped step of Jacobi's method from the
        means of the planes around each vertex, weighted by area · m_f.
        """
        means, faces, count = self.means, self.means.mesh.faces, len(self.means.mesh.vertices)
        planes = np.empty(faces.shape)
        moved, central = offsets + means.bulges, means.camera.is_central
        in_parallel(_facets.fill_planes, len(planes), moved, means.triangles, means.table, central, planes, grain=GRAIN)
        corners, weights = faces.ravel(), np.repeat(self._importance, 3)
        total, around = np.bincount(corners, weights * planes.ravel(), count), np.bincount(corners, weights, count)
        values: Float = total * _inverse(around)
        residuals, diagonal = np.zeros(count), np.zeros(count)
        _facets.add_projections(planes, self._projections(), faces, values, residuals, diagonal)
        return values + DAMPING * residuals * _inverse(diagonal)

    def prior_rows(self, screen: Float, faces: NDArray[np.integer]) -> tuple[csr_matrix, Float]:
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

    def _to_vertices(self) -> csr_matrix:
        """Return the linear part (N, M) of :meth:`at_vertices`."""
        faces, count = self.means.mesh.faces, len(self.means.mesh.vertices)
        importance = np.repeat(self._importance, 3)
        shares = csr_matrix((importance, (faces.ravel(), np.arange(faces.size) // 3)), shape=(count, len(faces)))
        means = diags(_inverse(np.bincount(faces.ravel(), importance, count))) @ shares
        pairs = np.repeat(faces, 3, axis=1).ravel(), np.tile(faces, 3).ravel()
        projection = csr_matrix((self._projections().ravel(), pairs), shape=(count, count))
        # Constants have no slope: the rows of the matrix of a face add up to a third of its importance.
        residuals = shares / 3 - projection @ means
        return csr_matrix(means + diags(DAMPING * _inverse(projection.diagonal())) @ residuals)


def _inverse(values: NDArray[Any]) -> Float:
    """Return 1 / values, and 1 where a value is zero: vertices without faces."""
    inverse: Float = 1.0 / np.where(values > 0, values, 1.0)
    return inverse
