"""Hierarchy: a start mesh that is coarse where the normals allow it, in one sweep over the pixels.

Right triangles that halve each other, from two a pixel up to squares of 64 px. Each pixel corner knows the cost of
leaving it out; any level of cost gives a mesh of whole pixels without gaps. It is full along the outline.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.decimation import _hierarchy
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import in_parallel

#: Side (px) of the largest squares.
BLOCK = 64
#: Rows of squares, and blocks, that are worth a thread.
ROWS, BLOCKS = 16, 8


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """What it costs to leave out each pixel corner of a normal map.

    Attributes
    ----------
    mask : (H, W) bool
    corner : (int, int)
        Row and column where the foreground begins.
    errors : (R + 1, C + 1) float32
        For each pixel corner of the foreground's rectangle, px⁴; infinite where it must stay.
    """

    mask: NDArray[np.bool_]
    corner: tuple[int, int]
    errors: NDArray[np.float32]

    @classmethod
    def of(cls, normal_map: NormalMap, locked: NDArray[np.bool_] | None = None) -> Hierarchy:
        """Sum up the pixels of a map; ``locked`` (H, W) ones keep their two triangles."""
        mask = normal_map.mask
        kept = ~mask if locked is None else ~mask | locked
        top, left, height, width = _rectangle(mask)
        errors = np.full((height + 1, width + 1), np.inf, np.float32)
        camera = normal_map.camera
        halves = np.empty((0, 0, 2, 4), np.float32)
        side = 2
        while side <= BLOCK:
            squares = (-(-height // side), -(-width // side))
            finer, halves = halves, np.empty((*squares, 2, 4), np.float32)
            costs = np.empty((*squares, 5), np.float32)
            looking = (normal_map.normals, kept, top, left, camera.frame, camera.towards_viewer)
            in_parallel(_hierarchy.merge_squares, squares[0], side, *looking, finer, halves, costs, grain=ROWS)
            in_parallel(_hierarchy.side_errors, squares[0], side, costs, errors, grain=ROWS)
            in_parallel(_hierarchy.middle_errors, squares[0], side, costs, errors, grain=ROWS)
            side *= 2
        return cls(mask, (top, left), errors)

    def level(self, vertices: int) -> float:
        """The error (px⁴) that about this many corners exceed, without those that must stay."""
        counts = np.zeros(_hierarchy.BINS, np.int64)
        _hierarchy.count_errors(self.errors.view(np.int32), counts)
        infinite = int(np.array(np.inf, np.float32).view(np.int32)) >> 19
        above = np.cumsum(counts[:infinite][::-1])[::-1]
        lowest = np.array(np.searchsorted(-above, -vertices) << 19, np.int32).view(np.float32)
        return float(np.nextafter(lowest, np.float32(-1)))

    def count(self, level: float) -> int:
        """Corners, also of the background, whose error exceeds a level (px⁴)."""
        return int(np.count_nonzero(self.errors > level))

    def mesh(self, level: float) -> ScreenMesh:
        """The mesh of all corners whose error exceeds a level (px⁴). Faces and vertices are in the order of blocks."""
        below_infinity = np.float32(min(level, float(np.finfo(np.float32).max)))
        looking = (BLOCK, below_infinity, self.errors, self.mask, *self.corner)
        blocks = int(np.prod([-(-length // BLOCK) for length in self.errors.shape]))
        before = np.zeros(blocks + 1, np.int64)
        first = np.empty(self.errors.shape, np.int32)
        in_parallel(_hierarchy.number_vertices, blocks, *looking, before, first, np.empty((0, 2)), grain=BLOCKS)
        np.cumsum(before, out=before)
        vertices = np.empty((before[-1], 2))
        in_parallel(_hierarchy.number_vertices, blocks, *looking, before, first, vertices, grain=BLOCKS)
        before[:] = 0
        in_parallel(_hierarchy.collect_faces, blocks, *looking, first, before, np.empty((0, 3), np.int32), grain=BLOCKS)
        np.cumsum(before, out=before)
        faces = np.empty((before[-1], 3), np.int32)
        in_parallel(_hierarchy.collect_faces, blocks, *looking, first, before, faces, grain=BLOCKS)
        return ScreenMesh(vertices, faces)


def rectangle_pixels(mask: NDArray[np.bool_]) -> int:
    """Pixels of the smallest rectangle around the foreground."""
    _, _, height, width = _rectangle(mask)
    return height * width


def _rectangle(mask: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """Top, left, height and width of the foreground."""
    rows, columns = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
    top, left = int(rows[0]), int(columns[0])
    return top, left, int(rows[-1]) - top + 1, int(columns[-1]) - left + 1
