"""The origin of a surface: reports on decimation, remeshing and integration, and the discontinuities of depth.

The stages that fill these records are in packages above this one; a :class:`Surface` carries them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from normalmesh.array_types import Bool, Float, Float32, Int32
from normalmesh.errors import count_text
from normalmesh.mesh.jumps import JumpLine


@dataclass(frozen=True)
class Round:
    """Report on one round of decimation or remeshing."""

    vertices: int  # left after the round
    collapses: int  # of edges
    flips: int  # of edges
    moves: int  # of vertices
    largest_cost: float = 0.0  # of a collapse, px⁴
    splits: int = 0  # of edges


class _Totals:
    """Sums over the rounds of a report."""

    rounds: tuple[Round, ...]

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
class Tolerance:
    """Bounds that a surface was to stay within, and what it reaches."""

    bounds: dict[str, float]  # by name: max_angle in degrees, max_error in the unit of the surface
    reached: dict[str, float]  # the mean angle and the deviation of the surface, under the same names

    @property
    def missed(self) -> list[str]:
        """Names of the bounds that the surface exceeds."""
        return [name for name, bound in self.bounds.items() if not self.reached[name] <= bound]

    @property
    def met(self) -> bool:
        """Whether the surface stays within all bounds."""
        return not self.missed


@dataclass(frozen=True)
class Decimation(_Totals):
    """Report on a decimation.

    Seconds are wall time, and CPU time summed over all threads, of the stages ``start``, ``collapse``, ``evaluate``
    (quadrics from pixels), ``flip``, ``move`` and ``lines`` (polylines along jumps).
    """

    rounds: tuple[Round, ...]
    target: int | None  # number of vertices requested, or chosen by the detail; None for a threshold or tolerance
    target_met: bool  # whether exactly this number is left, as far as lines of jumps allow it to be known
    seconds: dict[str, float]
    cpu_seconds: dict[str, float]
    dropped_lines: int = 0  # pieces of lines of jumps left out, because they would have needed too many vertices
    reason: str = ""  # why the target was not met; empty if it was
    tolerance: Tolerance | None = None  # the bounds of reconstruct_within(), and what was reached
    detail: str | None = None  # low, medium or high, if that chose the target

    @classmethod
    def joined(cls, reports: Sequence[Decimation]) -> Decimation:
        """Join reports without targets on parts of a map, whose seconds have been counted together."""
        rounds = []
        for number in range(max(len(each.rounds) for each in reports)):
            there = [each.rounds[number] for each in reports if number < len(each.rounds)]
            ended = [each.rounds[-1].vertices for each in reports if number >= len(each.rounds)]
            rounds.append(
                Round(
                    sum(ended) + sum(each.vertices for each in there),
                    sum(each.collapses for each in there),
                    sum(each.flips for each in there),
                    sum(each.moves for each in there),
                    max(each.largest_cost for each in there),
                )
            )
        return replace(reports[-1], rounds=tuple(rounds), dropped_lines=sum(each.dropped_lines for each in reports))

    @property
    def largest_cost(self) -> float:
        """Largest cost of a collapse, px⁴."""
        return max(each.largest_cost for each in self.rounds)


@dataclass(frozen=True)
class Remeshing(_Totals):
    """Report on a remeshing."""

    error: float  # ε (px) of the mesh, as given or found: remeshing with this error gives the same mesh
    rounds: tuple[Round, ...]  # of the mesh that was kept
    target: int | None  # number of vertices requested; None if an error was given
    target_met: bool  # whether the number of vertices is within 1 % of it
    meshes: int  # number of errors that were tried
    seconds: dict[str, float]  # wall time of start (curvature, first coarsening), split, collapse, flip and move

    @property
    def splits(self) -> int:
        """Number of edge splits in all rounds."""
        return sum(each.splits for each in self.rounds)


@dataclass(frozen=True, eq=False)
class HeightNoise:
    """What the uncertainty of the heights of a surface depends on, besides its shape.

    The noise of the normals is that of each connected part (P), as in :class:`.noise.Noise`. Deviations are standard
    deviations of the unknown (height, or logarithm of the depth) from the surface that the normals show.
    """

    degrees: Float  # (P,)
    correlation: Float  # (P,)
    formulation: str  # "facets" or "vertices", see integrate()
    faces: Int32  # (K,) faces on which a prior holds the surface
    feet: Float  # (K, 2) where it does, u and v in px
    weights: Float  # (K,) of these points
    face_deviations: Float32  # (M,)
    vertex_deviations: Float32  # (N,)


@dataclass(frozen=True)
class Integration:
    """Report on an integration.

    Attributes
    ----------
    noise
        Standard deviation of the normals in degrees, as given or estimated: what half of the foreground does not
        exceed, if components differ.
    method
        Solver of the last solve.
    error
        Estimate of how far the depths are from the exact solution of the last system: the largest at any vertex, in px.
    refinements
        Numbers of flips and moves in each round.
    seconds
        Wall time of the stages ``noise``, ``jumps``, ``solve``, ``refine`` and ``tidy``. :func:`reconstruct` estimates
        the noise and finds jumps before; here are only the cuts.
    cpu_seconds
        CPU time of the same stages, summed over all threads.
    height_noise
        What :meth:`Surface.uncertainty` needs to know; None for maps that stay on disk.
    """

    noise: float
    method: str
    error: float
    refinements: tuple[tuple[int, int], ...]
    seconds: dict[str, float]
    cpu_seconds: dict[str, float]
    height_noise: HeightNoise | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, eq=False)
class Discontinuities:
    """Jumps of the depth of a surface, and the parts into which they divide it.

    Attributes
    ----------
    lines : tuple of JumpLine
        The lines that were found before decimation.
    screen : (E, 2, 2)
        The ends, as u, v in pixels, of each edge along which the mesh is cut.
    jumps : (E,)
        How much higher (orthographic) or farther away (perspective) the surface is on one side than on the other, in
        the unit of the surface.
    parts : (M,) int32
        Part of each face: cuts that go right through a component separate parts.
    undetermined : (P,) bool
        Parts whose distance from the rest of their component is a guess: neither a prior nor an edge determines it.
    part_areas : (P,)
        Areas of the parts in px².
    """

    lines: tuple[JumpLine, ...]
    screen: Float
    jumps: Float
    parts: Int32
    undetermined: Bool
    part_areas: Float

    @property
    def length(self) -> float:
        """Length of all cuts, in px."""
        return float(np.linalg.norm(self.screen[:, 0] - self.screen[:, 1], axis=1).sum())

    @property
    def doubtful(self) -> int:
        """Length in px of the lines that release less energy than lines must on average: ends, and small branches."""
        return sum(line.length for line in self.lines if line.certainty < 1)

    def __str__(self) -> str:
        if not self.lines:
            return "none"
        text = f"{count_text(len(self.lines), 'line')}, {self.length:.0f} px cut"
        if self.doubtful:
            text += f", {self.doubtful} px of it doubtful"
        loose = self.part_areas[self.undetermined]
        if len(loose):
            share = 100 * loose.sum() / self.part_areas.sum()
            parts = f"{count_text(len(loose), 'part')} ({share:.1f} % of the area)"
            text += f"; {parts} whose distance is a guess: give a prior on it"
        return text
