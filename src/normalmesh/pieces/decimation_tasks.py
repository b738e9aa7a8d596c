"""Tasks of decimation in pieces: each makes or changes one piece of the mesh, and sees only a window of the map.

*Decimate these vertices, all others stay* serves tiles, strips and crossings; :func:`normalmesh.decimate` is the case
of one piece that is the whole mesh.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float, Floating, Int
from normalmesh.decimation.collapse import counting_collapser
from normalmesh.decimation.decimation_options import DecimationOptions
from normalmesh.decimation.hierarchy import PERIOD, Hierarchy, Region
from normalmesh.decimation.mask_counts import outline_sides
from normalmesh.decimation.polylines import Segments
from normalmesh.decimation.quadrics import Pixels
from normalmesh.decimation.rounds import Decimator
from normalmesh.decimation.start_mesh import KeptCorners
from normalmesh.decimation.stopping import Goal
from normalmesh.decimation.thin_parts import THIN_REACH, thin_pixels
from normalmesh.engine.array_file import Arrays, packed, unpacked
from normalmesh.mesh._closed_mesh import LINE, LOCKED
from normalmesh.mesh._outline import COVERED, FIXED
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.cut_mesh import boundary_vertices
from normalmesh.mesh.jumps import JumpLine
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.pieces.map_windows import Window, WindowedMap, filled_window, window_around
from normalmesh.pieces.tile_grid import COLLAR, TileGrid
from normalmesh.pieces.whole_mesh import Piece

#: Left, top, right and bottom of the part of a tile that no seam disturbs, relative to its corner.
Inside = tuple[int, int, int, int]

#: Distance (px) from a seam, beyond the collar, from which on vertices are as many as without seams.
UNDISTURBED = 32
#: Limits of cost (px⁴) that a search begins and ends with, and the ratio of two successive ones.
LEAST_LIMIT, MOST_LIMIT, COARSE_RUNG = 1e-5, 1e12, 1.5
#: Share of the vertices that a limit must leave at least for the next one to be farther away, up to so many ratios.
STALLED, MOST_RUNGS = 0.99, 8
#: Share of the foreground far from seams from which on the counts of tiles are taken to be a fair sample.
FAIR = 0.05
#: Logarithm of the ratio up to which limits are extrapolated.
FARTHEST = 1.0


@dataclass(frozen=True, eq=False)
class DecimationPlan:
    """What the decimations of all pieces have in common."""

    options: DecimationOptions
    regularisation: float  # λ
    even: float  # λ of the hierarchy
    level: float  # error (px⁴) of the hierarchy up to which pixel corners are left out of the start mesh
    limits: tuple[float, ...]  # costs (px⁴) up to which the edges collapse in each round
    lines: tuple[JumpLine, ...] = ()  # along which depth jumps
    ends: Int | None = None  # (K, 2): pixel corners at the ends of stretches of sides at which the map repeats

    def kept_in(self, area: Window, normal_map: NormalMap) -> KeptCorners:
        """Return the corners that the map of a rectangle keeps."""
        ends = None if self.ends is None else self.ends - area.corner
        if ends is not None:
            rows, columns = area.shape
            ends = ends[((ends >= 0) & (ends <= [columns, rows])).all(axis=1)]
        return KeptCorners.of(None, self.lines_in(area), normal_map, ends)

    def lines_in(self, area: Window) -> tuple[JumpLine, ...]:
        """Return the lines as far as they lie in a rectangle, relative to its corner."""
        return tuple(part for line in self.lines for part in _clipped(line, area))


def _clipped(line: JumpLine, area: Window) -> list[JumpLine]:
    """Return the parts of a line in a rectangle, its sides included, relative to its corner."""
    path = line.path - area.corner
    rows, columns = area.shape
    inside = np.asarray(((path >= 0) & (path <= [columns, rows])).all(axis=1))
    if not inside.any():
        return []
    ends = np.flatnonzero(np.diff(inside)) + 1
    runs = [run for run in np.split(np.arange(len(path)), ends) if inside[run[0]] and len(run) > 1]
    return [replace(line, path=path[run]) for run in runs]


def tile_histogram(clean: WindowedMap, grid: TileGrid, key: tuple[int, int], plan: DecimationPlan) -> Arrays:
    """Count the pixel corners of a tile by their error in the hierarchy, its pixels and outline, if it has any."""
    tile, area = grid.tile(key), grid.area
    if not clean.mask_window(tile.rows, tile.columns).any():
        return {}
    hierarchy, normal_map = _tile_hierarchy(clean, grid, key, plan)
    rows = None if tile.bottom == area.bottom else -1
    columns = None if tile.right == area.right else -1
    around = tile.grown(1, area)
    sides = outline_sides(clean.mask_window(around.rows, around.columns), tile.place_in(around))
    counts = {"foreground": normal_map.foreground, "sides": sides}
    return {"counts": hierarchy.histogram(rows, columns), **{name: np.array(each) for name, each in counts.items()}}


def begin_tile(clean: WindowedMap, grid: TileGrid, key: tuple[int, int], plan: DecimationPlan, rungs: Float) -> Arrays:
    """Run all rounds but the last on a tile, up to the collars along its seams; return its state.

    ``counts`` are the vertices that would be left, far from seams, for each of the limits ``rungs`` of the last round,
    and ``undisturbed`` the foreground pixels there.
    """
    decimator = _tile_decimator(clean, grid, key, plan)
    done = _run(decimator, plan, [Goal(max_cost=limit) for limit in plan.limits[:-1]], last=False)
    inside = _undisturbed(grid, key)
    mask = _inside(decimator.pixels.normal_map.mask, inside)
    counts = np.zeros(len(rungs), np.int64)
    if mask.any():
        count = counting_collapser(
            decimator.mesh, decimator.pixels, decimator.records, plan.options.in_plane, decimator.segments
        )
        counts[:] = [count(rung, inside) for rung in rungs]
    places = None if decimator.segments is None else decimator.segments.places
    state = packed((decimator.mesh, places))
    return {"counts": counts, "undisturbed": np.array(np.count_nonzero(mask)), "done": done, **state}


def finish_tile(
    clean: WindowedMap, grid: TileGrid, key: tuple[int, int], plan: DecimationPlan, state: Mapping[str, Any]
) -> Arrays:
    """Run the last round on a tile; return its mesh, in which the vertices of collars wait."""
    tile = grid.tile(key)
    mesh, places = unpacked(state)
    segments = None if places is None else Segments.fixed(places)
    decimator = Decimator(mesh, Pixels(filled_window(clean, tile), plan.regularisation), plan.options, segments)
    decimator.renew_records()
    done = _run(decimator, plan, [Goal(max_cost=plan.limits[-1])], last=True)
    result = _result(decimator, tile, clean.shape[1], clean.mask_window(tile.rows, tile.columns))
    result["waiting"] = grid.in_collar(result["vertices"])
    return result | {"done": added_up([state["done"], done])}


def decimate_piece(clean: WindowedMap, piece: Piece, plan: DecimationPlan, flipped: Int, removed: int = 0) -> Arrays:
    """Decimate the free vertices of a piece, up to the limits of cost, or until so many are removed; all others stay.

    ``flipped`` (K,) are pixels of the background that the mesh covers, and of the foreground that it does not cover.
    """
    area = window_around(piece.vertices, Window.whole(clean.shape))
    normal_map = filled_window(clean, area)
    coverage = normal_map.mask * np.uint8(COVERED)
    row, column = np.divmod(flipped, clean.shape[1])
    row, column = row - area.top, column - area.left
    there = (row >= 0) & (row < area.shape[0]) & (column >= 0) & (column < area.shape[1])
    coverage[row[there], column[there]] ^= COVERED
    covered = coverage.astype(np.bool_)
    if plan.options.keep_thin:
        coverage[_thin(clean, area)] |= FIXED
    mesh = ScreenMesh(piece.vertices - area.corner, piece.faces)
    closed = ClosedMesh.from_screen(mesh, area.shape, ~piece.free, coverage, plan.options.smooth_rim)
    on_line = np.zeros(len(piece.free), np.bool_)
    on_line[piece.seams] = True
    closed.flags[on_line & piece.free] |= LOCKED | LINE
    segments = Segments.fixed(closed.vertices[piece.seams]) if len(piece.seams) else None
    decimator = Decimator(closed, Pixels(normal_map, plan.regularisation), plan.options, segments)
    # As in memory: only the order of costs matters for a target, but a threshold is for costs from the pixel grid on.
    if not plan.even:
        decimator.renew_records()
    left = len(closed.vertices) + decimator.copies - removed
    goals = [Goal(target=max(left, 1))] if removed else [Goal(max_cost=c) for c in plan.limits]
    done = _run(decimator, plan, goals, last=True)
    result = _result(decimator, area, clean.shape[1], covered)
    return result | {"origin": _origin(decimator.mesh, mesh, ~piece.free), "done": done}


def pilot(
    clean: WindowedMap, grid: TileGrid, keys: list[tuple[int, int]], plan: DecimationPlan, densities: list[float]
) -> Arrays:
    """Find the limits (R,) of cost at which sample tiles have so many vertices for each pixel after each round."""
    samples = _sample_tiles(clean, grid, keys, plan)
    limits: list[float] = []
    for density in densities:
        limits.append(_limit_for(samples, density, max(plan.level, *limits, LEAST_LIMIT)))
        for decimator, _ in samples:
            _run(decimator, plan, [Goal(max_cost=limits[-1])], last=False)
    return {"limits": np.array(limits)}


def _sample_tiles(
    clean: WindowedMap, grid: TileGrid, keys: list[tuple[int, int]], plan: DecimationPlan
) -> list[tuple[Decimator, Inside]]:
    """Return the start meshes of sample tiles, and the part of each in which its vertices count."""
    masks = [(key, clean.mask_window(grid.tile(key).rows, grid.tile(key).columns)) for key in keys]
    far = sum(int(np.count_nonzero(_inside(mask, _undisturbed(grid, key)))) for key, mask in masks)
    fair = far >= FAIR * sum(int(np.count_nonzero(mask)) for _, mask in masks)
    # Foreground that is all near seams is no sample of what is far from them: then tiles are meshes on their own.
    return [
        (
            _tile_decimator(clean, grid, key, plan, waits=fair),
            _undisturbed(grid, key) if fair else (0, 0, *mask.T.shape),
        )
        for key, mask in masks
    ]


def _limit_for(samples: list[tuple[Decimator, Inside]], density: float, lowest: float) -> float:
    """Return the limit of cost, at least the lowest, at which samples have so many vertices for each pixel."""
    wanted = density * sum(int(np.count_nonzero(_inside(each.pixels.normal_map.mask, part))) for each, part in samples)
    copies = [
        (counting_collapser(each.mesh, each.pixels, each.records, each.options.in_plane), inside)
        for each, inside in samples
    ]
    limits, counts = [lowest], [sum(count(lowest, inside) for count, inside in copies)]
    rungs = 1
    while counts[-1] > wanted and limits[-1] < MOST_LIMIT:
        limits.append(limits[-1] * COARSE_RUNG**rungs)
        counts.append(sum(count(limits[-1], inside) for count, inside in copies))
        # Where only costly edges are left, or none that may collapse, the next limit is far away.
        rungs = min(2 * rungs, MOST_RUNGS) if counts[-1] > STALLED * counts[-2] else 1
    return interpolated_limit(np.array(limits), np.array(counts), wanted)


def interpolated_limit(limits: Floating, counts: NDArray[np.number], wanted: float) -> float:
    """Return the limit at which about ``wanted`` vertices are left, from rising limits (K,) and their counts (K,)."""
    if len(limits) == 1 or wanted <= 0:
        return float(limits[-1])
    x, y = np.log(limits), -np.log(np.maximum(counts, 0.5))
    goal = -math.log(wanted)
    place = int(np.clip(np.searchsorted(y, goal), 1, len(y) - 1))
    slope = max((y[place] - y[place - 1]) / (x[place] - x[place - 1]), 1e-6)
    step = np.clip((goal - y[place]) / slope, -FARTHEST, FARTHEST)
    return float(np.exp(x[place] + step))


def _run(decimator: Decimator, plan: DecimationPlan, goals: list[Goal], last: bool) -> Float:
    """Run rounds up to these goals; return what was ``done``, see :func:`added_up`."""
    rounds = []
    for number, goal in enumerate(goals):
        done = decimator.round(goal, last=last and number == len(goals) - 1)
        rounds.append(np.array([done.collapses, done.flips, done.moves, done.largest_cost]))
    return added_up(rounds)


def added_up(done: list[NDArray[Any]]) -> Float:
    """Add up what was done, each (4,): numbers of collapses, flips and moves, and the largest cost of a collapse."""
    table = np.array([np.zeros(4), *done])
    return np.append(table[:, :3].sum(axis=0), table[:, 3].max())


def _tile_hierarchy(
    clean: WindowedMap, grid: TileGrid, key: tuple[int, int], plan: DecimationPlan
) -> tuple[Hierarchy, NormalMap]:
    """Return the hierarchy of a tile that has foreground, and its pixels."""
    tile = grid.tile(key)
    area = tile.grown(PERIOD, grid.area)
    wide = filled_window(clean, area)
    normal_map = filled_window(wide, tile.moved(-area.top, -area.left))
    locked = plan.kept_in(area, wide).pixels()
    region = Region(0, 0, *area.shape, (area.top, area.left), clean.camera)
    hierarchy = Hierarchy.of(wide, locked, plan.even, region).part(*tile.place_in(area))
    return replace(hierarchy, mask=normal_map.mask, corner=(0, 0)), normal_map


def _tile_decimator(
    clean: WindowedMap, grid: TileGrid, key: tuple[int, int], plan: DecimationPlan, waits: bool = True
) -> Decimator:
    """Return the start mesh of a tile that has foreground; its collars along seams are locked if they wait."""
    hierarchy, normal_map = _tile_hierarchy(clean, grid, key, plan)
    tile = grid.tile(key)
    mesh = hierarchy.mesh(plan.level)
    coverage = normal_map.mask * np.uint8(COVERED)
    if plan.options.keep_thin:
        coverage[_thin(clean, tile)] |= FIXED
    if waits:
        # A gap that ends at a seam may be a hole: if it were filled here, the tiles would join across it.
        fixed = np.ones(tile.shape, np.bool_)
        _inside(fixed, _far_from_seams(grid, key, COLLAR))[:] = False
        coverage[fixed] |= FIXED
    closed = ClosedMesh.from_screen(mesh, tile.shape, coverage=coverage, smooth_rim=plan.options.smooth_rim)
    plan.kept_in(tile, normal_map).flag(closed)
    collar = grid.in_collar(mesh.vertices + tile.corner) & waits
    closed.flags[collar] = closed.flags[collar] & ~np.uint8(LINE) | LOCKED
    lines = plan.lines_in(tile)
    segments = Segments.fixed(Segments.of(lines).places, is_smooth=False) if lines else None
    decimator = Decimator(closed, Pixels(normal_map, plan.regularisation), plan.options, segments)
    if not plan.even and mesh.faces.shape[0] < 2 * normal_map.foreground:
        decimator.renew_records()
    return decimator


def _inside(mask: Bool, inside: Inside) -> Bool:
    """Return the pixels of a mask inside some limits, which may be empty."""
    left, top, right, bottom = inside
    return mask[top : max(bottom, top), left : max(right, left)]


def _undisturbed(grid: TileGrid, key: tuple[int, int]) -> Inside:
    """Return left, top, right and bottom of the part of a tile that no seam disturbs, relative to its corner."""
    return _far_from_seams(grid, key, COLLAR + UNDISTURBED)


def _far_from_seams(grid: TileGrid, key: tuple[int, int], margin: int) -> Inside:
    """Return left, top, right and bottom of the part of a tile beyond a margin along its seams."""
    (rows, columns), (height, width) = grid.counts, grid.tile(key).shape
    return (
        margin if key[1] else 0,
        margin if key[0] else 0,
        width - (margin if key[1] < columns - 1 else 0),
        height - (margin if key[0] < rows - 1 else 0),
    )


def _thin(clean: WindowedMap, area: Window) -> Bool:
    """Return the pixels (H, W) of a rectangle of which the outline must not cross the centres."""
    wide = area.grown(THIN_REACH, Window.whole(clean.shape))
    return thin_pixels(clean.mask_window(wide.rows, wide.columns))[area.place_in(wide)]


def _result(decimator: Decimator, area: Window, width: int, covered: Bool) -> dict[str, NDArray[Any]]:
    """Return a decimated piece in the image, and the pixels, numbered in it, that are not ``covered`` as before."""
    seams, mesh = decimator.polish_lines(), decimator.mesh
    return {
        "vertices": mesh.vertices + area.corner,
        "faces": mesh.faces[: mesh.real_faces].copy(),
        "seams": seams,
        "flipped": area.numbers(mesh.covered != covered, width),
    }


def _origin(mesh: ClosedMesh, before: ScreenMesh, locked: Bool) -> Int:
    """Return which vertex of the piece before (N,) each vertex of a decimated piece is, −1 if it was not locked.

    Those at the boundary are known by the points of the outline that they stand for. Others are alone in their place.
    """
    points = np.flatnonzero(boundary_vertices(before))
    origin = np.full(len(mesh.vertices), -1)
    on_boundary = mesh.outline.point_of >= 0
    origin[on_boundary] = points[mesh.outline.point_of[on_boundary]]
    inner = np.flatnonzero(~on_boundary & (mesh.flags & LOCKED > 0))
    held = np.setdiff1d(np.flatnonzero(locked), points)
    there = _places(before.vertices[held])
    order = np.argsort(there)
    here = _places(mesh.vertices[inner])
    found = order[np.minimum(np.searchsorted(there[order], here), max(len(order) - 1, 0))] if len(order) else order[:0]
    if len(found):
        same = there[found] == here
        origin[inner[same]] = held[found[same]]
    origin[(origin >= 0) & ~locked[origin]] = -1
    return origin


def _places(points: Float) -> NDArray[np.complex128]:
    """Return points (K, 2) as complex numbers, which can be sorted and compared."""
    return np.ascontiguousarray(points, np.float64).view(np.complex128).ravel()
