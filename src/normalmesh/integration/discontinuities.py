"""Discontinuities of the depth of a surface, and parts whose depth the normals do not determine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from normalmesh.facets.facets import FacetSystem
from normalmesh.integration.gluing import WIDTH, Glued
from normalmesh.mesh.components import components
from normalmesh.mesh.cut_mesh import CUT, CutMesh, along_cuts
from normalmesh.mesh.origin import Discontinuities

Float = NDArray[np.float64]

#: Strain from which on an edge does not hold a part in place, in widths of the gluing and in upper quartiles of the
#: strains of all edges. The latter are large everywhere if measured normals are inconsistent.
WEAK, ABOVE_QUARTILE = 4.0, 10.0
#: Area (px²) from which on an undetermined part is reported.
MIN_PART_AREA = 64.0


def find_discontinuities(
    glued: Glued, offsets: Float, cut: CutMesh, fixed: NDArray[np.int32] | None
) -> Discontinuities:
    """Describe the discontinuities of a solved system.

    Parameters
    ----------
    glued
        The system with the strain of its edges.
    offsets
        (M,) final offsets of the faces, with prior and gauge.
    cut
        The cut mesh.
    fixed
        Faces that a prior fixes.

    Returns
    -------
    Discontinuities
    """
    system = glued.system
    ends = system.means.mesh.vertices[system.ends]
    levels = (offsets[system.pairs] + system.rises).T
    first, second = system.means.camera.depth_of_unknown(levels)
    usual = np.quantile(glued.strain, 0.75) if len(glued.strain) else 0.0
    weak = glued.strain >= max(WEAK * WIDTH, ABOVE_QUARTILE * usual)
    is_cut = cut.strain[system.corners] >= CUT
    parts, areas, undetermined = _parts(system, weak, is_cut, fixed)
    return Discontinuities(
        system.pairs,
        ends,
        second - first,
        1 / (1 + (glued.strain / WIDTH) ** 2),
        is_cut,
        parts,
        undetermined,
        areas,
    )


def _parts(
    system: FacetSystem, weak: NDArray[np.bool_], cut: NDArray[np.bool_], fixed: NDArray[np.int32] | None
) -> tuple[NDArray[np.int32], Float, NDArray[np.bool_]]:
    """Return the part of each face (M,), areas of the parts (P,), and whether they are undetermined (P,)."""
    count, faces = len(system.component), system.means.mesh.faces
    seam = along_cuts(system.means.mesh, system.corners, cut)
    firm: NDArray[np.bool_] = np.logical_not(seam[faces].any(axis=1))
    firm[system.pairs[weak]] = False
    joined = system.pairs[firm[system.pairs].all(axis=1)]
    label = components(joined, count)
    _, label[firm] = np.unique(label[firm], return_inverse=True)
    label[~firm] = -1
    areas = np.zeros(label.max() + 1)
    np.add.at(areas, label[firm], system.means.areas[firm])
    component = np.zeros(len(areas), np.int32)
    component[label[firm]] = system.component[firm]
    held = np.zeros(len(areas), np.bool_)
    if fixed is not None:
        held[label[fixed[firm[fixed]]]] = True
    # Without a prior on any part of a component, its largest part is the reference for the others.
    by_area = np.lexsort((areas, component))
    largest = by_area[np.flatnonzero(np.diff(component[by_area], append=-1))]
    free = np.bincount(component[held], minlength=system.component.max() + 1)[component[largest]] == 0
    held[largest[free]] = True
    return label.astype(np.int32), areas, ~held & (areas >= MIN_PART_AREA)
