"""Discontinuities: where the depth of a surface jumps, and which of its parts normals do not place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.camera import Perspective
from normalmesh.components import components
from normalmesh.cutting import CUT, CutMesh, along_cuts
from normalmesh.facets import FacetSystem
from normalmesh.gluing import WIDTH, Glued

Float = NDArray[np.float64]

#: Strain from which on an edge does not hold a part in place: in widths of the gluing, and in upper quartiles of all
#: edges, which strain everywhere where measured normals agree poorly.
WEAK, ABOVE_ALL = 4.0, 10.0
#: Area (px²) from which on a part is worth a word.
LEAST_PART = 64.0


@dataclass(frozen=True, eq=False)
class Discontinuities:
    """The inner edges of a mesh as it was before it was cut, and the parts that they hold together.

    Attributes
    ----------
    faces : (E, 2) int32
        The two faces of each edge.
    screen : (E, 2, 2)
        Its ends as u, v in pixels.
    jumps : (E,)
        By how much the second face is higher (orthographic) or farther away (perspective) than the first where they
        should meet, in the unit of the surface.
    weights : (E,)
        How firmly the two faces hold together: from 1, they fit, to 0, depth jumps.
    cut : (E,) bool
        Edges along which the mesh is cut.
    parts : (M,) int32
        Part of each face: parts are joined by edges that jump, or nearly do, if at all. −1 for faces that touch one.
    undetermined : (P,) bool
        Parts whose distance from the rest of their component is a guess: no prior fixes it, and no edge that fits.
    part_areas : (P,)
        In px².
    """

    faces: NDArray[np.int32]
    screen: Float
    jumps: Float
    weights: Float
    cut: NDArray[np.bool_]
    parts: NDArray[np.int32]
    undetermined: NDArray[np.bool_]
    part_areas: Float

    @classmethod
    def of(cls, glued: Glued, offsets: Float, cut: CutMesh, fixed: NDArray[np.int32] | None) -> Discontinuities:
        """From a solved system.

        Parameters
        ----------
        offsets
            (M,) of the faces in the end, with prior and gauge.
        cut
            The mesh as it was cut.
        fixed
            Faces that a prior holds.
        """
        system = glued.system
        ends = system.means.mesh.vertices[system.ends]
        levels = (offsets[system.pairs] + system.rises).T
        first, second = np.exp(levels) if isinstance(system.means.camera, Perspective) else levels
        usual = np.quantile(glued.strain, 0.75) if len(glued.strain) else 0.0
        weak = glued.strain >= max(WEAK * WIDTH, ABOVE_ALL * usual)
        is_cut = cut.strain[system.corners] >= CUT
        parts, areas, undetermined = _parts(system, weak, is_cut, fixed)
        return cls(
            system.pairs,
            ends,
            second - first,
            1 / (1 + (glued.strain / WIDTH) ** 2),
            is_cut,
            parts,
            undetermined,
            areas,
        )

    def __str__(self) -> str:
        length = np.linalg.norm(self.screen[self.cut, 0] - self.screen[self.cut, 1], axis=1).sum()
        loose = self.part_areas[self.undetermined]
        text = f"{np.count_nonzero(self.cut)} of {len(self.cut)} edges cut, {length:.0f} px"
        if len(loose):
            share = 100 * loose.sum() / self.part_areas.sum()
            text += f"; {len(loose)} parts ({share:.1f} % of the area) whose distance is a guess: give a prior on them"
        return text


def _parts(
    system: FacetSystem, weak: NDArray[np.bool_], cut: NDArray[np.bool_], fixed: NDArray[np.int32] | None
) -> tuple[NDArray[np.int32], Float, NDArray[np.bool_]]:
    """Part of each face (M,), areas of the parts (P,), and whether they are undetermined (P,)."""
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
    # Without a prior on any part of a component, its largest part is the one that the others lie behind or before.
    by_area = np.lexsort((areas, component))
    largest = by_area[np.flatnonzero(np.diff(component[by_area], append=-1))]
    free = np.bincount(component[held], minlength=system.component.max() + 1)[component[largest]] == 0
    held[largest[free]] = True
    return label.astype(np.int32), areas, ~held & (areas >= LEAST_PART)
