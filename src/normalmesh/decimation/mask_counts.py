"""MaskCounts: what the shape of a mask costs, whatever its normals: corners, outline, components, holes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float, Int, Integer
from normalmesh.decimation.hierarchy import BLOCK, Hierarchy, Region
from normalmesh.normals.mask_labels import component_labels
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.orthographic import Orthographic
from normalmesh.normals.windows import rectangle_of
from normalmesh.runtime.threads import in_parallel

Window = tuple[slice, slice]

#: Vertices that a closed line of the outline keeps, in the mean over specks and irregular holes.
VERTICES_PER_LOOP = 5
#: Pixel sides of the outline, for each px of √foreground, of a solid foreground of ordinary shape; and the vertices of
#: the coarsest start mesh for each of them.
SOLID_SIDES, SOLID_FIXED = 6.0, 2.6
#: Side (px), a multiple of that of the squares of a hierarchy, of the blocks in which a mask is counted: their arrays
#: fit into a core's cache.
SIDE = 8 * BLOCK


@dataclass(frozen=True, eq=False)
class MaskCounts:
    """Counts of a mask that decide about memory and time.

    Attributes
    ----------
    pixels, foreground, rectangle
        Pixels of the image, of the foreground, and of the smallest rectangle around it.
    corners
        Vertices of the mesh of all foreground pixels.
    fixed
        Vertices of the coarsest start mesh: it is full along the outline.
    loops
        Closed lines of the outline: one for each component and each hole.
    holes
        Of the foreground, less the number of components.
    component_pixels, component_sides : (C,) int64
        Foreground pixels of each component, and the pixel sides along its outline.
    """

    pixels: int
    foreground: int
    rectangle: int
    corners: int
    fixed: int
    loops: int
    holes: int
    component_pixels: Int
    component_sides: Int

    @classmethod
    def of(cls, mask: Bool, known: tuple[Integer, int] | None = None) -> MaskCounts:
        """Count in a mask (H, W) with at least one foreground pixel, whose components and their number may be known."""
        place = rectangle_of(np.any(mask, axis=1), np.any(mask, axis=0)).window
        window = mask[place]
        labels, components = component_labels(window) if known is None else (known[0][place], known[1])
        blocks = _blocks(window.shape)
        found = [_BlockCounts()] * len(blocks)
        in_parallel(_count_blocks, len(blocks), blocks, window, labels, found, grain=1)
        at_sides = np.concatenate([block.at_sides for block in found])
        sides = np.bincount(at_sides, minlength=components + 1)[1:]
        areas = _areas(labels, components)
        foreground, outline, corners = int(areas.sum()), len(at_sides), sum(block.corners for block in found)
        # By Euler's formula, for two triangles in each pixel.
        holes = foreground + outline // 2 - corners
        fixed = sum(block.fixed for block in found)
        return cls(mask.size, foreground, window.size, corners, fixed, holes + 2 * components, holes, areas, sides)

    @classmethod
    def solid(cls, pixels: int, foreground: int) -> MaskCounts:
        """Assume one solid part, somewhere in the image."""
        sides = math.ceil(SOLID_SIDES * math.sqrt(foreground))
        corners = foreground + sides // 2 + 1
        fixed = min(math.ceil(SOLID_FIXED * sides), corners)
        return cls(
            pixels, foreground, pixels, corners, fixed, 1, -1, np.array([foreground], np.int64), np.array([sides])
        )

    @property
    def outline(self) -> int:
        """Pixel sides along the outline, and as many vertices of the mesh of all pixels."""
        return int(self.component_sides.sum())

    @property
    def least_vertices(self) -> int:
        """Approximate number of vertices that keep all components and holes."""
        return min(VERTICES_PER_LOOP * self.loops, self.corners)

    def edges(self, vertices: int) -> int:
        """Return the most inner edges of a mesh with this number of vertices: each loop has three edges at least."""
        return max(3 * vertices + 3 * self.holes - 2 * min(3 * self.loops, vertices), 0)

    def fixed_edges(self) -> Float:
        """Return the approximate number of inner edges (C,) of the coarsest start mesh of each component."""
        share: Float = self.component_sides / self.outline
        return (3 * self.fixed + 3 * self.holes - 2 * self.outline) * share


class _BlockCounts(NamedTuple):
    """Counts of the pixel corners of a block, and the label of its pixels at each pixel side of the outline."""

    corners: int = 0
    fixed: int = 0
    at_sides: Integer = np.zeros(0, np.int32)


def _blocks(shape: tuple[int, ...]) -> list[Window]:
    """Return the rows and columns of the blocks of the pixel corners of an image."""
    rows, columns = ([slice(at, min(at + SIDE, size + 1)) for at in range(0, size + 1, SIDE)] for size in shape)
    return list(product(rows, columns))


def _count_blocks(
    first: int, last: int, blocks: list[Window], window: Bool, labels: Integer, found: list[_BlockCounts]
) -> None:
    """Count in the blocks first … last − 1 of the pixel corners of a window: a range kernel in NumPy."""
    for place in range(first, last):
        rows, columns = blocks[place]
        # What a corner is depends on the squares that meet there.
        top, left = max(rows.start - BLOCK, 0), max(columns.start - BLOCK, 0)
        part = window[top : rows.stop + BLOCK, left : columns.stop + BLOCK]
        if not part.any():
            continue
        own = (slice(rows.start - top, rows.stop - top), slice(columns.start - left, columns.stop - left))
        padded = np.pad(part, 1)
        around = _vertices_at_corners(padded)[own]
        fixed = fixed_corners(part)[own]
        at_sides = [labels[rows, columns][side[own]] for side in _sides(padded)]
        found[place] = _BlockCounts(int(around.sum()), int(around[fixed].sum()), np.concatenate(at_sides))


def outline_sides(mask: Bool, own: Window = (slice(None), slice(None))) -> int:
    """Count the pixel sides along the outline of some of the pixels of a mask (H, W), by default of all."""
    return sum(int(np.count_nonzero(at_side[own])) for at_side in _sides(np.pad(mask, 1)))


def _sides(padded: Bool) -> Iterator[Bool]:
    """Yield the pixels of a window, without its margin, that have background above, below, on the left and right."""
    pixels = padded[1:-1, 1:-1]
    for beside in (padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]):
        yield pixels & ~beside


def _areas(labels: Integer, components: int) -> Int:
    """Return the number of pixels (C,) of each component."""
    if components == 1:
        return np.array([np.count_nonzero(labels)])
    return np.bincount(labels.ravel(), minlength=components + 1)[1:]


def _vertices_at_corners(window: Bool) -> NDArray[np.int8]:
    """Return the vertices of the mesh of all pixels at each pixel corner, in a window with a margin of background."""
    northwest, southeast = window[:-1, :-1], window[1:, 1:]
    northeast, southwest = window[:-1, 1:], window[1:, :-1]
    touched = northwest | southeast | northeast | southwest
    # Two pixels that touch only at a corner do not share its vertex.
    split = (northwest == southeast) & (northeast == southwest) & (northwest != northeast)
    return np.add(touched, split, dtype=np.int8)


def fixed_corners(foreground: Bool) -> Bool:
    """Find the pixel corners (H + 1, W + 1) that every start mesh keeps: also if all normals are alike."""
    normals = np.zeros((*foreground.shape, 3), np.float32)
    normals[..., 2] = 1
    flat, (rows, columns) = NormalMap.cleaned(normals, foreground, Orthographic()), foreground.shape
    return np.isinf(Hierarchy.of(flat, region=Region(0, 0, rows, columns, (0, 0), flat.camera)).errors)
