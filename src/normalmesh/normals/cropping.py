"""Cropping normal maps."""

from __future__ import annotations

from numbers import Integral

from normalmesh.arguments import checked_int
from normalmesh.errors import NormalMeshError, repr_for_error, shape_text
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.windows import Rectangle, checked_window, padded_window


def cropped(normal_map: NormalMap, rectangle: object, margin: int) -> NormalMap:
    """Return a rectangle of a map, see :meth:`NormalMap.crop`."""
    chosen = normal_map.rectangle().window if rectangle is None else _window(rectangle, normal_map.shape)
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


def _window(rectangle: object, shape: tuple[int, int]) -> tuple[slice, slice]:
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
