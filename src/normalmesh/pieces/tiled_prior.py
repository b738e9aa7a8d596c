"""TiledPrior: control points or a depth map in pieces, as :class:`.prior.Prior` in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from normalmesh.arguments import checked_array
from normalmesh.array_types import Bool, Float, Int, Int32, Integer
from normalmesh.engine.runner import Run
from normalmesh.engine.task_arguments import LazyArguments
from normalmesh.integration.integration_options import IntegrationOptions
from normalmesh.integration.prior import PIXEL_WEIGHT, POINT_WEIGHT, leave_out
from normalmesh.integration.prior_faces import elected_labels, on_outline, samples_of_faces, told_apart
from normalmesh.integration.prior_terms import FacePoints, PriorTerms
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.pieces.clean_map import CleanMap
from normalmesh.pieces.integration_tasks import components_at
from normalmesh.pieces.map_windows import window_around
from normalmesh.pieces.mask_components import find_components
from normalmesh.pieces.prior_tasks import (
    DepthWindow,
    NearFaces,
    depth_faces,
    label_pairs,
    point_faces,
    point_labels,
    tile_terms,
)
from normalmesh.pieces.tile_faces import TileFaces
from normalmesh.pieces.tile_grid import TileGrid, at_points, by_tile
from normalmesh.runtime.memory_budget import require_memory

#: Bytes for each face under a depth map: of its terms, and of the systems that they are divided among.
TERM_BYTES = 5000


class LabelledPoints(NamedTuple):
    """Points of a prior: places (K, 2), unknown, weights and labels (K,)."""

    screen: Float
    unknown: Float
    weights: Float
    label: Int32

    def chosen(self, which: Bool | Int) -> LabelledPoints:
        """Return some of the points."""
        return LabelledPoints(self.screen[which], self.unknown[which], self.weights[which], self.label[which])


@dataclass(frozen=True, eq=False)
class PriorFaces:
    """Where a prior lies on a mesh.

    Attributes
    ----------
    points : FacePoints
        All points but those pixels of a depth map that lie on faces of their label.
    touched : (F,) int64
        Faces on which there are points or pixels.
    home : (M,) int32
        The label that each face lies on.
    apart : (L + 1,) bool
        Labels that the mesh tells apart.
    """

    points: FacePoints
    touched: Int
    home: Int32
    apart: Bool


@dataclass(eq=False)
class TiledPrior:
    """Values that the surface should have at points, or at all pixels of a depth map.

    Attributes
    ----------
    clean : CleanMap
        Its components are those of the mask, or the parts into which jumps divide them.
    grid : TileGrid
    whole : (L + 1,) bool
        Labels that are whole components.
    points : LabelledPoints
        Control points on the foreground.
    depths : (H, W)
        Depth map, which need not be in memory (``numpy.memmap``), or None.
    weight
        Weight of a pixel of it.
    warned
        Whether points out of reach have been reported.
    """

    clean: CleanMap
    grid: TileGrid
    whole: Bool
    points: LabelledPoints
    depths: NDArray[Any] | None
    weight: float
    warned: bool = False

    @classmethod
    def of(cls, options: IntegrationOptions, clean: CleanMap, grid: TileGrid, jumps: Jumps, run: Run) -> TiledPrior:
        """Return the prior of options that have been checked."""
        assert options.prior is not None
        given, weight = checked_array(options.prior, "prior"), options.prior_weight
        parts, whole = _parts(clean, grid, jumps, run)
        if given.shape == clean.shape:
            none = LabelledPoints(np.empty((0, 2)), np.empty(0), np.empty(0), np.empty(0, np.int32))
            return cls(parts, grid, whole, none, given, PIXEL_WEIGHT if weight is None else weight)
        given = given.astype(np.float64)
        weights = np.full(len(given), POINT_WEIGHT if weight is None else weight)
        screen, unknown = given[:, :2], clean.camera.unknown_of_depth(given[:, 2])
        label = at_points(parts, grid, screen, "points", point_labels, "labels", run)
        points = LabelledPoints(screen, unknown, given[:, 3] if given.shape[1] == 4 else weights, label)
        leave_out(label == 0, "control points lie off the foreground")
        return cls(parts, grid, whole, points.chosen(label > 0), None, 0.0)

    @property
    def largest_weight(self) -> float:
        """Largest weight of a point or pixel."""
        return float(self.points.weights.max(initial=self.weight))

    def on_faces(self, mesh: ScreenMesh, run: Run) -> PriorFaces:
        """Find the faces of all points; those of no face in reach are left out, with a warning the first time."""
        home, parts = self._home(mesh, run), self.clean.components
        apart = told_apart(mesh, home, np.append(0, parts.areas), self.whole)
        cover = _Cover(mesh, self.grid)

        def near(tile: int) -> NearFaces:
            numbers = cover.faces(tile)
            vertices, local = np.unique(mesh.faces[numbers], return_inverse=True)
            places = local.reshape(-1, 3).astype(np.int32)
            return NearFaces(mesh.vertices[vertices], places, home[numbers], apart)

        points, faces, touched = self._owners(near, cover, run)
        feet, lost = points.screen.copy(), np.flatnonzero((faces < 0) & apart[points.label])
        if len(lost):
            faces[lost], feet[lost] = on_outline(mesh, home, points.screen[lost], points.label[lost])
        there = faces >= 0
        if not there.all() and not self.warned:
            self.warned = True
            leave_out(
                np.append(~there, np.zeros(len(touched), np.bool_)),
                "points of the prior have no face of their component in reach",
            )
        points, faces, feet = points.chosen(there), faces[there], feet[there]
        placed = FacePoints(faces, feet, points.screen - feet, points.unknown, points.weights)
        return PriorFaces(placed, np.union1d(touched, faces), home, apart)

    def held(self, mesh: ScreenMesh, run: Run) -> tuple[Integer, Float, Float]:
        """Return faces (K,) of a mesh that the prior holds, where (K, 2), and with which weights (K,).

        The pixels of a depth map on a face have the moments of its area, and so do the midpoints of its sides.
        """
        found = self.on_faces(mesh, run)
        points = found.points
        if self.depths is None:
            return points.faces, points.feet, points.weights
        corners = mesh.vertices[mesh.faces[found.touched]]
        middles = (corners + np.roll(corners, 1, axis=1)) / 2
        weights = np.repeat(self.weight * mesh.areas[found.touched] / 3, 3)
        places = np.concatenate([middles.reshape(-1, 2), points.feet])
        return (
            np.concatenate([np.repeat(found.touched, 3), points.faces]),
            places,
            np.concatenate([weights, points.weights]),
        )

    def terms(
        self,
        faces: TileFaces,
        equations: Mapping[int, Any],
        offsets: Float,
        run: Run,
    ) -> PriorTerms:
        """Return the terms of the prior on a mesh whose faces have offsets (M,) without it.

        ``equations`` are the results of :func:`.tile_equations`.
        """
        count = len(faces.tile)
        if self.depths is not None:
            remedy = "give control points instead, or ask for fewer vertices"
            require_memory(TERM_BYTES * count, f"a depth map as prior on {count} faces", remedy)
        found = self.on_faces(faces.mesh, run)
        tile = faces.tile[found.points.faces]

        def arguments(key: int) -> tuple[Any, ...]:
            mesh, own = faces.part(key), np.flatnonzero(tile == key)
            points = found.points.chosen(own)
            points = points._replace(faces=np.searchsorted(faces.own(key), points.faces).astype(np.int32))
            pixels = None
            if self.depths is not None:
                area = window_around(mesh.vertices, self.clean.shape)
                window = np.array(self.depths[area.rows, area.columns])
                pixels = DepthWindow(window, self.weight, found.home[mesh.numbers], found.apart)
            return self.clean, mesh, equations[key], offsets[mesh.numbers], points, pixels

        tiles = np.unique(faces.tile[found.touched]).tolist()
        return _gathered(run("terms", tile_terms, LazyArguments(tiles, arguments)), count)

    def _home(self, mesh: ScreenMesh, run: Run) -> Int32:
        """Return the label (M,) that the part of the mesh of each face lies on, as :func:`.face_labels` does."""
        count = self.clean.components.count
        if count == 1:
            return np.ones(len(mesh.faces), np.int32)
        points, face = samples_of_faces(mesh)
        found = at_points(self.clean, self.grid, points, "homes", components_at, "components", run)
        return elected_labels(mesh, face, found + 1, count)

    def _owners(self, near: Callable[[int], NearFaces], cover: _Cover, run: Run) -> tuple[LabelledPoints, Int, Int]:
        """Return points, the faces (K,) that own their pixels, −1 for none, and faces that own others.

        Of a depth map, only the pixels that no face of their label owns become points.
        """
        keys = range(self.grid.counts[0] * self.grid.counts[1])
        if self.depths is None:
            own = by_tile(self.grid.tile_of(self.points.screen))

            def of_points(key: int) -> tuple[Any, ...]:
                points = self.points.chosen(own[key])
                return self.grid.tile(key), near(key), points.screen, points.label

            found = run("faces", point_faces, LazyArguments(own, of_points))
            faces = np.empty(len(self.points.screen), np.int64)
            for key, places in own.items():
                faces[places] = cover.numbered(key, found[key]["faces"])
            return self.points, faces, np.empty(0, np.int64)
        depths = self.depths

        def of_pixels(key: int) -> tuple[Any, ...]:
            window = self.grid.tile(key)
            return self.clean, window, near(key), np.array(depths[window.rows, window.columns])

        found = run("faces", depth_faces, LazyArguments(keys, of_pixels))
        screen, depth, label = (
            np.concatenate([found[key][name] for key in keys]) for name in ("screen", "depth", "label")
        )
        unknown, weights = self.clean.camera.unknown_of_depth(depth), np.full(len(depth), self.weight)
        touched = [cover.numbered(key, found[key]["faces"]) for key in keys]
        points = LabelledPoints(screen, unknown, weights, label)
        return points, np.full(len(depth), -1), np.unique(np.concatenate(touched))


def _parts(clean: CleanMap, grid: TileGrid, jumps: Jumps, run: Run) -> tuple[CleanMap, Bool]:
    """Return the map with the parts into which jumps divide its components, and which (L + 1,) are whole ones."""
    if not jumps.lines:
        return clean, np.ones(clean.components.count + 1, np.bool_)
    parts = find_components(clean.source, run, grid.side, jumps.lines, "parts")
    found = run("pairs", label_pairs, {key: (clean, parts, grid.tile(key)) for key in grid.tile_keys()})
    component = np.zeros(parts.count + 1, np.int64)
    for each in found.values():
        component[each["pairs"][:, 1]] = each["pairs"][:, 0]
    whole = np.append(0, parts.areas) == np.append(0, clean.components.areas)[component]
    return replace(clean, components=parts), whole


def _gathered(found: Mapping[int, Mapping[str, NDArray[Any]]], count: int) -> PriorTerms:
    """Return the terms of all tiles, over ``count`` faces."""

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([each[name] for each in found.values()])

    lengths = np.concatenate([np.diff(each["pointers"]) for each in found.values()])
    pointers = np.concatenate([[0], np.cumsum(lengths)])
    rows = csr_matrix((joined("numbers"), joined("columns"), pointers), shape=(len(lengths), count))
    return PriorTerms(joined("faces"), rows, joined("values"), joined("weights"))


class _Cover:
    """The faces of a mesh that may own pixels of each tile."""

    def __init__(self, mesh: ScreenMesh, grid: TileGrid) -> None:
        low = high = mesh.vertices[mesh.faces[:, 0]]
        for k in (1, 2):
            corners = mesh.vertices[mesh.faces[:, k]]
            low, high = np.minimum(low, corners), np.maximum(high, corners)
        first, last = grid.tile_of(low), grid.tile_of(high)
        self._columns = grid.counts[1]
        self._across = np.flatnonzero(first != last)
        self._first, self._last = (np.divmod(each[self._across], self._columns) for each in (first, last))
        alone = np.flatnonzero(first == last)
        self._alone = alone[np.argsort(first[alone], kind="stable")]
        self._starts = np.searchsorted(first[self._alone], np.arange(grid.counts[0] * self._columns + 1))

    def faces(self, tile: int) -> Int:
        """Return the faces whose rectangles meet a tile."""
        across = np.ones(len(self._across), np.bool_)
        for first, last, place in zip(self._first, self._last, divmod(tile, self._columns), strict=True):
            across &= (first <= place) & (place <= last)
        return np.concatenate([self._alone[self._starts[tile] : self._starts[tile + 1]], self._across[across]])

    def numbered(self, tile: int, faces: Integer) -> Int:
        """Return the faces of the mesh from those of a tile, −1 for none."""
        numbers = np.append(self.faces(tile), -1)
        found: Int = numbers[faces]
        return found
