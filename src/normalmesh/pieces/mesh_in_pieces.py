"""MeshInPieces: a mesh that is solved and refined piece by piece, with all that its surface is made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from normalmesh.array_types import Bool, Float, Int32
from normalmesh.decimation.rounds import RESERVE, needs_of_shape
from normalmesh.engine.runner import Runner
from normalmesh.engine.task_arguments import LazyArguments
from normalmesh.integration.height_noise import height_noise_of, noise_of_faces, noises_of_parts
from normalmesh.integration.refinement_rounds import MIN_CHANGE
from normalmesh.integration.uncertainty import with_rounding
from normalmesh.mesh.coverage import Coverage
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.origin import Decimation, HeightNoise, Round
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.camera import Camera
from normalmesh.normals.noise import Noise
from normalmesh.pieces.integration_tasks import Refinement, tile_coverage, tile_variances
from normalmesh.pieces.map_windows import Run
from normalmesh.pieces.tile_faces import TileFaces
from normalmesh.pieces.tiled_integration import PieceSolver, part_of
from normalmesh.pieces.whole_mesh import WholeMesh


@dataclass(frozen=True)
class Report:
    """How a mesh in pieces was decimated.

    Attributes
    ----------
    target
        Number of vertices that was asked for, or None.
    vertices
        Number of vertices when it was cut.
    seconds
        Wall and CPU seconds of its stages.
    """

    target: int | None
    vertices: int
    seconds: tuple[dict[str, float], dict[str, float]]


class MeshInPieces:
    """A mesh in pieces; see :class:`.RefinedMesh` and :class:`.LiftedMesh`.

    Parameters
    ----------
    mesh
        The mesh, cut where the depth jumps.
    solver
    runner
    noises
        (C, 2) degrees and correlation of the noise of each component.
    rounding
        Noise of heights by rounding.
    jumps
    report
    """

    repeats = None

    def __init__(
        self,
        mesh: WholeMesh,
        solver: PieceSolver,
        runner: Runner,
        noises: Float,
        rounding: Noise,
        jumps: Jumps,
        report: Report,
    ) -> None:
        self.pieces, self._runner, self._noises, self._rounding = solver, runner, noises, rounding
        self.jumps, self._report = jumps, report
        self.mesh = mesh
        mesh.moving = np.ones_like(mesh.torn)
        self._target = max(report.target or 0, report.vertices)
        self._run: Run = runner.run
        self.then_solve("solve", lambda: None)

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
        return self.pieces.placement is not None

    @property
    def image(self) -> tuple[Camera, tuple[int, int]]:
        """Camera, rows and columns of the map."""
        return self.pieces.clean.camera, self.pieces.clean.shape

    @property
    def levels(self) -> Float | None:
        """What has to be added to the unknown of each component (C,) that a prior fixes; None without a prior."""
        return self.mesh.levels if self.pieces.prior is not None else None

    @property
    def solver(self) -> WholeMesh:
        """How well the equations were solved."""
        return self.mesh

    def then_solve(self, name: str, change: Callable[[], None]) -> None:
        """Change the mesh, and solve it, unless the result has been kept."""

        def make() -> WholeMesh:
            self._run = self._runner.under(f"{name}-").run
            change()
            self.pieces.solve(self.mesh, self._run)
            return self.mesh

        self.mesh = self._runner.kept(name, make)

    def refine_in_turn(self, turns: range) -> None:
        """Run some rounds on the components that move; bad faces of those that are cut are removed afterwards."""
        mesh, tidied = self.mesh, self.torn if self.is_placed else np.zeros_like(self.torn)
        changes = self.pieces.refine(mesh, Refinement(turns, tidied & self.moving), self._run)
        mesh.rounds = np.concatenate([mesh.rounds, changes.sum(axis=2)])
        have = np.bincount(mesh.component, minlength=len(mesh.moving))
        mesh.moving = mesh.moving & (changes.sum(axis=1) >= MIN_CHANGE * have).all(axis=0)

    def detach_bad_faces(self) -> None:
        """Cut bad faces off from what the placement holds apart from them, and make up for vertices that are lost."""
        self.pieces.detach(self.mesh, self._run)
        self._fill_up(np.zeros_like(self.torn), self._target - math.ceil(RESERVE * self._target))

    def finish(self, tidies: bool) -> None:
        """Remove bad faces if ``tidies``, and add vertices up to the number asked for."""
        self._run = self._runner.under("tidy-").run
        self._fill_up(np.full_like(self.torn, tidies), self._target)

    def _fill_up(self, tidied: Bool, target: int) -> None:
        """Remove bad faces of some components, and add vertices."""
        if tidied.any() or len(self.mesh.vertices) < target:
            self.moving = np.ones_like(self.torn)
            self.pieces.refine(self.mesh, Refinement(range(0), tidied), self._run, target)

    def screen(self) -> ScreenMesh:
        """Return the mesh on the screen."""
        return self.mesh.screen()

    def fixed_faces(self, mesh: ScreenMesh) -> Int32 | None:
        """Return the faces (K,) of the mesh that a prior fixes; None without a prior."""
        prior = self.pieces.prior
        if prior is None:
            return None
        return prior.on_faces(mesh, self._runner.under("fixed-").run).touched.astype(np.int32)

    def coverage(self, mesh: ScreenMesh) -> Coverage:
        """Return how the mesh agrees with the foreground."""
        clean, grid = self.pieces.clean, self.pieces.grid
        areas, foreground = clean.components.areas, int(clean.components.areas.sum())
        row, column = np.divmod(self.mesh.flipped, clean.shape[1])
        tile = grid.tile_of(np.stack([column, row], axis=1).astype(np.float64))
        keys = list(grid.tile_keys())
        own = {int(each): self.mesh.flipped[tile == each] for each in np.unique(tile)}
        arguments = {key: (clean, grid.tile(keys[key]), flipped) for key, flipped in own.items()}
        found = self._runner.run("coverage", tile_coverage, arguments)
        uncovered = np.zeros(len(areas), np.int64)
        for each in found.values():
            uncovered += np.bincount(each["components"], minlength=len(areas))
        spilled = sum(int(each["spilled"]) for each in found.values())
        return Coverage(foreground, int(uncovered.sum()), spilled, int(np.count_nonzero(uncovered == areas)))

    def height_noise(self, mesh: ScreenMesh, unknown: Float) -> HeightNoise:
        """Return what the uncertainty of heights depends on."""
        solver = self.pieces
        noises = noises_of_parts(mesh, self.component, with_rounding(self._noises, self._rounding))
        of_face, faces = noise_of_faces(mesh, noises), TileFaces.of(mesh, solver.grid)

        def arguments(tile: int) -> tuple[Any, ...]:
            own = faces.own(tile)
            return solver.clean.source, part_of(mesh, faces, own), unknown[np.unique(mesh.faces[own])], of_face[own]

        found = self._runner.run("deviations", tile_variances, LazyArguments(faces.tiles, arguments))
        held = None if solver.prior is None else solver.prior.held(mesh, self._runner.under("held-").run)
        return height_noise_of(mesh, noises, tuple(faces.gathered(found, "whole", "curved")), "facets", held)

    def seconds(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return wall and CPU seconds of the integration by stage."""
        seconds = self._runner.seconds, self._runner.cpu_seconds
        wall, cpu = (
            {name: seconds for name, seconds in found.items() if name not in known}
            for found, known in zip(seconds, self._report.seconds, strict=True)
        )
        return wall, cpu

    def decimation(self) -> Decimation:
        """Return the report on the decimation of all pieces."""
        mesh, target = self.mesh, self._report.target
        collapses, flips, moves = (int(count) for count in mesh.done[:3])
        total = Round(self._report.vertices, collapses, flips, moves, float(mesh.done[3]))
        reasons = [] if target is None else list(self._why_missed(target))
        return Decimation(
            (total,), target, not reasons, *self._report.seconds, int(mesh.dropped_lines), "; ".join(reasons)
        )

    def _why_missed(self, target: int) -> Sequence[str]:
        """Explain why the mesh does not have the number of vertices that was asked for; empty if it has."""
        count = len(self.mesh.vertices)
        if count == target:
            return []
        if count < target:
            return ["the foreground has no use for more"]
        reasons = ["lines along which depth jumps are kept"] if self.jumps.lines else needs_of_shape(self.screen())
        return [*reasons, "tiles keep vertices along their seams: larger tiles come closer"]
