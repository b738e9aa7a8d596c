"""Discontinuities of the depth of a surface, and parts whose depth the normals do not determine."""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Bool, Float, Int32, Integer
from normalmesh.mesh.cut_mesh import slit_heights
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.origin import Discontinuities
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.camera import Camera

#: Area (px²) from which on an undetermined part is reported.
MIN_PART_AREA = 64.0


def find_discontinuities(
    jumps: Jumps,
    mesh: ScreenMesh,
    unknown: Float,
    camera: Camera,
    component: Integer,
    fixed: Int32 | None,
) -> Discontinuities:
    """Describe the discontinuities of a surface.

    Parameters
    ----------
    jumps
        The lines that were looked for.
    mesh
        The mesh on the screen, after cutting.
    unknown
        (N,) height, or logarithm of the depth, of its vertices.
    camera
    component
        (N,) component of each vertex before the mesh was cut.
    fixed
        Faces that a prior fixes, or None.

    Returns
    -------
    Discontinuities
    """
    screen, heights = slit_heights(mesh, camera.depth_of_unknown(unknown))
    part = mesh.components[mesh.faces[:, 0]]
    areas: Float = np.bincount(part, mesh.areas).astype(np.float64)
    undetermined = _undetermined(part, areas, component[mesh.faces[:, 0]], fixed)
    return Discontinuities(jumps.lines, screen, heights, part, undetermined, areas)


def _undetermined(part: Int32, areas: Float, component: Integer, fixed: Int32 | None) -> Bool:
    """Return the parts (P,) that nothing holds, from part and component (M,) of the faces.

    Without a prior on any part of a component, its largest part is the reference for the others.
    """
    of_part = np.zeros(len(areas), np.int64)
    of_part[part] = component
    held = np.zeros(len(areas), np.bool_)
    if fixed is not None:
        held[part[fixed]] = True
    by_area = np.lexsort((areas, of_part))
    largest = by_area[np.flatnonzero(np.diff(of_part[by_area], append=-1))]
    free = np.bincount(of_part[held], minlength=int(of_part.max()) + 1)[of_part[largest]] == 0
    held[largest[free]] = True
    return ~held & (areas >= MIN_PART_AREA)
