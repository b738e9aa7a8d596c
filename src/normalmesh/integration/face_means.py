"""Means of the normals over the faces of a mesh: all that integration needs to know of the pixels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from normalmesh.integration._face_means import AREA, CENTRE_U, CENTRE_V, COLUMNS, COSINE, face_means
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.camera import Camera
from normalmesh.runtime.threads import in_parallel

Float = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FaceMeans:
    """Geometry and mean normals of the faces of a mesh.

    Attributes
    ----------
    mesh, camera
    table : (M, 14) float64
        As :mod:`normalmesh.integration._face_means` counts them.
    """

    mesh: ScreenMesh
    camera: Camera
    table: Float

    @classmethod
    def of(
        cls,
        mesh: ScreenMesh,
        normals: NDArray[np.float32],
        mask: NDArray[np.bool_],
        camera: Camera,
        samples: int = 1,
    ) -> FaceMeans:
        """Means of normals (H, W, 3) on a mask (H, W) over the faces.

        One sample is the pixel's centre, as in the paper; more of them, ``samples`` × ``samples``, share the pixels at
        the edges of small faces out by area.
        """
        table = np.empty((len(mesh.faces), COLUMNS))
        looking = (samples, normals, mask, camera.frame)
        in_parallel(face_means, len(table), mesh.vertices, mesh.faces, *looking, table, grain=4096)
        # A face far from all foreground knows nothing: it is taken to face the viewer, and hardly counts.
        nothing = np.flatnonzero(table[:, COSINE] == 0)
        nothing = nothing[~table[nothing, 1:4].any(axis=1)]
        rays = camera.rays(*table[nothing, CENTRE_U : CENTRE_V + 1].T)
        squared = (rays**2).sum(axis=1)
        table[nothing, 1:4] = camera.towards_viewer * rays / np.sqrt(squared)[:, None]
        table[nothing, 6] = 1e6 / squared
        table[nothing, 7] = 1e-6 * squared
        table[nothing, COSINE] = 1.0
        return cls(mesh, camera, table)

    @property
    def areas(self) -> Float:
        """(M,) in px²."""
        return self.table[:, AREA]

    @property
    def centroids(self) -> Float:
        """(M, 2) in px."""
        return self.table[:, CENTRE_U : CENTRE_V + 1]

    @property
    def cosines(self) -> Float:
        """(M,): of the angles between mean normals and the viewing rays of the centroids."""
        return self.table[:, COSINE]

    @property
    def gradients(self) -> Float:
        """(M, 2): mean over the pixels of ∂z/∂u, ∂z/∂v = −⟨n, τ⟩/⟨n, r⟩, with the ray r of the centroid.

        Behind a pinhole the slope of a plane in space changes from pixel to pixel; at one place all its pixels agree.
        """
        return self.table[:, 4:6]

    @property
    def mobilities(self) -> Float:
        """(M,): m_f = 1 / mean ⟨r, n⟩⁻², the weight of a face: steep ones count less."""
        return 1.0 / self.table[:, 6]

    @cached_property
    def normals(self) -> Float:
        """(M, 3): unit mean normals n_f, eq. (11)."""
        normals = self.table[:, 1:4]
        return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
