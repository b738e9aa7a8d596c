"""Cropping, turning and resizing normal maps: the camera follows the pixels."""

from __future__ import annotations

import math
from numbers import Integral

import numpy as np
from scipy.sparse import csr_matrix

from normalmesh.arguments import checked_image_shape, checked_int, checked_positive
from normalmesh.array_types import Float, Floating, Int
from normalmesh.errors import NormalMeshError, repr_for_error, shape_text
from normalmesh.normals.gradients import normals_of_slopes, slopes_of
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.windows import Rectangle, checked_window, padded_window
from normalmesh.runtime.memory_budget import require_memory

#: Share of a pixel that may be missing at the last row or column without another one: rounding of factors.
NOTHING = 1e-9
#: More rows or columns than any image has.
MANY = 2.0**62
#: Bytes that a new pixel takes, for slopes, their weights, normals and temporary arrays, and an old one, for slopes.
NEW_BYTES, OLD_BYTES = 60, 40


def cropped(normal_map: NormalMap, rectangle: object, margin: int) -> NormalMap:
    """Return a rectangle of a map, see :meth:`NormalMap.crop`."""
    chosen = normal_map.rectangle().window if rectangle is None else _window_of(rectangle, normal_map.shape)
    rows, columns = padded_window(chosen, checked_int(margin, 0, "margin"), normal_map.shape)
    mask = normal_map.mask[rows, columns]
    if not mask.any():
        raise NormalMeshError(
            f"rows {rows.start} to {rows.stop} and columns {columns.start} to {columns.stop} hold no foreground; "
            f"the foreground lies in {normal_map.rectangle()}"
        )
    camera = normal_map.camera.shifted(columns.start, rows.start)
    # Parts of arrays would keep the whole map in memory.
    return NormalMap.cleaned(normal_map.normals[rows, columns].copy(), mask.copy(), camera)


def _from_the_start(side: slice, length: int) -> slice:
    """Return a slice with its negative ends counted from the start, as those of arrays are."""
    start, stop = (
        max(int(end) + length, 0) if isinstance(end, Integral) and end < 0 else end for end in (side.start, side.stop)
    )
    return slice(start, stop, side.step)


def _window_of(rectangle: object, shape: tuple[int, int]) -> tuple[slice, slice]:
    """Return rows and columns of a rectangle given in one of two ways."""
    sides = tuple(rectangle) if isinstance(rectangle, tuple | list) else ()
    if len(sides) == 2 and all(isinstance(side, slice) for side in sides):
        rows, columns = (_from_the_start(side, length) for side, length in zip(sides, shape, strict=True))
        return checked_window(rows, columns, shape)
    numbers = [int(side) for side in sides if isinstance(side, Integral) and not isinstance(side, bool)]
    if len(sides) == len(numbers) == 4:
        top, left, height, width = numbers
        if min(top, left) >= 0 and min(height, width) > 0 and top + height <= shape[0] and left + width <= shape[1]:
            return Rectangle(top, left, height, width).window
    raise NormalMeshError(
        "rectangle must be (top, left, height, width) or slices of rows and columns, inside the image of "
        f"{shape_text(shape)} pixels, not {repr_for_error(rectangle)}"
    )


def rotated_map(normal_map: NormalMap, degrees: int) -> NormalMap:
    """Return a map turned anticlockwise, see :meth:`NormalMap.rotated`."""
    if isinstance(degrees, bool) or not isinstance(degrees, Integral | float) or degrees % 90:
        raise NormalMeshError(f"degrees must be a multiple of 90, not {repr_for_error(degrees)}")
    quarters = int(degrees // 90) % 4
    normals = np.rot90(normal_map.normals, quarters).copy()
    x, y = normals[..., 0].copy(), normals[..., 1].copy()
    for _ in range(quarters):
        x, y = -y, x
    normals[..., 0], normals[..., 1] = x, y
    # Negating a zero of the background leaves −0.
    normals += np.float32(0)
    mask, camera = np.rot90(normal_map.mask, quarters).copy(), normal_map.camera.turned(quarters, normal_map.shape)
    return NormalMap.cleaned(normals, mask, camera)


def resized_map(normal_map: NormalMap, size: float | tuple[int, int]) -> NormalMap:
    """Return a map at another resolution, see :meth:`NormalMap.resize`: slopes are averaged or interpolated."""
    shape, (down, across) = _target(normal_map, size)
    if (down, across) == (1, 1):
        return normal_map
    camera = normal_map.camera.resampled(across, down)
    needed = NEW_BYTES * math.prod(shape) + OLD_BYTES * normal_map.mask.size
    require_memory(needed, "the resized map", "choose a smaller size, or crop the map before")
    inside = normal_map.mask.astype(np.float32)
    lengths = list(zip(normal_map.shape, shape, (down, across), strict=True))
    area_rows, area_columns = (_area_weights(*length) for length in lengths)
    mask = _applied(inside, area_rows, area_columns) >= 0.5 - NOTHING
    if not mask.any():
        raise NormalMeshError(
            f"no foreground is left at {shape_text(shape)} pixels: no pixel would be covered to a half; "
            "choose a larger size, or crop to the foreground before"
        )
    rows, columns = (_area_weights(*length) if length[2] < 1 else _linear_weights(*length) for length in lengths)
    weights = np.maximum(_applied(inside, rows, columns), np.finfo(np.float32).tiny)
    slopes = np.zeros((*shape, 2))
    for axis, values in enumerate(np.moveaxis(slopes_of(normal_map.normals, normal_map.camera), -1, 0)):
        # Slopes are per pixel of either image; the background has slope zero and no weight.
        slopes[..., axis] = _applied(values, rows, columns) / weights / (across, down)[axis]
    normals = normals_of_slopes(slopes, camera)
    normals[~mask] = 0
    return NormalMap.derived(normals, mask, camera)


def _target(normal_map: NormalMap, size: float | tuple[int, int]) -> tuple[tuple[int, int], tuple[float, float]]:
    """Return the new rows and columns, and the factors on both.

    The last row and column may reach beyond the old image if both factors have to be the same.
    """
    rows, columns = normal_map.shape
    if not isinstance(size, tuple | list | np.ndarray):
        factor = checked_positive(size, "size", "a positive factor, or rows and columns")
        shape = checked_image_shape(
            tuple(max(math.ceil(min(factor * side - NOTHING, MANY)), 1) for side in (rows, columns)), "size"
        )
        return shape, (factor, factor)
    shape = checked_image_shape(size, "size")
    down, across = shape[0] / rows, shape[1] / columns
    least = min(down, across)
    if not normal_map.camera.is_central and shape[0] - least * rows < 1 and shape[1] - least * columns < 1:
        down = across = least
    return shape, (down, across)


def _applied(values: Floating, rows: csr_matrix, columns: csr_matrix) -> Floating:
    """Return values (H, W) resampled by weights (h, H) of rows and (w, W) of columns."""
    return (columns @ (rows @ values).T).T


def _area_weights(old: int, new: int, factor: float) -> csr_matrix:
    """Return the shares (new, old) of the extent of each new pixel that old pixels cover."""
    edges = np.arange(new + 1) / factor
    # No new pixel covers more than all old ones, however small the factor is.
    widest = math.ceil(min(1 / factor + 1, old))
    covered = np.floor(edges[:-1]).astype(np.int64)[:, None] + np.arange(widest)
    overlap = np.minimum(covered + 1, edges[1:, None]) - np.maximum(covered, edges[:-1, None])
    return _matrix(covered, np.maximum(overlap, 0) * factor, old)


def _linear_weights(old: int, new: int, factor: float) -> csr_matrix:
    """Return the weights (new, old) of the linear interpolation between old pixel centres, constant beyond them."""
    places = np.clip((np.arange(new) + 0.5) / factor - 0.5, 0, old - 1)
    before = np.minimum(np.floor(places).astype(np.int64), max(old - 2, 0))
    share = places - before
    return _matrix(before[:, None] + [0, 1], np.stack([1 - share, share], axis=1), old)


def _matrix(columns: Int, weights: Float, old: int) -> csr_matrix:
    """Return the sparse matrix with some weights (new, k) in given columns; those beyond the image are left out."""
    rows = np.broadcast_to(np.arange(len(columns))[:, None], columns.shape)
    there = (columns < old) & (weights > 0)
    return csr_matrix((weights[there], (rows[there], columns[there])), shape=(len(columns), old))
