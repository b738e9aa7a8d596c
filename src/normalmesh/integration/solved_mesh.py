"""SolvedMesh: a mesh with the depth of its vertices, which is refined, tidied and solved again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.decimation.decimated_mesh import DecimatedMesh
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.facets.robust_weights import RobustWeights
from normalmesh.integration._tidying import MIN_BAD
from normalmesh.integration.mesh_solver import SAMPLES, MeshSolver
from normalmesh.integration.refinement import refine
from normalmesh.integration.splitting import split_worst
from normalmesh.integration.tidying import judged, tidy
from normalmesh.jumps.placement import placed_offsets
from normalmesh.mesh._closed_mesh import BOUNDARY, LOCKED
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.cut_mesh import CutMesh, boundary_vertices
from normalmesh.mesh.jumps import Placement
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap

Float = NDArray[np.float64]

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
    solver : MeshSolver
    """

    mesh: ClosedMesh
    unknown: Float
    component: NDArray[np.int32]
    locked: NDArray[np.bool_]
    torn: NDArray[np.bool_]
    solver: MeshSolver

    @classmethod
    def of(cls, mesh: ScreenMesh, cut: CutMesh, solver: MeshSolver) -> SolvedMesh:
        """Solve a mesh that was cut; locked vertices of a decimated one stay."""
        locked = np.zeros(len(cut.origin), np.bool_)
        if isinstance(mesh, DecimatedMesh):
            locked |= mesh.locked[cut.origin]
        closed = ClosedMesh.from_screen(cut.mesh, solver.normal_map.shape, locked)
        torn = np.zeros(int(cut.component.max()) + 1, np.bool_)
        torn[cut.component[len(mesh.vertices) :]] = True
        return cls(closed, solver.solve(cut.mesh, cut.component), cut.component, locked, torn, solver)

    @property
    def vertices(self) -> int:
        """Number of vertices."""
        return len(self.mesh.vertices)

    @property
    def normal_map(self) -> NormalMap:
        """The normals to fit."""
        return self.solver.normal_map

    @contextmanager
    def only_torn(self) -> Iterator[None]:
        """Let components that are not cut stay as they are inside."""
        self._lock(self.locked | ~self.torn[self.component])
        yield
        self._lock(self.locked)

    def _lock(self, locked: NDArray[np.bool_]) -> None:
        """Set the flags of the locked vertices (N,) of the mesh."""
        self.mesh.flags[:] = np.where(locked, self.mesh.flags | LOCKED, self.mesh.flags & BOUNDARY)

    def solve(self) -> None:
        """Solve for the unknown of the mesh as it is."""
        self.unknown = self.solver.solve(self.mesh.to_screen(), self.component)

    def refine(self, turn: int, noise: float) -> tuple[int, int]:
        """Flip edges and move vertices, as :func:`.refinement.refine` does."""
        return refine(self.mesh, self.unknown, self.normal_map, turn, noise)

    def tidy(self) -> bool:
        """Remove bad faces; return whether anything changed."""
        tidied = tidy(self.mesh, self.unknown, self.normal_map)
        self.mesh, self.unknown = tidied.mesh, tidied.unknown
        self.component, self.locked = self.component[tidied.kept], self.locked[tidied.kept]
        return tidied.changes > 0

    def detach(self, placement: Placement) -> bool:
        """Cut bad faces at the boundary off from neighbours that a placement holds apart; return whether any was."""
        bad = judged(self.mesh, self.unknown, self.normal_map).bad > MIN_BAD
        if not bad.any():
            return False
        mesh = self.mesh.to_screen()
        system = FacetSystem.of(FaceMeans.of(mesh, self.normal_map, SAMPLES))
        offsets, areas = placed_offsets(placement, system.means, self.normal_map.shape)
        strain = RobustWeights(system).strain(offsets)
        apart = (strain > DETACHED) & (areas > 0)[system.pairs].all(axis=1) & bad[system.pairs].any(axis=1)
        apart &= boundary_vertices(mesh)[system.ends].any(axis=1)
        # A face that would be cut off on all sides keeps its least strained edge.
        edges, outer = system.face_edges, system.face_edges < 0
        alone = np.flatnonzero((apart[edges] | outer).all(axis=1) & ~outer.all(axis=1))
        least = np.where(outer, np.inf, strain[edges])[alone].argmin(axis=1)
        apart[edges[alone, least]] = False
        if not apart.any():
            return False
        cut = CutMesh.along(mesh, system.ends[apart])
        self.locked[system.ends[apart]] = True
        self.locked = self.locked[cut.origin]
        self.mesh = ClosedMesh.from_screen(cut.mesh, self.normal_map.shape, self.locked)
        self.unknown, self.component = self.unknown[cut.origin], self.component[cut.origin]
        return True

    def fill_up(self, vertices: int) -> None:
        """Split edges where faces fit worst, until there are so many vertices."""
        if vertices <= self.vertices:
            return
        self.unknown = split_worst(self.mesh, self.unknown, self.normal_map, vertices - self.vertices)
        # New vertices belong to the component of their faces.
        faces = self.mesh.faces[: self.mesh.real_faces]
        component = np.full(len(self.unknown), -1, np.int32)
        component[: len(self.component)] = self.component
        while (component < 0).any():
            of_face = component[faces].max(axis=1)
            known = of_face >= 0
            np.maximum.at(component, faces[known], of_face[known, None])
        self.component = component
        self.locked = np.append(self.locked, np.zeros(len(component) - len(self.locked), np.bool_))
