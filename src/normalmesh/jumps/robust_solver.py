"""RobustSolver: solves of one facet system whose edges lose their weight where the planes of two faces do not meet.

Weights settle soon on most of a mesh. Solves then are repeated only around the edges whose weights still change, and
all other faces are eliminated once (:class:`.partial_cholesky.PartialCholesky`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from normalmesh.array_types import Bool, Float, Int
from normalmesh.facets.facets import FacetSystem
from normalmesh.facets.robust_weights import RobustWeights
from normalmesh.jumps import _robust_solver
from normalmesh.jumps._robust_solver import StrainedGraph
from normalmesh.runtime.threads import in_parallel
from normalmesh.runtime.workspace import Workspace
from normalmesh.solvers.partial_cholesky import PartialCholesky

#: An edge is still moving if its weight changes by this share of its largest weight: of one-sided, of Cauchy weights.
MOVED, MOVED_CAUCHY = 0.1, 0.2
#: Rings of faces around moving edges that are solved again.
RINGS = 10
#: Faces drop out of later solves only if at least this share of them does.
NARROWER = 0.2
#: Twist (px) at which an edge loses half of its weight.
TWISTED = 0.5
#: Solves in contact at most. Pushes settle in three to eight of them.
CONTACTS = 12
#: Share of its weight that an open edge keeps, so that parts that float stay near.
LOOSE = 1e-6
#: Minimum number of edges or faces for each thread.
GRAIN = 4096


class RobustSolver:
    """Solver for one facet system with changing weights.

    Parameters
    ----------
    system
    workspace
        Memory of the factor, shared with earlier solvers.

    Attributes
    ----------
    offsets : (M,)
        Offsets of the faces, of the last solve.
    strain : (E,)
        Strains of the edges in px: the gap between two planes in the middle of their edge, perpendicular to them.
    twist : (E,)
        Root mean square, in px, by which planes that meet in the middle of their edge miss each other along it. It does
        not depend on the offsets.
    weights : (E,)
        Weights of the last solve.
    """

    def __init__(self, system: FacetSystem, workspace: Workspace) -> None:
        self.system = system
        means, pixel_length = system.means, system.means.camera.pixel_length
        robust = RobustWeights(system)
        count = len(system.pairs)
        misses, distance = np.empty(count), np.empty(count)
        in_parallel(_measure_edges, count, system, misses, distance, grain=GRAIN)
        self.twist = robust.edge_cosines * misses / pixel_length / math.sqrt(12)
        # An edge along which two planes cannot meet holds nothing together.
        holds = 1 / (1 + (self.twist / TWISTED) ** 2)
        self._trust, self._even = holds * robust.trust, holds * robust.even()
        self._base = self._trust * robust.edge_cosines**2
        self._graph = StrainedGraph(
            system.pairs,
            system.face_edges,
            system.steps,
            robust.cosines,
            robust.edge_cosines / pixel_length,
            1 / (pixel_length * distance),
        )
        self.weights = system.weights.copy()
        self.offsets, self.strain = np.zeros(len(system.component)), np.zeros(count)
        self._matrix, self._right_side, self._gauge = system.matrix(), system.right_side(), system.gauge
        self._factor = PartialCholesky(self._matrix, means.centroids, workspace)
        self._extra = self._gauge.pins(self._matrix.diagonal(), self._factor.last)
        self._all_faces, self._all_edges = np.arange(len(self.offsets)), np.arange(count)
        self._totals = np.zeros(len(self.offsets))
        self.movable = np.ones(len(self.offsets), np.bool_)
        self.limit()

    @property
    def own(self) -> Bool:
        """Edges (E,) between two movable faces, which may lose their weight."""
        pairs = self.system.pairs
        return self.movable[pairs[:, 0]] & self.movable[pairs[:, 1]]

    def limit(self, least: Float | float = 0.0, most: Float | float = np.inf) -> None:
        """In robust solves from now on, edges keep at least and at most these shares (E,) of their weight."""
        self._least, self._most = least * self._base, most * self._base

    def keep(self, shares: Float) -> None:
        """Solve the closed surface; in robust solves from now on, edges keep at least these shares (E,) of weight."""
        self.limit(shares)
        self.weights = self._base.copy()
        self.solve_all()

    def solve_all(self) -> None:
        """Solve with the present weights."""
        self._plan(np.ones(len(self.offsets), np.bool_))
        self._solve()
        self._finish()

    def one_sided(self, most: int, rechecks: tuple[int, ...] = ()) -> None:
        """Solve at most so often with one-sided weights: faces prefer neighbours at their own depth.

        After as many solves as ``rechecks`` name, edges that had settled are looked at again.
        """
        own = self.own
        self.weights[own] = np.minimum(self._even[own], self._most[own])
        self._plan(self.movable)
        self._solve()
        for turn in range(most):
            edges = self._edges[own[self._edges]]
            moving = self._weigh_one_sided(edges, self._faces)
            if turn:
                self._narrow(moving)
            self._solve()
            if len(moving) == 0 and turn >= max(rechecks, default=0):
                break
            if turn + 1 in rechecks:
                self._finish()
                before = self.weights.copy()
                self._resume(self._weigh_one_sided(np.flatnonzero(own), self._all_faces), before)
        self._finish()

    def cauchy(self, width: float, rounds: int, twisted: float = np.inf) -> None:
        """Solve with Cauchy weights of the given width, in px, at most ``rounds`` times.

        Where strain and twist together reach ``twisted`` px, the twist counts as strain.
        """
        own = self.own
        for turn in range(rounds):
            edges = np.flatnonzero(own) if turn == 0 else self._edges[own[self._edges]]
            before = self.weights.copy()
            full = self.full_strain()
            seen = np.where(full >= twisted, full, self.strain)
            self._over(_robust_solver.weigh_by_strain, edges, seen, width, self._base, self.weights)
            self.weights[edges] = np.clip(self.weights[edges], self._least[edges], self._most[edges])
            moving = edges[np.abs(self.weights[edges] - before[edges]) > MOVED_CAUCHY * self._base[edges]]
            if turn == 0 and len(moving) == 0:
                self.weights = before
                return
            if turn == 0:
                self._resume(moving, before)
            else:
                self._narrow(moving)
                self._solve()
            if len(moving) == 0:
                break
        self._finish()

    def shares(self) -> Float:
        """Return the shares (E,) of their weight that edges keep."""
        shares: Float = self.weights / self._base
        return shares

    def hold(self, shares: Float) -> None:
        """Solve with edges that keep these shares (E,) of their weight."""
        self.weights = np.maximum(shares, LOOSE) * self._base
        self.solve_all()

    def open(self, edges: Bool) -> None:
        """Solve with open (E,) edges, and others that hold."""
        self.hold(np.where(edges, 0.0, 1.0))

    def push_back(self, signs: Float) -> None:
        """After :meth:`hold`, solve with edges in contact: those whose misfits have the wrong sign push back.

        ``signs`` (E,) are the right ones, 0 for edges that do not push. The force is at most that of a strain of 1 px.
        """
        edges = np.flatnonzero(signs)
        if len(edges) == 0:
            return
        held = self.weights[edges]
        self._plan(self._around(edges, 0))
        for _ in range(CONTACTS):
            wrong = self.system.misfits(self.offsets)[edges] * signs[edges] < 0
            pushed = np.where(wrong, self._base[edges] / np.maximum(1.0, self.strain[edges]), held)
            if (np.abs(pushed - self.weights[edges]) <= MOVED * self._base[edges]).all():
                break
            self.weights[edges] = pushed
            self._solve()
        self._finish()

    def misfits(self) -> Float:
        """Return the gaps (E,) between the planes of both faces of edges, in px along the viewing direction."""
        return self.system.misfits(self.offsets) / self.system.means.camera.pixel_length

    def energies(self) -> Float:
        """Return the energies (E,), in px², that it takes to hold edges together at their misfits."""
        energies: Float = self._base * self.misfits() ** 2
        return energies

    def within(self, edges: Bool, rings: int) -> Bool:
        """Return the edges (E,) between faces within some rings of the given (E,) ones."""
        near = self._around(np.flatnonzero(edges), rings)
        first, second = self.system.pairs.T
        both: Bool = near[first] & near[second]
        return both

    def full_strain(self) -> Float:
        """Return strain and twist (E,) together, in px."""
        full: Float = np.hypot(self.strain, self.twist)
        return full

    def _weigh_one_sided(self, edges: Int, faces: Int) -> Int:
        """Set the weights of edges from the affinities of faces; return the edges that still move."""
        before = self.weights[edges]
        self._over(_robust_solver.total_affinities, faces, self._graph, self.offsets, self._totals)
        self._over(
            _robust_solver.weigh_one_sided, edges, self._graph, self.offsets, self._totals, self._trust, self.weights
        )
        self.weights[edges] = np.clip(self.weights[edges], self._least[edges], self._most[edges])
        moving: Int = edges[np.abs(self.weights[edges] - before) > MOVED * self._even[edges]]
        return moving

    def _resume(self, moving: Int, before: Float) -> None:
        """Solve again around moving edges; edges elsewhere get their weights (E,) from before back."""
        active = self._around(moving, RINGS)
        still = ~active[self.system.pairs].any(axis=1)
        self.weights[still] = before[still]
        self._plan(active)
        self._solve()

    def _around(self, edges: Int, rings: int) -> Bool:
        """Return the movable faces (M,) of edges and of some rings around them."""
        marked = np.empty(len(self.offsets), np.bool_)
        work = (np.empty(len(marked), np.int32), np.empty(len(marked), np.int32))
        _robust_solver.mark_rings(edges, self._graph, rings, marked, *work)
        return marked & self.movable

    def _plan(self, active: Bool) -> None:
        """Prepare for solves in which only weights between active faces (M,) change."""
        self._active = active
        self._fill(self._all_faces)
        self._factor.freeze(active, self._matrix.data, self._extra, self._right_side)
        self._choose()

    def _narrow(self, moving: Int) -> None:
        """After the next solve, only faces around moving edges change, if that saves enough."""
        active = self._around(moving, RINGS) & self._active
        if np.count_nonzero(active) < (1 - NARROWER) * np.count_nonzero(self._active):
            self._factor.narrow(active)
            self._next_active = active

    _next_active: Bool | None = None

    def _choose(self) -> None:
        """Choose the faces that are solved again, and the edges whose weights may change: those between active ones."""
        self._faces: Int = self._factor.changing.astype(np.int64, copy=False)
        pairs = self.system.pairs
        self._edges: Int = np.flatnonzero(self._active[pairs[:, 0]] & self._active[pairs[:, 1]])

    def _solve(self) -> None:
        """Solve for the faces that may change."""
        self._fill(self._faces)
        self._factor.solve(self._matrix.data, self._extra, self._right_side, self.offsets)
        self._over(_robust_solver.fill_strain, self._edges, self._graph, self.offsets, self.strain)
        if self._next_active is not None:
            self._active, self._next_active = self._next_active, None
            self._choose()

    def _finish(self) -> None:
        """Complete the offsets of all faces, and the strains of all edges."""
        self._factor.finish(self.offsets)
        self.offsets[:] = self._gauge.centred(self.offsets)
        self._over(_robust_solver.fill_strain, self._all_edges, self._graph, self.offsets, self.strain)

    def _fill(self, faces: Int) -> None:
        """Renew the rows of faces in the matrix and on the right-hand side."""
        self.system.reweigh(faces, self.weights, self._matrix, self._right_side)

    def _over(self, kernel: Any, items: Int, *arguments: Any) -> None:
        in_parallel(kernel, len(items), items, *arguments, grain=GRAIN)


def _measure_edges(first: int, last: int, system: FacetSystem, misses: Float, distance: Float) -> None:
    """Fill by how much the heights of planes change differently along edges (E,), and the distance (px) of centroids.

    It is a range kernel in NumPy.
    """
    means = system.means
    one, other = system.pairs[first:last].T
    start, end = (means.mesh.vertices[side] for side in system.ends[first:last].T)
    bend = means.gradients[other] - means.gradients[one]
    misses[first:last] = np.abs((bend * (end - start)).sum(axis=1))
    distance[first:last] = np.hypot(*(means.centroids[one] - means.centroids[other]).T)
