"""Decimation in rounds: from the pixel grid to a sparse, feature-aligned mesh (Sections 3 and 4 of the paper)."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.arguments import checked_instance, checked_int
from normalmesh.array_types import Int32, UInt8
from normalmesh.decimation.collapse import Collapsed, collapse
from normalmesh.decimation.component_groups import ComponentGroup, FinishedComponents, component_groups
from normalmesh.decimation.content import Content
from normalmesh.decimation.decimated_mesh import DecimatedMesh
from normalmesh.decimation.decimation_options import DecimationOptions
from normalmesh.decimation.flip import flip
from normalmesh.decimation.hierarchy import Hierarchy
from normalmesh.decimation.move import move, smooth_rim
from normalmesh.decimation.polylines import Segments, copies, find_edges, polish
from normalmesh.decimation.quadrics import FaceRecords, Pixels
from normalmesh.decimation.side_matching import room_for_matching, with_matching_sides
from normalmesh.decimation.start_mesh import REMEDY, KeptCorners, start_mesh
from normalmesh.decimation.stopping import MAX_VERTICES, Goal, StoppingRule, falling_targets
from normalmesh.decimation.thin_parts import thin_pixels
from normalmesh.errors import NormalMeshError, count_text, repr_for_error
from normalmesh.mesh._closed_mesh import BOUNDARY
from normalmesh.mesh._outline import COVERED, FIXED
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.jumps import JumpLine, Jumps
from normalmesh.mesh.origin import Decimation, Round
from normalmesh.mesh.repeats import Repeats
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.normal_map_like import NormalMapLike, as_normal_map
from normalmesh.runtime.memory_budget import require_memory
from normalmesh.runtime.monitor import Monitor, OnProgress, Progress
from normalmesh.runtime.progress_bar import progress_shown
from normalmesh.runtime.threads import limited_threads

#: Vertices after the first round as a multiple of the result, by the start mesh.
FIRST_TARGET = {"adaptive": 4, "pixels": 10}
#: Share of the vertices that is left for further cuts, if there are lines. Integration makes up for what is not used.
RESERVE = 0.005

#: Bytes for each vertex of a mesh whose faces are evaluated from their pixels.
RECORD_BYTES = 450

logger = logging.getLogger(__name__)

#: Work of the stages, in passes of flips and moves, for the progress.
_START, _COLLAPSE, _PASS = 3.0, 3.0, 1.0

#: The stages whose time is measured.
STAGES = ("start", "collapse", "evaluate", "flip", "move", "lines")


def decimate(
    normal_map: NormalMapLike,
    *,
    vertices: int | None = None,
    threshold: float | None = None,
    compression: float | None = None,
    detail: str | None = None,
    rounds: int = DecimationOptions.rounds,
    passes: int = DecimationOptions.passes,
    align: str = DecimationOptions.align,
    flips: bool = DecimationOptions.flips,
    moves: bool = DecimationOptions.moves,
    step: float = DecimationOptions.step,
    regularisation: float | None = None,
    in_plane: bool = DecimationOptions.in_plane,
    start: str = DecimationOptions.start,
    locked: ArrayLike | None = None,
    keep_thin: bool = DecimationOptions.keep_thin,
    tileable: bool | str = DecimationOptions.tileable,
    jumps: Jumps | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> DecimatedMesh:
    """Replace the pixel grid by a sparse triangle mesh whose edges follow the features of the normals.

    Rounds of edge collapses are followed by passes of edge flips and vertex moves: Sections 3 and 4 of the paper.
    One of ``vertices``, ``threshold``, ``compression`` and ``detail`` sets where to stop; by default
    ``detail="medium"``.

    Parameters
    ----------
    normal_map
        The normal map, or what :func:`reconstruct` takes for one. The mask may have any shape: all components and holes
        are kept.
    vertices
        Number of vertices of the result, at least 3. The targets of the rounds fall exponentially from four times this
        number, or from ten times with ``start="pixels"``; rounds without alignment may leave 10 % more.
    threshold
        Each round collapses all edges below this cost in px⁴. The thresholds of the paper's tables give about as many
        vertices as the authors' program, with every ``start``.
    compression
        Fraction of vertices to save, between 0 and 1: 0.98 leaves 2 vertices per 100 foreground pixels.
    detail
        ``"low"``, ``"medium"`` or ``"high"``: as many vertices as the content of the map needs to look right on a
        screen. Small maps keep nearly all that can be seen, large ones what 20 000 vertices (medium) show, or more
        where there is more detail. Each level has about four times the vertices of the one below.
    rounds, passes
        Number of rounds of collapses, each with newly evaluated quadrics, and of passes of flips and moves. The paper
        uses 5 and 10; refinement after integration makes most of them unnecessary, see docs/results.md.
    align
        The rounds that passes follow: ``"last"``, or ``"each"`` as in the paper.
    flips, moves
        Whether passes flip edges, and whether they move vertices.
    step
        α: fraction of the way to its optimal position that a vertex moves in a pass.
    regularisation
        λ: weight of an even distribution of vertices. By default 1e-5, as in the paper; with a ``threshold`` 1e-4, as
        the counts of the authors' program imply.
    in_plane
        Whether a collapsed edge becomes the optimal point of the plane instead of the optimal point of the edge.
    start
        ``"pixels"``: start with two triangles per pixel, as the paper does. ``"adaptive"``: start with a mesh that
        leaves out pixel corners where the normals hardly change, provided that far fewer vertices are wanted than there
        are pixels; several times as fast and slightly more accurate. Boundary vertices leave the staircase of the mask
        for a smooth outline, however many there are.
    locked
        Vertices and edges to keep: a pixel mask (H, W), of whose pixels all corners are kept, or pixel corners (K, 2)
        as u, v. Edges between locked vertices are kept, too.
    keep_thin
        Whether parts of the foreground and gaps in it that are narrower than 16 px keep as many vertices as their
        outline needs, even if there are more than were asked for; False: as in the paper, they may be lost.
    tileable
        Whether the map repeats: True, or ``"x"`` or ``"y"`` for one direction only. Vertices on opposite sides then
        have the same places, so that copies of the mesh fit together. There are somewhat fewer vertices than asked for;
        :func:`integrate` adds the rest.
    jumps
        Lines along which the depth jumps, from :func:`find_jumps`. They become polylines of few vertices,
        ``DecimatedMesh.seams``, along which :func:`integrate` cuts the mesh. The vertices that it adds are part of the
        number that was asked for.
    threads
        As for :func:`reconstruct`; the mesh does not depend on it.
    progress
        True: show a progress bar, in a terminal or a notebook. A function: it is called repeatedly with a
        :class:`Step`; an exception that it raises ends the work.

    Returns
    -------
    DecimatedMesh
        A manifold mesh without inverted faces. Every pixel centre lies in at most one face; boundary vertices lie
        within a pixel of the outline of the mask. ``report`` tells whether the number of vertices asked for was met,
        and why not.
    """
    options = DecimationOptions(
        rounds, passes, align, flips, moves, step, regularisation, in_plane, start, locked, keep_thin, tileable
    )
    rule = StoppingRule(vertices, threshold, compression, detail)
    normal_map = as_normal_map(normal_map)
    lines = () if jumps is None else checked_instance(jumps, Jumps, "jumps").lines
    with limited_threads(threads), progress_shown(progress) as on_progress:
        (mesh,) = decimate_levels(normal_map, [rule], options, on_progress, lines)
    return mesh


def decimate_levels(
    normal_map: NormalMap,
    rules: Sequence[StoppingRule],
    options: DecimationOptions,
    on_progress: OnProgress | None = None,
    lines: tuple[JumpLine, ...] = (),
    hierarchy: Hierarchy | None = None,
) -> Iterator[DecimatedMesh]:
    """Decimate as :func:`decimate` does, up to several rules, finest first; each mesh goes on from the one before.

    Arguments have been checked. The hierarchy is used if it is known.

    Yields
    ------
    DecimatedMesh
        The seconds of a report count from the beginning.
    """
    # A number of vertices is shared by all components, and what repeats may be connected across its sides.
    apart = rules[0].threshold is not None and not options.tileable
    groups = component_groups(normal_map.component_labels, lines) if apart else [ComponentGroup(lines)]
    monitor = _new_monitor(on_progress, options, len(groups), len(groups) * len(rules))
    with monitor.timed("start"):
        if any(rule.detail for rule in rules):
            hierarchy = hierarchy or Hierarchy.of(normal_map)
            content = Content.of(normal_map, hierarchy)
            rules = [rule.with_detail(content.vertices, content.foreground) for rule in rules]
        kept, coverage = _kept_and_coverage(normal_map, options)
    parts: list[list[DecimatedMesh]] = [[] for _ in rules]
    for group in groups:
        decimator = _begun(normal_map, rules[0], options, monitor, group, kept, coverage, hierarchy)
        for meshes, rule in zip(parts, rules, strict=True):
            meshes.append(decimator.run(rule))
        group.cover(decimator.mesh.outline.coverage, coverage)
    monitor.finish()
    for meshes in parts:
        mesh = DecimatedMesh.joined(meshes)
        logger.info("mesh of %d vertices: %.2f s", len(mesh.vertices), monitor.elapsed)
        yield mesh


def checked_levels(vertices: Sequence[int]) -> list[int]:
    """Return decreasing numbers of vertices, or raise an error."""
    given = vertices.tolist() if isinstance(vertices, np.ndarray) else vertices
    if not isinstance(given, list | tuple | range):
        raise NormalMeshError(f"vertices must be a list of numbers of vertices, not {repr_for_error(vertices)}")
    targets = [checked_int(each, 3, "vertices", MAX_VERTICES) for each in given]
    if not targets or any(first <= second for first, second in pairwise(targets)):
        raise NormalMeshError(f"vertices of levels must fall from one to the next, not {repr_for_error(targets)}")
    return targets


def _new_monitor(on_progress: OnProgress | None, options: DecimationOptions, starts: int, levels: int) -> Monitor:
    """Return a monitor for a number of start meshes, and of decimations in all."""
    work = starts * _START + levels * (options.rounds * _COLLAPSE + options.total_passes * _PASS)
    return Monitor(on_progress, work, STAGES)


def _kept_and_coverage(normal_map: NormalMap, options: DecimationOptions) -> tuple[KeptCorners, UInt8]:
    """Return the corners that are locked, and the ``COVERED`` and ``FIXED`` pixels (H, W), of a start mesh."""
    repeats = Repeats.of(options.tileable, normal_map.shape)
    ends = None if repeats is None else repeats.side_ends(normal_map.mask_window)
    kept = KeptCorners.of(options.locked, (), normal_map, ends)
    coverage = normal_map.mask * np.uint8(COVERED)
    if options.keep_thin:
        coverage[thin_pixels(normal_map.mask)] |= FIXED
    return kept, coverage


def _begun(
    normal_map: NormalMap,
    rule: StoppingRule,
    options: DecimationOptions,
    monitor: Monitor,
    group: ComponentGroup,
    kept: KeptCorners,
    coverage: UInt8,
    hierarchy: Hierarchy | None = None,
) -> Decimator:
    """Make the start mesh of a group for a rule; the hierarchy of the map is used if it is known."""
    normal_map = group.map_of(normal_map)
    target = rule.target(normal_map.foreground) or 0
    pixels = Pixels(normal_map, options.regularisation_for(target > 0))
    with monitor.stage("start", _START):
        kept = replace(kept, lines=KeptCorners.of(None, group.lines, normal_map).lines)
        own = group.coverage_of(coverage)
        mesh, coarse = start_mesh(pixels, options, target, rule.max_cost, kept, hierarchy, own, group.window)
    monitor.advance(0.0, len(mesh.vertices))
    decimator = Decimator(mesh, pixels, options, Segments.of(group.lines) if group.lines else None, monitor)
    # Only the order of costs matters for a target: new quadrics then give slightly better meshes.
    if coarse and target:
        decimator.renew_records()
    return decimator


class Decimator:
    """A mesh under decimation: its vertices that are not locked.

    Parameters
    ----------
    mesh
    pixels
        The pixels that it covers.
    options
    segments
        Segments of lines of jumps that the mesh keeps as polylines.
    monitor
        Measures :data:`STAGES`.
    """

    def __init__(
        self,
        mesh: ClosedMesh,
        pixels: Pixels,
        options: DecimationOptions,
        segments: Segments | None = None,
        monitor: Monitor | None = None,
    ) -> None:
        self.mesh, self.pixels, self.options, self.segments = mesh, pixels, options, segments
        self.monitor = monitor or Monitor(stages=STAGES)
        self.foreground = pixels.normal_map.foreground
        self.repeats = Repeats.of(options.tileable, pixels.normal_map.shape)
        self.pieces = 0
        self.records: FaceRecords | None = None

    def renew_records(self) -> None:
        """Evaluate all faces from their pixels."""
        self.records = self._new_records()
        self._evaluate(self.records)

    def _new_records(self) -> FaceRecords:
        """Return records for the mesh as it is, or raise an error if they and the rest would not fit into memory."""
        vertices = len(self.mesh.vertices)
        require_memory(RECORD_BYTES * vertices, f"the decimation of {vertices} vertices", REMEDY)
        return FaceRecords(self.mesh)

    def run(self, rule: StoppingRule) -> DecimatedMesh:
        """Run the rounds of the paper until the rule is met, and return the mesh."""
        asked = rule.target(self.foreground)
        target = self._target(asked)
        goals = self._goals(target, rule.max_cost)
        rounds: list[Round] = []
        is_aligned = asked is None and self.segments is None and self.options.align == "each"
        finished = FinishedComponents(self.mesh) if is_aligned else None
        for goal in goals:
            last = len(rounds) == self.options.rounds - 1
            rounds.append(self.round(goal, last))
            if target is None and rounds[-1].collapses == 0:
                break
            if finished is not None:
                finished.lock(self.mesh)
        if finished is not None:
            finished.unlock(self.mesh)
        if target is None:
            rounds += self._collapse_rest(goal)
        # The last collapse along a line saves two vertices.
        met = target is None or 0 <= target - len(self.mesh.vertices) - self.copies <= (self.segments is not None)
        reason = "" if met else self._why_missed(target or 0)
        seams, lines = self.polish_lines(), self._lines()
        dropped = self.pieces - len(lines)
        seconds, cpu_seconds = dict(self.monitor.seconds), dict(self.monitor.cpu_seconds)
        report = Decimation(tuple(rounds), asked, met, seconds, cpu_seconds, dropped, reason, detail=rule.detail)
        mesh = DecimatedMesh.from_closed(self.mesh, report, seams, lines if dropped else None)
        if self.repeats is None:
            return mesh
        return with_matching_sides(mesh, self.repeats, self.pixels.normal_map.mask_window)

    def _target(self, asked: int | None) -> int | None:
        """Return the number of vertices to leave, less than that asked for where later stages will add some."""
        if asked is None:
            return None
        if self.repeats is not None:
            asked = max(asked - room_for_matching(asked), 3)
        return asked if self.segments is None else max(asked - math.ceil(RESERVE * asked), 3)

    def _why_missed(self, target: int) -> str:
        """Explain why the mesh does not have the number of vertices that it should have."""
        mesh = self.mesh.to_screen()
        if len(mesh.vertices) < target:
            return "the foreground has no more pixel corners than that"
        reasons = needs_of_shape(mesh)
        if (self.mesh.outline.coverage & FIXED).any():
            reasons.append("thin parts and gaps of the foreground keep their outline")
        if self.options.locked is not None:
            reasons.append("locked vertices are kept")
        if self.segments is not None:
            reasons.append("lines along which depth jumps are kept")
        return "; ".join(reasons) or "no other edge may be collapsed"

    def _goals(self, target: int | None, max_cost: float) -> list[Goal]:
        """Return the goals of the rounds that lead to a number of vertices, or to a cost."""
        if target is None:
            return [Goal(max_cost=max_cost)] * self.options.rounds
        return falling_targets(target, self.foreground, self.options.rounds, FIRST_TARGET[self.options.start])

    def _lines(self) -> tuple[JumpLine, ...]:
        """Return the pieces of lines that polylines follow."""
        if self.segments is None:
            return ()
        joined, _, _ = self.segments.joined(self.mesh)
        return tuple(piece for line in joined.lines for piece in line)

    @property
    def copies(self) -> int:
        """Number of vertices that cuts along lines will add."""
        if self.segments is None:
            return 0
        on_boundary = (self.mesh.flags & BOUNDARY).astype(np.bool_)
        return copies(find_edges(self.mesh, self.segments.places), on_boundary)

    def polish_lines(self) -> Int32:
        """Move the vertices of polylines to better places; return the edges (S, 2) of the mesh along polylines."""
        if self.segments is None:
            return np.empty((0, 2), np.int32)
        with self.monitor.timed("lines"):
            seams = polish(self.mesh, self.segments, self.pixels.normal_map)
        self.segments = replace(self.segments, places=self.mesh.vertices[seams])
        return seams

    def round(self, goal: Goal, last: bool) -> Round:
        """Run one round of the paper: collapse edges, then flip edges and move vertices in passes."""
        collapsed = self._collapse(goal, exact=last or self.options.align == "each")
        if self.options.smooth_rim:
            smooth_rim(self.mesh, self.pixels)
        # A round without a target that collapses nothing is the last one, too.
        passes = self.options.passes_after(last or (goal.target == 0 and collapsed.collapses == 0))
        self.records = records = self._new_records()
        self.monitor.begin("align", len(self.mesh.vertices))
        flips = moves = 0
        for _ in range(passes):
            self._evaluate(records)
            flips += self._flip(records)
            moves += self._move(records)
            self.monitor.advance(_PASS)
        self._evaluate(records)
        if passes:
            flips += self._flip(records)
        return Round(len(self.mesh.vertices), collapsed.collapses, flips, moves, collapsed.largest_cost)

    def _collapse(self, goal: Goal, exact: bool) -> Collapsed:
        """Collapse edges. Without ``exact``, 10 % more vertices than the target may be left."""
        before = self.segments
        if before is not None and not before.is_smooth:
            before = before.pieces(self.mesh)
            self.pieces = len(before.lines)
        with self.monitor.stage("collapse", _COLLAPSE):
            collapsed = collapse(
                self.mesh,
                self.pixels,
                self.records,
                segments=before,
                target=goal.target,
                limit=goal.max_cost,
                exact=exact,
                in_plane=self.options.in_plane,
                progress=lambda vertices: self.monitor.advance(0.0, vertices),
            )
        self.segments = collapsed.segments
        if self.segments is not None and before is not None and before.goal is not None:
            self.segments = self.segments.without_staircase(self.mesh, before)
        return collapsed

    def _evaluate(self, records: FaceRecords) -> None:
        """Evaluate the quadrics of faces that changed from their pixels."""
        with self.monitor.timed("evaluate"):
            records.renew(self.mesh, self.pixels)

    def _flip(self, records: FaceRecords) -> int:
        if not self.options.flips:
            return 0
        with self.monitor.timed("flip"):
            return flip(self.mesh, self.pixels, records)

    def _move(self, records: FaceRecords) -> int:
        if not self.options.moves:
            return 0
        with self.monitor.timed("move"):
            return move(self.mesh, self.pixels, records, self.options.step)

    def _collapse_rest(self, goal: Goal) -> Iterator[Round]:
        """Collapse edges that alignment has made cheaper than the maximal cost, until there are none."""
        while (collapsed := self._collapse(goal, exact=True)).collapses:
            self.records = self._new_records()
            self._evaluate(self.records)
            yield Round(len(self.mesh.vertices), collapsed.collapses, 0, 0, collapsed.largest_cost)


def needs_of_shape(mesh: ScreenMesh) -> list[str]:
    """Say, for a mesh that is not cut, how its components and holes keep it from having few vertices."""
    components = int(mesh.components.max()) + 1
    edges = (3 * len(mesh.faces) + np.count_nonzero(mesh.find_opposite() < 0)) // 2
    holes = int(components - (len(mesh.vertices) - edges + len(mesh.faces)))
    if components + holes == 1:
        return []
    counted = f"{count_text(components, 'component')} and {count_text(holes, 'hole')}"
    return [f"{counted} of the foreground need three vertices each"]
