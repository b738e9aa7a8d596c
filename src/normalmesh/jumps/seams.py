"""Seams: the edges of a mesh along which it is cut open."""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Integer
from normalmesh.decimation.decimated_mesh import DecimatedMesh
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.facets.robust_weights import RobustWeights
from normalmesh.jumps.placement import placed_offsets
from normalmesh.mesh.components import components
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap

#: Strain (px) from which on the planes of two faces are held apart.
APART = 2.0
#: Length (px) of connected seams, at least.
MIN_LENGTH = 10.0


def seams_of(mesh: ScreenMesh, jumps: Jumps, normal_map: NormalMap) -> Integer:
    """Return the vertices (S, 2) of the edges along which to cut a mesh.

    A decimated mesh knows them. In another one they are the edges whose faces the placement of the jumps holds apart,
    if they are connected over some length.
    """
    if jumps.placement is None:
        return np.empty((0, 2), np.int32)
    if isinstance(mesh, DecimatedMesh) and (len(mesh.seams) or mesh.lines is not None):
        return mesh.seams
    system = FacetSystem.of(FaceMeans.of(mesh, normal_map))
    offsets, areas = placed_offsets(jumps.placement, system.means, normal_map.shape)
    held = (areas > 0)[system.pairs].all(axis=1)
    apart = np.flatnonzero(held & (RobustWeights(system).strain(offsets) >= APART))
    line = components(system.ends[apart], len(mesh.vertices))[system.ends[apart, 0]]
    length = np.bincount(line, system.lengths[apart])
    ends: Integer = system.ends[apart[length[line] >= MIN_LENGTH]]
    return ends
