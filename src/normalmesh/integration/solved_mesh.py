"""SolvedMesh: a mesh with the depth of its vertices, which is refined, tidied and solved again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Bool, Float, Int, Int32
from normalmesh.decimation.decimated_mesh import DecimatedMesh
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.facets.robust_weights import RobustWeights
from normalmesh.integration._tidying import MIN_BAD
from normalmesh.integration.mesh_solver import SAMPLES, MeshSolver
from normalmesh.integration.refinement import refine
from normalmesh.integration.splitting import split_worst
from normalmesh.integration.tidying import Tidied, judged, tidy
from normalmesh.jumps.placement import placed_offsets
from normalmesh.mesh._closed_mesh import BOUNDARY, LOCKED
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.cut_mesh import CutMesh, boundary_vertices
from normalmesh.mesh.jumps import Placement
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap

#: Strain (px) from which on a bad face is cut off from a neighbour.
DETACHED = 2.0


@dataclass(eq=False)
class SolvedMesh:
    """A mesh under refinement.

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
    torn : (C,) bool
        Components that are cut.
    asked : (C,) int64
        Number of vertices that each component has after cutting, and should have in the end.
    noise : (C,)
        Noise of the normals of each component, in degrees.
    solver : MeshSolver
    """

    mesh: ClosedMesh
    unknown: Float
    component: Int32
    locked: Bool
    torn: Bool
    asked: Int
    noise: Float
    solver: MeshSolver

    @classmethod
    def of(cls, mesh: ScreenMesh, cut: CutMesh, solver: MeshSolver, noise: Float | float = 0.0) -> SolvedMesh:
        """Solve a mesh that was cut, with the noise (C,) of its components; locked vertices of a decimated one stay."""
        locked = np.zeros(len(cut.origin), np.bool_)
        if isinstance(mesh, DecimatedMesh):
            locked |= mesh.locked[cut.origin]
        closed = ClosedMesh.from_screen(cut.mesh, solver.normal_map.shape, locked)
        asked = np.bincount(cut.component)
        torn = np.zeros(len(asked), np.bool_)
        torn[cut.component[len(mesh.vertices) :]] = True
        unknown = solver.solve(cut.mesh, cut.component)
        return cls(closed, unknown, cut.component, locked, torn, asked, np.full(len(asked), noise), solver)

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return len(self.mesh.vertices)

    @property
    def normal_map(self) -> NormalMap:
        """The normals to fit."""
        return self.solver.normal_map

    def by_component(self, counts: Int) -> Int:
        """Return the sums (C,) over components of counts (N,) at vertices."""
        return np.bincount(self.component, counts, len(self.asked)).astype(np.int64)

    @contextmanager
    def _only(self, chosen: Bool) -> Iterator[None]:
        """Let components other than the chosen ones (C,) stay as they are inside."""
        if chosen.all():
            yield
            return
        self._lock(self.locked | ~chosen[self.component])
        yield
        self._lock(self.locked)

    def _lock(self, locked: Bool) -> None:
        """Set the flags of the locked vertices (N,) of the mesh."""
        self.mesh.flags[:] = np.where(locked, self.mesh.flags | LOCKED, self.mesh.flags & BOUNDARY)

    def solve(self) -> None:
        """Solve for the unknown of the mesh as it is."""
        self.unknown = self.solver.solve(self.mesh.to_screen(), self.component)

    def refine(self, turn: int, chosen: Bool | None = None) -> tuple[Int, Int]:
        """Flip edges and move vertices of the chosen components (C,), or of all, as :func:`.refinement.refine` does.

        Return the numbers of flips and moves (C,) in each component.
        """
        with self._only(np.ones(len(self.asked), np.bool_) if chosen is None else chosen):
            changes = refine(self.mesh, self.unknown, self.normal_map, turn, self.noise[self.component])
        return self.by_component(changes[0]), self.by_component(changes[1])

    def tidy(self, chosen: Bool | None = None) -> Float | None:
        """Remove bad faces of the chosen components (C,), or of all; return the costs (M,) of the faces if known."""
        with self._only(np.ones(len(self.asked), np.bool_) if chosen is None else chosen):
            tidied = tidy(self.mesh, self.unknown, self.normal_map)
            self._take(tidied)
        return tidied.costs

    def _take(self, tidied: Tidied) -> None:
        """Take the mesh that was tidied in the place of the present one."""
        self.mesh, self.unknown = tidied.mesh, tidied.unknown
        self.component, self.locked = self.component[tidied.kept], self.locked[tidied.kept]

    def detach(self, placement: Placement) -> bool:
        """Cut bad faces at the boundary off from neighbours that a placement holds apart; return whether any was."""
        bad = judged(self.mesh, self.unknown, self.normal_map).bad > MIN_BAD
        if not bad.any():
            return False
        mesh = self.mesh.to_screen()
        system = FacetSystem.of(FaceMeans.of(mesh, self.normal_map, SAMPLES))
        apart = edges_to_detach(system, bad, placement, self.normal_map.shape, boundary_vertices(mesh))
        if not apart.any():
            return False
        cut = CutMesh.along(mesh, system.ends[apart])
        self.locked[system.ends[apart]] = True
        self.locked = self.locked[cut.origin]
        self.mesh = ClosedMesh.from_screen(cut.mesh, self.normal_map.shape, self.locked)
        self.unknown, self.component = self.unknown[cut.origin], self.component[cut.origin]
        return True

    def fill_up(self, target: int | None = None, spared: float = 0.0, costs: Float | None = None) -> None:
        """Split edges where faces fit worst: each component gets back the vertices that it has lost.

        With a target for all components together, they share what they lack of it then. ``spared`` is a share of the
        vertices that are not added yet. ``costs`` (M,) are those of the faces, if they are known.
        """
        have = self.by_component(np.ones(self.vertices, np.int64))
        own = np.maximum(self.asked - np.ceil(spared * self.asked).astype(np.int64) - have, 0)
        count = int(own.sum()) if target is None else target - math.ceil(spared * target) - self.vertices
        if count <= 0:
            return
        self.unknown, self.component = split_worst(
            self.mesh, self.unknown, self.normal_map, count, self.component, own, costs
        )
        self.locked = np.append(self.locked, np.zeros(self.vertices - len(self.locked), np.bool_))


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
