"""Kernels of :mod:`normalmesh.jumps.lines`: centre lines of bands of strained edges."""

from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Bool, Float, Int
from normalmesh.mesh._chains import Adjacency, fill_adjacency
from normalmesh.runtime._heap import drop_first, push
from normalmesh.runtime.kernels import inner, kernel

#: Edges at most that an end is continued by, and vertices of its own line that it does not join.
MAX_SEARCH, MAX_OWN = 400, 200


class Band(NamedTuple):
    """Edges among which centre lines are sought.

    Attributes
    ----------
    ends : (E, 2) int64
    lengths : (E,)
        Lengths, in px.
    costs : (E,)
        Lengths along which lines are as short as possible.
    strain : (E,)
    release : (E,)
        Energy that cutting the edge releases.
    fixed : (N,) bool
        Vertices of the outline.
    """

    ends: Int
    lengths: Float
    costs: Float
    strain: Float
    release: Float
    fixed: Bool


class LineRule(NamedTuple):
    """What makes a line.

    Attributes
    ----------
    low : float
        Mean strain of a branch, at least.
    release : float
        Energy that a branch releases for each px of its length, at least.
    branch : float
        Length (px) of a branch, at least.
    reach : float
        Length (px) by which an end is continued at most to another line or to the outline.
    strong, cheap : float
        Edges of at least this strain count this share of their length in the reach.
    own : float
        Length (px) of its own line, next to an end, that the end does not join.
    """

    low: float
    release: float
    branch: float
    reach: float
    strong: float
    cheap: float
    own: float


class Paths(NamedTuple):
    """Shortest paths to the centre lines found so far.

    ``distance`` (N,) is in costs, ``length`` (N,) in px; ``parent`` (N,) is the next vertex on the path and ``via``
    (N,) the edge to it, −1 on a line. ``distances`` and ``waiting`` (2E + N + 1,) are the heap of vertices from which
    paths are continued.
    """

    distance: Float
    length: Float
    parent: Int
    via: Int
    distances: Float
    waiting: Int


class Search(NamedTuple):
    """Work arrays of the search for ways from free ends of lines.

    ``degree`` (N,) is the number of chosen edges at each vertex, ``own`` (N,) whether it is on the end's own line, and
    ``walked`` (MAX_OWN,) lists these vertices. Entry i of the search (MAX_SEARCH,) is at ``vertex[i]``, which the edge
    ``via[i]`` leads to from entry ``origin[i]``. ``distances`` and ``waiting`` are a heap of entries to continue from.
    """

    degree: Int
    own: Bool
    walked: Int
    vertex: Int
    origin: Int
    via: Int
    distances: Float
    waiting: Int


@inner
def spread_paths(size, adjacency, band, paths):
    """Continue shortest paths from the ``size`` vertices that wait."""
    distances, waiting = paths.distances, paths.waiting
    while size > 0:
        distance, v = distances[0], waiting[0]
        size = drop_first(distances, waiting, size)
        if distance > paths.distance[v]:
            continue
        for k in range(adjacency.first[v], adjacency.first[v + 1]):
            u, e = adjacency.others[k], adjacency.edges[k]
            further = distance + band.costs[e]
            if further < paths.distance[u] - 1e-12:
                paths.distance[u], paths.parent[u], paths.via[u] = further, v, e
                paths.length[u] = paths.length[v] + band.lengths[e]
                size = push(distances, waiting, size, further, u)


@inner
def farthest_from(start, members, adjacency, band, paths):
    """Find shortest paths from one vertex to all ``members`` of its component; return the one with the longest path."""
    for v in members:
        paths.distance[v] = np.inf
    paths.distance[start], paths.length[start], paths.parent[start] = 0.0, 0.0, -1
    spread_paths(push(paths.distances, paths.waiting, 0, 0.0, start), adjacency, band, paths)
    far = start
    for v in members:
        if paths.length[v] > paths.length[far]:
            far = v
    return far


@inner
def is_worth(tip, band, rule, paths):
    """Return whether the branch from a tip to the lines is strained and releases enough."""
    length, release, strain, v = 0.0, 0.0, 0.0, tip
    while paths.parent[v] >= 0:
        e = paths.via[v]
        length += band.lengths[e]
        release += band.release[e]
        strain += band.lengths[e] * band.strain[e]
        v = paths.parent[v]
    return release >= rule.release * length and strain >= rule.low * length


@inner
def add_branch(tip, is_first, members, adjacency, band, paths, chosen, on_line):
    """Make the path from a tip part of the lines, and shorten the paths of the other vertices."""
    size = 0
    v = tip
    while True:
        on_line[v] = True
        paths.distance[v], paths.length[v] = 0.0, 0.0
        size = push(paths.distances, paths.waiting, size, 0.0, v)
        parent = paths.parent[v]
        if parent < 0:
            break
        chosen[paths.via[v]] = True
        paths.parent[v] = -1
        v = parent
    if is_first:
        for v in members:
            if not on_line[v]:
                paths.distance[v] = np.inf
    spread_paths(size, adjacency, band, paths)


@inner
def trace_component(members, adjacency, band, rule, paths, chosen, on_line, barred):
    """Choose the longest shortest path of a component, then again and again the farthest branch that is worth it."""
    start = farthest_from(members[0], members, adjacency, band, paths)
    tip = farthest_from(start, members, adjacency, band, paths)
    if paths.length[tip] < rule.branch:
        return
    is_first = True
    while tip >= 0:
        if is_first or is_worth(tip, band, rule, paths):
            add_branch(tip, is_first, members, adjacency, band, paths, chosen, on_line)
            is_first = False
        else:
            v = tip
            while paths.parent[v] >= 0:
                barred[v] = True
                v = paths.parent[v]
        tip = -1
        for v in members:
            is_branch = not on_line[v] and not barred[v] and paths.length[v] >= rule.branch
            if is_branch and (tip < 0 or paths.length[v] > paths.length[tip]):
                tip = v


@kernel
def centre_lines(band, rule, chosen):
    """Set ``chosen`` (E,), False before, for the edges of centre lines of the components of a band."""
    count, sides = band.fixed.size, band.ends.size
    adjacency = Adjacency(np.zeros(count + 1, np.int64), np.empty(sides, np.int64), np.empty(sides, np.int64))
    fill_adjacency(band.ends, adjacency)
    # A path is continued from each vertex once, and so enters the heap once over each side of an edge.
    most = sides + count + 1
    paths = Paths(
        np.full(count, np.inf),
        np.zeros(count),
        np.full(count, -1),
        np.full(count, -1),
        np.empty(most),
        np.empty(most, np.int64),
    )
    on_line, barred, known = np.zeros(count, np.bool_), np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    members = np.empty(count, np.int64)
    for root in range(count):
        if known[root]:
            continue
        known[root], members[0] = True, root
        size, k = 1, 0
        while k < size:
            v = members[k]
            k += 1
            for j in range(adjacency.first[v], adjacency.first[v + 1]):
                u = adjacency.others[j]
                if not known[u]:
                    known[u], members[size] = True, u
                    size += 1
        if size > 1:
            trace_component(members[:size], adjacency, band, rule, paths, chosen, on_line, barred)
    search = Search(
        np.zeros(count, np.int64),
        np.zeros(count, np.bool_),
        np.empty(MAX_OWN, np.int64),
        np.empty(MAX_SEARCH, np.int64),
        np.empty(MAX_SEARCH, np.int64),
        np.empty(MAX_SEARCH, np.int64),
        np.empty(MAX_SEARCH),
        np.empty(MAX_SEARCH, np.int64),
    )
    join_ends(adjacency, band, rule, chosen, search)


@inner
def join_ends(adjacency, band, rule, chosen, search):
    """Continue free ends of lines to another line or to the outline, if one is near.

    ``degree`` and ``own`` of the search are zero before.
    """
    degree, own, walked = search.degree, search.own, search.walked
    for e in range(chosen.size):
        if chosen[e]:
            degree[band.ends[e, 0]] += 1
            degree[band.ends[e, 1]] += 1
    for tip in range(band.fixed.size):
        if degree[tip] == 1 and not band.fixed[tip]:
            steps = mark_own(tip, adjacency, band, rule.own, chosen, own, walked)
            join_end(tip, adjacency, band, rule, chosen, search)
            for k in range(steps):
                own[walked[k]] = False


@inner
def mark_own(tip, adjacency, band, length, chosen, own, walked):
    """Mark the vertices of a line up to a length from its tip in ``own`` (N,), list them, and return their number."""
    steps, v, before, run = 0, tip, -1, 0.0
    while steps < walked.size and run < length:
        walked[steps] = v
        steps += 1
        own[v] = True
        following = -1
        for k in range(adjacency.first[v], adjacency.first[v + 1]):
            if chosen[adjacency.edges[k]] and adjacency.edges[k] != before:
                following = k
        if following < 0:
            break
        before = adjacency.edges[following]
        run += band.lengths[before]
        v = adjacency.others[following]
    return steps


@inner
def join_end(tip, adjacency, band, rule, chosen, search):
    """Choose the edges of the shortest way from a tip to another line or to the outline within reach."""
    degree, own, vertex, origin, via = search.degree, search.own, search.vertex, search.origin, search.via
    vertex[0], origin[0], via[0] = tip, -1, -1
    size, goal = 1, -1
    left = push(search.distances, search.waiting, 0, 0.0, 0)
    while left > 0 and size < MAX_SEARCH:
        distance, i = search.distances[0], search.waiting[0]
        left = drop_first(search.distances, search.waiting, left)
        v = vertex[i]
        if v != tip and ((degree[v] > 0 and not own[v]) or band.fixed[v]):
            goal = i
            break
        for k in range(adjacency.first[v], adjacency.first[v + 1]):
            e, u = adjacency.edges[k], adjacency.others[k]
            if band.strain[e] < 0.3 * rule.low or own[u]:
                continue
            further = distance + band.lengths[e] * (rule.cheap if band.strain[e] >= rule.strong else 1.0)
            if further <= rule.reach and size < MAX_SEARCH:
                vertex[size], origin[size], via[size] = u, i, e
                left = push(search.distances, search.waiting, left, further, size)
                size += 1
    while goal > 0:
        e = via[goal]
        if not chosen[e]:
            chosen[e] = True
            degree[band.ends[e, 0]] += 1
            degree[band.ends[e, 1]] += 1
        goal = origin[goal]


@kernel
def shorten_lines(cut, face_edges, ends, areas, max_area, fixed):
    """Let two cut sides of a small face, whose common corner lies on no other line, become its third side.

    ``cut`` (E,) is changed in place; ``face_edges`` (M, 3) are the edges of each face, −1 at the boundary.
    """
    degree = np.zeros(fixed.size, np.int64)
    for e in range(cut.size):
        if cut[e]:
            degree[ends[e, 0]] += 1
            degree[ends[e, 1]] += 1
    for f in range(areas.size):
        if areas[f] > max_area:
            continue
        one, two, third = face_edges[f, 0], face_edges[f, 1], face_edges[f, 2]
        if min(one, two, third) < 0:
            continue
        if not cut[one]:
            one, third = third, one
        elif not cut[two]:
            two, third = third, two
        if cut[third] or not (cut[one] and cut[two]):
            continue
        v = ends[one, 0]
        if v != ends[two, 0] and v != ends[two, 1]:
            v = ends[one, 1]
        if degree[v] == 2 and not fixed[v]:
            cut[one] = cut[two] = False
            cut[third] = True
            degree[v] = 0
