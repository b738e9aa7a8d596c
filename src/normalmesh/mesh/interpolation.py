"""Linear interpolation of values at the vertices of a mesh."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from normalmesh.array_types import Float, Integer
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.runtime.exponential import exp, log


def barycentric_rows(mesh: ScreenMesh, screen: Float, faces: Integer) -> csr_matrix:
    """Return the weights (K, N) with which points (K, 2) on faces (K,) interpolate the vertices."""
    a, b, c = (mesh.vertices[mesh.faces[faces, k]] for k in range(3))
    weights = np.stack([_double_area(screen, b, c), _double_area(a, screen, c), _double_area(a, b, screen)], axis=1)
    weights /= _double_area(a, b, c)[:, None]
    start = 3 * np.arange(len(faces) + 1)
    return csr_matrix((weights.ravel(), mesh.faces[faces].ravel(), start), shape=(len(faces), len(mesh.vertices)))


def bends(rows: csr_matrix, unknown: Float) -> Float:
    """Return by how much (K,) logarithms of depths (N,) exceed their interpolation on faces that are planes in space.

    ``rows`` are those of :func:`barycentric_rows`. Seen by a perspective camera, reciprocals of depths are linear on a
    plane, and logarithms are not.
    """
    weights, corners = rows.data.reshape(-1, 3), unknown[rows.indices.reshape(-1, 3)]
    linear = (weights * corners).sum(axis=1)
    excess: Float = -log((weights * exp(linear[:, None] - corners)).sum(axis=1))
    return excess


def _double_area(a: Float, b: Float, c: Float) -> Float:
    return (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0]) - (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1])
