"""Quadrics of faces and vertices, evaluated from the pixels of the normal map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.decimation import _quadrics
from normalmesh.mesh import _outline
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import in_parallel

Float = NDArray[np.float64]

#: λ of eq. (13): how much an even distribution of vertices counts beside the shape.
REGULARISATION = 1e-5

#: Weight of the outline beside the shape: px of outline × px² of distance, as px⁴.
OUTLINE_WEIGHT = 1.0

#: Vertices that are worth a second thread.
GRAIN = 4096


@dataclass(frozen=True, eq=False)
class Pixels:
    """A normal map in the form that kernels take."""

    normal_map: NormalMap
    regularisation: float = REGULARISATION

    @property
    def camera(self) -> tuple[Float, float, float]:
        """Frame, direction of the viewer, and pixels per length."""
        camera = self.normal_map.camera
        return camera.frame, camera.towards_viewer, 1.0 / camera.pixel_length

    @property
    def arguments(self) -> tuple[NDArray[np.float32], NDArray[np.bool_], Float, float, float, float]:
        """Normals, mask, camera and λ."""
        return self.normal_map.normals, self.normal_map.mask, *self.camera, self.regularisation


class FaceRecords:
    """What the pixels say about each face (:mod:`normalmesh.decimation._quadrics`), renewed where faces changed.

    Attributes
    ----------
    table : (M, 14) float64
    changed : (F,) bool
        Faces whose record is out of date; ghost faces are never looked at.
    """

    def __init__(self, mesh: ClosedMesh) -> None:
        self.table: Float = np.empty((mesh.real_faces, 14))
        self.changed: NDArray[np.bool_] = np.ones(len(mesh.faces), np.bool_)

    def renew(self, mesh: ClosedMesh, pixels: Pixels) -> None:
        """Evaluate the faces that changed from their pixels."""
        looking = (mesh.vertices, mesh.faces, self.changed, *pixels.arguments)
        in_parallel(_quadrics.face_records, len(self.table), *looking, self.table, grain=4096)
        self.changed[:] = False


def vertex_quadrics(
    mesh: ClosedMesh, pixels: Pixels, records: FaceRecords | None = None, outline_weight: float = 0.0
) -> Float:
    """Screen quadrics (N, 6) around the vertices, eqs. (12), (14) and (15): Q̃_v = ⟨δu, A δu⟩ + 2⟨b, δu⟩ + c.

    Without records the mesh must be a start mesh, whose records would fill the memory: its faces lie within one pixel
    each, and are evaluated on the way. With a weight, boundary vertices also carry the squared distance to the outline.
    """
    quadrics = np.empty((len(mesh.vertices), 6))
    table = np.empty((0, 14)) if records is None else records.table
    topology = (mesh.vertices, mesh.faces, mesh.real_faces, mesh.opposite, mesh.corner_of)
    in_parallel(_quadrics.vertex_quadrics, len(quadrics), *topology, *pixels.arguments, table, quadrics, grain=GRAIN)
    if outline_weight > 0:
        outline = (mesh.outline_of, mesh.outline.next_point, mesh.outline.smooth)
        in_parallel(
            _outline.add_outline_quadrics,
            len(quadrics),
            *mesh.topology,
            *outline,
            outline_weight,
            quadrics,
            grain=GRAIN,
        )
    return quadrics
