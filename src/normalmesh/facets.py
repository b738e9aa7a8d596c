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

from normalmesh._facets import laplacian
from normalmesh.cutting import CutMesh, edge_ends
from normalmesh.facemeans import FaceMeans
from normalmesh.prior import barycentric_rows

Float = NDArray[np.float64]


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
    steps : (E,)
        t_e: by how much c_f' should exceed c_f.
    weights : (E,)
        w_e; of a continuous surface, or robust ones (:mod:`normalmesh.robust`).
    """

    means: FaceMeans
    corners: NDArray[np.int32]
    ends: NDArray[np.int32]
    pairs: NDArray[np.int32]
    lengths: Float
    steps: Float
    weights: Float

    @classmethod
    def of(cls, means: FaceMeans) -> FacetSystem:
        """The system with the weights of a continuous surface."""
        opposite = means.mesh.opposite
        corners = np.flatnonzero(opposite > np.arange(len(opposite))).astype(np.int32)
        pairs = np.stack([corners // 3, opposite[corners] // 3], axis=1).astype(np.int32)
        ends = edge_ends(means.mesh, corners)
        start, end = means.mesh.vertices[ends[:, 0]], means.mesh.vertices[ends[:, 1]]
        rise = [means.rise(side, (start + end) / 2) for side in pairs.T]
        lengths = np.hypot(*(end - start).T)
        mobilities = means.mobilities
        weights = lengths * np.minimum(mobilities[pairs[:, 0]], mobilities[pairs[:, 1]])
        return cls(means, corners, ends, pairs, lengths, rise[0] - rise[1], weights)

    @cached_property
    def component(self) -> NDArray[np.int32]:
        """(M,): connected component of each face."""
        return self.means.mesh.components[self.means.mesh.faces[:, 0]]

    def misfits(self, offsets: Float) -> Float:
        """(E,): by how much the planes of two neighbours miss each other at their edge."""
        return offsets[self.pairs[:, 1]] - offsets[self.pairs[:, 0]] - self.steps

    def matrix(self) -> csr_matrix:
        """(M, M) Laplacian of the dual graph."""
        count = len(self.means.mesh.faces)
        return csr_matrix(laplacian(self.pairs, self.weights, count), shape=(count, count))

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
        every = np.arange(len(cut.faces))
        total, weights = np.zeros(count), np.zeros(count)
        for k in range(3):
            value = offsets + means.rise(every, means.mesh.vertices[means.mesh.faces[:, k]])
            total += np.bincount(cut.faces[:, k], self._importance * value, count)
            weights += np.bincount(cut.faces[:, k], self._importance, count)
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
