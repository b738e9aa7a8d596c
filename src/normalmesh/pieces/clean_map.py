"""CleanMap: windows of a map without its noise, and of one of its components only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from normalmesh.array_types import Bool, Float, Int32
from normalmesh.engine.array_file import Arrays, Run
from normalmesh.mesh.repeats import Repeats
from normalmesh.normals.camera import Camera
from normalmesh.normals.component_maps import ComponentMap, window_camera
from normalmesh.normals.noise import NEGLIGIBLE, MapNoise, filter_reach, without_noise
from normalmesh.normals.normal_map import NormalMap
from normalmesh.pieces.map_windows import Window, WindowedMap
from normalmesh.pieces.mask_components import MaskComponents
from normalmesh.pieces.repeating_map import level_map, limits_of
from normalmesh.pieces.tile_grid import TileGrid, by_tile


@dataclass(frozen=True, eq=False)
class CleanMap:
    """A map without its noise. Windows are the same as those of :func:`.without_noise` of the whole map."""

    source: WindowedMap
    components: MaskComponents
    noise: MapNoise | None = None  # of the components, or None to leave it
    number: int | None = None  # the component to which the mask is restricted, or None for all
    origin: tuple[int, int] = (0, 0)  # row and column in the image from which windows count
    repeats: Repeats | None = None  # directions in which the filter goes on beyond the sides of a single component

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns from the origin on."""
        rows, columns = self.source.shape
        return rows - self.origin[0], columns - self.origin[1]

    @property
    def camera(self) -> Camera:
        """Camera of the image, whose first pixel is the origin."""
        top, left = self.origin
        return window_camera(self.source.camera, left, top) if top or left else self.source.camera

    def only(self, number: int | None, origin: tuple[int, int] = (0, 0)) -> CleanMap:
        """Return the map of one component, or of all for None, from an origin on."""
        return replace(self, number=number, origin=origin)

    def window(self, rows: slice, columns: slice) -> NormalMap | None:
        """Return a window, None without foreground."""
        window = self._in_image(rows, columns)
        clean = self._clean(window)
        if clean is None or self.number is None or self.components.count == 1:
            return clean
        mask = self.components.labels(window) == self.number + 1
        return NormalMap.derived(clean.normals, mask, clean.camera) if mask.any() else None

    def mask_window(self, rows: slice, columns: slice) -> Bool:
        """Return the mask of a window."""
        window = self._in_image(rows, columns)
        if self.number is None or self.components.count == 1:
            return self.source.mask_window(window.rows, window.columns)
        return np.equal(self.components.labels(window), self.number + 1)

    def _in_image(self, rows: slice, columns: slice) -> Window:
        """Return a window that counts from the origin as one of the image."""
        return Window(rows.start, columns.start, rows.stop, columns.stop).moved(*self.origin)

    def _clean(self, window: Window) -> NormalMap | None:
        """Return a window of all components without noise."""
        if self.noise is None or self.noise.largest.degrees < NEGLIGIBLE:
            return self.source.window(window.rows, window.columns)
        is_wrapped = self.repeats is not None and len(self.noise.components) == 1
        source = level_map(self.source, self.repeats) if is_wrapped else self.source
        around = window.grown(filter_reach(self.noise), limits_of(source))
        noisy = source.window(around.rows, around.columns)
        inner = window.place_in(around)
        if noisy is None or not noisy.mask[inner].any():
            return None
        parts = iter([ComponentMap(0, noisy, 0, 0)]) if is_wrapped else self.components.maps(around, noisy)
        smooth = without_noise(noisy, self.noise, parts)
        return smooth.window(*inner)


def at_points(
    clean: CleanMap, grid: TileGrid, points: Float, stage: str, task: Callable[..., Arrays], run: Run
) -> Int32:
    """Return the labels (K,) that a task finds at the points (K, 2) of each tile."""
    chosen = by_tile(grid.tile_of(points))
    found = run(stage, task, {key: (clean, grid.tile(key), points[own]) for key, own in chosen.items()})
    labels = np.empty(len(points), np.int32)
    for key, own in chosen.items():
        labels[own] = found[key]["labels"]
    return labels


def labels_at(clean: CleanMap, tile: Window, points: Float) -> Arrays:
    """Return the ``labels`` (K,) at points (K, 2) of a tile, 0 outside the mask."""
    column, row = np.floor(points).astype(np.int64).T
    row, column = np.clip(row, tile.top, tile.bottom - 1), np.clip(column, tile.left, tile.right - 1)
    return {"labels": clean.components.labels(tile)[row - tile.top, column - tile.left]}
