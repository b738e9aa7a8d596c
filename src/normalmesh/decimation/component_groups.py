"""Component groups: parts of a map that are decimated one after another up to a cost, so that none depends on another.

Start mesh, levels of cost, tiles and polylines are those of a group. A group is one component, or several that are so
small that all of these are the same for each of them alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Int32, Integer, UInt8
from normalmesh.decimation.collapse import TILE
from normalmesh.mesh._closed_mesh import BOUNDARY, FINISHED, LOCKED
from normalmesh.mesh._outline import COVERED, FIXED
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.jumps import JumpLine
from normalmesh.normals.normal_map import NormalMap

#: Distance (px) from the pixels of a group up to which its mesh may cover others.
COVERED_BEYOND = 2


@dataclass(frozen=True, eq=False)
class ComponentGroup:
    """Some components of a map, or all.

    Attributes
    ----------
    lines
        Lines of jumps between its pixels.
    window
        Rows and columns of its pixels.
    labels : (H, W) int32 or None
        The group of each pixel; None if there is only one.
    number
        The label of this one.
    """

    lines: tuple[JumpLine, ...]
    window: tuple[slice, slice] = (slice(0, None), slice(0, None))
    labels: Int32 | None = None
    number: int = 1

    @property
    def _near(self) -> tuple[slice, slice]:
        rows, columns = (slice(max(part.start - COVERED_BEYOND, 0), part.stop + COVERED_BEYOND) for part in self.window)
        return rows, columns

    def map_of(self, normal_map: NormalMap) -> NormalMap:
        """Return the pixels of the group alone, where they are in the map; memory outside the window is not touched."""
        if self.labels is None:
            return normal_map
        mask, normals = np.zeros(normal_map.shape, np.bool_), np.zeros(normal_map.normals.shape, np.float32)
        mask[self.window] = self.labels[self.window] == self.number
        np.copyto(normals[self.window], normal_map.normals[self.window], where=mask[self.window][..., None])
        return NormalMap.cleaned(normals, mask, normal_map.camera)

    def coverage_of(self, coverage: UInt8) -> UInt8:
        """Return the coverage (H, W) for the mesh of the group, which must leave what other meshes cover."""
        if self.labels is None:
            return coverage
        near = self._near
        own, there = np.zeros(coverage.shape, np.uint8), coverage[near]
        is_taken = (self.labels[near] != self.number) & (there & COVERED > 0)
        own[near] = np.where(is_taken, FIXED, there)
        return own

    def cover(self, own: UInt8, coverage: UInt8) -> None:
        """Let the coverage of all meshes follow that of the group's."""
        if self.labels is None:
            return
        near = self._near
        is_own = (self.labels[near] == self.number) | (own[near] & COVERED > 0)
        coverage[near] = np.where(is_own, own[near], coverage[near])


class FinishedComponents:
    """Components of a mesh that have lost no vertex in a round: they are locked while others go on."""

    def __init__(self, mesh: ClosedMesh) -> None:
        self._of_point = mesh.to_screen().components[mesh.outline.point_of >= 0]
        self._counts = np.bincount(self._number(mesh))

    def lock(self, mesh: ClosedMesh) -> None:
        """Lock the components that have as many vertices as in the last call."""
        number, before = self._number(mesh), self._counts
        self._counts = np.bincount(number)
        free = (self._counts == before)[number] & (mesh.flags & LOCKED == 0)
        mesh.flags[free] |= LOCKED | FINISHED

    def unlock(self, mesh: ClosedMesh) -> None:
        """Unlock all that :meth:`lock` has locked."""
        mesh.flags[mesh.flags & FINISHED > 0] &= BOUNDARY

    def _number(self, mesh: ClosedMesh) -> Int32:
        """Return the component (N,) of each vertex of the compact mesh, by the points of its outline, which stay."""
        component, on_outline = mesh.to_screen().components, mesh.outline.point_of >= 0
        number = np.empty(int(component.max()) + 1, np.int32)
        number[component[on_outline]] = self._of_point[mesh.outline.point_of[on_outline]]
        return number[component]


def component_groups(known: tuple[Integer, int], lines: tuple[JumpLine, ...]) -> list[ComponentGroup]:
    """Return the groups of components, small ones first; a large one, or one with lines, is a group of its own.

    ``known`` are the labels (H, W) of the components, and their number.
    """
    from scipy import ndimage

    labels, count = known
    if count == 1:
        return [ComponentGroup(lines)]
    beside = [np.unique(_labels_beside(line, labels)) for line in lines]
    # A pixel has at most two corners that those before it do not have, the first one has four.
    most = 2 * np.bincount(labels.ravel(), minlength=count + 1)[1:] + 2
    alone = 2 * most > TILE
    for found in beside:
        alone[found - 1] = True
    packed = np.where(alone, 0, most).cumsum() // (TILE // 2)
    _, number = np.unique(np.where(alone, count + 1 + np.arange(count), packed), return_inverse=True)
    group_of = np.concatenate([[0], number.ravel() + 1]).astype(np.int32)
    labels = group_of[labels]
    of_lines: list[list[JumpLine]] = [[] for _ in range(int(labels.max()))]
    for line, found in zip(lines, beside, strict=True):
        for label in group_of[found]:
            of_lines[label - 1].append(line)
    windows = ndimage.find_objects(labels)
    return [
        ComponentGroup(tuple(own), window, labels, label)
        for label, (own, window) in enumerate(zip(of_lines, windows, strict=True), start=1)
    ]


def _labels_beside(line: JumpLine, labels: Integer) -> Integer:
    """Return the labels of the pixels on both sides of a line, without those of the background."""
    (u, v), (next_u, next_v) = line.path[:-1].T, line.path[1:].T
    rows, columns = np.minimum(v, next_v), np.minimum(u, next_u)
    is_level = v == next_v
    beside = np.concatenate([labels[rows, columns], labels[rows - is_level, columns - ~is_level]])
    return beside[beside > 0]
