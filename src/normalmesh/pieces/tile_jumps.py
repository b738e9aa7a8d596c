"""Jumps of a map that is read window by window: the same as those of the whole map.

What the search asks of pixels is answered tile by tile. Meshes of tiles are joined to the mesh of the whole, with its
vertices and faces in the same order: by blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.array_types import Bool, Float32, Int, Int32
from normalmesh.decimation.hierarchy import BLOCK, MIXED_LEVEL, PERIOD, Hierarchy, Region, level_of
from normalmesh.decimation.near_cells import NearCells
from normalmesh.engine.array_file import Arrays, Run, packed, unpacked
from normalmesh.facets._face_means import CENTRE_U, CENTRE_V
from normalmesh.facets.face_means import FaceMeans
from normalmesh.jumps._snapping import Cells
from normalmesh.jumps.finding import MIN_COMPONENT, jumps_along, jumps_of_component, jumps_of_pixels
from normalmesh.jumps.jump_pixels import SAMPLES, Sides, marked_sides, normals_of_pixels, pixels_along
from normalmesh.jumps.snapping import cells_near
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.camera import Camera
from normalmesh.normals.component_maps import ALIGNED
from normalmesh.normals.normal_map import NormalMap
from normalmesh.pieces.clean_map import CleanMap
from normalmesh.pieces.map_windows import Window, filled_window, tiles_of
from normalmesh.pieces.mask_components import groups_of


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
    maps = clean.components.maps(window, filled_window(clean, window), numbers)
    found = {each.number: jumps_of_component(each, always, min_certainty) for each in maps}
    return packed({number: jumps.shifted(window.left, window.top) for number, jumps in found.items()})


#: Side (px) of the cells of pixels near lines.
CELL = 32


@dataclass(frozen=True, eq=False)
class MeshTile:
    """A tile, and what is needed to make its part of the meshes."""

    tile: Window
    around: Window  # the tile, and as much around it as decides on its corners
    ends: tuple[bool, bool]  # whether the tile is the last one below, and on the right
    paths: list[Int]  # paths (P, 2) of pixel corners beside which meshes are full

    def pixels(self, clean: CleanMap) -> NormalMap | None:
        """Return the pixels around the tile."""
        return clean.window(self.around.rows, self.around.columns)

    def hierarchy(self, pixels: NormalMap, camera: Camera) -> Hierarchy:
        """Return the hierarchy around the tile; the camera is that of the image."""
        place = self.around.top, self.around.left
        region = Region(0, 0, *self.around.shape, place, camera)
        full = pixels_along([path - place[::-1] for path in self.paths], pixels.shape) if self.paths else None
        return Hierarchy.of(pixels, full, region=region)

    def own(self, hierarchy: Hierarchy) -> Hierarchy:
        """Return the tile's part of the hierarchy around it."""
        return hierarchy.part(*self.tile.place_in(self.around))


@dataclass(frozen=True, eq=False)
class TilePixels:
    """Pixels of a denoised map, or of one component of it, that are read tile by tile.

    Places count from the origin of the map, on whose row and column are multiples of 8.
    """

    clean: CleanMap
    rectangle: Window  # the smallest one around the foreground; tiles begin at its corner
    foreground: int
    run: Run
    stage: str  # what names of stages begin with
    side: int  # of tiles, a multiple of PERIOD px
    paths: tuple[Int, ...] = ()  # paths (P, 2) of pixel corners beside which meshes are full
    _numbers: Iterator[int] = field(default_factory=count, init=False)  # of stages that are run several times

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns from the origin on."""
        return self.clean.shape

    def along(self, paths: list[Int]) -> TilePixels:
        """Return the same pixels, with meshes that are full beside paths."""
        return replace(self, paths=tuple(paths), stage=f"{self.stage}_along")

    @cached_property
    def _tiles(self) -> dict[str, MeshTile]:
        """All tiles, row by row."""
        tiles = {}
        for key, tile in tiles_of(self.rectangle, self.side).items():
            around = tile.grown(PERIOD, self.rectangle)
            ends = tile.bottom == self.rectangle.bottom, tile.right == self.rectangle.right
            tiles[key] = MeshTile(tile, around, ends, [path for path in self.paths if _meets(path, around)])
        return tiles

    @property
    def _share(self) -> float:
        """Share of the time of a reconstruction that a mesh of the pixels usually takes."""
        return 0.03 * self.foreground / float(self.clean.components.areas.sum())

    def _ask(self, stage: str, task: Callable[..., Arrays], *further: Any, work: float = 0.0) -> list[Arrays]:
        """Return what a task answers for each tile that has foreground."""
        arguments = {key: (self.clean, tile, *further) for key, tile in self._tiles.items()}
        return [each for each in self.run(f"{self.stage}_{stage}", task, arguments, work=work).values() if len(each)]

    @cached_property
    def _histogram(self) -> Int:
        answers = self._ask("levels", part_histogram, work=self._share)
        return np.sum([each["counts"] for each in answers], axis=0, dtype=np.int64)

    def level(self, vertices: int) -> float:
        """Return the error (px⁴) that about so many pixel corners exceed."""
        return level_of(self._histogram, vertices)

    def means(self, level: float) -> FaceMeans:
        """Return the mesh of all corners above a level, with its mean normals."""
        return self._joined(self._ask("first", part_mesh, level, work=self._share))

    def mixed_means(self, near: NearCells, fine: float, coarse: float) -> FaceMeans:
        """Return the mesh of all corners above ``fine`` in near cells, above ``coarse`` elsewhere."""
        return self._joined(self._ask("mixed", part_mesh, fine, near, coarse))

    def cells(self, lines: list[Int]) -> Cells:
        """Return the pixels near polylines (K, 2) of pixel corners."""
        cells = cells_near(lines, CELL)
        table = np.full((self.shape[0] // CELL + 1, self.shape[1] // CELL + 1), -1, np.int32)
        cells = cells[(cells < table.shape).all(axis=1)]
        places = (cells * CELL // self.side) @ [table.shape[1], 1]
        groups = {f"{place}": cells[places == place] for place in np.unique(places).tolist()}
        arguments = {key: (self.clean, own) for key, own in groups.items()}
        found = self.run(f"{self.stage}_lines_{next(self._numbers)}", cell_pixels, arguments)
        normals, mask = (np.concatenate([found[key][name] for key in groups]) for name in ("normals", "mask"))
        table[tuple(np.concatenate(list(groups.values())).T)] = np.arange(len(mask))
        normals.flags.writeable = mask.flags.writeable = False
        return Cells(self.shape, (CELL, CELL), table, normals, mask)

    def sides(self, image: Bool) -> Sides:
        """Return the sides between foreground pixels of which one is marked in an image (H, W)."""
        arguments = {}
        for key, tile in tiles_of(self.rectangle, self.side).items():
            around = tile.grown(1, self.rectangle)
            marked = image[around.rows, around.columns]
            if marked.any():
                arguments[key] = (self.clean, tile, around, marked)
        found = self.run(f"{self.stage}_sides_{next(self._numbers)}", part_sides, arguments).values()
        none = {"ends": np.empty((0, 2, 2), np.int64), "contrast": np.empty(0), "inner": np.empty((0, 2), np.bool_)}
        ends, contrast, inner = (
            np.concatenate([none[name], *(each[name] for each in found if len(each))]) for name in none
        )
        upright = ends[:, 0, 0] == ends[:, 1, 0]
        order = np.lexsort((ends[:, 0, 0], ends[:, 0, 1], upright))
        return Sides(ends[order], contrast[order], inner[order])

    def normals_at(self, pixels: Int32) -> Float32:
        """Return the normals (K, 3) of pixels (K, 2), given by row and column; zero in the background."""
        inside = ((pixels >= 0) & (pixels < self.shape)).all(axis=1)
        place = np.where(inside, pixels // self.side @ [self.shape[1] // self.side + 1, 1], -1)
        groups = {f"{number}": np.flatnonzero(place == number) for number in np.unique(place[inside]).tolist()}
        arguments = {key: (self.clean, pixels[own]) for key, own in groups.items()}
        found = self.run(f"{self.stage}_normals_{next(self._numbers)}", normals_in_tile, arguments)
        normals = np.zeros((len(pixels), 3), np.float32)
        for key, own in groups.items():
            normals[own] = found[key]["normals"]
        return normals

    @property
    def filled(self) -> float:
        """Share of the rectangle that is foreground."""
        return self.foreground / self.rectangle.pixels

    def _joined(self, parts: list[Arrays]) -> FaceMeans:
        """Return the mesh of all tiles, with its mean normals."""
        corners, copies = (np.concatenate([each[name] for each in parts]) for name in ("corners", "copies"))
        across = self.rectangle.shape[1] // BLOCK + 1
        row, column = (corners - [self.rectangle.top, self.rectangle.left]).T
        block = row // BLOCK * across + column // BLOCK
        keys = ((block * BLOCK + row % BLOCK) * BLOCK + column % BLOCK) * 2 + copies
        _, first, number = np.unique(keys, return_index=True, return_inverse=True)
        starts = np.cumsum([0, *(len(each["copies"]) for each in parts[:-1])])
        faces = np.concatenate([each["faces"] + start for each, start in zip(parts, starts, strict=True)])
        # A face lies in the block of its upper left end.
        own = np.min(row[faces], axis=1) // BLOCK * across + np.min(column[faces], axis=1) // BLOCK
        order = np.argsort(own, kind="stable")
        mesh = ScreenMesh(corners[first, ::-1].astype(np.float64), number[faces[order]].astype(np.int32))
        table = np.concatenate([each["table"] for each in parts])[order]
        # Not moved from tiles: with the rounding of the whole.
        a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
        table[:, [CENTRE_U, CENTRE_V]] = (a + b + c) / 3.0
        return FaceMeans(mesh, self.clean.camera, table)


def _meets(path: Int, window: Window) -> bool:
    """Return whether a path (P, 2) may run through a window."""
    (left, top), (right, bottom) = path.min(axis=0), path.max(axis=0)
    return bool(left <= window.right and right >= window.left and top <= window.bottom and bottom >= window.top)


def part_histogram(clean: CleanMap, part: MeshTile) -> Arrays:
    """Count the corners of a tile by their error: ``counts``, without those of the next tiles. Nothing if empty."""
    pixels = part.pixels(clean)
    if pixels is None:
        return {}
    below, right = (None if last else -1 for last in part.ends)
    return {"counts": part.own(part.hierarchy(pixels, clean.camera)).histogram(below, right)}


def part_mesh(
    clean: CleanMap, part: MeshTile, level: float, near: NearCells | None = None, coarse: float = 0.0
) -> Arrays:
    """Make the mesh of the corners of a tile above a level, or a coarse one beyond the cells that are near.

    Return ``corners`` (N, 2), row and column of its vertices from the origin; ``copies`` (N,), which tell vertices at
    the same corner apart; ``faces`` (M, 3); ``table`` of the mean normals. Nothing if the tile has no foreground.
    """
    pixels = part.pixels(clean)
    if pixels is None:
        return {}
    hierarchy = part.hierarchy(pixels, clean.camera)
    if near is not None:
        window = near.window(part.around.rows, part.around.columns)
        hierarchy, level = hierarchy.mixed(window, level, coarse), MIXED_LEVEL
    mesh = part.own(hierarchy).mesh(level)
    corners = mesh.vertices[:, ::-1].astype(np.int64)
    copies = np.zeros(len(corners), np.int64)
    # Two vertices of a corner follow each other: first the one of what lies above it.
    copies[1:] = (corners[1:] == corners[:-1]).all(axis=1)
    table = FaceMeans.of(mesh, pixels, SAMPLES).table
    corners += [part.around.top, part.around.left]
    return {"corners": corners, "copies": copies, "faces": mesh.faces.astype(np.int64), "table": table}


def cell_pixels(clean: CleanMap, cells: Int) -> Arrays:
    """Return the ``normals`` (K, CELL, CELL, 3) and the ``mask`` (K, CELL, CELL) of cells (K, 2)."""
    normals, mask = np.zeros((len(cells), CELL, CELL, 3), np.float32), np.zeros((len(cells), CELL, CELL), np.bool_)
    whole = Window.whole(clean.shape)
    windows = [Window(y, x, y + CELL, x + CELL).within(whole) for y, x in (cells * CELL).tolist()]
    known = [each for each in windows if each.pixels]
    if known:
        tops, lefts, bottoms, rights = np.array([[w.top, w.left, w.bottom, w.right] for w in known]).T
        around = Window(int(tops.min()), int(lefts.min()), int(bottoms.max()), int(rights.max()))
        pixels = clean.window(around.rows, around.columns)
        for k, window in enumerate(windows):
            if pixels is not None and window.pixels:
                there, own = window.place_in(around), tuple(slice(0, length) for length in window.shape)
                normals[k][own], mask[k][own] = pixels.normals[there], pixels.mask[there]
    return {"normals": normals, "mask": mask}


def normals_in_tile(clean: CleanMap, pixels: Int32) -> Arrays:
    """Return the ``normals`` (K, 3) of pixels (K, 2), given by row and column; zero in the background."""
    (top, left), (bottom, right) = pixels.min(axis=0).tolist(), pixels.max(axis=0).tolist()
    found = clean.window(slice(top, bottom + 1), slice(left, right + 1))
    if found is None:
        return {"normals": np.zeros((len(pixels), 3), np.float32)}
    return {"normals": normals_of_pixels(pixels - np.array([top, left], np.int32), found)}


def part_sides(clean: CleanMap, tile: Window, around: Window, marked: Bool) -> Arrays:
    """Return the sides whose first pixel lies in a tile; ``marked`` are the pixels around it. See :class:`.Sides`."""
    pixels = clean.window(around.rows, around.columns)
    if pixels is None:
        return {}
    found = marked_sides(marked, pixels)
    ends = found.ends + np.array([around.left, around.top])
    upright = ends[:, 0, 0] == ends[:, 1, 0]
    row, column = ends[:, 0, 1] - ~upright, ends[:, 0, 0] - upright
    own = (row >= tile.top) & (row < tile.bottom) & (column >= tile.left) & (column < tile.right)
    return {"ends": ends[own], "contrast": found.contrast[own], "inner": found.inner[own]}
