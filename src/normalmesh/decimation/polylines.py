"""Polylines: lines of jumps in a mesh under decimation, as few, well-placed vertices that both sides share.

All vertices of a line are locked while the rest of the mesh is collapsed for the first time. Then the line becomes a
polyline, whose vertices stay locked in the rounds that follow. At last they are moved to where the normals of the faces
beside them agree best; then the mesh can be cut along the polyline.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Bool, Float, Int, Int32, Integer
from normalmesh.decimation import _polylines
from normalmesh.decimation._polylines import Lines, thin_line
from normalmesh.mesh._closed_mesh import BOUNDARY, LINE, LOCKED, NEEDED
from normalmesh.mesh.chains import Chains
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.jumps import JumpLine
from normalmesh.normals.normal_map import NormalMap

#: Edges of polylines for each vertex of the result, at most.
SHARE = 0.15
#: Tolerance (px) of polylines as a share of the mean distance of vertices, and its limits; where lines need too many
#: edges, it rises in steps of GROWTH up to COARSEST before lines are dropped.
LINE_TOLERANCE, FINEST, USUAL, GROWTH, COARSEST = 0.06, 0.35, 1.0, 1.2, 1.7
#: Length (px) of the edges of a polyline, at most.
LONGEST = 200.0
#: Passes of smoothing with (1, 2, 1)/4 that remove the staircase of the pixels, and how far they move a point (px).
SMOOTHING_PASSES, MAX_SHIFT = 20, 1.0


@dataclass(frozen=True, eq=False)
class Segments:
    """Segments of lines in a mesh, whose ends are locked vertices.

    Attributes
    ----------
    places : (S, 2, 2)
        The ends of each segment, in px.
    worth : (S,)
        What each is worth: the lines of least worth are dropped first.
    """

    places: Float
    worth: Float

    @classmethod
    def of(cls, lines: tuple[JumpLine, ...]) -> Segments:
        """Return the unit steps of lines; a step of two lines has the larger worth of both."""
        steps = np.concatenate([np.stack([line.path[:-1], line.path[1:]], axis=1) for line in lines])
        worth = np.concatenate([np.full(line.length, line.worth / line.length) for line in lines])
        points, number = np.unique(steps.reshape(-1, 2), axis=0, return_inverse=True)
        ends, index = np.unique(np.sort(number.reshape(-1, 2), axis=1), axis=0, return_inverse=True)
        most = np.zeros(len(ends))
        np.maximum.at(most, index.ravel(), worth)
        return cls(points[ends].astype(np.float64), most)


def straighten(
    mesh: ClosedMesh, segments: Segments, vertices: int, normal_map: NormalMap | None = None, may_drop: bool = True
) -> tuple[Segments, int]:
    """Turn lines in a mesh into polylines for a result of so many vertices.

    Lines that meet, or meet the boundary, are divided there. Where lines need too many vertices, those of least worth
    are dropped: their vertices are no longer locked. Where collapses are not possible, more vertices than wanted are
    left. The mesh is compact afterwards.

    Parameters
    ----------
    mesh
        Changed in place.
    segments
    vertices
    normal_map
        Given if segments are pixel sides: their staircase is removed, and ends of creases beside them are kept.
    may_drop
        Whether lines may be dropped.

    Returns
    -------
    segments : Segments
        The polylines.
    dropped : int
        Number of pieces of lines that were dropped.
    """
    pairs = find_edges(mesh, segments.places)
    chains = Chains.of(pairs, (mesh.flags & BOUNDARY).astype(np.bool_))
    points = mesh.vertices[chains.vertices]
    # Vertices that are locked for other reasons stay.
    fixed = mesh.flags[chains.vertices] & LINE == 0
    goal, needed = points, fixed | (mesh.flags[chains.vertices] & NEEDED > 0)
    if normal_map is not None:
        _polylines.keep_crease_ends(points.astype(np.int64), chains.starts, normal_map.normals, needed)
        goal = np.where(fixed[:, None], points, _smoothed(points, chains))
    worth: Float = np.bincount(chains.chain_of_edge, segments.worth, len(chains)).astype(np.float64)
    kept, good = _affordable(goal, needed, chains, worth, vertices / np.count_nonzero(mesh.covered), vertices)
    good |= not may_drop
    kept |= fixed
    needed &= kept
    on_good = np.repeat(good, np.diff(chains.starts))
    dropped = chains.vertices[~on_good]
    mesh.flags[dropped[mesh.flags[dropped] & LINE > 0]] &= BOUNDARY
    mesh.flags[chains.vertices[on_good & ~fixed]] |= LOCKED | LINE
    mesh.flags[chains.vertices[on_good & needed & ~fixed]] |= NEEDED
    starts = np.append(0, np.cumsum(np.diff(chains.starts)[good]))
    lines = Lines(starts, chains.vertices[on_good], goal[on_good], kept[on_good])
    _polylines.straighten_lines(lines, mesh.arrays, np.zeros(len(mesh.vertices), np.int32))
    there = np.flatnonzero(mesh.corner_of[lines.vertices] >= 0)
    chain = np.repeat(np.arange(len(starts) - 1), np.diff(starts))[there]
    within = chain[1:] == chain[:-1]
    ends = np.stack([lines.vertices[there[:-1]], lines.vertices[there[1:]]], axis=1)[within]
    count = np.bincount(chain[1:][within], minlength=len(starts) - 1)
    result = Segments(mesh.vertices[ends], (worth[good] / np.maximum(count, 1))[chain[1:][within]])
    mesh.compact()
    return result, int(np.count_nonzero(~good))


def _affordable(
    points: Float, needed: Bool, chains: Chains, worth: Float, density: float, vertices: int
) -> tuple[Bool, Bool]:
    """Return the points (K,) of chains that polylines keep, and the chains (C,) that a result can afford.

    Points that are ``needed`` (K,) are kept if there are vertices for them. ``density`` is the number of vertices of
    the result for each pixel.
    """
    tolerance = min(max(LINE_TOLERANCE / math.sqrt(density), FINEST), USUAL)
    kept = needed | _thinned(points, chains, tolerance)
    while np.count_nonzero(kept) - len(chains) > SHARE * vertices and tolerance < COARSEST / GROWTH:
        tolerance *= GROWTH
        # Lines come before the creases that end at them.
        kept = _thinned(points, chains, tolerance)
    edges = np.add.reduceat(kept, chains.starts[:-1], dtype=np.int64) - 1
    order = np.argsort(-worth / edges, kind="stable")
    good = np.zeros(len(chains), np.bool_)
    good[order[np.cumsum(edges[order]) <= SHARE * vertices]] = True
    return kept, good


def affordable_lines(lines: tuple[JumpLine, ...], vertices: int, density: float) -> tuple[tuple[JumpLine, ...], int]:
    """Return the lines that a result of so many vertices, of a density for each pixel, can afford as polylines.

    Return also how many vertices cuts along them will add: about one for each vertex of a polyline.
    """
    if not lines:
        return lines, 0
    points = np.concatenate([line.path for line in lines]).astype(np.float64)
    starts = np.append(0, np.cumsum([len(line.path) for line in lines]))
    edges = np.ones(len(points), np.int64)
    edges[starts[:-1]] = -1
    chains = Chains(starts, np.arange(len(points)), edges)
    worth = np.array([line.worth for line in lines])
    goal, none = _smoothed(points, chains), np.zeros(len(points), np.bool_)
    kept, good = _affordable(goal, none, chains, worth, density, vertices)
    needed = np.add.reduceat(kept, starts[:-1], dtype=np.int64) - 1
    return tuple(line for line, each in zip(lines, good, strict=True) if each), int(needed[good].sum())


def polish(mesh: ClosedMesh, segments: Segments, normal_map: NormalMap) -> Int32:
    """Move inner vertices of polylines to better places; return the vertices (S, 2) of their segments."""
    pairs = find_edges(mesh, segments.places)
    count = len(mesh.vertices)
    neighbours = np.full((count, 2), -1, np.int64)
    degree = np.bincount(pairs.ravel(), minlength=count)
    for one, other in (pairs.T, pairs[:, ::-1].T):
        first = neighbours[one, 0] < 0
        # Only vertices with two neighbours count, so it does not matter which of several is written last.
        neighbours[one[first], 0] = other[first]
        neighbours[one[~first], 1] = other[~first]
    inner = (degree == 2) & (mesh.flags | NEEDED == LOCKED | LINE | NEEDED)
    neighbours[~inner] = -1
    before, after = np.ascontiguousarray(neighbours.T)
    _polylines.polish_lines(np.flatnonzero(inner), before, after, mesh.arrays, normal_map.normals)
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


def _smoothed(points: Float, chains: Chains) -> Float:
    """Smooth the points (K, 2) of chains; their ends stay."""
    inside = np.ones(len(points), np.bool_)
    inside[chains.starts[:-1]] = inside[chains.starts[1:] - 1] = False
    here = np.flatnonzero(inside)
    smooth = points.copy()
    for _ in range(SMOOTHING_PASSES):
        smooth[here] = (smooth[here - 1] + 2 * smooth[here] + smooth[here + 1]) / 4
    moved = smooth - points
    distance = np.hypot(moved[:, 0], moved[:, 1])
    return points + moved * np.minimum(1.0, MAX_SHIFT / np.maximum(distance, MAX_SHIFT))[:, None]


def _thinned(points: Float, chains: Chains, tolerance: float) -> Bool:
    """Return the points (K,) of chains that polylines within a tolerance (px) need."""
    kept = np.zeros(len(points), np.bool_)
    for chain in range(len(chains)):
        piece = slice(chains.starts[chain], chains.starts[chain + 1])
        thin_line(points[piece], tolerance, LONGEST, kept[piece])
    return kept
