"""The facet system: each face is a plane with the mean gradient of its pixels; adjacent planes should meet.

The unknowns are the offsets c_f of the planes at the centroids b_f of the faces. Adjacent planes should agree at the
midpoint m_e of the common edge: minimise ``Σ_e w_e (c_f' − c_f − t_e)²`` with
``t_e = ḡ_f·(m_e − b_f) − ḡ_f'·(m_e − b_f')`` and ``w_e = length_e · min(m_f, m_f')``. The mean gradient of a face
determines the differences of its three edge means exactly, whatever the surface does inside (Crouzeix and Raviart
1973), so curved faces cost no accuracy. For a perspective camera the unknown is the logarithm of the depth, planes are
planes in space, and ``ḡ·δu`` becomes ``−log(1 − ḡ·δu)``.

An offset is the mean of the three edge means, which is not the mean of the face: see :mod:`.plane_surface`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix

from normalmesh.array_types import Float, Int, Int32, Integer
from normalmesh.facets import _facets
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.plane_surface import PlaneSurface
from normalmesh.mesh.repeats import RepeatingMesh
from normalmesh.runtime.threads import in_parallel
from normalmesh.solvers.gauge import Gauge


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
    face_edges : (M, 3) int32
        Inner edges across from the corners of each face, −1 at the boundary.
    lengths : (E,)
        Lengths of the edges on the screen, in px.
    steps : (E,)
        Steps t_e: the difference c_f' − c_f at which the planes of f and f' meet.
    weights : (E,)
        Weights w_e of a continuous surface, or robust weights (:mod:`normalmesh.facets.robust_weights`).
    """

    means: FaceMeans
    corners: Int32
    ends: Int32
    pairs: Int32
    face_edges: Int32
    lengths: Float
    steps: Float
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
            face_edges=np.full(means.mesh.faces.shape, -1, np.int32),
            lengths=np.empty(count),
            steps=np.empty(count),
            weights=np.empty(count),
        )
        camera = means.camera.arrays
        in_parallel(_facets.fill_edges, count, means.triangles, opposite, means.table, camera, edges)
        return cls(means, *edges)

    @cached_property
    def component(self) -> Int32:
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
    def _faces(self) -> Int:
        return np.arange(len(self.means.mesh.faces))

    def matrix(self) -> csr_matrix:
        """Return the Laplacian (M, M) of the dual graph."""
        count = len(self.means.mesh.faces)
        indptr = np.zeros(count + 1, np.int32)
        np.cumsum(np.count_nonzero(self.face_edges >= 0, axis=1) + 1, out=indptr[1:])
        indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
        graph = self._graph(self.weights)
        in_parallel(_facets.fill_laplacian, count, self._faces, graph, indptr, indices, values)
        matrix = csr_matrix((values, indices, indptr), shape=(count, count))
        if isinstance(self.means.mesh, RepeatingMesh):
            # Two faces may have a common edge and be neighbours across a side as well.
            matrix.sum_duplicates()
        return matrix

    def right_side(self) -> Float:
        """Return the right-hand side (M,)."""
        count = len(self.means.mesh.faces)
        right = np.empty(count)
        in_parallel(_facets.fill_right_side, count, self._faces, self._graph(self.weights), right)
        return right

    def reweigh(self, faces: Int, weights: Float, matrix: csr_matrix, right_side: Float) -> None:
        """Write the rows of some faces (K,) for other weights (E,) into the matrix and the right-hand side, in place.

        A weight that changed stands in the rows of both faces of its edge.
        """
        graph = self._graph(weights)
        rows = (matrix.indptr, matrix.indices, matrix.data)
        in_parallel(_facets.fill_laplacian, len(faces), faces, graph, *rows)
        in_parallel(_facets.fill_right_side, len(faces), faces, graph, right_side)

    def _graph(self, weights: Float) -> _facets.DualGraph:
        return _facets.DualGraph(self.face_edges, self.pairs, self.steps, weights)

    def at_vertices(self, offsets: Float) -> Float:
        """Return values (N,) at the vertices, from :class:`.PlaneSurface`."""
        return PlaneSurface(self.means).at_vertices(offsets)

    def prior_rows(self, screen: Float, faces: Integer) -> tuple[csr_matrix, Float]:
        """Return the surface at points as an affine function of the offsets, from :class:`.PlaneSurface`."""
        return PlaneSurface(self.means).prior_rows(screen, faces)
