"""The paper's vertex system: one unknown per vertex, cotangent weights (supplement A).

For every vertex v: ``Σ_w Σ_{f∋vw} cot(α_f,vw) (m_f (z_v − z_w) + ⟨b_f, u_v − u_w⟩) = 0``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from normalmesh.arguments import checked_choice, checked_finite
from normalmesh.array_types import Float, Integer
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.facets.face_means import FaceMeans
from normalmesh.mesh.interpolation import barycentric_rows

#: Limits of cotangents in the authors' program: angles between 6° and 88.5°.
PAPER_CLAMP = (0.026, 9.55)

PARAMETERS = ("gradient", "tight", "constant")
METRICS = ("screen", "surface")


@dataclass(frozen=True, eq=False)
class CotangentSystem:
    """Faces with their cotangents and parameters.

    Attributes
    ----------
    means : FaceMeans
    cotangents : (M, 3)
        Cotangent of the angle at each corner, the weight of the edge across.
    m : (M,)
        Parameters m_f.
    b : (M, 2)
        Parameters b_f.
    """

    means: FaceMeans
    cotangents: Float
    m: Float
    b: Float

    @classmethod
    def of(
        cls,
        means: FaceMeans,
        parameters: str = "gradient",
        metric: str = "screen",
        clamp: tuple[float, float] | None = None,
    ) -> CotangentSystem:
        """Return the system of a mesh.

        Parameters
        ----------
        means
        parameters
            Parameters m_f and b_f: ``"gradient"`` from the mean gradient, ``"tight"`` from the means of eq. (10)
            itself, ``"constant"`` from the mean normal.
        metric
            Cotangents on the ``"screen"``, or on the ``"surface"``, with foreshortening undone.
        clamp
            Least and largest cotangent, or None. Cotangents without limits are the exact finite elements of the mesh,
            also for obtuse triangles, whose negative weights keep the system positive semidefinite. Limits make it
            robust against slivers, but less accurate.
        """
        check_system(parameters, metric, clamp)
        cotangents = _cotangents(means, metric)
        if clamp is not None:
            cotangents = np.clip(cotangents, *clamp)
        return cls(means, cotangents, *_parameters(means, parameters))

    def matrix(self) -> csr_matrix:
        """Return the matrix (N, N)."""
        faces, count = self.means.mesh.faces, len(self.means.mesh.vertices)
        rows, columns, values = [], [], []
        for k in range(3):
            p, q = faces[:, (k + 1) % 3], faces[:, (k + 2) % 3]
            weight = self.cotangents[:, k] * self.m
            rows += [p, q, p, q]
            columns += [p, q, q, p]
            values += [weight, weight, -weight, -weight]
        entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
        return csr_matrix(entries, shape=(count, count))

    def right_side(self) -> Float:
        """Return the right-hand side (N,)."""
        vertices, faces = self.means.mesh.vertices, self.means.mesh.faces
        right = np.zeros(len(vertices))
        for k in range(3):
            p, q = faces[:, (k + 1) % 3], faces[:, (k + 2) % 3]
            pull = self.cotangents[:, k] * (self.b * (vertices[p] - vertices[q])).sum(axis=1)
            right += np.bincount(q, pull, len(vertices)) - np.bincount(p, pull, len(vertices))
        return right

    def at_vertices(self, unknown: Float) -> Float:
        """Return values (N,) at the vertices, which are the unknowns."""
        return unknown

    def prior_rows(self, screen: Float, faces: Integer) -> tuple[csr_matrix, Float]:
        """Return the surface at points (K, 2) on faces (K,): rows (K, N) that multiply the unknown, and zeros (K,)."""
        return barycentric_rows(self.means.mesh, screen, faces), np.zeros(len(faces))


def check_system(parameters: str, metric: str, clamp: tuple[float, float] | None) -> None:
    """Raise NormalMeshError if these are no options of a :class:`CotangentSystem`."""
    checked_choice(parameters, PARAMETERS, "parameters")
    checked_choice(metric, METRICS, "metric")
    if clamp is None:
        return
    if not isinstance(clamp, tuple | list) or len(clamp) != 2:
        raise NormalMeshError(f"clamp must be the least and the largest cotangent, not {repr_for_error(clamp)}")
    least, largest = (checked_finite(limit, "clamp") for limit in clamp)
    if not 0 <= least <= largest or largest == 0:
        raise NormalMeshError(
            f"clamp must rise from zero or more to the largest cotangent, not {repr_for_error(clamp)}"
        )


def _cotangents(means: FaceMeans, metric: str) -> Float:
    """Return ⟨e₁, G e₂⟩ / √det G |e₁ × e₂| (M, 3) of the two edges at each corner."""
    corners = means.mesh.vertices[means.mesh.faces]
    G = np.broadcast_to(np.eye(2), (len(corners), 2, 2))
    if metric == "surface":
        J = means.camera.jacobian(means.normals, *means.centroids.T)
        G = np.einsum("fki,fkj->fij", J, J)
    stretch = np.sqrt(np.maximum(np.linalg.det(G), 1e-30))
    double_area = np.maximum(2 * means.areas, 1e-12) * stretch
    cotangents = np.empty((len(corners), 3))
    for k in range(3):
        one, two = corners[:, (k + 1) % 3] - corners[:, k], corners[:, (k + 2) % 3] - corners[:, k]
        cotangents[:, k] = np.einsum("fi,fij,fj->f", one, G, two) / double_area
    return cotangents


def _parameters(means: FaceMeans, parameters: str) -> tuple[Float, Float]:
    """Return m_f (M,) and b_f (M, 2)."""
    if parameters == "tight":
        return means.tight_parameters
    if parameters == "gradient":
        return means.mobilities, -means.mobilities[:, None] * means.gradients
    w = (means.normals * means.camera.rays(*means.centroids.T)).sum(axis=1)
    tangents = np.stack(means.camera.tangents, axis=1)
    return w**2, w[:, None] * (means.normals @ tangents)
