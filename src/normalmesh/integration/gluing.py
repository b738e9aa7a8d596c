"""Gluing: which faces of a facet system hold together, and the offsets that follow.

Two stages of robust weights (:mod:`.robust_weights`) let go of edges across which depth jumps. Where letting go
changes nothing but what pixels cannot tell, the component is continuous, and the plain system is solved instead. Where
letting go once changes next to nothing, the stages are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from normalmesh.integration.facets import FacetSystem
from normalmesh.integration.robust_weights import RobustWeights
from normalmesh.mesh.cut_mesh import CUT, along_cuts

Float = NDArray[np.float64]
Solve = Callable[[FacetSystem, "Float | None"], Float]

#: Solves of the two stages, at most, and of the last one once the mesh is refined.
ONE_SIDED, SETTLINGS, RESETTLINGS = 20, 15, 3
#: Share of its strain that an edge keeps from one round of refinement to the next, so that parts do not drift.
INERTIA = 0.7
#: A stage ends when fewer than this share of the edges still change their strain by this much (px).
FEW, CHANGE = 1e-3, 0.01
#: Strain at which an edge begins to lose its weight.
WIDTH = 0.025
#: Widths that the closure error of a map may be before strain is counted in a larger unit.
CLOSES = 1.25
#: Strain by which faces move when edges are let go once, below which letting go further tears nothing.
SUSPECT = 0.1 * CUT
#: Area (px²) that must move by :data:`CUT` when edges let go, for a component to be torn.
LEAST_AREA = 10.0


@dataclass(frozen=True, eq=False)
class Glued:
    """A solved system.

    Attributes
    ----------
    system : FacetSystem
        With the weights of the last solve.
    offsets : (M,)
    strain : (E,)
        By how many units the planes of two faces miss each other, across them; zero in continuous components.
    """

    system: FacetSystem
    offsets: Float
    strain: Float


@dataclass(eq=False)
class Gluing:
    """Solves the systems of one surface, again and again as its mesh is refined.

    Attributes
    ----------
    unit
        Of strain, in pixels.
    torn : (C,) bool
        Components of the mesh in which depth jumps; known after the first solve.
    """

    unit: float = 1.0
    torn: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))

    @classmethod
    def against(cls, closure_error: float) -> Gluing:
        """For normals with a closure error in pixels (:func:`normalmesh.normals.noise.closure_error`)."""
        return cls(max(1.0, closure_error / (CLOSES * WIDTH)))

    def begin(self, system: FacetSystem, solve: Solve) -> Glued:
        """Solve a system, and find out which components are torn."""
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
        """Solve the system of the refined mesh, whose edges begin with the strain (E,) that they had before."""
        robust = RobustWeights(system, self.unit)
        torn = self.torn[system.component[system.pairs[:, 0]]]
        nowhere = np.zeros(len(system.component))
        glued = _settled(robust, nowhere, strain, torn, RESETTLINGS if last else 1, solve)
        return glued if last else replace(glued, strain=INERTIA * strain + (1 - INERTIA) * glued.strain)

    def release(self, glued: Glued, offsets: Float) -> Glued:
        """With offsets that a prior moved: edges along cuts are judged anew, all others stay as they are."""
        system = glued.system
        near = along_cuts(system.means.mesh, system.corners, glued.strain >= CUT)[system.ends].any(axis=1)
        robust = RobustWeights(system, self.unit)
        strain = np.where(near, robust.strain(offsets), glued.strain)
        weights = np.where(near, robust.cauchy(strain, WIDTH), system.weights)
        return Glued(replace(system, weights=weights), offsets, strain)


def _one_sided(robust: RobustWeights, solve: Solve, guess: Float) -> Float:
    """First stage: offsets (M,)."""
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
    """Second stage, on torn edges (E,); the others keep the weights of a continuous surface."""
    plain = robust.system
    for _ in range(rounds):
        system = replace(plain, weights=np.where(torn, robust.cauchy(strain, WIDTH), plain.weights))
        offsets = solve(system, offsets)
        before, strain = strain, np.where(torn, robust.strain(offsets), 0.0)
        if _is_settled(before, strain):
            break
    return Glued(system, offsets, strain)


def _is_settled(before: Float, after: Float) -> bool:
    """Whether the strain (E,) of nearly all edges stays what it is."""
    return bool(np.count_nonzero(np.abs(after - before) > CHANGE) <= FEW * len(after))


def _torn(robust: RobustWeights, moved: Float, strain: float) -> NDArray[np.bool_]:
    """Components (C,) in which faces moved (M,), beyond a common shift, by some strain and more."""
    system = robust.system
    areas, component = system.means.areas, system.component
    order = np.lexsort((moved, component))
    count = int(component.max()) + 1
    # The weighted median of each component: its first face, by shift, with half of the area at or below it.
    below = np.cumsum(areas[order])
    ends = np.cumsum(np.bincount(component, areas, count))
    half = ends - np.bincount(component, areas, count) / 2
    shift = moved[order][np.minimum(np.searchsorted(below, half), len(moved) - 1)]
    reached = robust.uprightness * np.abs(moved - shift[component]) / system.means.camera.pixel_length / robust.unit
    return np.bincount(component, areas * (reached >= strain), count) >= LEAST_AREA
