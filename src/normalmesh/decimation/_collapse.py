"""Kernels of :mod:`normalmesh.decimation.collapse`: the order of collapses, cheapest edges first.

The queue holds one entry for each vertex, keyed by a lower bound on the cost of the edges that the vertex *owns*: those
to vertices that changed less recently. A collapse renews only its own vertex, which then owns all its edges; bounds of
its neighbours stay valid, because they only lost edges. So the queue never grows.

A *tile* is a square of whole pixels, and the vertices that lay in it. An edge collapses within a tile only if both ends
and all their neighbours belong to it, and if the outline changes within the square: no two tiles then touch the same
data, and threads can work on all of them at once.
"""

from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Float, Int, Int32
from normalmesh.decimation._edge_collapse import best_position, collapse_to, edge_on_boundary, may_collapse
from normalmesh.mesh._closed_mesh import BOUNDARY, boundary_neighbours, turn, vertex_at
from normalmesh.mesh._topology import next_corner
from normalmesh.runtime._heap import sift_down
from normalmesh.runtime.kernels import inner, kernel


class QueueArrays(NamedTuple):
    """The state of the queue, for each vertex.

    Attributes
    ----------
    stamp : (N,) int32
        The time of the last change of each vertex.
    bounds : (N,) float64
        Lower bounds of the costs of the edges that each vertex owns.
    mark : (N,) int32
        A work array, zero at the start of a sweep.
    """

    stamp: Int32
    bounds: Float
    mark: Int32


class Tiles(NamedTuple):
    """A range of tiles.

    Attributes
    ----------
    first : int
        Number of the first tile; −1 for a single one that is the whole mesh.
    starts : (T + 1,) int64
        Tile first + t has the vertices ``members[starts[t]:starts[t + 1]]``.
    members : (N,) int32
        Vertices, tile by tile.
    tile_of : (N,) int32
        The tile of each vertex, −1 for collapsed ones.
    left, top, side : float
        Corner of the first tile of all, and side of a tile, in pixels.
    wide : int
        Number of tiles side by side; they are numbered row by row.
    """

    first: int
    starts: Int
    members: Int32
    tile_of: Int32
    left: float
    top: float
    side: float
    wide: int


class Sweep(NamedTuple):
    """The limits of the collapses in each tile, and their results.

    Attributes
    ----------
    limit : float
        Cost (px⁴) up to which edges collapse.
    most : (T,) int64
        Vertices to save in each tile, at most; the last collapse may save one more.
    clock : int
        The last stamp used.
    saved, costs : (T,) int64, (T,) float64
        Written: the number of vertices that collapses save in each tile, and the largest cost among them.
    """

    limit: float
    most: Int
    clock: int
    saved: Int
    costs: Float


class Tile(NamedTuple):
    """One tile: its number, the tile of each vertex, and its square. Number −1 is the whole mesh."""

    number: int
    tile_of: Int32
    left: float
    top: float
    side: float


@inner
def lower_bound(vertex, mesh, costs, stamp):
    """Return the least cost of the edges that a vertex owns, whether they may collapse or not."""
    faces, opposite, ghost = mesh.faces, mesh.opposite, mesh.ghost
    least = np.inf
    start = mesh.corner_of[vertex]
    corner = start
    while True:
        other = vertex_at(next_corner(corner), faces)
        if other != ghost and stamp[other] < stamp[vertex]:
            cost, _, _ = best_position(vertex, other, edge_on_boundary(corner, mesh), mesh, costs)
            least = min(least, cost)
        corner = turn(corner, opposite)
        if corner == start:
            return least


@kernel
def lower_bounds(first, last, mesh, costs, stamp, bounds):
    """Fill the lower bounds (N,) of vertices, infinite for collapsed ones."""
    for vertex in range(first, last):
        bounds[vertex] = np.inf
        if mesh.corner_of[vertex] >= 0:
            bounds[vertex] = lower_bound(vertex, mesh, costs, stamp)


@inner(forceinline=True)
def is_within(vertex, tile, mesh):
    """Check whether all neighbours of a vertex belong to the tile."""
    if tile.number < 0:
        return True
    start = mesh.corner_of[vertex]
    corner = start
    while True:
        other = vertex_at(next_corner(corner), mesh.faces)
        if other != mesh.ghost and tile.tile_of[other] != tile.number:
            return False
        corner = turn(corner, mesh.opposite)
        if corner == start:
            return True


@inner(forceinline=True)
def outline_within(vertex, other, u, v, tile, mesh):
    """Check whether the outline changes only within the tile's square when an edge becomes the vertex (u, v)."""
    if tile.number < 0 or not mesh.flags[vertex] & mesh.flags[other] & BOUNDARY:
        return True
    if not is_in_square(u, v, tile):
        return False
    for end in (np.int64(vertex), np.int64(other)):
        before, after = boundary_neighbours(end, mesh)
        for near in (end, np.int64(before), np.int64(after)):
            if not is_in_square(mesh.vertices[near, 0], mesh.vertices[near, 1], tile):
                return False
    return True


@inner
def is_in_square(u, v, tile):
    """Check whether (u, v) lies in the square of a tile."""
    return tile.left <= u <= tile.left + tile.side and tile.top <= v <= tile.top + tile.side


@inner(forceinline=True)
def cheapest_edge(vertex, beyond, token, mesh, coverage, costs, queue, tile):
    """Find the cheapest edge that a vertex owns and that may collapse.

    Return its cost, its corner at the vertex, its position (u, v), the last token used, and the least cost of those
    edges that have to wait because they reach out of the tile. Edges are tried in the order of cost up to ``beyond``;
    the first cost above it is returned as a bound, with corner −1.
    """
    stamp = queue.stamp
    refused_cost, refused = -1.0, -1
    waiting = np.inf
    while True:
        # The next edge in the order of cost, then vertex.
        best, best_corner, best_other, best_u, best_v = np.inf, -1, -1, 0.0, 0.0
        start = mesh.corner_of[vertex]
        corner = start
        while True:
            other = vertex_at(next_corner(corner), mesh.faces)
            if other != mesh.ghost and stamp[other] < stamp[vertex]:
                cost, u, v = best_position(vertex, other, edge_on_boundary(corner, mesh), mesh, costs)
                untried = cost > refused_cost or (cost == refused_cost and other > refused)
                if untried and (cost < best or (cost == best and other < best_other)):
                    best, best_corner, best_other, best_u, best_v = cost, corner, other, u, v
            corner = turn(corner, mesh.opposite)
            if corner == start:
                break
        if best == np.inf or best > beyond:
            return best, -1, 0.0, 0.0, token, waiting
        token += 1
        if not is_within(best_other, tile, mesh) or not outline_within(vertex, best_other, best_u, best_v, tile, mesh):
            waiting = min(waiting, best)
        elif may_collapse(best_corner, best_u, best_v, mesh, coverage, queue.mark, token):
            return best, best_corner, best_u, best_v, token, waiting
        refused_cost, refused = best, best_other


@inner(forceinline=True)
def fill_heap(members, bounds, limit, keys, items):
    """Make a heap of those members whose bound is below the limit; return their number."""
    size = 0
    for vertex in members:
        if bounds[vertex] < limit:
            keys[size], items[size] = bounds[vertex], vertex
            size += 1
    for place in range(size // 2 - 1, -1, -1):
        sift_down(keys, items, place, size)
    return size


@kernel
def collapse_tiles(first, last, mesh, outline, costs, queue, tiles, sweep):
    """Collapse edges cheaper than the limit within the tiles first … last − 1 of those given, cheapest first in each.

    Written are the mesh, its outline, the quadrics and the queue, and the results of the sweep: the vertices saved and
    the largest cost of each tile. Bounds stay lower bounds.
    """
    for t in range(first, last):
        number = tiles.first + t
        left, top = tiles.left + tiles.side * (number % tiles.wide), tiles.top + tiles.side * (number // tiles.wide)
        tile = Tile(number, tiles.tile_of, left, top, tiles.side)
        members = tiles.members[tiles.starts[t] : tiles.starts[t + 1]]
        bounds, limit = queue.bounds, sweep.limit
        keys, items = np.empty(members.size), np.empty(members.size, np.int32)
        size = fill_heap(members, bounds, limit, keys, items)
        largest = 0.0
        done = saved = token = 0
        while size > 0 and saved < sweep.most[t] and keys[0] < limit:
            vertex = items[0]
            runner_up = min(keys[1] if size > 1 else np.inf, keys[2] if size > 2 else np.inf)
            cost, corner, u, v = np.inf, -1, 0.0, 0.0
            if mesh.corner_of[vertex] >= 0:
                waiting = keys[0]
                if is_within(vertex, tile, mesh):
                    cost, corner, u, v, token, waiting = cheapest_edge(
                        vertex, runner_up, token, mesh, outline.coverage, costs, queue, tile
                    )
                bounds[vertex] = min(cost, waiting)
            keys[0] = cost
            if cost >= limit:
                # Out of the queue, until the vertex changes.
                size -= 1
                keys[0], items[0] = keys[size], items[size]
            elif corner >= 0:
                saved += collapse_to(corner, u, v, mesh, outline, costs)
                done += 1
                queue.stamp[vertex] = sweep.clock + tiles.starts[t] + done
                largest = max(largest, cost)
                keys[0] = bounds[vertex] = lower_bound(vertex, mesh, costs, queue.stamp)
            if size > 0:
                sift_down(keys, items, 0, size)
        sweep.saved[t], sweep.costs[t] = saved, largest


@kernel
def find_tiles(first, last, length, mesh, tiles, high, counts):
    """Fill ``tile_of`` of ``wide`` × ``high`` tiles for chunks of vertices, and count them: counts (chunks, T).

    A chunk has ``length`` vertices. Vertices outside all tiles, as the outline may have moved, belong to the nearest.
    """
    vertices, tile_of, wide = mesh.vertices, tiles.tile_of, tiles.wide
    for chunk in range(first, last):
        for vertex in range(chunk * length, min((chunk + 1) * length, tile_of.size)):
            tile_of[vertex] = -1
            if mesh.corner_of[vertex] >= 0:
                column = min(max(int((vertices[vertex, 0] - tiles.left) / tiles.side), 0), wide - 1)
                row = min(max(int((vertices[vertex, 1] - tiles.top) / tiles.side), 0), high - 1)
                tile_of[vertex] = row * wide + column
                counts[chunk, tile_of[vertex]] += 1


@kernel
def fill_members(first, last, length, tiles, places):
    """Fill ``members`` with the vertices of some chunks; ``places`` (chunks, T) is where those in a tile begin."""
    tile_of = tiles.tile_of
    for chunk in range(first, last):
        for vertex in range(chunk * length, min((chunk + 1) * length, tile_of.size)):
            if tile_of[vertex] >= 0:
                tiles.members[places[chunk, tile_of[vertex]]] = vertex
                places[chunk, tile_of[vertex]] += 1
