"""Jump pixels: what the search for jumps asks of the pixels of a map.

The search itself works on meshes of few faces. Whoever makes these meshes, and hands out pixels near lines, need not
hold all pixels at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from normalmesh.array_types import Bool, Float, Float32, Int, Int32
from normalmesh.decimation.hierarchy import Hierarchy
from normalmesh.decimation.near_cells import NearCells
from normalmesh.decimation.start_mesh import pixels_around
from normalmesh.facets.face_means import FaceMeans
from normalmesh.jumps._snapping import Cells
from normalmesh.jumps.snapping import cells_of
from normalmesh.normals.normal_map import NormalMap

#: Samples along each side of a pixel, for the mean gradients of small faces.
SAMPLES = 2


class Sides(NamedTuple):
    """Sides between foreground pixels: first those between rows, then those between columns, both row by row.

    Attributes
    ----------
    ends : (S, 2, 2) int64
        Both pixel corners, as u, v.
    contrast : (S,) float64
        Length of the difference of the normals on both sides.
    inner : (S, 2) bool
        Whether all four pixels around each end are foreground.
    """

    ends: Int
    contrast: Float
    inner: Bool


class JumpPixels(Protocol):
    """Pixels of a map in which jumps are searched."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    @property
    def foreground(self) -> int:
        """Number of foreground pixels."""
        ...

    def along(self, paths: list[Int]) -> JumpPixels:
        """Return the same pixels, with meshes that are full beside paths (P, 2) of pixel corners."""
        ...

    def level(self, vertices: int) -> float:
        """Return the error (px⁴) that about so many pixel corners exceed."""
        ...

    def means(self, level: float) -> FaceMeans:
        """Return the mesh of all corners above a level, with its mean normals."""
        ...

    def mixed_means(self, near: NearCells, fine: float, coarse: float) -> FaceMeans:
        """Return the mesh of all corners above ``fine`` in near cells, above ``coarse`` elsewhere; see Hierarchy."""
        ...

    def cells(self, lines: list[Int]) -> Cells:
        """Return the pixels near polylines (K, 2) of pixel corners."""
        ...

    def sides(self, image: Bool) -> Sides:
        """Return the sides between foreground pixels of which one is marked in an image (H, W)."""
        ...

    def normals_at(self, pixels: Int32) -> Float32:
        """Return the normals (K, 3) of pixels (K, 2), given by row and column; zero in the background."""
        ...

    @property
    def filled(self) -> float:
        """Share of the smallest rectangle around it that is foreground: about 1 for reliefs."""
        ...


@dataclass(frozen=True, eq=False)
class PixelsInMemory:
    """Pixels of a denoised normal map, all in memory.

    Attributes
    ----------
    normal_map : NormalMap
    full : (H, W) bool
        Pixels with two triangles in all meshes, or None.
    """

    normal_map: NormalMap
    full: Bool | None = None

    @classmethod
    def of(cls, normal_map: NormalMap, hierarchy: Hierarchy | None = None) -> PixelsInMemory:
        """Return the pixels of a map, with its hierarchy if that is known."""
        pixels = cls(normal_map)
        if hierarchy is not None:
            vars(pixels)["hierarchy"] = hierarchy
        return pixels

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """Costs of all pixel corners."""
        return Hierarchy.of(self.normal_map, self.full)

    @property
    def shape(self) -> tuple[int, int]:
        return self.normal_map.shape

    @cached_property
    def foreground(self) -> int:
        return self.normal_map.foreground

    def along(self, paths: list[Int]) -> PixelsInMemory:
        return replace(self, full=pixels_along(paths, self.shape))

    def level(self, vertices: int) -> float:
        return self.hierarchy.level(vertices)

    def means(self, level: float) -> FaceMeans:
        return FaceMeans.of(self.hierarchy.mesh(level), self.normal_map, SAMPLES)

    def mixed_means(self, near: NearCells, fine: float, coarse: float) -> FaceMeans:
        return FaceMeans.of(self.hierarchy.mixed_mesh(near, fine, coarse), self.normal_map, SAMPLES)

    def cells(self, lines: list[Int]) -> Cells:
        return cells_of(self.normal_map)

    def sides(self, image: Bool) -> Sides:
        return marked_sides(image, self.normal_map)

    def normals_at(self, pixels: Int32) -> Float32:
        return normals_of_pixels(pixels, self.normal_map)

    @property
    def filled(self) -> float:
        sides = [int(np.ptp(each)) + 1 for each in np.nonzero(self.normal_map.mask)]
        return self.foreground / (sides[0] * sides[1])


def pixels_along(paths: list[Int], shape: tuple[int, int]) -> Bool:
    """Return the pixels (H, W) around the corners of paths (P, 2), of which some may be outside the image."""
    corners = np.zeros((shape[0] + 1, shape[1] + 1), np.bool_)
    for path in paths:
        u, v = path[((path >= 0) & (path <= shape[::-1])).all(axis=1)].T
        corners[v, u] = True
    return pixels_around(corners)


def normals_of_pixels(pixels: Int32, normal_map: NormalMap) -> Float32:
    """Return the normals (K, 3) of pixels (K, 2), given by row and column; zero in the background and outside."""
    inside = np.flatnonzero(((pixels >= 0) & (pixels < normal_map.shape)).all(axis=1))
    row, column = pixels[inside].T
    normals = np.zeros((len(pixels), 3), np.float32)
    normals[inside] = np.where(normal_map.mask[row, column, None], normal_map.normals[row, column], 0)
    return normals


def marked_sides(image: Bool, normal_map: NormalMap) -> Sides:
    """Return the sides between foreground pixels of which one is marked in an image (H, W)."""
    normals, mask = normal_map.normals, normal_map.mask
    marked, around = image & mask, np.pad(mask, 1)
    found = []
    for axis in (0, 1):
        first, second = np.delete(np.arange(mask.shape[axis]), -1), np.delete(np.arange(mask.shape[axis]), 0)
        both = mask.take(first, axis) & mask.take(second, axis)
        near = both & (marked.take(first, axis) | marked.take(second, axis))
        row, column = np.nonzero(near)
        after = (row + 1, column) if axis == 0 else (row, column + 1)
        difference = normals[row, column].astype(np.float64) - normals[after]
        start = np.stack([after[1], after[0]], axis=1)
        ends = np.stack([start, start + ([1, 0] if axis == 0 else [0, 1])], axis=1).astype(np.int64)
        u, v = ends[..., 0], ends[..., 1]
        inner = around[v, u] & around[v, u + 1] & around[v + 1, u] & around[v + 1, u + 1]
        found.append(Sides(ends, np.linalg.norm(difference, axis=1), inner))
    return Sides(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
