"""Components of a mask, found tile by tile: tiles label their pixels, and labels that meet at seams are joined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Int, Int32
from normalmesh.engine.array_file import Arrays
from normalmesh.engine.runner import Run
from normalmesh.integration.pixel_jumps import parts_between
from normalmesh.mesh.components import components
from normalmesh.mesh.jumps import JumpLine
from normalmesh.normals.component_maps import ALIGNED, ComponentMap, labelled_maps
from normalmesh.normals.mask_labels import component_labels
from normalmesh.normals.normal_map import NormalMap
from normalmesh.pieces.map_windows import Window, WindowedMap, tiles_of


@dataclass(frozen=True, eq=False)
class MaskComponents:
    """The 4-connected components of a mask, or the parts into which lines of jumps divide them.

    Components are numbered from 0 in the order of their first pixels, as :func:`.component_labels` does from 1.

    Attributes
    ----------
    tiles : dict of Window
        The tiles in which they were found.
    numbers : dict of (L,) int32
        Components of the labels of each tile.
    runs : dict
        Runs of pixels in a row with the same label, of each tile, as :func:`label_tile` returns them.
    areas : (C,) int64
        Numbers of pixels.
    rectangles : (C, 4) int64
        Top, left, bottom and right: the first row and column, and those beyond the last.
    """

    tiles: dict[str, Window]
    numbers: dict[str, Int32]
    runs: Mapping[str, Mapping[str, NDArray[Any]]]
    areas: Int
    rectangles: Int

    @property
    def count(self) -> int:
        """Number of components."""
        return len(self.areas)

    @property
    def rectangle(self) -> Window:
        """The smallest window around all components."""
        first, last = self.rectangles[:, :2].min(axis=0), self.rectangles[:, 2:].max(axis=0)
        return Window(int(first[0]), int(first[1]), int(last[0]), int(last[1]))

    def rectangle_of(self, number: int) -> Window:
        """Return the smallest window around a component."""
        top, left, bottom, right = self.rectangles[number].tolist()
        return Window(top, left, bottom, right)

    def labels(self, window: Window) -> Int32:
        """Return the components (h, w) of the pixels of a window, from 1 on; 0 outside the mask."""
        labels = np.zeros(window.shape, np.int32)
        for key, tile in self.tiles.items():
            part = window.within(tile)
            if part.pixels and len(self.numbers[key]):
                labels[part.place_in(window)] = self._labels_in(key, part)
        return labels

    def maps(self, window: Window, pixels: NormalMap, chosen: Sequence[int] | None = None) -> Iterator[ComponentMap]:
        """Yield all or the chosen components in a window, with places relative to it; ``pixels`` are its pixels."""
        if self.count == 1:
            yield ComponentMap(0, pixels, 0, 0)
            return
        labels = self.labels(window)
        if chosen is None:
            there = [self.numbers[key] for key, tile in self.tiles.items() if window.within(tile).pixels]
            chosen = np.unique(np.concatenate(there)).tolist()
        number = np.zeros(self.count + 1, np.int32)
        number[np.array(chosen, np.int64) + 1] = np.arange(1, len(chosen) + 1)
        yield from labelled_maps(pixels, number[labels], chosen)

    def _labels_in(self, key: str, part: Window) -> Int32:
        """Return the components (h, w) in a part of a tile, from its runs."""
        runs, (rows, columns) = self.runs[key], part.place_in(self.tiles[key])
        chosen = slice(*np.searchsorted(runs["row"], [rows.start, rows.stop]))
        left, right = (np.clip(runs[name][chosen], columns.start, columns.stop) for name in ("left", "right"))
        there = left < right
        row, number = runs["row"][chosen][there] - rows.start, self.numbers[key][runs["label"][chosen][there]] + 1
        # Each run begins with a step up from 0 and ends with one down.
        steps = np.zeros((part.shape[0], part.shape[1] + 1), np.int32)
        steps[row, left[there] - columns.start] += number
        steps[row, right[there] - columns.start] -= number
        return np.cumsum(steps, axis=1, out=steps)[:, :-1]


def find_components(
    normal_map: WindowedMap, run: Run, side: int, lines: Sequence[JumpLine] = (), stage: str = "components"
) -> MaskComponents:
    """Find the components of a mask, or the parts into which lines divide them, in tiles of a side in px."""
    tiles = tiles_of(Window.whole(normal_map.shape), side)
    sides = [np.stack([line.path[:-1], line.path[1:]], axis=1) for line in lines]
    cut = np.concatenate([np.empty((0, 2, 2), np.int64), *sides])
    arguments = {key: (normal_map, tile, _in_window(cut, tile)) for key, tile in tiles.items()}
    found = run(stage, label_tile, arguments, work=0.01)
    counts = [len(found[key]["areas"]) for key in tiles]
    first = dict(zip(tiles, np.cumsum([0, *counts[:-1]]).tolist(), strict=True))
    pairs = _seam_pairs(tiles, found, first, cut)
    joined = components(pairs, sum(counts))
    firsts, areas, rectangles = (
        np.concatenate([found[key][name] for key in tiles]) for name in ("firsts", "areas", "rectangles")
    )
    count = int(joined.max(initial=-1)) + 1
    # Components of the graph are in the order of tiles, those of the mask in the order of rows.
    start = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(start, joined, firsts @ [normal_map.shape[1], 1])
    number = np.empty(count, np.int32)
    number[np.argsort(start)] = np.arange(count)
    of_label = number[joined]
    numbers = {key: of_label[first[key] : first[key] + n] for key, n in zip(tiles, counts, strict=True)}
    total, around = np.zeros(count, np.int64), np.empty((count, 4), np.int64)
    np.add.at(total, of_label, areas)
    around[:, :2], around[:, 2:] = np.iinfo(np.int64).max, 0
    np.minimum.at(around[:, :2], of_label, rectangles[:, :2])
    np.maximum.at(around[:, 2:], of_label, rectangles[:, 2:])
    return MaskComponents(tiles, numbers, found, total, around)


def label_tile(normal_map: WindowedMap, tile: Window, sides: Int) -> Arrays:
    """Label the pixels of a tile that sides (S, 2, 2) do not separate.

    Returns
    -------
    ``areas`` and ``rectangles`` of the labels, as in :class:`MaskComponents`; ``firsts`` (L, 2), row and column of the
    first pixel of each; ``row``, ``left``, ``right`` and ``label``, from 0 on, of each run of pixels with the same
    label, row by row, relative to the tile; and the labels along its sides, from 1 on.
    """
    labels, count = _parts(normal_map, tile, sides)
    around = np.pad(labels, ((0, 0), (1, 1)))
    begins = (labels > 0) & (around[:, :-2] != labels)
    ends = (labels > 0) & (around[:, 2:] != labels)
    row, left = np.nonzero(begins)
    right, run = np.nonzero(ends)[1] + 1, labels[begins] - 1
    rectangles = np.zeros((count, 4), np.int64)
    rectangles[:, :2] = labels.shape
    np.minimum.at(rectangles[:, 0], run, row)
    np.minimum.at(rectangles[:, 1], run, left)
    np.maximum.at(rectangles[:, 2], run, row + 1)
    np.maximum.at(rectangles[:, 3], run, right)
    firsts = np.empty((count, 2), np.int64)
    # The first run of each label is written last.
    firsts[run[::-1]] = np.stack([row, left], axis=1)[::-1]
    corner = np.array([tile.top, tile.left])
    return {
        "areas": np.bincount(run, right - left, count).astype(np.int64),
        "rectangles": rectangles + np.tile(corner, 2),
        "firsts": firsts + corner,
        "row": row.astype(np.int32),
        "left": left.astype(np.int32),
        "right": right.astype(np.int32),
        "label": run,
        "north": labels[0].copy(),
        "south": labels[-1].copy(),
        "west": labels[:, 0].copy(),
        "east": labels[:, -1].copy(),
    }


def _parts(normal_map: WindowedMap, window: Window, sides: Int) -> tuple[Int32, int]:
    """Return labels (h, w), from 1 on, of the pixels of a window that sides do not separate in it; their number."""
    mask = normal_map.mask_window(window.rows, window.columns)
    if not mask.any():
        return np.zeros(mask.shape, np.int32), 0
    own = _in_window(sides, window)
    if len(own) == 0:
        return component_labels(mask)
    labels = parts_between(mask, own - np.array([window.left, window.top]))
    return labels, int(labels.max())


def _in_window(sides: Int, window: Window) -> Int:
    """Return the sides (S, 2, 2) between two pixels of a window."""
    low, high = sides.min(axis=1, initial=2**40), sides.max(axis=1, initial=-1)
    level = low[:, 1] == high[:, 1]
    # A level side separates the rows above and below it.
    first_row, first_column = low[:, 1] - level, low[:, 0] - ~level
    inside = (first_row >= window.top) & (first_column >= window.left)
    inside &= (low[:, 1] < window.bottom) & (low[:, 0] < window.right)
    chosen: Int = sides[inside]
    return chosen


def _seam_pairs(
    tiles: dict[str, Window], found: Mapping[str, Mapping[str, NDArray[Any]]], first: dict[str, int], cut: Int
) -> Int:
    """Return pairs (P, 2) of labels, numbered through all tiles, that meet at a seam that is not cut there."""
    pairs = [np.empty((0, 2), np.int64)]
    by_corner = {(tile.top, tile.left): key for key, tile in tiles.items()}
    low, level = cut.min(axis=1, initial=2**40), cut[:, 0, 1] == cut[:, 1, 1]
    for key, tile in tiles.items():
        for place, one, other, along, across, start in (
            ((tile.top, tile.right), "east", "west", low[~level, 1], low[~level, 0] == tile.right, tile.top),
            ((tile.bottom, tile.left), "south", "north", low[level, 0], low[level, 1] == tile.bottom, tile.left),
        ):
            if (beyond := by_corner.get(place)) is None:
                continue
            here, there = found[key][one], found[beyond][other]
            met = (here > 0) & (there > 0)
            position = along[across] - start
            met[position[(position >= 0) & (position < len(met))]] = False
            pairs.append(np.stack([here[met] - 1 + first[key], there[met] - 1 + first[beyond]], axis=1))
    return np.unique(np.concatenate(pairs), axis=0)


def groups_of(components: MaskComponents, numbers: Int, side: int) -> dict[str, tuple[Window, list[int]]]:
    """Return windows of components that are worked on together, with their numbers.

    Components in one tile, of a side in px, make a group; others have windows of their own. All begin at multiples of
    :data:`.ALIGNED` px.
    """
    groups: dict[str, list[int]] = {}
    for number in numbers.tolist():
        top, left, bottom, right = components.rectangles[number].tolist()
        i, j = top // side, left // side
        inside = bottom <= (i + 1) * side and right <= (j + 1) * side
        groups.setdefault(f"tile_{i}_{j}" if inside else f"component_{number}", []).append(number)
    windows = {}
    for key, members in groups.items():
        first, last = components.rectangles[members, :2].min(axis=0), components.rectangles[members, 2:].max(axis=0)
        top, left = (first - first % ALIGNED).tolist()
        windows[key] = Window(top, left, int(last[0]), int(last[1])), members
    return windows
