"""The start mesh of decimation: two triangles for each pixel, or fewer where the normals allow it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.arguments import checked_array, checked_nonzero
from normalmesh.array_types import Bool, Int, UInt8
from normalmesh.decimation.decimation_options import DecimationOptions
from normalmesh.decimation.hierarchy import Hierarchy
from normalmesh.decimation.quadrics import Pixels
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.mesh._closed_mesh import BOUNDARY, LINE, LOCKED
from normalmesh.mesh._outline import COVERED
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.jumps import JumpLine
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.memory_budget import require_memory

#: Inner vertices of an adaptive start mesh for each vertex of the result.
OVERSAMPLING = 6
#: Additional inner vertices for each pixel of √foreground, so that edges of features are resolved to the pixel.
FEATURES = 25
#: Error (px⁴) of the hierarchy up to which corners are left out, as a share of the cost up to which edges collapse.
LEVEL_SHARE = 1 / 2048
#: An adaptive mesh saves nothing up to this number of foreground pixels.
SMALL = 2**16
#: An adaptive mesh saves nothing from this share of the pixel corners on.
FULL = 0.7
#: An adaptive mesh saves nothing if the rectangle around the foreground is this many times as large.
SPARSE = 8
#: Bytes for each vertex of a start mesh and its quadrics.
START_BYTES = 190
#: What to do about meshes that do not fit into memory.
REMEDY = "ask for fewer vertices, or for a larger threshold or error, or mask what you do not need"


@dataclass(frozen=True, eq=False)
class KeptCorners:
    """Pixel corners (H + 1, W + 1) that must become vertices: those that are locked, and those of lines; or None."""

    locked: Bool | None
    lines: Bool | None

    @classmethod
    def of(
        cls,
        locked: ArrayLike | None,
        lines: tuple[JumpLine, ...],
        normal_map: NormalMap,
        ends: Int | None = None,
    ) -> KeptCorners:
        """Return the corners that ``locked``, as :func:`normalmesh.decimate` takes it, and lines keep.

        So do the ``ends`` (K, 2) of stretches of sides, as :meth:`.Repeats.side_ends` returns them.
        """
        shape = normal_map.shape[0] + 1, normal_map.shape[1] + 1
        on_lines = None
        if lines:
            on_lines = np.zeros(shape, np.bool_)
            for line in lines:
                on_lines[line.path[:, 1], line.path[:, 0]] = True
        corners = None if locked is None else _locked_corners(locked, normal_map)
        if ends is not None:
            corners = np.zeros(shape, np.bool_) if corners is None else corners
            u, v = ends.T
            corners[v, u] = True
        return cls(corners, on_lines)

    def pixels(self) -> Bool | None:
        """Return the pixels (H, W) around all corners, or None if there are none."""
        given = [pixels_around(corners) for corners in (self.locked, self.lines) if corners is not None]
        return np.logical_or.reduce(given) if given else None

    def flag(self, mesh: ClosedMesh) -> None:
        """Set the flags of the vertices of a start mesh at these corners."""
        columns, rows = mesh.vertices.astype(np.int64).T
        if self.lines is not None:
            mesh.flags[self.lines[rows, columns]] |= LOCKED | LINE
        if self.locked is not None:
            there = self.locked[rows, columns]
            mesh.flags[there] = mesh.flags[there] & BOUNDARY | LOCKED


def start_mesh(
    pixels: Pixels,
    options: DecimationOptions,
    target: int,
    limit: float,
    kept: KeptCorners,
    hierarchy: Hierarchy | None,
    coverage: UInt8 | None = None,
    window: tuple[slice, slice] = (slice(0, None), slice(0, None)),
) -> tuple[ClosedMesh, bool]:
    """Make the start mesh for a result of ``target`` vertices, or with all edges above a cost of ``limit``.

    The hierarchy of the map is used if it is given. ``coverage`` (H, W) are the ``COVERED`` and ``FIXED`` pixels, by
    default the foreground and none. All pixels lie in the window.

    Returns
    -------
    mesh : ClosedMesh
    coarse : bool
        Whether the mesh leaves out pixel corners.
    """
    normal_map = pixels.normal_map
    mesh = _coarse_mesh(pixels, target, limit, kept, hierarchy) if options.start == "adaptive" else None
    coarse = mesh is not None
    if mesh is None:
        mesh = ScreenMesh.from_mask(normal_map.mask[window])
        rows, columns = window
        if rows.start or columns.start:
            mesh = ScreenMesh(mesh.vertices + np.array([columns.start, rows.start]), mesh.faces)
    require_memory(START_BYTES * len(mesh.vertices), f"the start mesh of {len(mesh.vertices)} vertices", REMEDY)
    coverage = normal_map.mask * np.uint8(COVERED) if coverage is None else coverage
    closed = ClosedMesh.from_screen(mesh, normal_map.shape, coverage=coverage, smooth_rim=options.smooth_rim)
    kept.flag(closed)
    return closed, coarse


def _coarse_mesh(
    pixels: Pixels, target: int, limit: float, kept: KeptCorners, hierarchy: Hierarchy | None
) -> ScreenMesh | None:
    """Make the adaptive mesh, with all pixels around the kept corners; None if it would save nothing."""
    normal_map, foreground = pixels.normal_map, pixels.normal_map.foreground
    most = FULL * foreground
    wanted = OVERSAMPLING * target + round(FEATURES * math.sqrt(foreground))
    if foreground <= SMALL or wanted >= most or math.prod(normal_map.rectangle()[2:]) > SPARSE * foreground:
        return None
    full = kept.pixels()
    if target:
        if hierarchy is None or full is not None:
            hierarchy = Hierarchy.of(normal_map, full)
        return hierarchy.mesh(hierarchy.level(wanted))
    hierarchy, level = Hierarchy.of(normal_map, full, pixels.regularisation), LEVEL_SHARE * limit
    return hierarchy.mesh(level) if hierarchy.count(level) < most else None


def _locked_corners(locked: ArrayLike, normal_map: NormalMap) -> Bool:
    """Return the pixel corners (H + 1, W + 1) that are locked."""
    given = checked_array(locked, "locked", "a pixel mask or pixel corners", "bfiu")
    rows, columns = normal_map.shape
    if given.shape == normal_map.shape and (given.dtype == np.bool_ or given.shape[1] != 2):
        return _corners_of(checked_nonzero(given, "locked") & normal_map.mask)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iuf":
        raise NormalMeshError(
            f"locked must be a pixel mask of {shape_text(normal_map.shape)} or pixel corners (number, 2), "
            f"not {given.dtype} {shape_text(given.shape)}"
        )
    there = _corners_of(normal_map.mask)
    corners = np.zeros_like(there)
    u, v = given.T.astype(np.float64)
    inside = (u >= 0) & (u <= columns) & (v >= 0) & (v <= rows) & (u == np.floor(u)) & (v == np.floor(v))
    corners[v[inside].astype(np.int64), u[inside].astype(np.int64)] = True
    inside[inside] = there[v[inside].astype(np.int64), u[inside].astype(np.int64)]
    if not inside.all():
        raise NormalMeshError(f"locked corner {given[~inside][0].tolist()} is not a pixel corner of the foreground")
    return corners


def _corners_of(pixels: Bool) -> Bool:
    """Return the corners (H + 1, W + 1) of pixels (H, W)."""
    corners = np.zeros((pixels.shape[0] + 1, pixels.shape[1] + 1), np.bool_)
    for below in (0, 1):
        for right in (0, 1):
            corners[below : below + pixels.shape[0], right : right + pixels.shape[1]] |= pixels
    return corners


def pixels_around(corners: Bool) -> Bool:
    """Return the pixels (H, W) around corners (H + 1, W + 1)."""
    return corners[:-1, :-1] | corners[:-1, 1:] | corners[1:, :-1] | corners[1:, 1:]
