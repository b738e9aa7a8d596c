"""MeshInPieces: a mesh that is solved and refined piece by piece, with all that its surface is made of.

There is one exact solve of all tiles, then refinement of tiles, strips and crossings, in turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import attrgetter

import numpy as np

from normalmesh.array_types import Bool, Float, Int, Int32
from normalmesh.decimation.rounds import RESERVE, needs_of_shape
from normalmesh.engine.array_file import Arrays, Run
from normalmesh.engine.engine import Engine
from normalmesh.integration.height_noise import height_noise_of, noise_of_faces, noises_of_parts
from normalmesh.integration.mesh_solver import MAX_ERROR, STIFF, steep_share
from normalmesh.integration.prior_correction import corrected
from normalmesh.integration.refinement_rounds import MIN_CHANGE
from normalmesh.mesh.coverage import Coverage
from normalmesh.mesh.jumps import Jumps, Placement
from normalmesh.mesh.origin import Decimation, HeightNoise, Round
from normalmesh.mesh.repeats import RepeatingMesh
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.camera import Camera
from normalmesh.pieces.clean_map import CleanMap, at_points, labels_at
from normalmesh.pieces.elimination import TiledEquations, TiledSystem, merge_levels
from normalmesh.pieces.integration_tasks import (
    detached_edges,
    refine_piece,
    tile_equations,
    tile_heights,
    tile_variances,
)
from normalmesh.pieces.repeating_map import level_map
from normalmesh.pieces.tile_elements import Elements, Partition
from normalmesh.pieces.tile_faces import TileFaces, TileMesh
from normalmesh.pieces.tile_grid import TileGrid
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
    clean, grid
        The map, and the tiles in which equations are assembled and solved.
    noises, height_noises
        (C, 2) degrees and correlation of the noise of each component of the mesh, and with what rounding adds.
    jumps, prior
        Depths to respect, or None.
    target
        Number of vertices that the decimation was asked for, or None.
    engine
        Its stages below :data:`DECIMATE` were those of the decimation.
    """

    # What the mesh knows: refinement and the surface ask for it.
    unknown, component = property(attrgetter("mesh.unknown")), property(attrgetter("mesh.component"))
    torn, repeats = property(attrgetter("mesh.torn")), property(attrgetter("mesh.repeats"))
    rounds, solver = property(attrgetter("mesh.rounds")), property(attrgetter("mesh"))

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
        engine: Engine,
    ) -> None:
        self.mesh, self.jumps, self.prior = mesh, jumps, prior
        self._clean, self._grid, self._noises, self._height_noises = clean, grid, noises, height_noises
        self._normals, self._measured = (level_map(each, mesh.repeats) for each in (clean, clean.source))
        self._engine, self._begun, self._wanted = engine, len(mesh.vertices), target
        mesh.moving = np.ones_like(mesh.torn)
        self._target = max(target or 0, self._begun)
        self._run: Run = engine.run
        self.then_solve("solve", lambda: None)

    @property
    def moving(self) -> Bool:
        return self.mesh.moving

    @moving.setter
    def moving(self, moving: Bool) -> None:
        self.mesh.moving = moving

    @property
    def is_placed(self) -> bool:
        return self.jumps.placement is not None

    @property
    def image(self) -> tuple[Camera, tuple[int, int]]:
        return self._clean.camera, self._clean.shape

    @property
    def levels(self) -> Float | None:
        return self.mesh.levels if self.prior is not None else None

    def then_solve(self, name: str, change: Callable[[], None]) -> None:
        """Change the mesh, and solve it, unless the result has been kept."""

        def make() -> WholeMesh:
            engine = self._engine.under(f"{name}-")
            self._run = engine.run
            change()
            self._solve(engine)
            return self.mesh

        self.mesh = self._engine.kept(name, make)

    def refine_in_turn(self, turns: range) -> None:
        mesh, tidied = self.mesh, self.torn if self.is_placed else np.zeros_like(self.torn)
        changes = self._refine(turns, tidied & self.moving)
        mesh.rounds = [*mesh.rounds, *((int(flips), int(moves)) for flips, moves in changes.sum(axis=2))]
        have = np.bincount(mesh.component, minlength=len(mesh.moving))
        mesh.moving = mesh.moving & (changes.sum(axis=1) >= MIN_CHANGE * have).all(axis=0)

    def detach_bad_faces(self) -> None:
        mesh, faces = self.mesh, TileFaces.of(self.screen(), self._grid)
        arguments = self._normals, lambda _, part: (mesh.unknown[part.corners], self._placement_at(part))
        found = faces.ask(self._run, "detach", detached_edges, *arguments)
        mesh.cut_again(np.concatenate([found[tile]["edges"] for tile in faces.tiles]))
        self._fill_up(np.zeros_like(self.torn), self._target - math.ceil(RESERVE * self._target))

    def finish(self, tidies: bool) -> None:
        self._run = self._engine.under("tidy-").run
        self._fill_up(np.full_like(self.torn, tidies), self._target)

    def _fill_up(self, tidied: Bool, target: int) -> None:
        """Remove bad faces of some components, and add vertices."""
        if tidied.any() or len(self.mesh.vertices) < target:
            self.moving = np.ones_like(self.torn)
            self._refine(range(0), tidied, target)

    def _solve(self, engine: Engine) -> None:
        """Solve for the unknown of the mesh, and estimate its error.

        Components that a prior fixes are relative to the levels of the mesh.
        """
        mesh, run, repeats = self.mesh, engine.run, self.repeats
        faces = TileFaces.of(self.screen(), self._grid, repeats)
        arguments = tile_equations, self._normals, lambda _, part: (self._placement_at(part),)
        equations = faces.ask(run, "means", *arguments, work=0.04)
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
            normals = TiledEquations(edges, connected, faces.tile, centroids, tree, engine.under("prior-").run)
            component = mesh.component[mesh.faces[:, 0]]
            found = corrected(offsets, normals, terms, component, self.is_placed, MAX_ERROR * scale)
            mesh.levels, offsets, error = found.levels, found.x, max(error, found.error)
        mesh.unknown, mesh.error = self._heights(faces, equations, offsets, run), error / scale
        if self.prior is not None and self.prior.largest_weight > STIFF:
            plain = self._heights(faces, equations, solution.x, engine.under("plain-").run)
            mesh.bent = steep_share(faces.mesh, (mesh.unknown - plain) / scale, component)

    def _heights(self, faces: TileFaces, equations: Mapping[int, Arrays], offsets: Float, run: Run) -> Float:
        """Return the unknown (N,) of the vertices of the mesh from the offsets (M,) of its faces."""
        arguments = tile_heights, self._normals, lambda tile, part: (equations[tile], offsets[part.numbers])
        found = faces.ask(run, "heights", *arguments)
        unknown = np.empty(len(self.mesh.vertices))
        for tile, each in found.items():
            own = faces.owner[vertices := each["vertices"]] == tile
            unknown[vertices[own]] = each["unknown"][own]
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
            pieces, components = dict(mesh.pieces(mesh.waiting_zones(self._grid, stage))), {}
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
        return self.mesh.screen()

    def fixed_faces(self, mesh: ScreenMesh) -> Int32 | None:
        if self.prior is None:
            return None
        return self.prior.on_faces(mesh, self._engine.under("fixed-").run).touched.astype(np.int32)

    def coverage(self, mesh: ScreenMesh) -> Coverage:
        areas, pixels = self._clean.components.areas, np.divmod(self.mesh.flipped, self._clean.shape[1])
        points, area = np.stack(pixels[::-1], axis=1) + 0.5, self._grid.area
        labels = at_points(self._clean, self._grid, points, "coverage", labels_at, self._engine.run)
        labels[~((points > area.corner) & (points < area.corner + area.shape[::-1])).all(axis=1)] = 0
        counts = np.bincount(labels, minlength=len(areas) + 1)
        lost = int(np.count_nonzero(counts[1:] == areas))
        return Coverage(int(areas.sum()), int(counts[1:].sum()), int(counts[0]), lost)

    def height_noise(self, mesh: ScreenMesh, unknown: Float) -> HeightNoise:
        noises = noises_of_parts(mesh, self.component, self._height_noises)
        of_face, faces = noise_of_faces(mesh, noises), TileFaces.of(mesh, self._grid)
        arguments = self._measured, lambda _, part: (unknown[part.corners], of_face[part.numbers])
        found = faces.ask(self._engine.run, "deviations", tile_variances, *arguments, rings=False)
        held = None if self.prior is None else self.prior.held(mesh, self._engine.under("held-").run)
        twins = None if self.repeats is None else self.repeats.wrap(mesh).first_twins
        return height_noise_of(mesh, noises, tuple(faces.gathered(found, "whole", "curved")), "facets", held, twins)

    def seconds(self) -> tuple[dict[str, float], dict[str, float]]:
        return self._engine.seconds_by_stage(DECIMATE, among=False)

    def decimation(self) -> Decimation:
        mesh, target = self.mesh, self._wanted
        collapses, flips, moves = (int(count) for count in mesh.done[:3])
        total = Round(self._begun, collapses, flips, moves, float(mesh.done[3]))
        reasons = [] if target is None else self._why_missed(target)
        seconds, dropped = self._engine.seconds_by_stage(DECIMATE), mesh.dropped_lines
        return Decimation((total,), target, not reasons, *seconds, dropped, "; ".join(reasons))

    def _why_missed(self, target: int) -> list[str]:
        """Explain why the mesh does not have the number of vertices that was asked for; empty if it has."""
        count = len(self.mesh.vertices)
        if count == target:
            return []
        if count < target:
            return ["the foreground has no use for more"]
        reasons = ["lines along which depth jumps are kept"] if self.jumps.lines else needs_of_shape(self.screen())
        return [*reasons, "tiles keep vertices along their seams: larger tiles come closer"]
