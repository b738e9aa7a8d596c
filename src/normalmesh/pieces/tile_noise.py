"""Noise of the components of a map that is read window by window, from the sample of the whole map."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

import numpy as np

from normalmesh.array_types import Float32, Int
from normalmesh.engine.array_file import Arrays, Run, packed, unpacked
from normalmesh.normals.noise import (
    SMALLEST,
    MapNoise,
    Noise,
    loops_in_rows,
    noise_from_loops,
    noise_of_component,
    noise_of_rounding,
    sample_step,
    sampled_loops,
)
from normalmesh.normals.rounding import rounded_run_in
from normalmesh.pieces.clean_map import CleanMap
from normalmesh.pieces.map_windows import Window, WindowedMap, filled_window
from normalmesh.pieces.mask_components import MaskComponents, groups_of

#: Distance of the rows of the sample up to which all rows between them are read, too.
CLOSE = 16
#: Share of the time of a reconstruction that the estimate usually takes.
SHARE = 0.07


def find_noise(normal_map: WindowedMap, components: MaskComponents, run: Run, side: int) -> MapNoise:
    """Estimate the noise of each component, as :func:`.component_noise` does it; ``side`` (px) is that of tiles.

    Components that fit into a tile are read whole; of others, some rows.
    """
    found = [Noise(0.0)] * components.count
    groups, large = groups_of(components, SMALLEST, side)
    arguments = {key: (normal_map, components, *group) for key, group in groups.items()}
    total = components.areas.sum()
    work = SHARE * (1 - components.areas[large].sum() / total)
    for result in run("noise", noise_in_window, arguments, work=work).values():
        for number, noise in unpacked(result).items():
            found[number] = noise
    for number in large:
        loops = _sampled_rows(normal_map, components, number, run, side, SHARE * components.areas[number] / total)
        found[number] = noise_from_loops(loops, normal_map.camera.pixel_length)
    # Components are connected, and have pixels in all rows of their rectangles.
    rows = np.zeros(normal_map.shape[0] + 1, np.int64)
    np.add.at(rows, components.rectangles[:, 0], 1)
    np.add.at(rows, components.rectangles[:, 2], -1)
    filled, areas = np.flatnonzero(np.cumsum(rows)), tuple(components.areas.tolist())
    rounding = run("rounding", rounded_pixels, {0: (normal_map, filled, sum(areas))})
    return MapNoise(tuple(found), areas, noise_of_rounding(float(rounding[0]["run"])))


def rounded_pixels(normal_map: WindowedMap, rows: Int, foreground: int) -> Arrays:
    """Return the ``run`` of pixels that rounding to 8 bits makes alike; see :func:`.rounded_run_in`."""
    return {"run": np.array(rounded_run_in(normal_map, rows, foreground))}


def noise_in_window(normal_map: WindowedMap, components: MaskComponents, window: Window, numbers: list[int]) -> Arrays:
    """Estimate the noise of some components of a window, packed by their numbers."""
    maps = components.maps(window, filled_window(normal_map, window), numbers)
    return packed({each.number: noise_of_component(each.normal_map) for each in maps})


def _sampled_rows(
    normal_map: WindowedMap, components: MaskComponents, number: int, run: Run, tile_side: int, work: float
) -> Callable[[int], Float32]:
    """Return what gives the sample of the loops of a large component, by their side in px."""
    window, area = components.rectangle_of(number), int(components.areas[number])
    # As of a map of its own, which ends with the component unless it is the only one.
    bottom = normal_map.shape[0] if components.count == 1 else window.bottom
    own, stages = CleanMap(normal_map, components, number=number), count()

    def in_rows(side: int, rows: Int) -> Float32:
        distance, stage = int(np.diff(rows).max(initial=1)), next(stages)
        # In each task as many rows as there are pixels in a tile.
        many = max(tile_side**2 // (window.shape[1] * min(distance, CLOSE)), 1)
        parts = {first: rows[first : first + many] for first in range(0, len(rows), many)}
        arguments = {first: (own, window, part, side, distance <= CLOSE) for first, part in parts.items()}
        found = run(f"noise_{number}_{stage}", loops_of_rows, arguments, work=0.0 if stage else work)
        return np.concatenate([np.empty((0, 3), np.float32), *(each["loops"] for each in found.values())])

    def loops(side: int) -> Float32:
        rows = np.arange(window.top, min(window.bottom, bottom - side))
        return sampled_loops(partial(in_rows, side), rows, sample_step(area, window.pixels), area)

    return loops


def loops_of_rows(clean: CleanMap, window: Window, rows: Int, side: int, together: bool) -> Arrays:
    """Return all ``loops`` of a side in px, in a window, that begin in some rows.

    If the rows are read together, those between them are read, too.
    """
    found = [np.empty((0, 3), np.float32)]
    for chosen in [rows] if together else rows[:, None]:
        first, last = int(chosen[0]), min(int(chosen[-1]) + side + 1, clean.shape[0])
        pixels = clean.window(slice(first, last), window.columns)
        if pixels is not None:
            found.append(loops_in_rows(pixels, side, chosen - first, (0, window.shape[1])))
    return {"loops": np.concatenate(found)}
