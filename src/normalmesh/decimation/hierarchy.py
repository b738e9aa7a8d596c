"""Hierarchy: the cost of leaving out each pixel corner, and start meshes that are coarse where the normals allow it.

The triangles are right triangles that halve each other, from two in each pixel up to squares of 64 px. Any level of
cost gives a mesh of whole pixels without gaps, which is full along the outline.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float32, Int
from normalmesh.decimation import _hierarchy
from normalmesh.decimation._hierarchy import COSTS, PART, Corners, Foreground
from normalmesh.decimation.near_cells import SIZE, NearCells
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.camera import Camera
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import in_parallel

#: Bytes for each pixel of the rectangle while a hierarchy is made, and those of its errors.
HIERARCHY_BYTES, ERROR_BYTES = 20, 4
#: Side (px) of the largest squares.
BLOCK = 64
#: Rows of squares, and blocks, at least, that a thread works on at once.
ROWS, BLOCKS = 16, 8
#: Side (px) of the grid on which regions begin: the triangles in two adjacent blocks mirror each other.
PERIOD = 2 * BLOCK
#: Level of the meshes of mixed hierarchies: corners that stay have the error 1, or infinite if they must.
MIXED_LEVEL = 0.5


@dataclass(frozen=True)
class Region:
    """The part of an image of which a hierarchy is made.

    Attributes
    ----------
    top, left, height, width
        Rectangle of pixels, in the window that is given. It begins at a multiple of :data:`PERIOD` px from the upper
        left corner of the rectangle of the whole image.
    place : (int, int)
        Row and column of the window in the image.
    camera : Camera
        Camera of the whole image: with it, costs do not depend on the window.
    """

    top: int
    left: int
    height: int
    width: int
    place: tuple[int, int]
    camera: Camera

    @classmethod
    def around(cls, normal_map: NormalMap) -> Region:
        """Return the rectangle around the foreground of a whole map."""
        return cls(*normal_map.rectangle(), (0, 0), normal_map.camera)


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The cost of leaving out each pixel corner of a normal map.

    Attributes
    ----------
    mask : (H, W) bool
        Foreground pixels.
    corner : (int, int)
        Row and column where the foreground begins.
    errors : (R + 1, C + 1) float32
        The cost (px⁴) of each pixel corner of the foreground's rectangle; infinite if the corner must stay.
    """

    mask: Bool
    corner: tuple[int, int]
    errors: Float32

    @classmethod
    def of(
        cls,
        normal_map: NormalMap,
        locked: Bool | None = None,
        regularisation: float = 0.0,
        region: Region | None = None,
    ) -> Hierarchy:
        """Sum up the pixels of a map; ``locked`` (H, W) pixels keep their two triangles.

        ``regularisation`` is λ of eq. (13): with it, corners cost something also where the normals are constant.
        ``region`` is the part of an image that the map is a window of. Its corners have the same errors as in the
        whole image, but for those within :data:`PERIOD` px of sides inside it.
        """
        mask, region = normal_map.mask, region or Region.around(normal_map)
        kept = ~mask if locked is None else ~mask | locked
        height, width = region.height, region.width
        errors = np.full((height + 1, width + 1), np.inf, np.float32)
        foreground = Foreground(
            normal_map.normals,
            kept,
            region.top,
            region.left,
            region.place,
            region.camera.arrays,
            np.float32(regularisation),
        )
        halves = np.empty((0, 0, 2, PART), np.float32)
        side = 2
        while side <= BLOCK:
            squares = (-(-height // side), -(-width // side))
            finer, halves = halves, np.empty((*squares, 2, PART), np.float32)
            costs = np.empty((*squares, COSTS), np.float32)
            in_parallel(_hierarchy.merge_squares, squares[0], side, foreground, finer, halves, costs, grain=ROWS)
            in_parallel(_hierarchy.side_errors, squares[0], side, costs, errors, grain=ROWS)
            in_parallel(_hierarchy.middle_errors, squares[0], side, costs, errors, grain=ROWS)
            side *= 2
        return cls(mask, (region.top, region.left), errors)

    def part(self, rows: slice, columns: slice) -> Hierarchy:
        """Return the hierarchy of some rows and columns of squares, which begin at multiples of :data:`PERIOD` px."""
        top, left = self.corner[0] + rows.start, self.corner[1] + columns.start
        errors = self.errors[rows.start : rows.stop + 1, columns.start : columns.stop + 1]
        return Hierarchy(self.mask, (top, left), np.ascontiguousarray(errors))

    def histogram(self, rows: int | None = None, columns: int | None = None) -> Int:
        """Count the corners by their error, in all or in the first rows and columns: the sum of parts is the whole."""
        bits = np.ascontiguousarray(self.errors[:rows, :columns]).view(np.int32)
        counts = np.zeros((-(-len(bits) // _hierarchy.COUNTED), _hierarchy.BINS), np.int64)
        in_parallel(_hierarchy.count_errors, len(counts), bits, counts, grain=1)
        return counts.sum(axis=0)

    def level(self, vertices: int) -> float:
        """Return the error (px⁴) that about ``vertices`` corners exceed, without those that must stay."""
        return level_of(self.histogram(), vertices)

    def count(self, level: float) -> int:
        """Count the corners, also of the background, whose error exceeds a level (px⁴)."""
        return int(np.count_nonzero(self.errors > level))

    def mesh(self, level: float) -> ScreenMesh:
        """Make the mesh of all corners whose error exceeds a level (px⁴).

        Faces and vertices are in the order of blocks.
        """
        below_infinity = np.float32(min(level, float(np.finfo(np.float32).max)))
        first_vertex = np.empty(self.errors.shape, np.int32)
        corners = Corners(self.errors, below_infinity, self.mask, *self.corner, first_vertex)
        vertices = self._in_blocks(_hierarchy.number_vertices, corners, np.empty((0, 2)))
        faces = self._in_blocks(_hierarchy.collect_faces, corners, np.empty((0, 3), np.int32))
        return ScreenMesh(vertices, faces)

    def mixed(self, near: NearCells, fine: float, coarse: float) -> Hierarchy:
        """Return a hierarchy whose mesh has the corners above ``fine`` (px⁴) in near cells, above ``coarse`` elsewhere.

        It is the mesh of the level :data:`MIXED_LEVEL`. Whether a corner stays depends on errors within a block of it.
        """
        rows, columns = (
            (np.arange(count) + first + inset) // SIZE
            for count, first, inset in zip(self.errors.shape, self.corner, near.inset, strict=True)
        )
        levels = np.where(near.cells[np.ix_(rows, columns)], np.float32(fine), np.float32(coarse))
        kept = np.where(np.isinf(self.errors), self.errors, self.errors > levels).astype(np.float32)
        _hierarchy.keep_parents(kept, BLOCK)
        return replace(self, errors=kept)

    def mixed_mesh(self, near: NearCells, fine: float, coarse: float) -> ScreenMesh:
        """Make the mesh of all corners whose error exceeds ``fine`` (px⁴) in near cells, and ``coarse`` elsewhere."""
        return self.mixed(near, fine, coarse).mesh(MIXED_LEVEL)

    def _in_blocks(self, kernel: Callable[..., None], corners: Corners, rows: NDArray[Any]) -> NDArray[Any]:
        """Count the rows that a kernel gives for each block, then fill as many rows like those of an empty array."""
        blocks = math.prod(-(-length // BLOCK) for length in self.errors.shape)
        before = np.zeros(blocks + 1, np.int64)
        in_parallel(kernel, blocks, BLOCK, corners, before, rows, grain=BLOCKS)
        np.cumsum(before, out=before)
        filled = np.empty((before[-1], rows.shape[1]), rows.dtype)
        in_parallel(kernel, blocks, BLOCK, corners, before, filled, grain=BLOCKS)
        return filled


def bin_of(level: float) -> int:
    """Return the bin of a histogram that counts corners with an error (px⁴)."""
    return int(np.array(level, np.float32).view(np.int32)) >> 19


def level_of(histogram: Int, vertices: int) -> float:
    """Return the error (px⁴) that about ``vertices`` corners of a histogram exceed, without those that must stay."""
    above = np.cumsum(histogram[: bin_of(np.inf)][::-1])[::-1]
    lowest = np.array(np.searchsorted(-above, -vertices) << 19, np.int32).view(np.float32)
    return float(np.nextafter(lowest, np.float32(-1)))
