"""Components of a mask, found tile by tile: tiles label their pixels, and labels that meet at seams are joined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Int, Int32
from normalmesh.engine.array_file import Arrays, Run
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
    """

    tiles: dict[str, Window]
    numbers: dict[str, Int32]  # for each tile, components of its labels, from 1 on; 0 for 0
    runs: Mapping[str, Arrays]  # for each tile, see label_tile
    areas: Int  # (C,) in pixels
    firsts: Int  # (C, 2): first pixels, row by row, as u, v
    rectangles: Int  # (C, 4): top, left, bottom and right, which are the first row and column beyond

    @property
    def count(self) -> int:
        """Number of components."""
        return len(self.areas)

    @property
    def rectangle(self) -> Window:
        """The smallest window around all components."""
        return Window(*self.rectangles[:, :2].min(axis=0).tolist(), *self.rectangles[:, 2:].max(axis=0).tolist())

    def rectangle_of(self, number: int) -> Window:
        """Return the smallest window around a component."""
        return Window(*self.rectangles[number].tolist())

    def labels(self, window: Window) -> Int32:
        """Return the components (h, w) of the pixels of a window, from 1 on; 0 outside the mask."""
        labels = np.zeros(window.shape, np.int32)
        for key, tile in self.tiles.items():
            part = window.within(tile)
            if part.pixels and len(self.numbers[key]) > 1:
                labels[part.place_in(window)] = self._labels_in(key, part)
        return labels

    def maps(self, window: Window, pixels: NormalMap, chosen: Sequence[int] | None = None) -> Iterator[ComponentMap]:
        """Yield all or the chosen components in a window, with places relative to it; ``pixels`` are its pixels."""
        if self.count == 1:
            yield ComponentMap(0, pixels, 0, 0)
            return
        labels = self.labels(window)
        if chosen is None:
            there = [self.numbers[key][1:] for key, tile in self.tiles.items() if window.within(tile).pixels]
            chosen = (np.unique(np.concatenate(there)) - 1).tolist()
        number = np.zeros(self.count + 1, np.int32)
        number[np.array(chosen, np.int64) + 1] = np.arange(1, len(chosen) + 1)
        yield from labelled_maps(pixels, number[labels], chosen)

    def _labels_in(self, key: str, part: Window) -> Int32:
        """Return the components (h, w) in a part of a tile, from its runs."""
        (rows, columns), width = part.place_in(self.tiles[key]), self.tiles[key].shape[1]
        start, stop, ends = rows.start * width, rows.stop * width, self.runs[key]["ends"]
        there = slice(np.searchsorted(ends, start, "right"), np.searchsorted(ends, stop) + 1)
        lengths = np.diff(np.minimum(ends[there], stop), prepend=start)
        labels = np.repeat(self.numbers[key][self.runs[key]["label"][there]], lengths)
        return labels.reshape(-1, width)[:, columns]


def find_components(
    normal_map: WindowedMap, run: Run, side: int, lines: Sequence[JumpLine] = (), stage: str = "components"
) -> MaskComponents:
    """Find the components of a mask, or the parts into which lines divide them, in tiles of a side in px."""
    tiles = tiles_of(Window.whole(normal_map.shape), side)
    sides = [np.stack([line.path[:-1], line.path[1:]], axis=1) for line in lines]
    cut = np.concatenate([np.empty((0, 2, 2), np.int64), *sides])
    arguments = {key: (normal_map, tile, _in_window(cut, tile)) for key, tile in tiles.items()}
    found = run(stage, label_tile, arguments, work=0.01)
    firsts, areas, rectangles = (
        np.concatenate([found[key][name] for key in tiles]) for name in ("firsts", "areas", "rectangles")
    )
    ends = np.cumsum([len(found[key]["areas"]) for key in tiles]).tolist()
    first = dict(zip(tiles, [0, *ends[:-1]], strict=True))
    joined = components(_seam_pairs(tiles, found, first, cut), len(areas))
    count = int(joined.max(initial=-1)) + 1
    # Components of the graph are in the order of tiles, those of the mask in the order of rows.
    start = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(start, joined, firsts @ [normal_map.shape[1], 1])
    order = np.argsort(start)
    number = np.empty(count, np.int32)
    number[order] = np.arange(count)
    of_label = number[joined]
    numbers = {
        key: np.append(np.int32(0), of_label[first[key] : end] + 1) for key, end in zip(tiles, ends, strict=True)
    }
    total, around = np.zeros(count, np.int64), np.empty((count, 4), np.int64)
    np.add.at(total, of_label, areas)
    around[:, :2], around[:, 2:] = np.iinfo(np.int64).max, 0
    np.minimum.at(around[:, :2], of_label, rectangles[:, :2])
    np.maximum.at(around[:, 2:], of_label, rectangles[:, 2:])
    first_pixels = np.stack(np.divmod(start[order], normal_map.shape[1])[::-1], axis=1)
    return MaskComponents(tiles, numbers, found, total, first_pixels, around)


def label_tile(normal_map: WindowedMap, tile: Window, sides: Int) -> Arrays:
    """Label the pixels of a tile that sides (S, 2, 2) do not separate.

    Return ``areas`` and ``rectangles`` of the labels, as in :class:`MaskComponents`; ``firsts`` (L, 2), row and column
    of the first pixel of each; ``label``, 0 in the background, and ``ends`` of the runs of pixels with the same label,
    row by row; and the labels along its sides.
    """
    from scipy import ndimage

    mask = normal_map.mask_window(tile.rows, tile.columns)
    labels = parts_between(mask, sides - tile.corner) if len(sides) and mask.any() else component_labels(mask)[0]
    count = int(labels.max())
    flat, width = labels.ravel(), labels.shape[1]
    ends = np.append(np.flatnonzero(np.diff(flat)) + 1, flat.size)
    starts, run = np.append(0, ends[:-1]), flat[ends - 1]
    first = np.empty(count + 1, np.int64)
    # The first run of each label is written last.
    first[run[::-1]] = starts[::-1]
    places = [[r.start, c.start, r.stop, c.stop] for r, c in ndimage.find_objects(labels)]
    corner = np.array([tile.top, tile.left])
    return {
        "areas": np.bincount(run, ends - starts, count + 1)[1:].astype(np.int64),
        "rectangles": np.array(places, np.int64).reshape(-1, 4) + np.tile(corner, 2),
        "firsts": np.stack(np.divmod(first[1:], width), axis=1) + corner,
        "label": run,
        "ends": ends,
        "north": labels[0].copy(),
        "south": labels[-1].copy(),
        "west": labels[:, 0].copy(),
        "east": labels[:, -1].copy(),
    }


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


def _seam_pairs(tiles: dict[str, Window], found: Mapping[str, Arrays], first: dict[str, int], cut: Int) -> Int:
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


def groups_of(
    components: MaskComponents, least: int, side: int
) -> tuple[dict[str, tuple[Window, list[int]]], list[int]]:
    """Return windows of components that are worked on together, with their numbers, and the numbers of large ones.

    Only components of at least so many pixels count; large ones do not fit into a tile of a side in px. Others in one
    tile make a group, or have windows of their own. All begin at multiples of :data:`.ALIGNED` px.
    """
    groups: dict[str, list[int]] = {}
    large = []
    for number in np.flatnonzero(components.areas >= least).tolist():
        top, left, bottom, right = components.rectangles[number].tolist()
        i, j = top // side, left // side
        inside = bottom <= (i + 1) * side and right <= (j + 1) * side
        if (bottom - top) * (right - left) > side * side:
            large.append(number)
        else:
            groups.setdefault(f"tile_{i}_{j}" if inside else f"component_{number}", []).append(number)
    windows = {}
    for key, members in groups.items():
        first, last = components.rectangles[members, :2].min(axis=0), components.rectangles[members, 2:].max(axis=0)
        windows[key] = Window(*(first - first % ALIGNED).tolist(), *last.tolist()), members
    return windows, large
