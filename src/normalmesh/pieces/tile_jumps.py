"""Jumps of a map that is read window by window: the same as those of the whole map."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from normalmesh.engine.array_file import Arrays, packed, unpacked
from normalmesh.engine.runner import Run
from normalmesh.jumps.finding import MIN_COMPONENT, jumps_along, jumps_of_component, jumps_of_pixels
from normalmesh.mesh.jumps import Jumps
from normalmesh.normals.component_maps import ALIGNED
from normalmesh.pieces.clean_map import CleanMap
from normalmesh.pieces.map_windows import Window
from normalmesh.pieces.mask_components import groups_of
from normalmesh.pieces.tile_pixels import TilePixels


def tiled_jumps(clean: CleanMap, discontinuities: bool | str, run: Run, side: int, min_certainty: float = 0.0) -> Jumps:
    """Find the jumps of a map in tiles of a side, a multiple of 128 px; none for ``discontinuities=False``.

    Components that fit into a tile are looked at in memory, larger ones by tiles of their own rectangle.
    """
    if discontinuities is False:
        return Jumps()
    always = discontinuities is True
    groups, large = groups_of(clean.components, MIN_COMPONENT, side)
    arguments = {key: (clean, *group, always, min_certainty) for key, group in groups.items()}
    found: dict[int, Jumps] = {}
    for result in run("jumps", jumps_in_window, arguments).values():
        found |= unpacked(result)
    for number in large:
        found[number] = _jumps_of_large(clean, number, always, min_certainty, run, side)
    return Jumps.joined(found[number] for number in sorted(found))


def tiled_jumps_along(lines: ArrayLike | Sequence[ArrayLike], clean: CleanMap, run: Run, side: int) -> Jumps:
    """Return the jumps along given lines, an edge image or polylines, in tiles of a side, a multiple of 128 px."""
    rectangle, area = clean.components.rectangle, int(clean.components.areas.sum())
    return jumps_along(lines, TilePixels(clean, rectangle, area, run, "jumps", side))


def _jumps_of_large(clean: CleanMap, number: int, always: bool, min_certainty: float, run: Run, side: int) -> Jumps:
    """Find the jumps of a component that does not fit into a tile."""
    components = clean.components
    rectangle = components.rectangle_of(number)
    top, left = rectangle.top - rectangle.top % ALIGNED, rectangle.left - rectangle.left % ALIGNED
    # As of a map of its own, which begins with the component unless it is the only one.
    origin = (0, 0) if components.count == 1 else (top, left)
    area = int(components.areas[number])
    window = rectangle.moved(-origin[0], -origin[1])
    pixels = TilePixels(clean.only(number, origin), window, area, run, f"jumps_{number}", side)
    return jumps_of_pixels(pixels, always, min_certainty).shifted(origin[1], origin[0])


def jumps_in_window(clean: CleanMap, window: Window, numbers: list[int], always: bool, min_certainty: float) -> Arrays:
    """Find the jumps of some components of a window, packed by their numbers."""
    pixels = clean.window(window.rows, window.columns)
    maps = [] if pixels is None else clean.components.maps(window, pixels, numbers)
    found = {each.number: jumps_of_component(each, always, min_certainty) for each in maps}
    return packed({number: jumps.shifted(window.left, window.top) for number, jumps in found.items()})
