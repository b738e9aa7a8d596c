"""Polylines: lines of jumps in a mesh under decimation, as few, well-placed vertices that both sides share.

A line is the outline of the surface in front. Its vertices are collapsed along it in the common order of cost, like
those of the outline of the mask, but each collapse saves a second vertex where the mesh will be cut, and vertices that
only follow the rounding of lines to pixels cost nothing. Lines whose copies of vertices cost more than it costs to
bridge them are dropped. At last vertices are moved to where the normals of the faces beside them agree best, and
smoothed within the rounding; then the mesh can be cut along the polyline.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.spatial import cKDTree

from normalmesh.array_types import Bool, Float, Int, Int32, Integer
from normalmesh.decimation import _polylines
from normalmesh.decimation._edge_collapse import MOST_BESIDE, PLACE_VARIANCE, SHORT
from normalmesh.decimation._quadrics import UU, VV
from normalmesh.mesh._closed_mesh import BOUNDARY, LINE, LOCKED
from normalmesh.mesh.chains import Chains
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.jumps import JumpLine
from normalmesh.normals.normal_map import NormalMap

#: Passes of smoothing that halve the distance to the segment between the neighbours, and how far (px) those that remove
#: the staircase of the pixels move a point.
SMOOTHING_PASSES, MAX_SHIFT = 20, 1.0
#: How far (px) smoothing moves a vertex of a polyline, which is known to a pixel. Vertices farther from the segment
#: between their neighbours than the second are corners.
ROUNDING, CORNER = math.sqrt(PLACE_VARIANCE), 1.5

#: What it costs to bridge a jump of height h and length L, in h² L² (px⁴), as the squared error of the surface, summed
#: over its area: it is off by about h up to the distance L, on (2 L)².
BRIDGED = 4.0
#: Certainty of a line up to which the normals do not show it: only lines that are given are so little certain.
UNSEEN = 0.2


@dataclass(frozen=True, eq=False)
class Segments:
    """Segments of lines in a mesh, whose ends are locked vertices.

    Attributes
    ----------
    places : (S, 2, 2)
        The ends of each segment, in px.
    line : (S,)
        The line that each belongs to.
    lines : tuple
        What each line stands for.
    goal : (S, 2, 2) or None
        Where the ends should be, without the staircase of the pixels, if segments are sides of pixels; see
        :meth:`pieces`.
    is_smooth
        Whether segments are no longer sides of pixels.
    """

    places: Float
    line: Int
    lines: tuple[tuple[JumpLine, ...], ...]
    goal: Float | None = None
    is_smooth: bool = False

    @classmethod
    def of(cls, lines: tuple[JumpLine, ...]) -> Segments:
        """Return the unit steps of lines; a step of two lines belongs to the one of larger worth."""
        steps = np.concatenate([np.stack([line.path[:-1], line.path[1:]], axis=1) for line in lines])
        owner = np.repeat(np.arange(len(lines)), [line.length for line in lines])
        points, number = np.unique(steps.reshape(-1, 2), axis=0, return_inverse=True)
        order = np.argsort([-line.worth for line in lines], kind="stable").argsort()[owner].argsort(kind="stable")
        ends, first = np.unique(np.sort(number.reshape(-1, 2), axis=1)[order], axis=0, return_index=True)
        return cls(points[ends].astype(np.float64), owner[order[first]], tuple((line,) for line in lines))

    @classmethod
    def fixed(cls, places: Float, is_smooth: bool = True) -> Segments:
        """Return the segments of one line that keeps its ends, and is never dropped."""
        return cls(places, np.zeros(len(places), np.int64), ((),), is_smooth=is_smooth)

    def pieces(self, mesh: ClosedMesh) -> Segments:
        """Divide lines along pixel sides where they meet or reach the boundary of a mesh, and find their goals."""
        pairs, chains = self._chains(mesh)
        line = np.empty(len(chains), np.int64)
        line[chains.chain_of_edge] = self.line
        pieces = []
        for chain, number in enumerate(line):
            path = mesh.vertices[chains[chain]].astype(np.int64)
            pieces.append(tuple(replace(whole, path=path) for whole in self.lines[number]))
        smooth = mesh.vertices.copy()
        smooth[chains.vertices] = _smoothed(mesh.vertices[chains.vertices], chains, MAX_SHIFT)
        return replace(self, line=chains.chain_of_edge, lines=tuple(pieces), goal=smooth[pairs])

    def joined(self, mesh: ClosedMesh) -> tuple[Segments, Int, Chains]:
        """Join lines that meet no others any more; return the vertices (S, 2) of segments, and chains of them, too."""
        pairs, chains = self._chains(mesh)
        of_edge = chains.chain_of_edge
        members = np.unique(np.stack([of_edge, self.line], axis=1), axis=0)
        parts = np.split(members[:, 1], np.flatnonzero(np.diff(members[:, 0])) + 1)
        lines = tuple(tuple(piece for part in joined for piece in self.lines[part]) for joined in parts)
        return replace(self, line=of_edge, lines=lines), pairs, chains

    def without_staircase(self, mesh: ClosedMesh, before: Segments) -> Segments:
        """Move vertices that have not moved since segments were sides of pixels, as far as possible, to their goals."""
        assert before.goal is not None
        pairs, _ = self._chains(mesh)
        vertices = np.unique(pairs)
        vertices = vertices[~_ends(mesh)[vertices]]
        distance, place = cKDTree(before.places.reshape(-1, 2)).query(mesh.vertices[vertices])
        still = distance == 0
        _polylines.move_to_line(vertices[still], before.goal.reshape(-1, 2)[place[still]], mesh.arrays)
        return replace(self, places=mesh.vertices[pairs])

    def _chains(self, mesh: ClosedMesh) -> tuple[Int, Chains]:
        """Return the vertices (S, 2) of the segments, and chains of them between ends of lines."""
        pairs = find_edges(mesh, self.places)
        return pairs, Chains.of(pairs, _ends(mesh))


def _ends(mesh: ClosedMesh) -> Bool:
    """Return the vertices (N,) through which no line runs: boundary, and locked for other reasons."""
    ends: Bool = (mesh.flags & BOUNDARY > 0) | (mesh.flags & (LOCKED | LINE) == LOCKED)
    return ends


def bridging_cost(line: tuple[JumpLine, ...]) -> float:
    """Return what it costs to bridge a line (px⁴); infinite if the normals do not tell its height."""
    length = sum(piece.length for piece in line)
    known = sum(piece.certainty * piece.length for piece in line) > UNSEEN * length
    return BRIDGED * (_height(line) * length) ** 2 if known else math.inf


def _height(line: tuple[JumpLine, ...]) -> float:
    """Return the mean height of the pieces of a line, in px."""
    return sum(piece.height * piece.length for piece in line) / max(sum(piece.length for piece in line), 1)


@dataclass(frozen=True, eq=False)
class FreeLines:
    """Lines of jumps whose vertices collapse along them, in a mesh under collapse.

    Attributes
    ----------
    beside : (N, MOST_BESIDE, 2) int32
        See :class:`.CostArrays`.
    pairs : (S, 2)
        The vertices of the segments at first,
    goal : (S, 2, 2)
        and where they should be.
    lines : tuple
        Those of :class:`Segments`.
    worth : (L,)
        What it costs to bridge each line, in px⁴.
    """

    beside: Int32
    pairs: Int
    goal: Float
    lines: tuple[tuple[JumpLine, ...], ...] = ()
    worth: Float = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, mesh: ClosedMesh, segments: Segments | None) -> FreeLines:
        """Let vertices of lines collapse, but for those on the boundary and those that are locked for other reasons."""
        if segments is None:
            return cls(np.empty((0, MOST_BESIDE, 2), np.int32), np.empty((0, 2), np.int64), np.empty((0, 2, 2)))
        segments, pairs, _ = segments.joined(mesh)
        mesh.flags[pairs[~_ends(mesh)[pairs]]] = LINE
        ends, line = np.concatenate([pairs, pairs[:, ::-1]]), np.tile(segments.line, 2)
        ends, line = ends[order := np.argsort(ends[:, 0], kind="stable")], line[order]
        slot = np.arange(len(ends)) - np.searchsorted(ends[:, 0], ends[:, 0])
        beside = np.full((len(mesh.vertices), MOST_BESIDE, 2), -1, np.int32)
        beside[ends[:, 0], slot, 0], beside[ends[:, 0], slot, 1] = ends[:, 1], line
        goal = segments.places if segments.goal is None else segments.goal
        lines = cls(beside, pairs, goal, segments.lines, np.array([bridging_cost(line) for line in segments.lines]))
        tips, line = lines._tips(mesh)
        mesh.flags[tips[np.isinf(lines.worth[line])]] |= LOCKED
        return lines

    def add_quadrics(self, mesh: ClosedMesh, weight: float, quadrics: Float) -> None:
        """Add the squared distance to their segments, with a weight, to screen quadrics (N, 6) of vertices of lines.

        Vertices at which a line ends in the mesh also carry what it costs to bridge it from there on.
        """
        if not self.lines:
            return
        _polylines.add_line_quadrics(self.pairs, self.goal, mesh.vertices, weight, quadrics)
        tips, line = self._tips(mesh)
        quadrics[tips[:, None], [UU, VV]] += BRIDGED * np.array([_height(line) for line in self.lines])[line, None] ** 2

    def _tips(self, mesh: ClosedMesh) -> tuple[Int, Int]:
        """Return the vertices (K,) at which lines end in the mesh, and these lines."""
        there = (self.beside[:, :, 0] >= 0) & (mesh.corner_of[:-1, None] >= 0) & (mesh.flags[:, None] & BOUNDARY == 0)
        vertex, slot = np.nonzero(there & (np.count_nonzero(there, axis=1) == 1)[:, None])
        return vertex, self.beside[vertex, slot, 1].astype(np.int64)

    def copies(self, mesh: ClosedMesh, chosen: Bool | slice = slice(None)) -> int:
        """Count the vertices that cuts along the lines add beside the chosen ones (N,)."""
        if not self.lines:
            return 0
        degree = np.count_nonzero(self.beside[:, :, 0] >= 0, axis=1)
        degree[mesh.corner_of[:-1] < 0] = 0
        return int(np.where(mesh.flags & BOUNDARY > 0, degree, np.maximum(degree - 1, 0))[chosen].sum())

    def bridging_costs(self, mesh: ClosedMesh) -> tuple[Float, Int]:
        """Return what it costs to bridge each line (L,) for each vertex that this saves (px⁴), and these vertices."""
        alive = mesh.corner_of[:-1] >= 0
        there = (self.beside[:, :, 0] >= 0) & alive[:, None]
        edges = np.bincount(self.beside[there, 1], minlength=len(self.lines)) // 2
        saved = edges + 1 - np.bincount(self._tips(mesh)[1], minlength=len(self.lines))
        costs = np.where(saved > 0, self.worth / np.maximum(saved, 1), 0.0)
        return np.where(edges > 0, costs, np.inf), saved

    def next_cost(self, mesh: ClosedMesh, above: float) -> float:
        """Return the next cost above another at which a line would be dropped (px⁴); infinite if there is none."""
        if not self.lines:
            return math.inf
        costs, _ = self.bridging_costs(mesh)
        return float(costs[costs > above].min(initial=np.inf))

    def drop(self, mesh: ClosedMesh, cost: float, most: int) -> bool:
        """Drop lines that cost less (px⁴) to bridge for each vertex that this saves, up to a number of these.

        Vertices of lines that are dropped are free. Return whether there were any.
        """
        if not self.lines:
            return False
        costs, saved = self.bridging_costs(mesh)
        order = np.argsort(costs, kind="stable")
        order = order[(costs[order] <= cost) & np.isfinite(costs[order]) & (np.cumsum(saved[order]) <= most)]
        self.beside[np.isin(self.beside[:, :, 1], order)] = -1
        bare = (mesh.flags & LINE > 0) & (self.beside[:, :, 0] < 0).all(axis=1)
        mesh.flags[bare] &= BOUNDARY
        return len(order) > 0

    def renumbered(self, kept: Int) -> FreeLines:
        """Return the lines after vertices were dropped; ``kept`` are the former numbers of the others."""
        if not self.lines:
            return self
        number = np.full(len(self.beside) + 1, -1, np.int32)
        number[kept] = np.arange(len(kept), dtype=np.int32)
        beside = self.beside[kept]
        beside[:, :, 0] = number[beside[:, :, 0]]
        return replace(self, beside=beside)

    def segments(self, mesh: ClosedMesh) -> Segments | None:
        """Lock the vertices of lines again, and return the segments between them, if any."""
        if not self.lines:
            return None
        alive = mesh.corner_of[:-1] >= 0
        vertex, slot = np.nonzero(self.beside[:, :, 0] > np.arange(len(self.beside))[:, None])
        vertex, slot = vertex[alive[vertex]], slot[alive[vertex]]
        if len(vertex) == 0:
            return None
        mesh.flags[mesh.flags & LINE > 0] |= LOCKED
        other, line = self.beside[vertex, slot].T.astype(np.int64)
        return Segments(mesh.vertices[np.stack([vertex, other], axis=1)], line, self.lines, is_smooth=True)


def _between_ends(chains: Chains) -> Bool:
    """Return the vertices (K,) of chains that are not at their ends."""
    inside = np.ones(len(chains.vertices), np.bool_)
    inside[chains.starts[:-1]] = inside[chains.starts[1:] - 1] = False
    return inside


def polish(mesh: ClosedMesh, segments: Segments, normal_map: NormalMap) -> Int32:
    """Move inner vertices of polylines to better, smooth places; return the vertices (S, 2) of their segments."""
    pairs = find_edges(mesh, segments.places)
    count = len(mesh.vertices)
    neighbours = np.full((count, 2), -1, np.int64)
    degree = np.bincount(pairs.ravel(), minlength=count)
    for one, other in (pairs.T, pairs[:, ::-1].T):
        first = neighbours[one, 0] < 0
        # Only vertices with two neighbours count, so it does not matter which of several is written last.
        neighbours[one[first], 0] = other[first]
        neighbours[one[~first], 1] = other[~first]
    inner = (degree == 2) & (mesh.flags == LOCKED | LINE)
    neighbours[~inner] = -1
    before, after = np.ascontiguousarray(neighbours.T)
    _polylines.polish_lines(np.flatnonzero(inner), before, after, mesh.arrays, normal_map.normals)
    chains = Chains.of(pairs, _ends(mesh))
    points = mesh.vertices[chains.vertices]
    # Beside longer edges, normals place a vertex better than its neighbours do.
    lengths = np.append(_lengths(np.diff(points, axis=0))[:, 0], 0.0)
    short = _between_ends(chains) & (np.maximum(lengths, np.roll(lengths, 1)) < SHORT)
    goal = _smoothed(points, chains, ROUNDING, CORNER)
    _polylines.move_to_line(chains.vertices[short], goal[short], mesh.arrays)
    return pairs.astype(np.int32)


def copies(pairs: Integer, on_boundary: Bool) -> int:
    """Return how many vertices a mesh gets in addition if it is cut along edges (S, 2) between its vertices (N,)."""
    degree = np.bincount(pairs.ravel(), minlength=len(on_boundary))
    return int(np.where(on_boundary, degree, np.maximum(degree - 1, 0)).sum())


def find_edges(mesh: ClosedMesh, segments: Float) -> Int:
    """Return the vertices (S, 2) of the edges between locked vertices that have the same ends as segments (S, 2, 2)."""
    faces = mesh.faces[: mesh.real_faces].astype(np.int64)
    ends = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    ends = ends[(mesh.flags[ends] & LOCKED).all(axis=1)]
    ends = np.concatenate([ends, ends[:, ::-1]])
    places = np.concatenate([mesh.vertices[ends].reshape(-1, 2), segments.reshape(-1, 2)])
    _, place = np.unique(places, axis=0, return_inverse=True)
    place = place.reshape(-1, 2)
    keys = place[:, 0] * (place.max(initial=0) + 1) + place[:, 1]
    there, wanted = keys[: len(ends)], keys[len(ends) :]
    order = np.argsort(there, kind="stable")
    return ends[order[np.searchsorted(there[order], wanted)]]


def _smoothed(points: Float, chains: Chains, most: float, corner: float = math.inf) -> Float:
    """Smooth the points (K, 2) of chains, which move by ``most`` (px) at most; their ends stay.

    Points farther than ``corner`` (px) from the segment between their neighbours stay, too.
    """
    here = np.flatnonzero(_between_ends(chains))
    smooth = points.copy()
    for _ in range(SMOOTHING_PASSES):
        before, after = smooth[here - 1] - smooth[here], smooth[here + 1] - smooth[here]
        one, other = _lengths(before), _lengths(after)
        step = (other * before + one * after) / np.maximum(one + other, 1e-9)
        moved = smooth[here] + np.where(_lengths(step) > corner, 0.0, step / 2) - points[here]
        smooth[here] = points[here] + moved * np.minimum(1.0, most / np.maximum(_lengths(moved), most))
    return smooth


def _lengths(vectors: Float) -> Float:
    """Return the lengths (K, 1) of vectors (K, 2)."""
    lengths: Float = np.hypot(vectors[:, :1], vectors[:, 1:])
    return lengths
