"""A mesh with the depth of its vertices, which is refined, tidied and solved again: a piece, and a whole one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Bool, Float, Int, Int32
from normalmesh.decimation.decimated_mesh import DecimatedMesh
from normalmesh.decimation.rounds import RESERVE
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.facets.robust_weights import RobustWeights
from normalmesh.integration._tidying import BAD_ANGLE, EARLY_BAD_ANGLE, MIN_BAD
from normalmesh.integration.mesh_solver import SAMPLES, MeshSolver
from normalmesh.integration.refinement import refine
from normalmesh.integration.refinement_rounds import MIN_CHANGE
from normalmesh.integration.splitting import split_worst
from normalmesh.integration.tidying import Tidied, judged, tidy
from normalmesh.jumps.placement import placed_offsets
from normalmesh.mesh._closed_mesh import BOUNDARY, LOCKED
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.cut_mesh import CutMesh, boundary_vertices
from normalmesh.mesh.jumps import Placement
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.monitor import Monitor

#: The stages of an integration whose time is measured.
STAGES = ("noise", "jumps", "solve", "refine", "tidy")
#: Their work, in solves, for the progress: that of a round of refinement, for instance.
NOISE_WORK, JUMPS_WORK, SOLVE_WORK, REFINE_WORK = 0.5, 0.5, 1.0, 1.5
#: Strain (px) from which on a bad face is cut off from a neighbour.
DETACHED = 2.0


@dataclass(eq=False)
class MeshPiece:
    """A piece of a mesh, or a whole one, with the unknown at its vertices: what refinement changes.

    Attributes
    ----------
    mesh : ClosedMesh
        The mesh, cut where the depth jumps.
    unknown : (N,)
        Height, or logarithm of the depth, at its vertices.
    component : (N,) int32
        Connected component of each vertex before the mesh was cut.
    locked : (N,) bool
        Vertices that stay where they are.
    noise : (C,)
        Noise of the normals of each component, in degrees.
    normal_map : NormalMap
        Normals to fit, denoised as far as possible.
    """

    mesh: ClosedMesh
    unknown: Float
    component: Int32
    locked: Bool
    noise: Float
    normal_map: NormalMap

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return len(self.mesh.vertices)

    def by_component(self, counts: Int) -> Int:
        """Return the sums (C,) over components of counts (N,) at vertices."""
        return np.bincount(self.component, counts, len(self.noise)).astype(np.int64)

    @contextmanager
    def _only(self, chosen: Bool | None) -> Iterator[None]:
        """Let components other than the chosen ones (C,) stay as they are inside."""
        if chosen is None or chosen.all():
            yield
            return
        self._lock(self.locked | ~chosen[self.component])
        yield
        self._lock(self.locked)

    def _lock(self, locked: Bool) -> None:
        """Set the flags of the locked vertices (N,) of the mesh."""
        self.mesh.flags[:] = np.where(locked, self.mesh.flags | LOCKED, self.mesh.flags & BOUNDARY)

    def refine(self, turn: int, chosen: Bool | None = None) -> tuple[Int, Int]:
        """Flip edges and move vertices of the chosen components (C,), or of all, as :func:`.refinement.refine` does.

        Return the numbers of flips and moves (C,) in each component.
        """
        with self._only(chosen):
            changes = refine(self.mesh, self.unknown, self.normal_map, turn, self.noise[self.component])
        return self.by_component(changes[0]), self.by_component(changes[1])

    def tidy(self, chosen: Bool | None = None, bad_angle: float = BAD_ANGLE) -> Tidied:
        """Remove bad faces of the chosen components (C,), or of all."""
        with self._only(chosen):
            tidied = tidy(self.mesh, self.unknown, self.normal_map, bad_angle)
            self.mesh, self.unknown = tidied.mesh, tidied.unknown
            self.component, self.locked = self.component[tidied.kept], self.locked[tidied.kept]
        return tidied

    def split(self, count: int, own: Int | None = None, costs: Float | None = None) -> None:
        """Add vertices where faces fit worst; see :func:`.split_worst`."""
        self.unknown, self.component = split_worst(
            self.mesh, self.unknown, self.normal_map, count, self.component, own, costs
        )
        self.locked = np.append(self.locked, np.zeros(self.vertices - len(self.locked), np.bool_))


class SolvedMesh(MeshPiece):
    """A whole mesh that is solved, refined, tidied and solved again.

    Parameters
    ----------
    mesh
        The mesh before it was cut. If it was decimated, its locked vertices stay.
    cut : CutMesh
        The mesh, cut where the depth jumps.
    solver : MeshSolver
    noise
        (C,) noise of the normals of each component, in degrees, or one for all.
    target
        Number of vertices that the surface should have; by default each component keeps its own number.
    monitor
        Measures the stages ``solve``, ``refine`` and ``tidy``.

    Attributes
    ----------
    torn : (C,) bool
        Components that are cut.
    asked : (C,) int64
        Number of vertices that each component has after cutting, and should have in the end.
    moving, rounds
        See :class:`.RefinedMesh` and :class:`.LiftedMesh`.
    """

    def __init__(
        self,
        mesh: ScreenMesh,
        cut: CutMesh,
        solver: MeshSolver,
        noise: Float | float = 0.0,
        target: int | None = None,
        monitor: Monitor | None = None,
    ) -> None:
        locked = np.zeros(len(cut.origin), np.bool_)
        if isinstance(mesh, DecimatedMesh):
            locked |= mesh.locked[cut.origin]
        closed = ClosedMesh.from_screen(cut.mesh, solver.normal_map.shape, locked)
        self.asked = np.bincount(cut.component)
        self.torn = np.zeros(len(self.asked), np.bool_)
        self.torn[cut.component[len(mesh.vertices) :]] = True
        self.solver, self.target = solver, target
        self.monitor = Monitor(stages=STAGES) if monitor is None else monitor
        self.moving, self.rounds = np.ones_like(self.torn), list[tuple[int, int]]()
        unknown = solver.solve(cut.mesh, cut.component)
        noise = np.full(len(self.asked), noise)
        super().__init__(closed, unknown, cut.component, locked, noise, solver.normal_map)

    @property
    def is_placed(self) -> bool:
        """Whether jumps place the parts of the surface."""
        return self.solver.placement is not None

    def solve(self) -> None:
        """Solve for the unknown of the mesh as it is."""
        self.unknown = self.solver.solve(self.mesh.to_screen(), self.component)

    def then_solve(self, name: str, change: Callable[[], None]) -> None:
        """Change the mesh, and solve it."""
        change()
        with self.monitor.stage("solve", SOLVE_WORK):
            self.solve()

    def refine_in_turn(self, turns: range) -> None:
        """Run some rounds on the components that move; bad faces of those that are cut are removed afterwards."""
        began = self.moving
        for turn in turns:
            with self.monitor.stage("refine", REFINE_WORK):
                flips, moves = self.refine(turn, self.moving)
            self.rounds.append((int(flips.sum()), int(moves.sum())))
            have = self.by_component(np.ones(self.vertices, np.int64))
            self.moving = self.moving & (flips + moves >= MIN_CHANGE * have)
            if not self.moving.any():
                break
        if self.is_placed:
            with self.monitor.timed("tidy"):
                self.tidy(began & self.torn, EARLY_BAD_ANGLE)

    def detach_bad_faces(self) -> None:
        """Cut bad faces off from what the placement holds apart from them, and make up for vertices that are lost."""
        with self.monitor.timed("tidy"):
            self.detach()
            self.fill_up(RESERVE)

    def finish(self, tidies: bool) -> None:
        """Remove bad faces if ``tidies``, and add vertices up to the number asked for."""
        with self.monitor.timed("tidy"):
            costs = self.tidy().costs if tidies else None
            self.fill_up(costs=costs)

    def detach(self) -> bool:
        """Cut bad faces at the boundary off from what the placement holds apart from them; return whether any was."""
        assert self.solver.placement is not None
        bad = judged(self.mesh, self.unknown, self.normal_map, EARLY_BAD_ANGLE).bad > MIN_BAD
        if not bad.any():
            return False
        mesh = self.mesh.to_screen()
        system = FacetSystem.of(FaceMeans.of(mesh, self.normal_map, SAMPLES))
        apart = edges_to_detach(system, bad, self.solver.placement, self.normal_map.shape, boundary_vertices(mesh))
        if not apart.any():
            return False
        cut = CutMesh.along(mesh, system.ends[apart])
        self.locked[system.ends[apart]] = True
        self.locked = self.locked[cut.origin]
        self.mesh = ClosedMesh.from_screen(cut.mesh, self.normal_map.shape, self.locked)
        self.unknown, self.component = self.unknown[cut.origin], self.component[cut.origin]
        return True

    def fill_up(self, spared: float = 0.0, costs: Float | None = None) -> None:
        """Split edges where faces fit worst: each component gets back the vertices that it has lost.

        With a target for all components together, they share what they lack of it then. ``spared`` is a share of the
        vertices that are not added yet. ``costs`` (M,) are those of the faces, if they are known.
        """
        have, target = self.by_component(np.ones(self.vertices, np.int64)), self.target
        own = np.maximum(self.asked - np.ceil(spared * self.asked).astype(np.int64) - have, 0)
        count = int(own.sum()) if target is None else target - math.ceil(spared * target) - self.vertices
        if count > 0:
            self.split(count, own, costs)


def edges_to_detach(
    system: FacetSystem, bad: Bool, placement: Placement, shape: tuple[int, int], on_boundary: Bool
) -> Bool:
    """Return the edges (E,) at the boundary (N,) between bad faces (M,) and what a placement holds apart from them."""
    offsets, areas = placed_offsets(placement, system.means, shape)
    strain = RobustWeights(system).strain(offsets)
    apart: Bool = (strain > DETACHED) & (areas > 0)[system.pairs].all(axis=1) & bad[system.pairs].any(axis=1)
    apart &= on_boundary[system.ends].any(axis=1)
    # A face that would be cut off on all sides keeps its least strained edge.
    edges, outer = system.face_edges, system.face_edges < 0
    alone = np.flatnonzero((apart[edges] | outer).all(axis=1) & ~outer.all(axis=1))
    least = np.where(outer, np.inf, strain[edges])[alone].argmin(axis=1)
    apart[edges[alone, least]] = False
    return apart
