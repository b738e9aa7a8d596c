"""Quadrics of a coarse start mesh, as if it had been collapsed from the pixel grid.

Quadrics carry deviations of normals from that of their vertex. On the pixel grid, vertices are a pixel apart, and
collapses only add up what was found there; on a coarse mesh they are farther apart, and the deviations, hence the costs
of collapses, are several times as large. For a cost that does not depend on the start mesh, the quadrics of pixels are
added up where the coarse mesh leaves out their corners.
"""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Float
from normalmesh.decimation import _start_quadrics
from normalmesh.decimation._quadrics import QUADRIC
from normalmesh.decimation.quadrics import Pixels, add_outline
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.runtime.threads import in_parallel


def start_quadrics(mesh: ClosedMesh, pixels: Pixels, outline_weight: float = 0.0) -> Float:
    """Compute the screen quadrics (N, 6) of the vertices of a start mesh from the quadrics of its pixels.

    Each face adds the quadrics of its pixels to those of its three vertices, as on the pixel grid. Boundary vertices
    also carry the squared distance to the outline, with a weight.
    """
    of_faces = np.empty((mesh.real_faces, QUADRIC))
    given = (mesh.arrays, pixels.normal_map.arrays, pixels.regularisation)
    in_parallel(_start_quadrics.sum_pixels_of_faces, len(of_faces), *given, of_faces)
    quadrics = np.empty((len(mesh.vertices), QUADRIC))
    in_parallel(_start_quadrics.sum_faces_of_vertices, len(quadrics), mesh.arrays, of_faces, quadrics)
    if outline_weight > 0:
        add_outline(mesh, outline_weight, quadrics)
    return quadrics
