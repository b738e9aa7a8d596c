"""Snapping: lines of jumps are moved onto pixel sides, to where the normals on both sides differ most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.jumps._snapping import Grid, mean_contrast, snap_line, unit_steps
from normalmesh.jumps.lines import RELEASE, StrainedEdges
from normalmesh.mesh.chains import Chains
from normalmesh.mesh.components import components
from normalmesh.mesh.cut_mesh import boundary_vertices
from normalmesh.normals.normal_map import NormalMap

Int = NDArray[np.int64]

#: Distance (px) by which lines are moved at most.
WIDTH = 2
#: Pixels whose normals are compared are so many px from the ones beside a line.
APART = 1
#: Length (px) of connected lines, at least.
MIN_LENGTH = 10


class Snapper:
    """Moves polylines onto the pixel sides of a normal map."""

    def __init__(self, normal_map: NormalMap) -> None:
        self._normals, self._mask = normal_map.normals, normal_map.mask
        corners = (self._mask.shape[0] + 1, self._mask.shape[1] + 1)
        self._grid = Grid(np.full(corners, -1, np.int8), np.full(corners, -1, np.int8), np.empty(corners))

    def paths(self, points: Int) -> Iterator[Int]:
        """Yield the paths (P, 2) of pixel corners, one px apart, near a polyline of pixel corners (K, 2).

        A loop becomes two of them; a polyline that background interrupts, none.
        """
        line = unit_steps(np.ascontiguousarray(points, np.int64))
        middle = len(line) // 2
        pieces = [line[: middle + 1], line[middle:]] if (line[0] == line[-1]).all() else [line]
        for piece in pieces:
            path = snap_line(np.ascontiguousarray(piece), WIDTH, self._normals, self._mask, self._grid)
            if len(path) > 1:
                yield path

    def contrast(self, path: Int) -> float:
        """Return the mean length of the difference of the normals on both sides of a path (P, 2); 2 without any."""
        found = float(mean_contrast(path, APART, self._normals, self._mask))
        return found if found >= 0 else 2.0


@dataclass(frozen=True, eq=False)
class SnappedLine:
    """A line on pixel sides.

    Attributes
    ----------
    path : (P, 2) int64
        Pixel corners u, v along the line, one px apart.
    edges : (K,) int64
        The edges of the jump mesh that it stands for.
    height, certainty
        See :class:`.JumpLine`.
    contrast
        Mean length of the difference of the normals on both sides.
    """

    path: Int
    edges: Int
    height: float
    certainty: float
    contrast: float

    @property
    def length(self) -> int:
        """Length in px."""
        return len(self.path) - 1


def snapped_lines(edges: StrainedEdges, cut: NDArray[np.bool_], normal_map: NormalMap) -> list[SnappedLine]:
    """Return the lines of the cut edges (E,) of a jump mesh, on pixel sides."""
    if not cut.any():
        return []
    system, chosen = edges.system, np.flatnonzero(cut)
    mesh = system.means.mesh
    chains = Chains.of(system.ends[chosen], boundary_vertices(mesh))
    snapper, corners = Snapper(normal_map), np.rint(mesh.vertices).astype(np.int64)
    lines = []
    for chain in range(len(chains)):
        steps = chosen[chains.edges[chains.starts[chain] + 1 : chains.starts[chain + 1]]]
        lengths = system.lengths[steps]
        height = float((lengths * edges.pixels[steps]).sum() / lengths.sum())
        certainty = float(edges.release[steps].sum() / (RELEASE * lengths.sum()))
        lines += [
            SnappedLine(path, steps, height, certainty, snapper.contrast(path))
            for path in snapper.paths(corners[chains[chain]])
        ]
    return lines


def long_enough(paths: list[Int]) -> NDArray[np.bool_]:
    """Return the paths (L,) that are connected, at their ends, to paths of :data:`MIN_LENGTH` px together."""
    if not paths:
        return np.zeros(0, np.bool_)
    ends = np.array([[path[0], path[-1]] for path in paths])
    _, number = np.unique(ends.reshape(-1, 2), axis=0, return_inverse=True)
    number = number.reshape(-1, 2)
    line = components(number, int(number.max()) + 1)[number[:, 0]]
    length = np.bincount(line, [len(path) - 1 for path in paths])
    enough: NDArray[np.bool_] = length[line] >= MIN_LENGTH
    return enough
