"""The facet system: every face is a plane with the mean gradient of its pixels; neighbours agree where they meet.

Unknown is one offset c_f for each face, its plane at the centroid b_f. Two faces agree at the midpoint m_e of their
edge: minimise ``Σ_e w_e (c_f' − c_f − t_e)²`` with ``t_e = ḡ_f·(m_e − b_f) − ḡ_f'·(m_e − b_f')`` and
``w_e = length_e · min(m_f, m_f')``. The mean gradient of a face fixes the differences of its three edge means exactly,
whatever the surface does inside (Crouzeix and Raviart 1973), so curved faces cost no accuracy. Behind a pinhole, where
the unknown is the logarithm of the depth, planes are planes in space and ``ḡ·δu`` becomes ``−log(1 − ḡ·δu)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from normalmesh.integration import _facets
from normalmesh.integration.face_means import FaceMeans
from normalmesh.integration.prior import barycentric_rows
from normalmesh.mesh.cut_mesh import CutMesh
from normalmesh.normals.camera import Perspective
from normalmesh.runtime.threads import in_parallel
from normalmesh.solvers.gauge import Gauge

Float = NDArray[np.float64]

#: Edges that are worth a second thread.
GRAIN = 4096


@dataclass(frozen=True, eq=False)
class FacetSystem:
    """The dual graph of a mesh, with what each of its edges asks for.

    Attributes
    ----------
    means : FaceMeans
    corners : (E,) int32
        The corner of f across from each inner edge.
    ends : (E, 2) int32
        The vertices of the edge.
    pairs : (E, 2) int32
        The two faces f, f' of each inner edge.
    lengths : (E,)
        Of the edges, in px.
    rises : (E, 2)
        By how much the planes of f and f' rise from their centroids to the midpoint of the edge.
    weights : (E,)
        w_e; of a continuous surface, or robust ones (:mod:`normalmesh.integration.robust_weights`).
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
        """The system with the weights of a continuous surface."""
        mesh, opposite = means.mesh, means.mesh.opposite
        corners = np.flatnonzero(opposite > np.arange(len(opposite))).astype(np.int32)
        count = len(corners)
        pairs, ends = np.empty((count, 2), np.int32), np.empty((count, 2), np.int32)
        lengths, rises, weights = np.empty(count), np.empty((count, 2)), np.empty(count)
        in_parallel(
            _facets.fill_edges, count, corners, opposite, mesh.vertices, mesh.faces, means.table,
            isinstance(means.camera, Perspective), pairs, ends, lengths, rises, weights, grain=GRAIN,
        )  # fmt: skip
        return cls(means, corners, ends, pairs, lengths, rises, weights)

    @cached_property
    def steps(self) -> Float:
        """t_e (E,): by how much c_f' should exceed c_f."""
        return self.rises[:, 0] - self.rises[:, 1]

    @cached_property
    def component(self) -> NDArray[np.int32]:
        """(M,): connected component of each face."""
        return self.means.mesh.components[self.means.mesh.faces[:, 0]]

    @property
    def gauge(self) -> Gauge:
        """One free constant for each component that has faces."""
        return Gauge(self.component, np.bincount(self.component) > 0)

    def misfits(self, offsets: Float) -> Float:
        """(E,): by how much the planes of two neighbours miss each other at their edge."""
        return offsets[self.pairs[:, 1]] - offsets[self.pairs[:, 0]] - self.steps

    def matrix(self) -> csr_matrix:
        """(M, M) Laplacian of the dual graph."""
        opposite, count = self.means.mesh.opposite, len(self.means.mesh.faces)
        weights = np.zeros(3 * count)
        weights[self.corners] = weights[opposite[self.corners]] = self.weights
        indptr = np.zeros(count + 1, np.int32)
        np.cumsum(1 + (opposite >= 0).reshape(-1, 3).sum(axis=1), out=indptr[1:])
        indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
        in_parallel(_facets.fill_laplacian, count, opposite, weights, indptr, indices, values, grain=GRAIN)
        return csr_matrix((values, indices, indptr), shape=(count, count))

    def right_side(self) -> Float:
        """(M,)"""
        count = len(self.means.mesh.faces)
        pull = self.weights * self.steps
        right = np.zeros(count)
        right += np.bincount(self.pairs[:, 1], pull, count) - np.bincount(self.pairs[:, 0], pull, count)
        return right

    @cached_property
    def _importance(self) -> Float:
        """(M,): what each face counts at its vertices, area · m_f."""
        return self.means.areas * self.means.mobilities

    def at_vertices(self, offsets: Float, cut: CutMesh) -> Float:
        """Values (N',) at the vertices of the cut mesh: the mean of their faces' planes there, by area · m_f."""
        means, count = self.means, len(cut.origin)
        total, weights = np.zeros(count), np.zeros(count)
        planes = (means.table, self._importance, isinstance(means.camera, Perspective))
        _facets.add_planes(offsets, means.mesh.vertices, means.mesh.faces, *planes, cut.faces, total, weights)
        return total / np.where(weights > 0, weights, 1.0)

    def prior_rows(self, screen: Float, faces: NDArray[np.int32], cut: CutMesh) -> tuple[csr_matrix, Float]:
        """The surface at points (K, 2) on faces (K,): rows (K, M) that multiply the offsets, and what is known."""
        interpolated = barycentric_rows(cut.screen(), screen, faces)
        level = self.at_vertices(np.zeros(len(cut.faces)), cut)
        share = np.repeat(self._importance, 3)
        share /= np.bincount(cut.faces.ravel(), share, len(cut.origin))[cut.faces.ravel()]
        to_vertices = csr_matrix(
            (share, (cut.faces.ravel(), np.arange(cut.faces.size) // 3)), shape=(len(cut.origin), len(cut.faces))
        )
        return csr_matrix(interpolated @ to_vertices), interpolated @ level
