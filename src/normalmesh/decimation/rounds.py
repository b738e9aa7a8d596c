"""Decimation: rounds of collapses and alignment, from two triangles a pixel to a sparse, feature-aligned mesh."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import (
    checked_array,
    checked_bool,
    checked_choice,
    checked_instance,
    checked_int,
    checked_positive,
    options_of,
)
from normalmesh.decimation.collapse import Collapsed, collapse
from normalmesh.decimation.flip import flip
from normalmesh.decimation.move import move
from normalmesh.decimation.quadrics import REGULARISATION, FaceRecords, Pixels
from normalmesh.decimation.start_mesh import STARTS, start_mesh
from normalmesh.decimation.stopping import MOST_VERTICES, RULES, vertex_target
from normalmesh.errors import NormalMeshError, repr_for_error, shape_text
from normalmesh.mesh._closed_mesh import LOCKED
from normalmesh.mesh.origin import Decimation, Round
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.progress import Progress, Teller
from normalmesh.runtime.stopwatch import Stopwatch

#: κ: an edge collapses below the threshold T when κ·cost < T. Fitted once, so that the thresholds of the paper's tables
#: give the vertex counts of the authors' program.
THRESHOLD_FACTOR = 2.0

#: Vertices that the first round leaves, for one of the result, by the start.
FIRST_TARGET = {"adaptive": 4, "pixels": 10}

#: Rounds, passes in each, and λ: far beyond what changes anything.
MOST_ROUNDS, MOST_REGULAR = 10_000, 1e12

#: Time of the stages, in passes of flips and moves: what progress is told by.
_START, _COLLAPSE, _PASS = 3.0, 3.0, 1.0


@dataclass(frozen=True, eq=False, repr=False)
class DecimatedMesh(ScreenMesh):
    """A mesh that :func:`decimate` made.

    Attributes
    ----------
    locked : (N,) bool
        Vertices that were asked to stay as they are.
    report : Decimation
    """

    locked: NDArray[np.bool_]
    report: Decimation

    def __post_init__(self) -> None:
        super().__post_init__()
        locked = checked_array(self.locked, "locked", "booleans", "b")
        if locked.shape != (len(self.vertices),):
            raise NormalMeshError(
                f"locked must be one boolean for each of the {len(self.vertices)} vertices, "
                f"not {shape_text(locked.shape)}"
            )
        object.__setattr__(self, "locked", locked)
        checked_instance(self.report, Decimation, "report")


def decimate(
    normal_map: NormalMap,
    *,
    vertices: int | None = None,
    threshold: float | None = None,
    compression: float | None = None,
    rounds: int = 4,
    passes: int = 2,
    align: str = "last",
    flips: bool = True,
    moves: bool = True,
    step: float = 0.5,
    regularisation: float = REGULARISATION,
    in_plane: bool = False,
    start: str = "adaptive",
    locked: ArrayLike | None = None,
    progress: Progress | None = None,
) -> DecimatedMesh:
    """Replace the pixel grid by a sparse triangle mesh whose edges follow the features of the normals.

    Rounds of collapses, and passes of edge flips and vertex moves: sections 3 and 4 of the paper.
    Exactly one of ``vertices``, ``threshold`` and ``compression`` says where to stop.

    Parameters
    ----------
    normal_map
        Any mask: all components and holes are kept.
    vertices
        Number of vertices of the result, at least 3. Rounds aim at targets that fall exponentially from four times
        this, or ten times from a start with all pixels; rounds without alignment may leave a tenth more.
    threshold
        Each round collapses all edges below this cost in px⁴, as the thresholds of the paper count it.
    compression
        Share of vertices to save, between 0 and 1: 0.98 leaves 2 vertices for 100 foreground pixels.
    rounds, passes
        Rounds of collapses, with quadrics evaluated afresh, and passes of flips and moves. The paper takes 5 and 10;
        refinement after integration makes most of them superfluous, see docs/results.md.
    align
        Which rounds the passes follow: the ``"last"`` one, or ``"each"`` as in the paper.
    flips, moves
        Switch off one kind of alignment.
    step
        α: share of the way to its best position by which a vertex moves in a pass.
    regularisation
        λ: weight of an even distribution of vertices.
    in_plane
        Place collapsed vertices at the best point of the plane instead of the edge.
    start
        ``"pixels"``: from two triangles a pixel, as the paper does. ``"adaptive"``: from a mesh that leaves out pixel
        corners where that costs next to nothing, as far as there are far more vertices than wanted; several times as
        fast, and a little more accurate.
    locked
        What must stay as it is: a pixel mask (H, W), of whose pixels all corners are kept, or pixel corners (K, 2) as
        u, v. Edges between locked vertices stay, too.
    progress
        Called with a :class:`Step` again and again; what it raises ends the work.

    Returns
    -------
    DecimatedMesh
        Manifold, with no inverted face; every pixel centre lies in at most one face; boundary vertices lie within a
        pixel of the mask's outline. The same for any number of threads.
    """
    checked_instance(normal_map, NormalMap, "normal_map")
    way = _Way(rounds, passes, align, flips, moves, step, regularisation, in_plane, start)
    final = vertex_target(normal_map.foreground, vertices, threshold, compression)
    limit = np.inf if threshold is None else checked_positive(threshold, "threshold") / THRESHOLD_FACTOR
    clock = _Clock(progress, way.rounds, way.all_passes)
    work = _Decimating(normal_map, way, final or 0, limit, locked, clock)
    mesh = work.down_to(work.schedule(final) if final else [_Goal(limit=limit)] * way.rounds)
    clock.teller.finish()
    return mesh


def decimate_levels(
    normal_map: NormalMap,
    vertices: Sequence[int],
    *,
    locked: ArrayLike | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Iterator[DecimatedMesh]:
    """Ever coarser meshes from one decimation: each goes on where the one before stopped.

    Parameters
    ----------
    normal_map
    vertices
        Of the meshes, finest first, each fewer than the one before.
    locked, progress, **options
        As for :func:`decimate`.

    Yields
    ------
    DecimatedMesh
        The first is what :func:`decimate` makes. Seconds of a report count from the beginning.
    """
    targets = level_targets(vertices)
    way = _Way(**options)
    clock = _Clock(progress, len(targets) * way.rounds, len(targets) * way.all_passes)
    work = _Decimating(normal_map, way, targets[0], np.inf, locked, clock)
    for target in targets:
        yield work.down_to(work.schedule(target))
    clock.teller.finish()


def level_targets(vertices: Sequence[int]) -> list[int]:
    """Vertices of levels, finest first, or an error."""
    given = vertices.tolist() if isinstance(vertices, np.ndarray) else vertices
    if not isinstance(given, list | tuple | range):
        raise NormalMeshError(f"vertices must be a list of numbers of vertices, not {repr_for_error(vertices)}")
    targets = [checked_int(each, 3, "vertices", MOST_VERTICES) for each in given]
    if not targets or any(first <= second for first, second in pairwise(targets)):
        raise NormalMeshError(f"vertices of levels must fall from one to the next, not {repr_for_error(targets)}")
    return targets


def checked_decimation(options: dict[str, Any] | None, preset: dict[str, Any] | None = None) -> dict[str, Any]:
    """Options of :func:`decimate` without its stopping rules, over those of a preset; or an error."""
    chosen = {**(preset or {}), **options_of(decimate, options, "decimation", (*RULES, "progress"))}
    _Way(**{name: value for name, value in chosen.items() if name != "locked"})
    return chosen


@dataclass(frozen=True)
class _Way:
    """How to decimate: options of :func:`decimate`, checked."""

    rounds: int = 4
    passes: int = 2
    align: str = "last"
    flips: bool = True
    moves: bool = True
    step: float = 0.5
    regularisation: float = REGULARISATION
    in_plane: bool = False
    start: str = "adaptive"

    def __post_init__(self) -> None:
        checked_int(self.rounds, 1, "rounds", MOST_ROUNDS)
        checked_int(self.passes, 0, "passes", MOST_ROUNDS)
        for name in ("flips", "moves", "in_plane"):
            checked_bool(getattr(self, name), name)
        # Kernels are compiled for floats.
        for name, most in (("step", 1.0), ("regularisation", MOST_REGULAR)):
            number = checked_positive(getattr(self, name), name)
            if number > most:
                raise NormalMeshError(f"{name} must be at most {most:g}, not {number:g}")
            object.__setattr__(self, name, number)
        checked_choice(self.align, ("last", "each"), "align")
        checked_choice(self.start, STARTS, "start")

    @property
    def all_passes(self) -> int:
        return self.passes * (self.rounds if self.align == "each" else 1)


class _Decimating:
    """A mesh under decimation, with what its faces say about their pixels."""

    def __init__(
        self, normal_map: NormalMap, way: _Way, target: int, limit: float, locked: ArrayLike | None, clock: _Clock
    ) -> None:
        self.way, self.clock = way, clock
        self.foreground = normal_map.foreground
        self.pixels = Pixels(normal_map, way.regularisation)
        with clock.stage("start"):
            self.mesh, coarse = start_mesh(normal_map, way.start, target, limit, locked)
        clock.teller.advance(_START, len(self.mesh.vertices))
        self.records: FaceRecords | None = None
        if coarse:
            self._renew()

    def schedule(self, final: int) -> list[_Goal]:
        """Goals of the rounds that lead to so many vertices."""
        return _falling_targets(final, self.foreground, self.way.rounds, FIRST_TARGET[self.way.start])

    def down_to(self, schedule: list[_Goal]) -> DecimatedMesh:
        """The mesh after rounds with these goals."""
        way, mesh, clock = self.way, self.mesh, self.clock
        history: list[Round] = []
        for goal in schedule:
            clock.teller.begin("collapse")
            # Between rounds of collapses alone no exact number is needed.
            exact = goal is schedule[-1] or way.align == "each"
            done = self._collapse(goal, exact, clock.left)
            clock.teller.advance(_COLLAPSE, len(mesh.vertices))
            self.records = FaceRecords(mesh)
            last = len(history) == len(schedule) - 1 or (goal.target == 0 and done.collapses == 0)
            repeats = way.passes if (way.flips or way.moves) and (last or way.align == "each") else 0
            flipped, moved = self._align(self.records, repeats)
            history.append(Round(len(mesh.vertices), done.collapses, flipped, moved, done.largest_cost))
            if last:
                break
        if np.isfinite(schedule[-1].limit):
            history += self._finish(schedule[-1])
        target = schedule[-1].target or None
        met = target in (None, len(mesh.vertices))
        report = Decimation(tuple(history), target, met, dict(clock.seconds), dict(clock.cpu_seconds))
        locked = (mesh.flags & LOCKED).astype(np.bool_)
        decimated = DecimatedMesh(mesh.vertices.copy(), mesh.faces[: mesh.real_faces].copy(), locked, report)
        decimated.keep_opposite(mesh.real_opposite())
        return decimated

    def _collapse(self, goal: _Goal, exact: bool = True, progress: Callable[[int], None] | None = None) -> Collapsed:
        with self.clock.stage("collapse"):
            return collapse(
                self.mesh,
                self.pixels,
                self.records,
                target=goal.target,
                limit=goal.limit,
                exact=exact,
                in_plane=self.way.in_plane,
                progress=progress,
            )

    def _renew(self) -> None:
        self.records = FaceRecords(self.mesh)
        with self.clock.stage("evaluate"):
            self.records.renew(self.mesh, self.pixels)

    def _align(self, records: FaceRecords, passes: int) -> tuple[int, int]:
        """Passes of flips and moves, with flips at the end; the numbers of both. Quadrics are evaluated afresh."""
        flipped = moved = 0
        self.clock.teller.begin("align")
        for k in range(passes + 1):
            with self.clock.stage("evaluate"):
                records.renew(self.mesh, self.pixels)
            if self.way.flips and passes:
                with self.clock.stage("flip"):
                    flipped += flip(self.mesh, self.pixels, records)
            if self.way.moves and k < passes:
                with self.clock.stage("move"):
                    moved += move(self.mesh, self.pixels, records, self.way.step)
            if k < passes:
                self.clock.teller.advance(_PASS)
        return flipped, moved

    def _finish(self, goal: _Goal) -> Iterator[Round]:
        """Collapse what alignment has made cheaper than the limit, until nothing is."""
        while (done := self._collapse(goal)).collapses:
            self._renew()
            yield Round(len(self.mesh.vertices), done.collapses, 0, 0, done.largest_cost)


@dataclass(frozen=True)
class _Goal:
    """Where a round's collapses stop: at so many vertices, or at this cost (px⁴)."""

    target: int = 0
    limit: float = np.inf


def _falling_targets(final: int, foreground: int, rounds: int, multiple: int) -> list[_Goal]:
    """Goals that fall exponentially from a multiple of the final number of vertices."""
    # A pixel has at most four vertices of its own.
    first = min(multiple * final, 4 * foreground)
    shares = np.linspace(0, 1, rounds) if rounds > 1 else np.ones(1)
    return [_Goal(target=max(round(first * (final / first) ** share), final)) for share in shares]


class _Clock(Stopwatch):
    """Adds up the seconds of stages, and tells progress."""

    def __init__(self, progress: Progress | None, rounds: int, passes: int) -> None:
        super().__init__("start", "collapse", "evaluate", "flip", "move")
        self.teller = Teller(progress, _START + rounds * _COLLAPSE + passes * _PASS)
        self.teller.begin("start")

    def left(self, vertices: int) -> None:
        """So many vertices are left in the midst of a stage."""
        self.teller.advance(0.0, vertices)
