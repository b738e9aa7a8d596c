"""How a surface came about: what decimation, remeshing and integration did, and where the depth jumps.

The stages that fill these records live in the rooms above; a :class:`Surface` carries them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Round:
    """One round of the decimation: what was done, and what was left.

    Attributes
    ----------
    largest_cost
        Largest cost of a collapse, px⁴.
    """

    vertices: int
    collapses: int
    flips: int
    moves: int
    largest_cost: float


@dataclass(frozen=True)
class Decimation:
    """What a decimation did.

    Attributes
    ----------
    target
        Vertices asked for; None where a threshold was given.
    target_met
        Whether exactly so many vertices are left. If not, there were fewer to begin with, or no edge was left that may
        collapse: each hole needs three vertices and each component its own.
    seconds
        Wall time of the stages ``start``, ``collapse``, ``evaluate`` (pixels of faces), ``flip`` and ``move``.
    cpu_seconds
        Processor time of the same stages, all threads together.
    """

    rounds: tuple[Round, ...]
    target: int | None
    target_met: bool
    seconds: dict[str, float]
    cpu_seconds: dict[str, float]

    @property
    def collapses(self) -> int:
        return sum(each.collapses for each in self.rounds)

    @property
    def flips(self) -> int:
        return sum(each.flips for each in self.rounds)

    @property
    def moves(self) -> int:
        return sum(each.moves for each in self.rounds)

    @property
    def largest_cost(self) -> float:
        """Largest cost of a collapse, px⁴."""
        return max(each.largest_cost for each in self.rounds)


@dataclass(frozen=True)
class RemeshingRound:
    """One round: what was done, and how many vertices were left."""

    vertices: int
    splits: int
    collapses: int
    flips: int
    moves: int


@dataclass(frozen=True)
class Remeshing:
    """What a remeshing did.

    Attributes
    ----------
    error
        ε (px) of the mesh, given or found. With it the same mesh comes out.
    rounds
        Of the mesh that was kept.
    target
        Vertices asked for; None where an error was given.
    target_met
        Whether the number of vertices is within 1 % of it.
    meshes
        How many errors were tried.
    seconds
        Wall time of the stages ``start`` (curvature, first coarsening), ``split``, ``collapse``, ``flip`` and ``move``,
        over all meshes.
    """

    error: float
    rounds: tuple[RemeshingRound, ...]
    target: int | None
    target_met: bool
    meshes: int
    seconds: dict[str, float]

    @property
    def splits(self) -> int:
        return sum(each.splits for each in self.rounds)

    @property
    def collapses(self) -> int:
        return sum(each.collapses for each in self.rounds)

    @property
    def flips(self) -> int:
        return sum(each.flips for each in self.rounds)

    @property
    def moves(self) -> int:
        return sum(each.moves for each in self.rounds)


@dataclass(frozen=True)
class Integration:
    """How a surface was integrated.

    Attributes
    ----------
    noise
        Noise of the normals in degrees, estimated or as given.
    method
        Solver that was used last.
    residual
        Its residual, relative to the right side.
    refinements
        Flips and moves of each round.
    seconds
        Wall time of the stages ``noise``, ``solve`` and ``refine``.
    cpu_seconds
        Processor time of the same stages, all threads together.
    """

    noise: float
    method: str
    residual: float
    refinements: tuple[tuple[int, int], ...]
    seconds: dict[str, float]
    cpu_seconds: dict[str, float]


@dataclass(frozen=True, eq=False)
class Discontinuities:
    """The inner edges of a mesh as it was before it was cut, and the parts that they hold together.

    Attributes
    ----------
    faces : (E, 2) int32
        The two faces of each edge.
    screen : (E, 2, 2)
        Its ends as u, v in pixels.
    jumps : (E,)
        By how much the second face is higher (orthographic) or farther away (perspective) than the first where they
        should meet, in the unit of the surface.
    weights : (E,)
        How firmly the two faces hold together: from 1, they fit, to 0, depth jumps.
    cut : (E,) bool
        Edges along which the mesh is cut.
    parts : (M,) int32
        Part of each face: parts are joined by edges that jump, or nearly do, if at all. −1 for faces that touch one.
    undetermined : (P,) bool
        Parts whose distance from the rest of their component is a guess: no prior fixes it, and no edge that fits.
    part_areas : (P,)
        In px².
    """

    faces: NDArray[np.int32]
    screen: Float
    jumps: Float
    weights: Float
    cut: NDArray[np.bool_]
    parts: NDArray[np.int32]
    undetermined: NDArray[np.bool_]
    part_areas: Float

    def __str__(self) -> str:
        length = np.linalg.norm(self.screen[self.cut, 0] - self.screen[self.cut, 1], axis=1).sum()
        loose = self.part_areas[self.undetermined]
        text = f"{np.count_nonzero(self.cut)} of {len(self.cut)} edges cut, {length:.0f} px"
        if len(loose):
            share = 100 * loose.sum() / self.part_areas.sum()
            text += f"; {len(loose)} parts ({share:.1f} % of the area) whose distance is a guess: give a prior on them"
        return text
