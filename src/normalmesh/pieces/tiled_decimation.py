"""Decimation in pieces: tiles first, then strips along the seams, then the crossings of seams.

Pieces are decimated up to common limits of cost, so that none has more vertices than its normals need. Tiles report how
many vertices they would have for several limits of the last round; the one that leads to the number asked for is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from normalmesh.array_types import Bool, Floating, Int, Int32
from normalmesh.decimation.decimation_options import DecimationOptions
from normalmesh.decimation.hierarchy import PERIOD, bin_of, level_of
from normalmesh.decimation.polylines import affordable_lines
from normalmesh.decimation.rounds import FIRST_TARGET, RESERVE
from normalmesh.decimation.side_matching import matched_sides, room_for_matching
from normalmesh.decimation.start_mesh import FEATURES, FULL, LEVEL_SHARE, OVERSAMPLING
from normalmesh.decimation.stopping import StoppingRule, falling_targets
from normalmesh.engine.array_file import Arrays, Run
from normalmesh.mesh.cut_mesh import boundary_vertices
from normalmesh.mesh.jumps import JumpLine
from normalmesh.mesh.raster import covered_pixels
from normalmesh.mesh.repeats import Repeats
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.pieces.decimation_tasks import (
    FAIR,
    DecimationPlan,
    added_up,
    begin_tile,
    decimate_piece,
    finish_tile,
    interpolated_limit,
    pilot,
    tile_histogram,
)
from normalmesh.pieces.map_windows import Window, WindowedMap
from normalmesh.pieces.tile_grid import TileGrid
from normalmesh.pieces.whole_mesh import Piece, WholeMesh, shares

#: Number of sample tiles, and their side (px), that determine the limits of the first rounds.
SAMPLES, SAMPLE_SIDE = 16, 4 * PERIOD
#: Limits of the last round that tiles try, as multiples of the one that the samples lead to.
RUNGS = 1.1 ** np.arange(-6, 7)
#: Share of the vertices asked for up to which there may be more, or fewer: to mend that, tiles are read once more.
TOLERATED = 0.005
#: Share of the surplus that a trim may leave if another one is to follow.
HOPELESS = 0.95


def decimate_in_pieces(
    clean: WindowedMap,
    grid: TileGrid,
    rule: StoppingRule,
    options: DecimationOptions,
    run: Run,
    lines: tuple[JumpLine, ...] = (),
) -> WholeMesh:
    """Decimate a map up to a rule, piece by piece; the mesh does not depend on who runs which task when."""
    target_given = rule.threshold is None
    regularisation = options.regularisation_for(target_given)
    even = 0.0 if target_given else regularisation
    repeats = Repeats.of(options.tileable, clean.shape)
    ends = None if repeats is None else repeats.side_ends(clean.mask_window)
    plan = DecimationPlan(options, regularisation, even, -1.0, (), 0.0, lines, ends)
    keys = list(grid.tile_keys())
    found = run("histogram", tile_histogram, {key: (clean, grid, key, plan) for key in keys}, work=0.03)
    filled = [key for key in keys if len(found[key])]
    areas = {key: int(found[key]["foreground"]) for key in filled}
    foreground, histogram = sum(areas.values()), np.sum([found[key]["counts"] for key in filled], axis=0)
    plan = _started(plan, histogram, rule, foreground)
    wanted = rule.expected_vertices(foreground)
    wanted -= 0 if repeats is None else room_for_matching(wanted)
    plan, target = _with_lines(plan, wanted)
    if target_given:
        plan = _piloted(plan, clean, grid, areas, target, run)
        rungs = plan.limits[-1] * RUNGS
    else:
        plan = replace(plan, limits=(rule.max_cost,) * options.rounds)
        rungs = np.empty(0)
    begun = run("begin", begin_tile, {key: (clean, grid, key, plan, rungs) for key in filled}, work=0.25)
    if target_given:
        plan = _with_last_limit(plan, rungs, list(begun.values()), foreground, target)
    done = run("finish", finish_tile, {key: (clean, grid, key, plan, begun[key]) for key in filled}, work=0.08)
    mesh = _joined([done[key] for key in filled], ends)
    least = round((1 - TOLERATED) * target) if target_given else 0
    for stage in ("strips", "crossings", "crossings-2"):
        _decimate_zones(mesh, clean, grid, plan, run, stage, least)
    mesh.dropped_lines = len(lines) - len(plan.lines)
    if target_given:
        _trim(mesh, clean, grid, plan, run, wanted)
    if repeats is not None:
        _match_sides(mesh, repeats, clean)
    return mesh


def _joined(tiles: list[Arrays], ends: Int | None) -> WholeMesh:
    """Return the mesh of all tiles, in which pixel corners (K, 2) at the ends of sides stay."""
    mesh = WholeMesh.joined(tiles)
    mesh.done = added_up([tile["done"] for tile in tiles])
    if ends is not None:
        mesh.fixed = np.isin(mesh.vertices @ [1, 1j], ends @ [1, 1j])
    return mesh


def _match_sides(mesh: WholeMesh, repeats: Repeats, clean: WindowedMap) -> None:
    """Give opposite sides the same vertices, which are fixed from now on."""
    screen, pairs = mesh.screen(), repeats.side_pairs(clean.mask_window)
    before = _side_pixels(screen, repeats)
    mesh.vertices, mesh.faces, mesh.fixed, mesh.seams = matched_sides(screen, mesh.fixed, mesh.seams, pairs)
    mesh.waiting, mesh.repeats = np.zeros_like(mesh.fixed), repeats
    mesh.flipped = np.setxor1d(mesh.flipped, np.setxor1d(before, _side_pixels(mesh.screen(), repeats)))


def _side_pixels(mesh: ScreenMesh, repeats: Repeats) -> Int:
    """Return the pixels (K,) along the sides that a mesh covers, as numbers in the image; only these may change."""
    rows, columns = repeats.shape
    found = np.empty(0, np.int64)
    for axis, far in repeats.axes:
        for at in (0, far - 1):
            line = Window(0, at, rows, at + 1) if axis == 0 else Window(at, 0, at + 1, columns)
            places = mesh.vertices[:, axis][mesh.faces]
            near = mesh.faces[(places.min(axis=1) <= at + 1) & (places.max(axis=1) >= at)]
            covered = covered_pixels(ScreenMesh(mesh.vertices - line.corner, near), line.shape)
            found = np.union1d(found, line.numbers(covered, columns))
    return found


def _started(plan: DecimationPlan, histogram: Int, rule: StoppingRule, foreground: int) -> DecimationPlan:
    """Return the plan with the level of the start mesh: −1 for all pixel corners, if fewer would save nothing."""
    target = rule.target(foreground)
    density = rule.expected_vertices(foreground) / foreground
    if target is None:
        level = LEVEL_SHARE * rule.max_cost
        above = histogram[bin_of(level) :].sum()
        return replace(plan, density=density, level=level if above < FULL * foreground else -1.0)
    wanted = OVERSAMPLING * target + round(FEATURES * math.sqrt(foreground))
    level = level_of(histogram, wanted) if wanted < FULL * foreground else -1.0
    return replace(plan, density=density, level=level)


def _with_lines(plan: DecimationPlan, expected: int) -> tuple[DecimationPlan, int]:
    """Return the plan with the lines that it can afford, and the vertices that it should have before it is cut."""
    lines, copies = affordable_lines(plan.lines, expected, plan.density)
    reserve = math.ceil(RESERVE * expected) if lines else 0
    return replace(plan, lines=lines), max(expected - copies - reserve, 3)


def _piloted(
    plan: DecimationPlan,
    clean: WindowedMap,
    grid: TileGrid,
    areas: Mapping[tuple[int, int], int],
    target: int,
    run: Run,
) -> DecimationPlan:
    """Return the plan with the limits of cost that sample tiles lead to."""
    foreground, options = sum(areas.values()), plan.options
    goals = falling_targets(target, foreground, options.rounds, FIRST_TARGET[options.start])
    densities = [goal.target / foreground for goal in goals]
    small = replace(grid, side=min(SAMPLE_SIDE, grid.side))
    keys = _samples(clean, grid, small, areas)
    found = run("pilot", pilot, {0: (clean, small, keys, replace(plan, lines=()), densities)}, work=0.02)
    return replace(plan, limits=tuple(found[0]["limits"].tolist()))


def _samples(
    clean: WindowedMap, grid: TileGrid, small: TileGrid, areas: Mapping[tuple[int, int], int]
) -> list[tuple[int, int]]:
    """Choose small tiles, spread evenly over the foreground: the keys in a grid of small ones."""
    keys = list(areas)
    total = np.cumsum([areas[key] for key in keys])
    chosen: set[tuple[int, int]] = set()
    ratio = grid.side // small.side
    for sample in range(SAMPLES):
        key = keys[int(np.searchsorted(total, (sample + 0.5) / SAMPLES * total[-1]))]
        mask = clean.mask_window(grid.tile(key).rows, grid.tile(key).columns)
        rows, columns = (np.arange(0, length, small.side) for length in mask.shape)
        counts = np.add.reduceat(np.add.reduceat(mask, rows, axis=0, dtype=np.int64), columns, axis=1)
        # Golden-section steps through the foreground of the tile never repeat.
        share = (sample * 0.6180339887498949 + 0.5) % 1.0
        place = int(np.searchsorted(np.cumsum(counts), share * counts.sum()))
        row, column = divmod(place, counts.shape[1])
        chosen.add((key[0] * ratio + row, key[1] * ratio + column))
    return sorted(chosen)


def _with_last_limit(
    plan: DecimationPlan,
    rungs: Floating,
    tiles: list[Mapping[str, Any]],
    foreground: int,
    target: int,
) -> DecimationPlan:
    """Return the plan with the limit of the last round at which the tiles have as many vertices as they should."""
    undisturbed = sum(int(tile["undisturbed"]) for tile in tiles)
    if undisturbed < FAIR * foreground:
        return plan
    counts = sum(tile["counts"] for tile in tiles)
    return replace(
        plan, limits=(*plan.limits[:-1], interpolated_limit(rungs, counts, target / foreground * undisturbed))
    )


def _decimate_zones(
    mesh: WholeMesh, clean: WindowedMap, grid: TileGrid, plan: DecimationPlan, run: Run, stage: str, least: int
) -> None:
    """Decimate the vertices that wait, zone by zone, and the vertices around them once more, but for the outline.

    Where limits from samples would leave too few vertices, the ``least`` number stays.
    """
    zone = mesh.waiting_zones(grid, stage)
    around = mesh.neighbours(zone >= 0) & ~mesh.waiting & ~boundary_vertices(mesh.screen())
    around[mesh.seams] = False
    _spread(zone, mesh.faces, around)
    pieces = dict(mesh.pieces(zone))
    flipped = mesh.flipped
    found = run(stage, decimate_piece, {name: (clean, piece, plan, flipped) for name, piece in pieces.items()})
    removed = sum(len(piece.vertices) - len(found[name]["vertices"]) for name, piece in pieces.items())
    spare = max(len(mesh.vertices) - least, 0)
    if removed > spare:
        few = {
            name: (clean, pieces[name], plan, flipped, count) for name, count in shares(pieces, spare).items() if count
        }
        found = run(f"{stage}-fewer", decimate_piece, few)
    _put_back(mesh, pieces, found)


def _put_back(mesh: WholeMesh, pieces: Mapping[int, Piece], found: Mapping[int, Mapping[str, Any]]) -> None:
    """Put decimated pieces back into the mesh, and count what was done to them."""
    mesh.replace([(pieces[name], result) for name, result in found.items()])
    mesh.done = added_up([mesh.done, *(result["done"] for result in found.values())])


def _trim(mesh: WholeMesh, clean: WindowedMap, grid: TileGrid, plan: DecimationPlan, run: Run, wanted: int) -> None:
    """Remove vertices beyond those wanted after the cuts: first in tiles, then in tiles that lie across their seams."""
    # The refinement of the surface will move the vertices.
    plan = replace(plan, options=replace(plan.options, passes=0))
    before = math.inf
    for stage, tiles in (("trim", grid), ("trim-2", grid.shifted())):
        excess = len(mesh.cut().vertices) - wanted
        # Where hardly any edge may collapse, another try would be in vain.
        if excess <= TOLERATED * wanted or excess > HOPELESS * before:
            return
        before = excess
        pieces = dict(mesh.pieces(tiles.tile_of(mesh.vertices)))
        removed = {name: count for name, count in shares(pieces, excess).items() if count}
        arguments = {name: (clean, pieces[name], plan, mesh.flipped, count) for name, count in removed.items()}
        _put_back(mesh, pieces, run(stage, decimate_piece, arguments))


def _spread(zone: Int32, faces: Int32, around: Bool) -> None:
    """Give vertices ``around`` (N,) the zone of a vertex that they have a face in common with, the largest number."""
    chosen = faces[around[faces].any(axis=1)]
    largest = zone[chosen].max(axis=1)
    spread = np.full_like(zone, -1)
    np.maximum.at(spread, chosen, largest[:, None])
    zone[around] = spread[around]
