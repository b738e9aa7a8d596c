"""Kernels of :mod:`normalmesh.decimation.collapse`: cheapest edges first.

The queue holds one entry for each vertex, keyed by a lower bound on the cost of the edges that the vertex *owns*: those
to vertices that changed less recently. A collapse renews only its own vertex, which then owns all its edges; bounds of
its neighbours stay valid, because they only lost edges. So the queue never grows.

A *tile* is a square of whole pixels, and the vertices that lay in it. An edge collapses within a tile only where both
ends and all their neighbours belong to it, and where the outline changes within the square: no two tiles then touch the
same data, and all of them can be worked on at once.
"""

import math

import numpy as np

from normalmesh.mesh._closed_mesh import BOUNDARY, LOCKED, boundary_neighbours, collapse_edge, turn, vertex_at
from normalmesh.mesh._outline import change_outline, near_outline, nearest_point
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.mesh._validity import keeps_faces_upright, link_is_simple
from normalmesh.runtime.kernels import inner, kernel


@inner
def evaluate(quadric, du, dv):
    """Q̃(δu)."""
    return (
        quadric[0] * du * du
        + 2.0 * quadric[1] * du * dv
        + quadric[2] * dv * dv
        + 2.0 * (quadric[3] * du + quadric[4] * dv)
        + quadric[5]
    )


@inner
def _quadric_of(vertex, quadrics):
    """A vertex's quadric as a tuple: views of arrays cost more than the arithmetic."""
    return (
        quadrics[vertex, 0],
        quadrics[vertex, 1],
        quadrics[vertex, 2],
        quadrics[vertex, 3],
        quadrics[vertex, 4],
        quadrics[vertex, 5],
    )


@inner(forceinline=True)
def best_position(a, b, on_boundary, vertices, quadrics, flags, mask, in_plane):
    """Cost and position of the collapse of the edge ab, eq. (19); infinite where the outline or a lock forbids it."""
    au, av, bu, bv = vertices[a, 0], vertices[a, 1], vertices[b, 0], vertices[b, 1]
    duties = min(flags[a], flags[b])
    if duties & LOCKED or (duties & BOUNDARY and not on_boundary):
        return np.inf, 0.0, 0.0
    p, q = _quadric_of(a, quadrics), _quadric_of(b, quadrics)
    if flags[a] != flags[b]:
        # The vertex with fewer duties moves onto the other one.
        u, v = (bu, bv) if flags[a] < flags[b] else (au, av)
    else:
        u, v = _best_on_segment(p, q, au, av, bu - au, bv - av)
        if duties & BOUNDARY:
            u, v = _best_near_outline(p, q, au, av, bu, bv, u, v, mask)
        elif in_plane:
            u, v = _best_in_plane(p, q, au, av, bu - au, bv - av, u, v)
    return max(evaluate(p, u - au, v - av) + evaluate(q, u - bu, v - bv), 0.0), u, v


@inner(forceinline=True)
def _best_on_segment(p, q, u, v, du, dv):
    """Where the sum of two quadrics, around (u, v) and (u + du, v + dv), is least between the two points."""
    bend_q = q[0] * du * du + 2.0 * q[1] * du * dv + q[2] * dv * dv
    bend = p[0] * du * du + 2.0 * p[1] * du * dv + p[2] * dv * dv + bend_q
    slope = (p[3] + q[3]) * du + (p[4] + q[4]) * dv - bend_q
    t = min(max(-slope / bend, 0.0), 1.0) if bend > 0.0 else 0.5
    return u + t * du, v + t * dv


@inner
def _best_in_plane(p, q, u, v, du, dv, otherwise_u, otherwise_v):
    """Where the sum is least in the plane, not farther from the edge's middle than the edge is long; else as given."""
    uu, uv, vv = p[0] + q[0], p[1] + q[1], p[2] + q[2]
    right_u = q[0] * du + q[1] * dv - p[3] - q[3]
    right_v = q[1] * du + q[2] * dv - p[4] - q[4]
    determinant = uu * vv - uv * uv
    if determinant <= 1e-12 * (uu + vv) ** 2:
        return otherwise_u, otherwise_v
    step_u = (vv * right_u - uv * right_v) / determinant
    step_v = (uu * right_v - uv * right_u) / determinant
    if math.hypot(step_u - 0.5 * du, step_v - 0.5 * dv) > math.hypot(du, dv):
        return otherwise_u, otherwise_v
    return u + step_u, v + step_v


@inner(forceinline=True)
def _best_near_outline(p, q, au, av, bu, bv, segment_u, segment_v, mask):
    """The best point of the plane if it lies at the outline, else the best of the segment, else the better end.

    On a curved outline the best point lies outside the segment; ends are at the outline already.
    """
    u, v = _best_in_plane(p, q, au, av, bu - au, bv - av, segment_u, segment_v)
    if near_outline(u, v, mask):
        return u, v
    if near_outline(segment_u, segment_v, mask):
        return segment_u, segment_v
    if p[5] + evaluate(q, au - bu, av - bv) <= q[5] + evaluate(p, bu - au, bv - av):
        return au, av
    return bu, bv


@inner
def edge_on_boundary(corner, faces, opposite, ghost):
    """Whether the edge from a corner's vertex to the next one is part of the outline."""
    back = previous_corner(corner)
    return vertex_at(back, faces) == ghost or vertex_at(opposite[back], faces) == ghost


@inner
def lower_bound(vertex, vertices, faces, opposite, corner_of, ghost, quadrics, flags, stamp, mask, in_plane):
    """Least cost of the edges that a vertex owns, whether they may collapse or not."""
    least = np.inf
    start = corner_of[vertex]
    corner = start
    while True:
        other = vertex_at(next_corner(corner), faces)
        if other != ghost and stamp[other] < stamp[vertex]:
            on_boundary = edge_on_boundary(corner, faces, opposite, ghost)
            cost, _, _ = best_position(vertex, other, on_boundary, vertices, quadrics, flags, mask, in_plane)
            least = min(least, cost)
        corner = turn(corner, opposite)
        if corner == start:
            return least


@kernel
def lower_bounds(
    first, last, vertices, faces, opposite, corner_of, ghost, quadrics, flags, stamp, mask, in_plane, bounds
):  # fmt: skip
    """Fill the lower bounds (N,) of vertices, infinite for collapsed ones."""
    for vertex in range(first, last):
        bounds[vertex] = np.inf
        if corner_of[vertex] >= 0:
            bounds[vertex] = lower_bound(
                vertex, vertices, faces, opposite, corner_of, ghost, quadrics, flags, stamp, mask, in_plane
            )


@inner
def boundary_order(vertex, other, corner, faces, ghost):
    """The ends of the boundary edge from a corner's vertex to the other one, in the order of the boundary."""
    if vertex_at(previous_corner(corner), faces) == ghost:
        return other, vertex
    return vertex, other


@inner
def outline_follows(first, second, u, v, vertices, faces, opposite, corner_of, ghost, covered, commit):
    """Whether the boundary edge from first to second may become the vertex (u, v); see :func:`change_outline`."""
    before, _ = boundary_neighbours(first, faces, opposite, corner_of, ghost)
    _, after = boundary_neighbours(second, faces, opposite, corner_of, ghost)
    polygon = np.empty((5, 2))
    for k in range(2):
        polygon[0, k], polygon[2, k] = vertices[before, k], vertices[after, k]
        polygon[3, k], polygon[4, k] = vertices[second, k], vertices[first, k]
    polygon[1, 0], polygon[1, 1] = u, v
    return change_outline(polygon, covered, commit)


@inner(forceinline=True)
def may_collapse(
    vertex, other, corner, u, v, vertices, faces, opposite, corner_of, ghost, flags, covered, mark, token
):  # fmt: skip
    """Whether the mesh stays valid when an edge becomes the vertex (u, v)."""
    if not link_is_simple(vertex, other, faces, opposite, corner_of, ghost, mark, token):
        return False
    if not keeps_faces_upright(vertex, other, u, v, vertices, faces, opposite, corner_of, ghost):
        return False
    if not keeps_faces_upright(other, vertex, u, v, vertices, faces, opposite, corner_of, ghost):
        return False
    if flags[vertex] & flags[other] & BOUNDARY:
        first, second = boundary_order(vertex, other, corner, faces, ghost)
        return outline_follows(first, second, u, v, vertices, faces, opposite, corner_of, ghost, covered, False)
    return True


@inner(forceinline=True)
def is_within(vertex, tile, tile_of, faces, opposite, corner_of, ghost):
    """Whether all neighbours of a vertex belong to the tile; always without tiles (−1)."""
    if tile < 0:
        return True
    start = corner_of[vertex]
    corner = start
    while True:
        other = vertex_at(next_corner(corner), faces)
        if other != ghost and tile_of[other] != tile:
            return False
        corner = turn(corner, opposite)
        if corner == start:
            return True


@inner(forceinline=True)
def outline_within(vertex, other, u, v, tile, squares, vertices, faces, opposite, corner_of, ghost, flags):
    """Whether the outline changes only within the tile's square when an edge becomes the vertex (u, v)."""
    if tile < 0 or not flags[vertex] & flags[other] & BOUNDARY:
        return True
    if not _inside(u, v, tile, squares):
        return False
    for end in (np.int64(vertex), np.int64(other)):
        before, after = boundary_neighbours(end, faces, opposite, corner_of, ghost)
        for near in (end, np.int64(before), np.int64(after)):
            if not _inside(vertices[near, 0], vertices[near, 1], tile, squares):
                return False
    return True


@inner
def _inside(u, v, tile, squares):
    left, top, side = squares[tile, 0], squares[tile, 1], squares[tile, 2]
    return left <= u <= left + side and top <= v <= top + side


@inner(forceinline=True)
def cheapest_edge(
    vertex, tile, tile_of, squares, vertices, faces, opposite, corner_of, ghost, quadrics, flags, stamp, mask,
    in_plane, covered, mark, token, beyond,
):  # fmt: skip
    """The cheapest edge that a vertex owns and that may collapse: cost, corner, position; and the last token used.

    Looks no further than the first cost above ``beyond``: that is returned as a bound, with corner −1. Last comes the
    least cost of those edges that had to wait, because they reach out of the tile.
    """
    refused_cost, refused = -1.0, -1
    waiting = np.inf
    while True:
        # The next edge in the order of cost, then vertex.
        best, best_corner, best_other, best_u, best_v = np.inf, -1, -1, 0.0, 0.0
        start = corner_of[vertex]
        corner = start
        while True:
            other = vertex_at(next_corner(corner), faces)
            if other != ghost and stamp[other] < stamp[vertex]:
                on_boundary = edge_on_boundary(corner, faces, opposite, ghost)
                cost, u, v = best_position(vertex, other, on_boundary, vertices, quadrics, flags, mask, in_plane)
                untried = cost > refused_cost or (cost == refused_cost and other > refused)
                if untried and (cost < best or (cost == best and other < best_other)):
                    best, best_corner, best_other, best_u, best_v = cost, corner, other, u, v
            corner = turn(corner, opposite)
            if corner == start:
                break
        if best == np.inf or best > beyond:
            return best, -1, 0.0, 0.0, token, waiting
        token += 1
        if not is_within(best_other, tile, tile_of, faces, opposite, corner_of, ghost) or not outline_within(
            vertex, best_other, best_u, best_v, tile, squares, vertices, faces, opposite, corner_of, ghost, flags
        ):
            waiting = min(waiting, best)
        elif may_collapse(
            vertex, best_other, best_corner, best_u, best_v, vertices, faces, opposite, corner_of, ghost, flags,
            covered, mark, token,
        ):  # fmt: skip
            return best, best_corner, best_u, best_v, token, waiting
        refused_cost, refused = best, best_other


@inner(forceinline=True)
def merge_quadrics(a, b, u, v, vertices, quadrics):
    """The sum of two vertices' quadrics, moved to the new position, stored at a."""
    for vertex in (a, b):
        q = quadrics[vertex]
        du, dv = u - vertices[vertex, 0], v - vertices[vertex, 1]
        constant = evaluate(_quadric_of(vertex, quadrics), du, dv)
        q[3] += q[0] * du + q[1] * dv
        q[4] += q[1] * du + q[2] * dv
        q[5] = constant
    for k in range(6):
        quadrics[a, k] += quadrics[b, k]


@inner(forceinline=True)
def queue_up(members, bounds, limit, keys, items):
    """Make a heap of those members whose bound is below the limit; their number."""
    size = 0
    for vertex in members:
        if bounds[vertex] < limit:
            keys[size], items[size] = bounds[vertex], vertex
            size += 1
    for place in range(size // 2 - 1, -1, -1):
        sift_down(keys, items, place, size)
    return size


@inner(forceinline=True)
def collapse_queue(
    members, bounds, tile, tile_of, squares, vertices, faces, opposite, corner_of, ghost, quadrics, flags, stamp, mask,
    in_plane, outline_of, next_point, points, covered, mark, clock, most, limit,
):  # fmt: skip
    """Collapse edges of some vertices, cheapest first; the number of collapses and the largest cost."""
    keys, items = np.empty(members.size), np.empty(members.size, np.int32)
    size = queue_up(members, bounds, limit, keys, items)
    largest = 0.0
    done = token = 0
    while size > 0 and done < most and keys[0] < limit:
        vertex = items[0]
        runner_up = min(keys[1] if size > 1 else np.inf, keys[2] if size > 2 else np.inf)
        cost, corner, u, v = np.inf, -1, 0.0, 0.0
        if corner_of[vertex] >= 0:
            waiting = keys[0]
            if is_within(vertex, tile, tile_of, faces, opposite, corner_of, ghost):
                cost, corner, u, v, token, waiting = cheapest_edge(
                    vertex, tile, tile_of, squares, vertices, faces, opposite, corner_of, ghost, quadrics, flags, stamp,
                    mask, in_plane, covered, mark, token, runner_up,
                )  # fmt: skip
            bounds[vertex] = min(cost, waiting)
        keys[0] = cost
        if cost >= limit:
            # Out of the queue, until the vertex changes.
            size -= 1
            keys[0], items[0] = keys[size], items[size]
        elif corner >= 0:
            other = vertex_at(next_corner(corner), faces)
            if flags[vertex] & flags[other] & BOUNDARY:
                first, second = boundary_order(vertex, other, corner, faces, ghost)
                outline_follows(first, second, u, v, vertices, faces, opposite, corner_of, ghost, covered, True)
                point = nearest_point(outline_of[first], outline_of[second], u, v, next_point, points)
                outline_of[vertex] = point
            elif flags[other] & BOUNDARY:
                outline_of[vertex] = outline_of[other]
            merge_quadrics(vertex, other, u, v, vertices, quadrics)
            collapse_edge(previous_corner(corner), faces, opposite, corner_of)
            flags[vertex] = max(flags[vertex], flags[other])
            vertices[vertex, 0], vertices[vertex, 1] = u, v
            done += 1
            stamp[vertex] = clock + done
            largest = max(largest, cost)
            keys[0] = bounds[vertex] = lower_bound(
                vertex, vertices, faces, opposite, corner_of, ghost, quadrics, flags, stamp, mask, in_plane
            )
        if size > 0:
            sift_down(keys, items, 0, size)
    return done, largest


@kernel
def tiles(vertices, corner_of, left, top, side, wide, high, tile_of, members, starts):
    """Fill the tile of each vertex (N,), and the vertices tile by tile: tile t is members[starts[t]:starts[t + 1]].

    Tiles are numbered row by row, ``wide`` × ``high`` squares from (left, top) on. Collapsed vertices are in none (−1);
    those outside, as the outline may have moved, count to the nearest. ``starts`` (T + 2,) must be zero.
    """
    for vertex in range(tile_of.size):
        tile_of[vertex] = -1
        if corner_of[vertex] >= 0:
            column = min(max(int((vertices[vertex, 0] - left) / side), 0), wide - 1)
            row = min(max(int((vertices[vertex, 1] - top) / side), 0), high - 1)
            tile_of[vertex] = row * wide + column
            starts[tile_of[vertex] + 2] += 1
    for t in range(wide * high):
        starts[t + 2] += starts[t + 1]
    for vertex in range(tile_of.size):
        if tile_of[vertex] >= 0:
            members[starts[tile_of[vertex] + 1]] = vertex
            starts[tile_of[vertex] + 1] += 1


@kernel
def collapse_tiles(
    first, last, offset, starts, members, most, bounds, tile_of, squares, vertices, faces, opposite, corner_of, ghost,
    quadrics, flags, stamp, mask, in_plane, outline_of, next_point, points, covered, mark, clock, limit, collapses,
    costs,
):  # fmt: skip
    """Collapse edges cheaper than the limit within tiles: tile offset + t is members[starts[t]:starts[t + 1]].

    ``squares`` (T, 3) are left, top and side of all tiles; tile −1 is the whole mesh. ``most`` (T,) edges of each tile
    collapse at most. ``bounds`` (N,) are the vertices' lower bounds, and stay so; ``mark`` (N + 1,) must be zero,
    ``clock`` the last stamp used. Fills the numbers of collapses (T,) and the largest costs (T,).
    """
    for t in range(first, last):
        collapses[t], costs[t] = collapse_queue(
            members[starts[t] : starts[t + 1]], bounds, offset + t, tile_of, squares, vertices, faces, opposite,
            corner_of, ghost, quadrics, flags, stamp, mask, in_plane, outline_of, next_point, points, covered, mark,
            clock + starts[t], most[t], limit,
        )  # fmt: skip


@inner(forceinline=True)
def sift_down(keys, items, place, size):
    """Restore the order of a binary heap, by key and then by item, below one place."""
    key, item = keys[place], items[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and _comes_first(keys[child + 1], items[child + 1], keys[child], items[child]):
            child += 1
        if not _comes_first(keys[child], items[child], key, item):
            break
        keys[place], items[place] = keys[child], items[child]
        place = child
    keys[place], items[place] = key, item


@inner
def _comes_first(key, item, other_key, other_item):
    return key < other_key or (key == other_key and item < other_item)
