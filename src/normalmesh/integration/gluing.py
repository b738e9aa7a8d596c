"""Gluing: decide which adjacent faces of a facet system hold together, and solve for the offsets.

Two stages of robust weights (:mod:`.robust_weights`) release edges across which depth jumps. If that changes the
surface by less than the pixels resolve, the component is continuous, and the solution of the plain system is taken
instead. If a first reweighting changes next to nothing, the stages are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from normalmesh.facets.facets import FacetSystem
from normalmesh.facets.robust_weights import RobustWeights
from normalmesh.mesh.cut_mesh import CUT, along_cuts

Float = NDArray[np.float64]
Solve = Callable[[FacetSystem, "Float | None"], Float]

#: Maximum number of solves of the two stages, and of the second stage after refinement.
ONE_SIDED, SETTLINGS, RESETTLINGS = 20, 15, 3
#: Share of its strain that an edge keeps from one round of refinement to the next, so that parts do not drift.
INERTIA = 0.7
#: A stage ends when fewer than this share of the edges still change their strain by this much (px).
FEW, CHANGE = 1e-3, 0.01
#: Strain from which on an edge loses its weight.
WIDTH = 0.025
#: Closure error of a map, in widths, from which on a larger unit of strain is used.
MAX_CLOSURE_WIDTHS = 1.25
#: Strain by which faces must move in a first reweighting for a component to be examined further.
SUSPECT = 0.1 * CUT
#: Area (px²) that must move by a strain of :data:`CUT` when edges are released, for a component to be torn.
MIN_TORN_AREA = 10.0


@dataclass(frozen=True, eq=False)
class Glued:
    """A solved system.

    Attributes
    ----------
    system : FacetSystem
        The system with the weights of the last solve.
    offsets : (M,)
        Offsets of the faces.
    strain : (E,)
        Strains of the edges (:meth:`.RobustWeights.strain`); zero in continuous components.
    """

    system: FacetSystem
    offsets: Float
    strain: Float


@dataclass(eq=False)
class Gluing:
    """Solver for the systems of one surface, whose mesh is refined between solves.

    Attributes
    ----------
    unit
        Unit of strain, in pixels.
    torn : (C,) bool
        Components of the mesh in which depth jumps; known after the first solve.
    """

    unit: float = 1.0
    torn: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    @classmethod
    def against(cls, closure_error: float) -> Gluing:
        """Return the gluing for normals with this closure error in pixels (:func:`.closure_error`)."""
        return cls(max(1.0, closure_error / (MAX_CLOSURE_WIDTHS * WIDTH)))

    def begin(self, system: FacetSystem, solve: Solve) -> Glued:
        """Solve a system, and determine which components are torn."""
        plain = solve(system, None)
        robust = RobustWeights(system, self.unit)
        loose = solve(replace(system, weights=robust.cauchy(robust.strain(plain), WIDTH)), plain)
        self.torn = _torn(robust, loose - plain, SUSPECT)
        if not self.torn.any():
            return Glued(system, plain, np.zeros(len(system.pairs)))
        offsets = _one_sided(robust, solve, plain)
        every = np.ones(len(system.pairs), np.bool_)
        glued = _settled(robust, offsets, robust.strain(offsets), every, SETTLINGS, solve)
        self.torn = _torn(robust, glued.offsets - plain, CUT)
        torn_faces = self.torn[system.component]
        torn_edges = torn_faces[system.pairs[:, 0]]
        return Glued(
            replace(system, weights=np.where(torn_edges, glued.system.weights, system.weights)),
            np.where(torn_faces, glued.offsets, plain),
            np.where(torn_edges, glued.strain, 0.0),
        )

    def resume(self, system: FacetSystem, strain: Float, solve: Solve, last: bool) -> Glued:
        """Solve the system of the refined mesh, beginning with the strain (E,) of its edges before refinement."""
        robust = RobustWeights(system, self.unit)
        torn = self.torn[system.component[system.pairs[:, 0]]]
        nowhere = np.zeros(len(system.component))
        glued = _settled(robust, nowhere, strain, torn, RESETTLINGS if last else 1, solve)
        return glued if last else replace(glued, strain=INERTIA * strain + (1 - INERTIA) * glued.strain)

    def release(self, glued: Glued, offsets: Float) -> Glued:
        """Return the system with offsets that a prior changed, and with new weights of the edges along cuts."""
        system = glued.system
        near = along_cuts(system.means.mesh, system.corners, glued.strain >= CUT)[system.ends].any(axis=1)
        robust = RobustWeights(system, self.unit)
        strain = np.where(near, robust.strain(offsets), glued.strain)
        weights = np.where(near, robust.cauchy(strain, WIDTH), system.weights)
        return Glued(replace(system, weights=weights), offsets, strain)


def _one_sided(robust: RobustWeights, solve: Solve, guess: Float) -> Float:
    """Run the first stage, and return the offsets (M,)."""
    offsets = solve(replace(robust.system, weights=robust.even()), guess)
    strain = robust.strain(offsets)
    for _ in range(ONE_SIDED):
        offsets = solve(replace(robust.system, weights=robust.one_sided(offsets)), offsets)
        before, strain = strain, robust.strain(offsets)
        if _is_settled(before, strain):
            break
    return offsets


def _settled(
    robust: RobustWeights, offsets: Float, strain: Float, torn: NDArray[np.bool_], rounds: int, solve: Solve
) -> Glued:
    """Run the second stage on torn edges (E,); the others keep the weights of a continuous surface."""
    plain = robust.system
    for _ in range(rounds):
        system = replace(plain, weights=np.where(torn, robust.cauchy(strain, WIDTH), plain.weights))
        offsets = solve(system, offsets)
        before, strain = strain, np.where(torn, robust.strain(offsets), 0.0)
        if _is_settled(before, strain):
            break
    return Glued(system, offsets, strain)


def _is_settled(before: Float, after: Float) -> bool:
    """Return whether the strain (E,) of nearly all edges is unchanged."""
    return bool(np.count_nonzero(np.abs(after - before) > CHANGE) <= FEW * len(after))


def _torn(robust: RobustWeights, moved: Float, strain: float) -> NDArray[np.bool_]:
    """Return the components (C,) in which faces moved (M,) by at least a strain, relative to a common shift."""
    system = robust.system
    areas, component = system.means.areas, system.component
    order = np.lexsort((moved, component))
    count = int(component.max()) + 1
    # The shift is the weighted median: the first face, sorted by shift, with half of the area at or below it.
    below = np.cumsum(areas[order])
    ends = np.cumsum(np.bincount(component, areas, count))
    half = ends - np.bincount(component, areas, count) / 2
    shift = moved[order][np.minimum(np.searchsorted(below, half), len(moved) - 1)]
    reached = robust.cosines * np.abs(moved - shift[component]) / system.means.camera.pixel_length / robust.unit
    return np.bincount(component, areas * (reached >= strain), count) >= MIN_TORN_AREA
