"""MeshInPieces: a mesh that is solved and refined piece by piece, with all that its surface is made of.

There is one exact solve of all tiles, then refinement of tiles, strips and crossings, in turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from normalmesh.array_types import Bool, Float, Int, Int32
from normalmesh.decimation.rounds import RESERVE, needs_of_shape
from normalmesh.engine.array_file import Arrays
from normalmesh.engine.runner import Run, Runner
from normalmesh.engine.task_arguments import LazyArguments
from normalmesh.integration.height_noise import height_noise_of, noise_of_faces, noises_of_parts
from normalmesh.integration.mesh_solver import MAX_ERROR, STIFF, steep_share
from normalmesh.integration.prior_correction import corrected
from normalmesh.integration.refinement_rounds import MIN_CHANGE
from normalmesh.mesh.coverage import Coverage
from normalmesh.mesh.jumps import Jumps, Placement
from normalmesh.mesh.origin import Decimation, HeightNoise, Round
from normalmesh.mesh.repeats import RepeatingMesh, Repeats
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.camera import Camera
from normalmesh.pieces.clean_map import CleanMap
from normalmesh.pieces.elimination import TiledEquations, TiledSystem
from normalmesh.pieces.integration_tasks import (
    detached_edges,
    refine_piece,
    tile_coverage,
    tile_equations,
    tile_heights,
    tile_variances,
)
from normalmesh.pieces.merge_plan import merge_levels
from normalmesh.pieces.repeating_map import level_map
from normalmesh.pieces.tile_elements import Elements, Partition
from normalmesh.pieces.tile_faces import TileFaces, TileMesh
from normalmesh.pieces.tile_grid import TileGrid, by_tile
from normalmesh.pieces.tiled_prior import TiledPrior
from normalmesh.pieces.whole_mesh import Piece, WholeMesh, shares

#: What the names of the stages of the decimation begin with.
DECIMATE = "decimate-"
#: The stages in which pieces are refined: each vertex is free in one of them.
ZONES = ("tiles", "strips", "crossings", "crossings-2")
#: Results of :func:`.tile_equations` that are the edges of a system.
_EDGES = ("pairs", "weights", "steps")


class MeshInPieces:
    """A mesh in pieces, which is solved when it is made; see :class:`.RefinedMesh` and :class:`.LiftedMesh`.

    Parameters
    ----------
    mesh
        The mesh, cut where the depth jumps. If it repeats, its mean slope is known.
    clean
    grid
        The tiles in which equations are assembled and solved.
    noises
        (C, 2) degrees and correlation of the noise of each component of the mesh.
    height_noises
        (C, 2) the same with what rounding adds to heights.
    jumps
    prior
        Depths to respect, or None.
    target
        Number of vertices that the decimation was asked for, or None.
    runner
        Its stages below :data:`DECIMATE` were those of the decimation.
    """

    def __init__(
        self,
        mesh: WholeMesh,
        clean: CleanMap,
        grid: TileGrid,
        noises: Float,
        height_noises: Float,
        jumps: Jumps,
        prior: TiledPrior | None,
        target: int | None,
        runner: Runner,
    ) -> None:
        self.mesh, self.jumps, self.prior = mesh, jumps, prior
        self._clean, self._grid, self._noises, self._height_noises = clean, grid, noises, height_noises
        self._normals, self._measured = (level_map(each, mesh.repeats) for each in (clean, clean.source))
        self._runner, self._begun, self._wanted = runner, len(mesh.vertices), target
        mesh.moving = np.ones_like(mesh.torn)
        self._target = max(target or 0, self._begun)
        self._run: Run = runner.run
        self.then_solve("solve", lambda: None)

    @property
    def repeats(self) -> Repeats | None:
        """Directions in which the surface repeats."""
        return self.mesh.repeats

    @property
    def unknown(self) -> Float:
        """Height, or logarithm of the depth."""
        return self.mesh.unknown

    @property
    def component(self) -> Int32:
        """Component of each vertex before the mesh was cut."""
        return self.mesh.component

    @property
    def torn(self) -> Bool:
        """Components that are cut."""
        return self.mesh.torn

    @property
    def moving(self) -> Bool:
        """Components that the next round refines."""
        return self.mesh.moving

    @moving.setter
    def moving(self, moving: Bool) -> None:
        self.mesh.moving = moving

    @property
    def rounds(self) -> list[tuple[int, int]]:
        """Numbers of flips and moves in the rounds of refinement."""
        return [(int(flips), int(moves)) for flips, moves in self.mesh.rounds]

    @property
    def is_placed(self) -> bool:
        """Whether jumps place the parts of the surface."""
        return self.jumps.placement is not None

    @property
    def image(self) -> tuple[Camera, tuple[int, int]]:
        """Camera, rows and columns of the map."""
        return self._clean.camera, self._clean.shape

    @property
    def levels(self) -> Float | None:
        """What has to be added to the unknown of each component (C,) that a prior fixes; None without a prior."""
        return self.mesh.levels if self.prior is not None else None

    @property
    def solver(self) -> WholeMesh:
        """How well the equations were solved."""
        return self.mesh

    def then_solve(self, name: str, change: Callable[[], None]) -> None:
        """Change the mesh, and solve it, unless the result has been kept."""

        def make() -> WholeMesh:
            runner = self._runner.under(f"{name}-")
            self._run = runner.run
            change()
            self._solve(runner)
            return self.mesh

        self.mesh = self._runner.kept(name, make)

    def refine_in_turn(self, turns: range) -> None:
        """Run some rounds on the components that move; bad faces of those that are cut are removed afterwards."""
        mesh, tidied = self.mesh, self.torn if self.is_placed else np.zeros_like(self.torn)
        changes = self._refine(turns, tidied & self.moving)
        mesh.rounds = np.concatenate([mesh.rounds, changes.sum(axis=2)])
        have = np.bincount(mesh.component, minlength=len(mesh.moving))
        mesh.moving = mesh.moving & (changes.sum(axis=1) >= MIN_CHANGE * have).all(axis=0)

    def detach_bad_faces(self) -> None:
        """Cut bad faces off from what the placement holds apart from them, and make up for vertices that are lost."""
        mesh, faces = self.mesh, TileFaces.of(self.screen(), self._grid)

        def arguments(tile: int) -> tuple[Any, ...]:
            part = faces.part(tile)
            return self._normals, part, mesh.unknown[faces.vertices(tile)], self._placement_at(part)

        found = self._run("detach", detached_edges, LazyArguments(faces.tiles, arguments))
        mesh.cut_again(np.concatenate([faces.vertices(tile)[found[tile]["edges"]] for tile in faces.tiles]))
        self._fill_up(np.zeros_like(self.torn), self._target - math.ceil(RESERVE * self._target))

    def finish(self, tidies: bool) -> None:
        """Remove bad faces if ``tidies``, and add vertices up to the number asked for."""
        self._run = self._runner.under("tidy-").run
        self._fill_up(np.full_like(self.torn, tidies), self._target)

    def _fill_up(self, tidied: Bool, target: int) -> None:
        """Remove bad faces of some components, and add vertices."""
        if tidied.any() or len(self.mesh.vertices) < target:
            self.moving = np.ones_like(self.torn)
            self._refine(range(0), tidied, target)

    def _solve(self, runner: Runner) -> None:
        """Solve for the unknown of the mesh, and estimate its error.

        Components that a prior fixes are relative to the levels of the mesh.
        """
        mesh, run, repeats = self.mesh, runner.run, self.repeats
        faces = TileFaces.of(self.screen(), self._grid, repeats)

        def arguments(tile: int) -> tuple[Any, ...]:
            part = faces.part(tile)
            return self._normals, part, self._placement_at(part)

        equations = run("means", tile_equations, LazyArguments(faces.tiles, arguments), work=0.04)
        centroids, held, values = faces.gathered(equations, "centroids", "held", "values")
        pairs, weights, steps = (np.concatenate([equations[t][name] for t in faces.tiles]) for name in _EDGES)
        edges = Elements.of_edges(pairs, weights, steps, len(faces.tile))
        tree, scale = merge_levels(*self._grid.counts), self._clean.camera.pixel_length
        elements = edges if held is None else edges.holding(held, values)
        centroids = centroids if repeats is None else repeats.folded(centroids)
        solution = TiledSystem(Partition(elements, faces.tile, centroids), tree, run).solve(max_error=MAX_ERROR * scale)
        offsets, error = solution.x, solution.error
        if self.prior is not None:
            terms = self.prior.terms(faces, equations, offsets, run)
            connected = faces.mesh.components[mesh.faces[:, 0]]
            normals = TiledEquations(edges, connected, faces.tile, centroids, tree, runner.under("prior-").run)
            component = mesh.component[mesh.faces[:, 0]]
            found = corrected(offsets, normals, terms, component, self.is_placed, MAX_ERROR * scale)
            mesh.levels, offsets, error = found.levels, found.x, max(error, found.error)
        mesh.unknown, mesh.error = self._heights(faces, equations, offsets, run), np.array(error / scale)
        if self.prior is not None and self.prior.largest_weight > STIFF:
            plain = self._heights(faces, equations, solution.x, runner.under("plain-").run)
            mesh.bent = np.array(steep_share(faces.mesh, (mesh.unknown - plain) / scale, component))

    def _heights(self, faces: TileFaces, equations: Mapping[int, Arrays], offsets: Float, run: Run) -> Float:
        """Return the unknown (N,) of the vertices of the mesh from the offsets (M,) of its faces."""

        def arguments(tile: int) -> tuple[Any, ...]:
            part = faces.part(tile)
            return self._normals, part, equations[tile], offsets[part.numbers]

        found = run("heights", tile_heights, LazyArguments(faces.tiles, arguments))
        unknown = np.empty(len(self.mesh.vertices))
        for tile in faces.tiles:
            vertices = faces.vertices(tile)
            own = faces.owner[vertices] == tile
            unknown[vertices[own]] = found[tile]["unknown"][own]
        mesh = self.mesh.wrapped()
        return unknown[mesh.first_twins] if isinstance(mesh, RepeatingMesh) else unknown

    def _placement_at(self, part: TileMesh) -> Placement | None:
        """Return the placement of the faces of a part, relative to the corner of its window."""
        if self.jumps.placement is None:
            return None
        area = part.window(self._normals)
        return self.jumps.placement.window(area.rows, area.columns)

    def _refine(self, turns: range, tidied: Bool, target: int | None = None) -> Int:
        """Refine the vertices of moving components once, tile by tile, then along seams, then at crossings.

        Bad faces of the ``tidied`` components (C,) are removed afterwards. With a target, vertices are added in the
        tiles to reach it. Return the flips and moves (R, 2, C) of each round.
        """
        mesh = self.mesh
        mesh.waiting = ~mesh.fixed & mesh.moving[mesh.component]
        changes = np.zeros((len(turns), 2, len(mesh.moving)), np.int64)
        for stage in ZONES:
            pieces, components = dict(mesh.pieces(_zones(mesh, self._grid, stage))), {}
            for key, piece in pieces.items():
                components[key], local = np.unique(piece.component, return_inverse=True)
                pieces[key] = replace(piece, component=local.astype(np.int32))
            added = shares(pieces, target - len(mesh.vertices)) if stage == "tiles" and target else {}
            arguments = {
                key: (self._normals, piece, self._noises[own, 0], turns, tidied[own], added.get(key, 0))
                for (key, piece), own in zip(pieces.items(), components.values(), strict=True)
            }
            results: list[tuple[Piece, Arrays]] = []
            share = 0.12 if stage == "tiles" else 0.0
            for key, found in self._run(stage, refine_piece, arguments, work=share).items():
                own = components[key]
                results.append((pieces[key], {**found, "component": own[found["component"]].astype(np.int32)}))
                changes[..., own] += found["changes"]
            mesh.replace(results)
        return changes

    def screen(self) -> ScreenMesh:
        """Return the mesh on the screen."""
        return self.mesh.screen()

    def fixed_faces(self, mesh: ScreenMesh) -> Int32 | None:
        """Return the faces (K,) of the mesh that a prior fixes; None without a prior."""
        if self.prior is None:
            return None
        return self.prior.on_faces(mesh, self._runner.under("fixed-").run).touched.astype(np.int32)

    def coverage(self, mesh: ScreenMesh) -> Coverage:
        """Return how the mesh agrees with the foreground."""
        clean, flipped = self._clean, self.mesh.flipped
        areas, foreground = clean.components.areas, int(clean.components.areas.sum())
        row, column = np.divmod(flipped, clean.shape[1])
        own = by_tile(self._grid.tile_of(np.stack([column, row], axis=1).astype(np.float64)))
        arguments = {key: (clean, self._grid.tile(key), flipped[chosen]) for key, chosen in own.items()}
        found = self._runner.run("coverage", tile_coverage, arguments)
        uncovered = np.zeros(len(areas), np.int64)
        for each in found.values():
            uncovered += np.bincount(each["components"], minlength=len(areas))
        spilled = sum(int(each["spilled"]) for each in found.values())
        return Coverage(foreground, int(uncovered.sum()), spilled, int(np.count_nonzero(uncovered == areas)))

    def height_noise(self, mesh: ScreenMesh, unknown: Float) -> HeightNoise:
        """Return what the uncertainty of heights depends on."""
        noises = noises_of_parts(mesh, self.component, self._height_noises)
        of_face, faces = noise_of_faces(mesh, noises), TileFaces.of(mesh, self._grid)

        def arguments(tile: int) -> tuple[Any, ...]:
            values = unknown[faces.vertices(tile, rings=False)]
            return self._measured, faces.part(tile, rings=False), values, of_face[faces.own(tile)]

        found = self._runner.run("deviations", tile_variances, LazyArguments(faces.tiles, arguments))
        held = None if self.prior is None else self.prior.held(mesh, self._runner.under("held-").run)
        twins = None if self.repeats is None else self.repeats.wrap(mesh).first_twins
        return height_noise_of(mesh, noises, tuple(faces.gathered(found, "whole", "curved")), "facets", held, twins)

    def seconds(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return wall and CPU seconds of the integration by stage."""
        return self._runner.seconds_by_stage(DECIMATE, among=False)

    def decimation(self) -> Decimation:
        """Return the report on the decimation of all pieces."""
        mesh, target = self.mesh, self._wanted
        collapses, flips, moves = (int(count) for count in mesh.done[:3])
        total = Round(self._begun, collapses, flips, moves, float(mesh.done[3]))
        reasons = [] if target is None else list(self._why_missed(target))
        seconds, dropped = self._runner.seconds_by_stage(DECIMATE), int(mesh.dropped_lines)
        return Decimation((total,), target, not reasons, *seconds, dropped, "; ".join(reasons))

    def _why_missed(self, target: int) -> Sequence[str]:
        """Explain why the mesh does not have the number of vertices that was asked for; empty if it has."""
        count = len(self.mesh.vertices)
        if count == target:
            return []
        if count < target:
            return ["the foreground has no use for more"]
        reasons = ["lines along which depth jumps are kept"] if self.jumps.lines else needs_of_shape(self.screen())
        return [*reasons, "tiles keep vertices along their seams: larger tiles come closer"]


def _zones(mesh: WholeMesh, grid: TileGrid, stage: str) -> Int32:
    """Return the zone (N,) of each vertex that is free in a stage, −1 for others."""
    zone = np.full(len(mesh.vertices), -1, np.int32)
    waiting = np.flatnonzero(mesh.waiting)
    points = mesh.vertices[waiting]
    if stage == "tiles":
        zone[waiting] = np.where(grid.in_collar(points), -1, grid.tile_of(points))
    elif stage == "strips":
        zone[waiting] = grid.strip_of(points)
    else:
        zone[waiting] = grid.crossing_of(points)
        if stage == "crossings":
            zone[(zone >= 0) & ~grid.is_even(zone)] = -1
    return zone
