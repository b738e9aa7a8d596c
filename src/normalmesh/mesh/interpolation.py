"""Linear interpolation of values at the vertices of a mesh."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from normalmesh.array_types import Float, Integer
from normalmesh.mesh.screen_mesh import ScreenMesh


def barycentric_rows(mesh: ScreenMesh, screen: Float, faces: Integer) -> csr_matrix:
    """Return the weights (K, N) with which points (K, 2) on faces (K,) interpolate the vertices."""
    a, b, c = (mesh.vertices[mesh.faces[faces, k]] for k in range(3))
    weights = np.stack([_double_area(screen, b, c), _double_area(a, screen, c), _double_area(a, b, screen)], axis=1)
    weights /= _double_area(a, b, c)[:, None]
    start = 3 * np.arange(len(faces) + 1)
    return csr_matrix((weights.ravel(), mesh.faces[faces].ravel(), start), shape=(len(faces), len(mesh.vertices)))


def _double_area(a: Float, b: Float, c: Float) -> Float:
    return (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0]) - (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1])
