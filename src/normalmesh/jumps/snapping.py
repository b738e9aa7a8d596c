"""Snapping: lines of jumps are moved onto pixel sides, to where the normals on both sides differ most."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Bool, Float, Int
from normalmesh.jumps._snapping import Cells, Grid, snap_line, unit_steps
from normalmesh.jumps.lines import RELEASE, StrainedEdges
from normalmesh.mesh.chains import Chains
from normalmesh.mesh.components import components
from normalmesh.mesh.cut_mesh import boundary_vertices
from normalmesh.normals.normal_map import NormalMap

#: Distance (px) by which lines are moved at most.
WIDTH = 2
#: Pixels whose normals are compared are so many px from the ones beside a line.
APART = 1
#: Length (px) of connected lines, at least.
MIN_LENGTH = 4


#: Pixels that are so near to a line, in px, are looked at while it is moved.
NEAR = WIDTH + APART + 1


class Snapper:
    """Moves polylines onto the pixel sides of a normal map.

    Parameters
    ----------
    cells
        Pixels of the map, those within :data:`NEAR` px of the polylines at least; see :func:`cells_of`.
    """

    def __init__(self, cells: Cells) -> None:
        self._cells, work = cells, (len(cells.mask), *cells.side)
        self._grid = Grid(np.full(work, -1, np.int8), np.full(work, -1, np.int8), np.empty(work))

    def paths(self, points: Int) -> Iterator[Int]:
        """Yield the paths (P, 2) of pixel corners, one px apart, near a polyline of pixel corners (K, 2).

        A loop becomes two of them; a polyline that background interrupts, none.
        """
        line = unit_steps(np.ascontiguousarray(points, np.int64))
        middle = len(line) // 2
        pieces = [line[: middle + 1], line[middle:]] if (line[0] == line[-1]).all() else [line]
        for piece in pieces:
            path = snap_line(np.ascontiguousarray(piece), WIDTH, self._cells, self._grid)
            if len(path) > 1:
                yield path


def cells_of(normal_map: NormalMap) -> Cells:
    """Return all pixels of a map, as one cell."""
    rows, columns = normal_map.shape
    table = np.zeros((1, 1), np.int32)
    return Cells((rows, columns), (rows + 1, columns + 1), table, normal_map.normals[None], normal_map.mask[None])


def cells_near(lines: Sequence[Int], side: int) -> Int:
    """Return row and column (K, 2) of the cells of a side (px) that hold the pixels that lines (K, 2) are moved over.

    Cells above and left of the image are left out, those below and right of it are not.
    """
    points = np.concatenate([unit_steps(np.ascontiguousarray(line, np.int64)) for line in lines])
    around = [points + np.array([du, dv]) for du in (-NEAR, NEAR) for dv in (-NEAR, NEAR)]
    cells: Int = np.unique(np.concatenate(around) // side, axis=0)[:, ::-1]
    return cells[(cells >= 0).all(axis=1)]


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


def snapped_lines(
    edges: StrainedEdges, cut: Bool, cells: Callable[[list[Int]], Cells], contrasts: Float
) -> list[SnappedLine]:
    """Return the lines of the cut edges (E,) of a jump mesh, on pixel sides.

    ``cells`` gives the pixels near polylines of pixel corners (K, 2). Contrasts (E,) are those of the edges: along
    pixel sides that were chosen for their contrast, noise alone has some.
    """
    if not cut.any():
        return []
    system, chosen = edges.system, np.flatnonzero(cut)
    mesh = system.means.mesh
    chains = Chains.of(system.ends[chosen], boundary_vertices(mesh))
    corners = np.rint(mesh.vertices).astype(np.int64)
    polylines = [corners[chains[chain]] for chain in range(len(chains))]
    snapper = Snapper(cells(polylines))
    lines = []
    for chain, points in enumerate(polylines):
        steps = chosen[chains.edges[chains.starts[chain] + 1 : chains.starts[chain + 1]]]
        lengths = system.lengths[steps]
        height = float((lengths * edges.pixels[steps]).sum() / lengths.sum())
        certainty = float(edges.release[steps].sum() / (RELEASE * lengths.sum()))
        contrast = float((lengths * contrasts[steps]).sum() / lengths.sum())
        lines += [SnappedLine(path, steps, height, certainty, contrast) for path in snapper.paths(points)]
    return lines


def long_enough(paths: list[Int]) -> Bool:
    """Return the paths (L,) that are connected, at their ends, to paths of :data:`MIN_LENGTH` px together."""
    if not paths:
        return np.zeros(0, np.bool_)
    ends = np.array([[path[0], path[-1]] for path in paths])
    _, number = np.unique(ends.reshape(-1, 2), axis=0, return_inverse=True)
    number = number.reshape(-1, 2)
    line = components(number, int(number.max()) + 1)[number[:, 0]]
    length = np.bincount(line, [len(path) - 1 for path in paths])
    enough: Bool = length[line] >= MIN_LENGTH
    return enough
