"""The origin of a surface: reports on decimation, remeshing and integration, and the discontinuities of depth.

The stages that fill these records are in packages above this one; a :class:`Surface` carries them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Round:
    """Report on one round of decimation.

    Attributes
    ----------
    vertices
        Vertices left after the round.
    collapses, flips, moves
        Numbers of edge collapses, edge flips and vertex moves.
    largest_cost
        Largest cost of a collapse, px⁴.
    """

    vertices: int
    collapses: int
    flips: int
    moves: int
    largest_cost: float


@dataclass(frozen=True)
class RemeshingRound:
    """Report on one round of remeshing: the vertices left after it, and the numbers of its operations."""

    vertices: int
    splits: int
    collapses: int
    flips: int
    moves: int


class _Totals:
    """Sums over the rounds of a report."""

    rounds: tuple[Round, ...] | tuple[RemeshingRound, ...]

    @property
    def collapses(self) -> int:
        """Number of edge collapses in all rounds."""
        return sum(each.collapses for each in self.rounds)

    @property
    def flips(self) -> int:
        """Number of edge flips in all rounds."""
        return sum(each.flips for each in self.rounds)

    @property
    def moves(self) -> int:
        """Number of vertex moves in all rounds."""
        return sum(each.moves for each in self.rounds)


@dataclass(frozen=True)
class Decimation(_Totals):
    """Report on a decimation.

    Attributes
    ----------
    rounds
        Reports on the rounds, in order.
    target
        Number of vertices requested; None if a threshold was given.
    target_met
        Whether exactly this number of vertices is left. If not, the start mesh had fewer, or no edge was left that may
        collapse: each hole needs three vertices, and so does each component.
    seconds
        Wall time of the stages ``start``, ``collapse``, ``evaluate`` (quadrics from pixels), ``flip`` and ``move``.
    cpu_seconds
        CPU time of the same stages, summed over all threads.
    """

    rounds: tuple[Round, ...]
    target: int | None
    target_met: bool
    seconds: dict[str, float]
    cpu_seconds: dict[str, float]

    @property
    def largest_cost(self) -> float:
        """Largest cost of a collapse, px⁴."""
        return max(each.largest_cost for each in self.rounds)


@dataclass(frozen=True)
class Remeshing(_Totals):
    """Report on a remeshing.

    Attributes
    ----------
    error
        ε (px) of the mesh, as given or found. Remeshing with this error gives the same mesh.
    rounds
        Reports on the rounds of the mesh that was kept.
    target
        Number of vertices requested; None if an error was given.
    target_met
        Whether the number of vertices is within 1 % of it.
    meshes
        Number of errors that were tried.
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
        """Number of edge splits in all rounds."""
        return sum(each.splits for each in self.rounds)


@dataclass(frozen=True)
class Integration:
    """Report on an integration.

    Attributes
    ----------
    noise
        Standard deviation of the normals in degrees, estimated or as given.
    method
        Solver of the last solve.
    residual
        Residual of the last solve, relative to the right-hand side.
    refinements
        Numbers of flips and moves in each round.
    seconds
        Wall time of the stages ``noise``, ``solve`` and ``refine``.
    cpu_seconds
        CPU time of the same stages, summed over all threads.
    """

    noise: float
    method: str
    residual: float
    refinements: tuple[tuple[int, int], ...]
    seconds: dict[str, float]
    cpu_seconds: dict[str, float]


@dataclass(frozen=True, eq=False)
class Discontinuities:
    """The inner edges of a mesh before it was cut, and the parts into which jumps of depth divide it.

    Attributes
    ----------
    faces : (E, 2) int32
        The two faces of each edge.
    screen : (E, 2, 2)
        The ends of each edge as u, v in pixels.
    jumps : (E,)
        How much higher (orthographic) or farther away (perspective) the second face is than the first at their
        common edge, in the unit of the surface.
    weights : (E,)
        Weight of the connection of the two faces: from 1, they fit, to 0, depth jumps.
    cut : (E,) bool
        Edges along which the mesh is cut.
    parts : (M,) int32
        Part of each face: only edges that jump, or nearly do, separate parts. −1 for faces at such an edge.
    undetermined : (P,) bool
        Parts whose distance from the rest of their component is a guess: neither a prior nor an edge that fits
        determines it.
    part_areas : (P,)
        Areas of the parts in px².
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
