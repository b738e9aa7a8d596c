"""Means of the normals over the faces of a mesh: all that integration needs to know of the pixels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from normalmesh.array_types import Float
from normalmesh.facets import _face_means as columns
from normalmesh.facets._face_means import Triangles, face_means
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.camera import Camera
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import in_parallel


@dataclass(frozen=True, eq=False)
class FaceMeans:
    """Geometry and mean normals of the faces of a mesh.

    Attributes
    ----------
    mesh : ScreenMesh
    camera : Camera
    table : (M, COLUMNS) or (M, PLANE_COLUMNS) float64
        One row for each face; columns are named in :mod:`normalmesh.facets._face_means`. Those of planes suffice for
        areas, centroids, gradients, bulges and mobilities.
    """

    mesh: ScreenMesh
    camera: Camera
    table: Float

    @classmethod
    def of(cls, mesh: ScreenMesh, normal_map: NormalMap, samples: int = 1, planes_only: bool = False) -> FaceMeans:
        """Average the normals of a map over the faces.

        With one sample a pixel belongs to the face that owns its centre, as in the paper. With more samples,
        ``samples`` × ``samples``, small faces share the pixels on their edges by area. With ``planes_only``, the table
        takes half the memory.
        """
        camera = normal_map.camera
        table = np.empty((len(mesh.faces), columns.PLANE_COLUMNS if planes_only else columns.COLUMNS))
        means = cls(mesh, camera, table)
        in_parallel(face_means, len(table), means.triangles, samples, normal_map.arrays, table)
        # A face far from all foreground has no mean. It is taken to face the viewer, with a very small weight.
        empty = np.flatnonzero(table[:, columns.INVERSE] == 0)
        rays = camera.rays(*means.centroids[empty].T)
        squared = (rays**2).sum(axis=1)
        table[empty, columns.INVERSE] = 1e6 / squared
        if not planes_only:
            means.mean_normals[empty] = camera.towards_viewer * rays / np.sqrt(squared)[:, None]
            table[empty, columns.TIGHT] = 1e-6 * squared
            table[empty, columns.COSINE] = 1.0
        return means

    @property
    def triangles(self) -> Triangles:
        """The mesh as kernels take it."""
        return Triangles(self.mesh.vertices, self.mesh.faces)

    @property
    def areas(self) -> Float:
        """Areas (M,) of the faces on the screen, in px²."""
        return self.table[:, columns.AREA]

    @property
    def centroids(self) -> Float:
        """Centroids (M, 2) of the faces, in px."""
        return self.table[:, columns.CENTRE_U : columns.CENTRE_V + 1]

    @property
    def cosines(self) -> Float:
        """Cosines (M,) of the angles between mean normals and the viewing rays of the centroids."""
        return self.table[:, columns.COSINE]

    @property
    def gradients(self) -> Float:
        """Means (M, 2) over the pixels of ∂z/∂u, ∂z/∂v = −⟨n, τ⟩/⟨n, r⟩, with the ray r of the centroid.

        For a perspective camera, the slope of a plane in space changes from pixel to pixel; taken at the centroid, the
        slopes of all its pixels agree.
        """
        return self.table[:, columns.SLOPE_U : columns.SLOPE_V + 1]

    @property
    def bulges(self) -> Float:
        """Mean heights (M,) of the surface over the faces, above planes with the same edge means and mean slopes.

        By the divergence theorem, the mean of any z over a face with centroid b is the mean of its edge means minus
        ½ mean[(x − b) · ∇z]. Without the part of the plane, −½ cov(x, ∇z) is left: zero on planes, and on faces of one
        pixel, where no curvature can be seen. For a perspective camera, the slopes at the centroid take the place of
        ∇z, at a relative error as large as the relative change of depth across the face.
        """
        return self.table[:, columns.BULGE]

    @property
    def mobilities(self) -> Float:
        """Weights (M,) of the faces, m_f = 1 / mean ⟨r, n⟩⁻²: steep faces count less."""
        return 1.0 / self.table[:, columns.INVERSE]

    @property
    def tight_parameters(self) -> tuple[Float, Float]:
        """Means of ⟨r, n⟩² (M,) and of ⟨r, n⟩⟨n, τ⟩ (M, 2), the parameters m_f and b_f of eq. (10) itself."""
        return self.table[:, columns.TIGHT], self.table[:, columns.TIGHT_U : columns.TIGHT_V + 1]

    @property
    def mean_normals(self) -> Float:
        """Mean normals (M, 3), not of unit length: the more the normals of a face differ, the shorter."""
        return self.table[:, columns.NORMAL_X : columns.NORMAL_Z + 1]

    @cached_property
    def normals(self) -> Float:
        """Unit mean normals n_f (M, 3), eq. (11)."""
        normals = self.mean_normals
        return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
