"""The start mesh of decimation: two triangles for each pixel, or fewer where the normals allow it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_array, checked_nonzero
from normalmesh.decimation.hierarchy import Hierarchy, rectangle_pixels
from normalmesh.decimation.quadrics import Pixels
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap

#: Inner vertices of an adaptive start mesh for each vertex of the result.
OVERSAMPLING = 8
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


def start_mesh(
    pixels: Pixels, start: str, target: int, limit: float, locked: ArrayLike | None
) -> tuple[ClosedMesh, bool]:
    """Make the start mesh for a result of ``target`` vertices, or with all edges above a cost of ``limit``.

    ``start`` and ``locked`` are those of :func:`normalmesh.decimate`.

    Returns
    -------
    mesh : ClosedMesh
    coarse : bool
        Whether the mesh leaves out pixel corners.
    """
    normal_map = pixels.normal_map
    corners = None if locked is None else _locked_corners(locked, normal_map)
    mesh = _coarse_mesh(pixels, target, limit, corners) if start == "adaptive" else None
    coarse = mesh is not None
    if mesh is None:
        mesh = ScreenMesh.from_mask(normal_map.mask)
    chosen = None
    if corners is not None:
        columns, rows = mesh.vertices.astype(np.int64).T
        chosen = corners[rows, columns]
    return ClosedMesh.from_screen(mesh, normal_map.shape, chosen, covered=normal_map.mask.copy()), coarse


def _coarse_mesh(pixels: Pixels, target: int, limit: float, corners: NDArray[np.bool_] | None) -> ScreenMesh | None:
    """Make the adaptive mesh, with all pixels around ``corners`` (H + 1, W + 1); None if it would save nothing."""
    normal_map, foreground = pixels.normal_map, pixels.normal_map.foreground
    most = FULL * foreground
    wanted = OVERSAMPLING * target + round(FEATURES * math.sqrt(foreground))
    if foreground <= SMALL or wanted >= most or rectangle_pixels(normal_map.mask) > SPARSE * foreground:
        return None
    full = None if corners is None else _around(corners)
    if target:
        hierarchy = Hierarchy.of(normal_map, full)
        return hierarchy.mesh(hierarchy.level(wanted))
    hierarchy, level = Hierarchy.of(normal_map, full, pixels.regularisation), LEVEL_SHARE * limit
    return hierarchy.mesh(level) if hierarchy.count(level) < most else None


def _locked_corners(locked: ArrayLike, normal_map: NormalMap) -> NDArray[np.bool_]:
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


def _corners_of(pixels: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the corners (H + 1, W + 1) of pixels (H, W)."""
    corners = np.zeros((pixels.shape[0] + 1, pixels.shape[1] + 1), np.bool_)
    for below in (0, 1):
        for right in (0, 1):
            corners[below : below + pixels.shape[0], right : right + pixels.shape[1]] |= pixels
    return corners


def _around(corners: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the pixels (H, W) around corners (H + 1, W + 1)."""
    return corners[:-1, :-1] | corners[:-1, 1:] | corners[1:, :-1] | corners[1:, 1:]
