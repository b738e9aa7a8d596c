"""Noise of the components of a map that is read window by window, from the sample of the whole map."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Float32, Int
from normalmesh.engine.array_file import Arrays, packed, unpacked
from normalmesh.engine.runner import Run
from normalmesh.normals.noise import (
    CORRELATED_LOOP,
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
from normalmesh.pieces.map_windows import Window, WindowedMap
from normalmesh.pieces.mask_components import MaskComponents, groups_of

#: Sides (px) of the loops of the sample.
SIDES = (1, CORRELATED_LOOP)
#: Distance of the rows of the sample up to which all rows between them are read, too.
CLOSE = 16
#: Share of the time of a reconstruction that the estimate usually takes.
SHARE = 0.07


def find_noise(normal_map: WindowedMap, components: MaskComponents, run: Run, side: int) -> MapNoise:
    """Estimate the noise of each component, as :func:`.component_noise` does it; ``side`` (px) is that of tiles.

    Components that fit into a tile are read whole; of others, some rows.
    """
    heights, widths = (components.rectangles[:, 2:] - components.rectangles[:, :2]).T
    large = heights * widths > side * side
    found = [Noise(0.0)] * components.count
    groups = groups_of(components, np.flatnonzero(~large & (components.areas >= SMALLEST)), side)
    arguments = {key: (normal_map, components, *group) for key, group in groups.items()}
    work = SHARE * components.areas[~large].sum() / components.areas.sum()
    for result in run("noise", noise_in_window, arguments, work=work).values():
        for number, noise in unpacked(result).items():
            found[number] = noise
    for number in np.flatnonzero(large).tolist():
        sample = _RowSample(normal_map, components, number, run, side)
        found[number] = noise_from_loops(sample.loops, normal_map.camera.pixel_length)
    # Components are connected, and have pixels in all rows of their rectangles.
    rows = np.zeros(normal_map.shape[0] + 1, np.int64)
    np.add.at(rows, components.rectangles[:, 0], 1)
    np.add.at(rows, components.rectangles[:, 2], -1)
    filled, areas = np.flatnonzero(np.cumsum(rows)), tuple(components.areas.tolist())
    rounding = run("rounding", noise_by_rounding, {0: (normal_map, filled, sum(areas))})
    return MapNoise(tuple(found), areas, unpacked(rounding[0]))


def noise_by_rounding(normal_map: WindowedMap, rows: Int, foreground: int) -> Arrays:
    """Return the noise of heights by rounding to 8 bits, packed; see :func:`.rounded_run_in`."""
    return packed(noise_of_rounding(rounded_run_in(normal_map, rows, foreground)))


def noise_in_window(normal_map: WindowedMap, components: MaskComponents, window: Window, numbers: list[int]) -> Arrays:
    """Estimate the noise of some components of a window, packed by their numbers."""
    pixels = normal_map.window(window.rows, window.columns)
    maps = [] if pixels is None else components.maps(window, pixels, numbers)
    return packed({each.number: noise_of_component(each.normal_map) for each in maps})


class _RowSample:
    """The loops that begin in some rows of a large component."""

    def __init__(self, normal_map: WindowedMap, components: MaskComponents, number: int, run: Run, side: int) -> None:
        self._pixels, self._run, self._side = (normal_map, components, number), run, side
        self._window, self._area = components.rectangle_of(number), int(components.areas[number])
        # As of a map of its own, which ends with the component unless it is the only one.
        self._bottom = normal_map.shape[0] if components.count == 1 else self._window.bottom
        self._known: dict[int, list[Float32]] = {}
        self._stages = 0

    def loops(self, side: int) -> Float32:
        """Return the sample of loops of a side in px."""
        rows = np.arange(self._window.top, min(self._window.bottom, self._bottom - side))
        step = sample_step(self._area, self._window.pixels)
        return sampled_loops(partial(self._in_rows, side), rows, step, self._area)

    def _in_rows(self, side: int, rows: Int) -> Float32:
        """Return all loops of a side that begin in some rows (K,)."""
        unknown = [row for row in rows.tolist() if row not in self._known]
        if unknown:
            self._read(np.array(unknown))
        found = [self._known[row][SIDES.index(side)] for row in rows.tolist()]
        return np.concatenate([np.empty((0, 3), np.float32), *found])

    def _read(self, rows: Int) -> None:
        """Read rows: in each task as many as there are pixels in a tile."""
        width, distance = self._window.shape[1], int(np.diff(rows).max(initial=1))
        many = max(self._side**2 // (width * min(distance, CLOSE)), 1)
        arguments = {
            f"{first}": (*self._pixels, self._window, rows[first : first + many], distance <= CLOSE)
            for first in range(0, len(rows), many)
        }
        work = 0.0 if self._stages else SHARE * self._area / self._pixels[1].areas.sum()
        results = self._run(f"noise_{self._pixels[2]}_{self._stages}", loops_of_rows, arguments, work=work)
        self._stages += 1
        for first in range(0, len(rows), many):
            own, result = rows[first : first + many].tolist(), results[f"{first}"]
            parts = [np.split(result[f"loops_{side}"], np.cumsum(result[f"counts_{side}"])[:-1]) for side in SIDES]
            for k, row in enumerate(own):
                self._known[row] = [part[k] for part in parts]


def loops_of_rows(
    normal_map: WindowedMap, components: MaskComponents, number: int, window: Window, rows: Int, together: bool
) -> Arrays:
    """Return all loops of both :data:`SIDES` of a component, in a window, that begin in some rows, and their numbers.

    If the rows are read together, those between them are read, too.
    """
    own = CleanMap(normal_map, components, number=number)
    starts = [rows] if together else [rows[k : k + 1] for k in range(len(rows))]
    found: dict[int, list[Float32]] = {side: [] for side in SIDES}
    for chosen in starts:
        last = min(int(chosen[-1]) + max(SIDES) + 1, normal_map.shape[0])
        pixels = own.window(slice(int(chosen[0]), last), window.columns)
        for side in SIDES:
            for row in chosen.tolist():
                loops = np.empty((0, 3), np.float32)
                if pixels is not None and row + side < last:
                    loops = loops_in_rows(pixels, side, np.array([row - chosen[0]]), (0, window.shape[1]))
                found[side].append(loops)
    arrays: dict[str, NDArray[Any]] = {}
    for side, parts in found.items():
        arrays[f"loops_{side}"] = np.concatenate(parts)
        arrays[f"counts_{side}"] = np.array([len(each) for each in parts])
    return arrays
