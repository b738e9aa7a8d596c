"""Quadrics of faces and vertices, evaluated from the pixels of the normal map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Bool, Float
from normalmesh.decimation import _quadrics
from normalmesh.decimation.decimation_options import REGULARISATION
from normalmesh.mesh import _outline
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import in_parallel

#: Weight of the outline relative to the shape: px of outline × px² of distance, as px⁴.
OUTLINE_WEIGHT = 1.0


@dataclass(frozen=True, eq=False)
class Pixels:
    """The pixels that quadrics sum over, and λ."""

    normal_map: NormalMap
    regularisation: float = REGULARISATION


class FaceRecords:
    """Normals, areas and quadrics of all real faces, renewed where faces changed.

    Attributes
    ----------
    table : (M, 14) float64
        One :class:`normalmesh.decimation._quadrics.FaceRecord` in each row.
    changed : (F,) bool
        Faces whose record is out of date. Values of ghost faces are ignored.
    """

    def __init__(self, mesh: ClosedMesh) -> None:
        self.table: Float = np.empty((mesh.real_faces, _quadrics.RECORD))
        self.changed: Bool = np.ones(len(mesh.faces), np.bool_)

    def renew(self, mesh: ClosedMesh, pixels: Pixels) -> None:
        """Evaluate the faces that changed from their pixels."""
        in_parallel(
            _quadrics.face_records,
            len(self.table),
            mesh.arrays,
            self.changed,
            pixels.normal_map.arrays,
            pixels.regularisation,
            self.table,
        )
        self.changed[:] = False


def vertex_quadrics(
    mesh: ClosedMesh, pixels: Pixels, records: FaceRecords | None = None, outline_weight: float = 0.0
) -> Float:
    """Compute the screen quadrics of all vertices, eqs. (12), (14) and (15): Q̃_v = ⟨δu, A δu⟩ + 2⟨b, δu⟩ + c.

    Parameters
    ----------
    mesh
    pixels
    records
        Up to date. None for a start mesh, whose records would fill the memory: each of its faces lies within one
        pixel, and is evaluated on the way.
    outline_weight
        Boundary vertices also carry the squared distance to the outline, with this weight.

    Returns
    -------
    (N, 6) float64
        A as uu, uv, vv, then b as u, v, then c.
    """
    quadrics = np.empty((len(mesh.vertices), _quadrics.QUADRIC))
    table = np.empty((0, _quadrics.RECORD)) if records is None else records.table
    in_parallel(
        _quadrics.vertex_quadrics,
        len(quadrics),
        mesh.arrays,
        pixels.normal_map.arrays,
        pixels.regularisation,
        table,
        quadrics,
    )
    if outline_weight > 0:
        add_outline(mesh, outline_weight, quadrics)
    return quadrics


def add_outline(mesh: ClosedMesh, weight: float, quadrics: Float) -> None:
    """Add the squared distance to the outline, with a weight, to the screen quadrics (N, 6) of boundary vertices."""
    outline = mesh.outline
    in_parallel(_outline.add_outline_quadrics, len(quadrics), mesh.arrays, outline, weight, quadrics)
