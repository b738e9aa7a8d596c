"""TiledPrior: control points or a depth map in pieces, as :class:`.prior.Prior` in memory, and its tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from normalmesh.arguments import checked_array
from normalmesh.array_types import Bool, Float, Int, Int32, Integer
from normalmesh.engine.array_file import Arrays, Run, packed, unpacked
from normalmesh.engine.task_arguments import LazyArguments
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.plane_surface import PlaneSurface
from normalmesh.integration.integration_options import IntegrationOptions
from normalmesh.integration.prior import OUT_OF_REACH, PIXEL_WEIGHT, leave_out, nearest_pixels, weighted_points
from normalmesh.integration.prior_faces import elected_labels, faces_at, placed_points, samples_of_faces, told_apart
from normalmesh.integration.prior_terms import FacePoints, PriorTerms, face_terms
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.component_maps import window_camera
from normalmesh.pieces.clean_map import CleanMap, at_points, labels_at
from normalmesh.pieces.map_windows import Window, window_around
from normalmesh.pieces.mask_components import find_components
from normalmesh.pieces.tile_faces import TileFaces, TileMesh
from normalmesh.pieces.tile_grid import TileGrid
from normalmesh.runtime.memory_budget import require_memory

#: Bytes for each face under a depth map: of its terms, and of the systems that they are divided among.
TERM_BYTES = 5000
#: Distance (px) around a tile in which the pixels nearest to its points lie.
AROUND = 4


class LabelledPoints(NamedTuple):
    """Points of a prior, with the labels of the parts of the mask that they lie on."""

    screen: Float  # (K, 2)
    unknown: Float  # (K,)
    weights: Float  # (K,)
    label: Int32  # (K,)

    def chosen(self, which: Bool | Int) -> LabelledPoints:
        """Return some of the points."""
        return LabelledPoints._make(each[which] for each in self)


class DepthWindow(NamedTuple):
    """A window of a depth map (h, w), NaN where it is unknown, whose pixels are points of the same weight."""

    depths: NDArray[Any]
    weight: float

    def points(self, clean: CleanMap, area: Window) -> LabelledPoints:
        """Return the pixels of the foreground whose depth is known."""
        labels = clean.components.labels(area)
        row, column = np.nonzero(np.isfinite(self.depths) & (labels > 0))
        screen: Float = np.stack([column + 0.5, row + 0.5], axis=1) + area.corner
        unknown = clean.camera.unknown_of_depth(self.depths[row, column].astype(np.float64))
        return LabelledPoints(screen, unknown, np.full(len(row), self.weight), labels[row, column])


class LabelledFaces(NamedTuple):
    """Faces of a mesh, with the labels of the parts of the mask that they lie on."""

    vertices: Float  # (n, 2): positions in the image
    faces: Int32  # (m, 3)
    home: Int32  # (m,)
    apart: Bool  # (L + 1,): labels that the mesh tells apart

    def owners(self, area: Window, points: LabelledPoints) -> Int32:
        """Return the face (K,) of each point in a window, −1 for none."""
        if len(self.faces) == 0:
            return np.full(len(points.label), -1, np.int32)
        mesh = ScreenMesh(self.vertices - area.corner, self.faces)
        return faces_at(mesh, self.home, self.apart, points.screen - area.corner, points.label, area.shape)


class PriorFaces(NamedTuple):
    """Where a prior lies on a mesh."""

    points: FacePoints  # all points but those pixels of a depth map that lie on faces of their label
    touched: Int  # (F,): faces on which there are points or pixels
    home: Int32  # (M,): the label that each face lies on
    apart: Bool  # (L + 1,): labels that the mesh tells apart


@dataclass(eq=False)
class TiledPrior:
    """Values that the surface should have at points, or at all pixels of a depth map."""

    clean: CleanMap  # its components are those of the mask, or the parts into which jumps divide them
    grid: TileGrid
    whole: Bool  # (L + 1,): labels that are whole components
    points: LabelledPoints  # control points on the foreground
    depths: NDArray[Any] | None  # (H, W) depth map, which need not be in memory (numpy.memmap)
    weight: float  # of a pixel of it
    warned: bool = False  # whether points out of reach have been reported

    @classmethod
    def of(cls, options: IntegrationOptions, clean: CleanMap, grid: TileGrid, jumps: Jumps, run: Run) -> TiledPrior:
        """Return the prior of options that have been checked."""
        assert options.prior is not None
        given, weight = checked_array(options.prior, "prior"), options.prior_weight
        parts, whole = _parts(clean, grid, jumps, run)
        if given.shape == clean.shape:
            none = LabelledPoints(np.empty((0, 2)), np.empty(0), np.empty(0), np.empty(0, np.int32))
            return cls(parts, grid, whole, none, given, PIXEL_WEIGHT if weight is None else weight)
        screen, depth, weights = weighted_points(given.astype(np.float64), weight)
        label = at_points(parts, grid, screen, "points", nearest_labels, run)
        points = LabelledPoints(screen, clean.camera.unknown_of_depth(depth), weights, label)
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
        near, tile = _faces_near_tiles(mesh, self.grid), self.grid.tile_of(self.points.screen)

        def arguments(key: int) -> tuple[Any, ...]:
            numbers, area = near(key), self.grid.tile(key)
            vertices, local = np.unique(mesh.faces[numbers], return_inverse=True)
            faces = local.reshape(-1, 3).astype(np.int32)
            labelled = LabelledFaces(mesh.vertices[vertices], faces, home[numbers], apart)
            given = self.points.chosen(tile == key) if self.depths is None else self._window(area)
            return self.clean, area, labelled, given

        count = self.grid.counts[0] * self.grid.counts[1]
        keys = np.unique(tile).tolist() if self.depths is None else range(count)
        found = {
            key: unpacked(each) for key, each in run("faces", owned_points, LazyArguments(keys, arguments)).items()
        }
        points = LabelledPoints._make(map(np.concatenate, zip(*(each[0] for each in found.values()), strict=True)))
        faces, touched = (
            np.concatenate([np.append(near(key), -1)[each[k]] for key, each in found.items()]) for k in (1, 2)
        )
        faces, feet = placed_points(mesh, home, apart, faces, points.screen, points.label)
        there = faces >= 0
        if not there.all() and not self.warned:
            self.warned = True
            far = np.append(~there, np.zeros(len(touched), np.bool_))
            leave_out(far, OUT_OF_REACH)
        points, faces, feet = points.chosen(there), faces[there], feet[there]
        placed = FacePoints(faces, feet, points.screen - feet, points.unknown, points.weights)
        return PriorFaces(placed, np.union1d(touched, faces), home, apart)

    def held(self, mesh: ScreenMesh, run: Run) -> tuple[Integer, Float, Float]:
        """Return faces (K,) of a mesh that the prior holds, where (K, 2), and with which weights (K,).

        The pixels of a depth map on a face have the moments of its area, and so do the midpoints of its sides.
        """
        found = self.on_faces(mesh, run)
        faces, feet, _, _, weights = found.points
        if self.depths is None:
            return faces, feet, weights
        corners = mesh.vertices[mesh.faces[found.touched]]
        middles = ((corners + np.roll(corners, 1, axis=1)) / 2).reshape(-1, 2)
        shares = np.repeat(self.weight * mesh.areas[found.touched] / 3, 3)
        return (
            np.concatenate([np.repeat(found.touched, 3), faces]),
            np.concatenate([middles, feet]),
            np.concatenate([shares, weights]),
        )

    def terms(self, faces: TileFaces, equations: Mapping[int, Any], offsets: Float, run: Run) -> PriorTerms:
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
            part, points, given = faces.part(key), found.points.chosen(np.flatnonzero(tile == key)), None
            points = points._replace(faces=np.searchsorted(faces.own(key), points.faces).astype(np.int32))
            if self.depths is not None:
                window = self._window(window_around(part.vertices, Window.whole(self.clean.shape)))
                given = window, found.home[part.numbers], found.apart
            return self.clean, part, equations[key], offsets[part.numbers], points, given, count

        tiles = np.unique(faces.tile[found.touched]).tolist()
        results = [unpacked(each) for each in run("terms", tile_terms, LazyArguments(tiles, arguments)).values()]
        numbers, rows, values, weights = zip(*results, strict=True)
        return PriorTerms(np.concatenate(numbers), vstack(rows, "csr"), np.concatenate(values), np.concatenate(weights))

    def _window(self, area: Window) -> DepthWindow:
        assert self.depths is not None
        return DepthWindow(np.array(self.depths[area.rows, area.columns]), self.weight)

    def _home(self, mesh: ScreenMesh, run: Run) -> Int32:
        """Return the label (M,) that the part of the mesh of each face lies on, as :func:`.face_labels` does."""
        count = self.clean.components.count
        if count == 1:
            return np.ones(len(mesh.faces), np.int32)
        points, face = samples_of_faces(mesh)
        return elected_labels(mesh, face, at_points(self.clean, self.grid, points, "homes", labels_at, run), count)


def _parts(clean: CleanMap, grid: TileGrid, jumps: Jumps, run: Run) -> tuple[CleanMap, Bool]:
    """Return the map with the parts into which jumps divide its components, and which (L + 1,) are whole ones."""
    if not jumps.lines:
        return clean, np.ones(clean.components.count + 1, np.bool_)
    parts = find_components(clean.source, run, grid.side, jumps.lines, "parts")
    component = at_points(clean, grid, parts.firsts.astype(np.float64), "pairs", labels_at, run)
    return replace(clean, components=parts), np.append(True, parts.areas == clean.components.areas[component - 1])


def _faces_near_tiles(mesh: ScreenMesh, grid: TileGrid) -> Callable[[int], Int]:
    """Return what gives the faces of a mesh whose rectangles meet a tile, ascending."""
    columns = grid.counts[1]
    low, high = (reduce(end, (mesh.vertices[mesh.faces[:, k]] for k in range(3))) for end in (np.minimum, np.maximum))
    first, last = (np.stack(np.divmod(grid.tile_of(corner), columns)) for corner in (low, high))

    def faces(tile: int) -> Int:
        place = np.array(divmod(tile, columns))[:, None]
        return np.flatnonzero(((first <= place) & (place <= last)).all(axis=0))

    return faces


def nearest_labels(clean: CleanMap, tile: Window, screen: Float) -> Arrays:
    """Return the ``labels`` (K,) of the pixels on or next to which points (K, 2) lie, 0 for points off the mask."""
    area = tile.grown(AROUND, Window.whole(clean.shape))
    pixels = nearest_pixels(screen - area.corner, clean.mask_window(area.rows, area.columns))
    labels = clean.components.labels(area).ravel()
    return {"labels": np.where(pixels >= 0, labels[pixels], 0)}


def owned_points(clean: CleanMap, tile: Window, near: LabelledFaces, given: LabelledPoints | DepthWindow) -> Arrays:
    """Return points in a tile, the faces near it (K,) that own them, −1 for none, and all faces that do, packed.

    Of a depth map, only the pixels that no face of their label owns become points.
    """
    points = given.points(clean, tile) if isinstance(given, DepthWindow) else given
    faces = near.owners(tile, points)
    chosen = faces < 0 if isinstance(given, DepthWindow) else np.ones(len(faces), np.bool_)
    return packed((tuple(points.chosen(chosen)), faces[chosen], np.unique(faces[faces >= 0])))


def tile_terms(
    clean: CleanMap,
    part: TileMesh,
    equations: Mapping[str, Any],
    offsets: Float,
    points: FacePoints,
    given: tuple[DepthWindow, Int32, Bool] | None,
    count: int,
) -> Arrays:
    """Return the fields of the terms of a prior on the faces of a tile, packed, over all ``count`` faces of the mesh.

    ``equations`` is the result of :func:`.tile_equations`, ``offsets`` (m,) are those of all faces of the part without
    a prior, ``points`` lie on faces of the tile, which are numbered within the part. Of a depth map, the window around
    the part is ``given``, with the labels (m,) of its faces, and the labels that are told apart.
    """
    area = window_around(part.vertices, Window.whole(clean.shape))
    camera = window_camera(clean.camera, area.left, area.top)
    system = PlaneSurface(FaceMeans(part.screen(area), camera, np.array(equations["table"])))
    points = points._replace(feet=points.feet - area.corner)
    if given is not None:
        window, home, apart = given
        pixels = window.points(clean, area)
        faces = LabelledFaces(part.vertices, part.faces, home, apart).owners(area, pixels)
        own = (faces >= 0) & (faces < part.own)
        screen, unknown, weights, _ = pixels.chosen(own)
        on_pixels = FacePoints(faces[own], screen - area.corner, np.zeros_like(screen), unknown, weights)
        points = FacePoints._make(map(np.concatenate, zip(points, on_pixels, strict=True)))
    terms = face_terms(system, offsets, points)
    rows = terms.rows.data, part.numbers[terms.rows.indices], terms.rows.indptr
    matrix = csr_matrix(rows, (len(terms.values), count))
    return packed((part.numbers[terms.faces], matrix, terms.values, terms.weights))
