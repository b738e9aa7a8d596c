"""Kernels of :mod:`normalmesh.decimation.polylines`."""

import math
from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Bool, Float, Int
from normalmesh.mesh._closed_mesh import collapse_edge, turn, vertex_at
from normalmesh.mesh._raster import by_height, face_edges, first_row, row_span
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.mesh._validity import keeps_faces_upright, link_is_simple
from normalmesh.runtime.kernels import inner, kernel

#: Times that vertices are moved to the smooth line, and that those between the kept ones are collapsed.
MOVES, COLLAPSES = 2, 4
#: Sweeps in which polylines are polished, and the steps (px) of the sweeps.
POLISH_STEPS = (0.5, 0.5, 0.25, 0.25)
#: Distance (px), in u and v, by which polishing moves a vertex at most: lines are known to half a pixel.
MAX_POLISH = 0.5
#: Ratio of twice its area to the square of its longest side that a face beside a line has at least after a collapse.
MIN_FLATNESS = 0.04
#: Change of the unit normals beside a line where a crease ends, and the distance (px) between two such ends.
CREASE, CREASE_SPACING = 0.7, 6
#: What a turn by 45° costs in squared differences of unit normals, summed over pixels; and what any move costs.
TURN_COST, MOVE_COST = 4.0, 0.02
#: Faces beside a polyline have twice this area (px²), and this height over their longest side (px), at least.
MIN_DOUBLE_AREA, MIN_HEIGHT = 0.2, 0.4


class Lines(NamedTuple):
    """Chains of vertices, as kernels take them.

    ``vertices[starts[c]:starts[c + 1]]`` are the vertices of chain c, ``smooth`` (K, 2) the places where they should
    be, and ``kept`` (K,) those that should stay.
    """

    starts: Int
    vertices: Int
    smooth: Float
    kept: Bool


@kernel
def thin_line(points, tolerance, longest, kept):
    """Set ``kept`` (P,), False before, for the points (P, 2) that Douglas and Peucker keep.

    Segments are at most ``longest`` px long.
    """
    last = len(points) - 1
    kept[0] = kept[last] = True
    waiting = [(0, last)]
    while len(waiting) > 0:
        i, j = waiting.pop()
        if j - i < 2:
            continue
        du, dv = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1]
        length = math.hypot(du, dv)
        farthest, distance = i + 1, -1.0
        for k in range(i + 1, j):
            u, v = points[k, 0] - points[i, 0], points[k, 1] - points[i, 1]
            away = abs(du * v - dv * u) / length if length > 1e-9 else math.hypot(u, v)
            if away > distance:
                farthest, distance = k, away
        if distance <= tolerance:
            if length <= longest:
                continue
            farthest = (i + j) // 2
        kept[farthest] = True
        waiting.append((i, farthest))
        waiting.append((farthest, j))


@inner
def change_beside(points, k, left, normals):
    """Return the squared change of the normals on one side of a line from before point k to after it.

    ``points`` are pixel corners, one px apart. It is 0 if one of the two pixels is outside of the image.
    """
    total = 0.0
    for axis in range(3):
        before = after = 0.0
        for step in range(2):
            i, j = (k - 1, k) if step == 0 else (k, k + 1)
            u, v = points[i, 0] + points[j, 0], points[i, 1] + points[j, 1]
            du, dv = points[j, 0] - points[i, 0], points[j, 1] - points[i, 1]
            # The middle of the side, and half a pixel to its left or right.
            side = 1.0 if left else -1.0
            column, row = int(math.floor((u + side * dv) / 2.0)), int(math.floor((v - side * du) / 2.0))
            if row < 0 or column < 0 or row >= normals.shape[0] or column >= normals.shape[1]:
                return 0.0
            if step == 0:
                before = normals[row, column, axis]
            else:
                after = normals[row, column, axis]
        total += (after - before) ** 2
    return total


@kernel
def keep_crease_ends(points, starts, normals, kept):
    """Set ``kept`` (K,) for the points of chains at which a crease beside the line ends.

    There the normals on one side change by more than :data:`CREASE`, and more than at any point within
    :data:`CREASE_SPACING` px.
    """
    for chain in range(starts.size - 1):
        first, last = starts[chain], starts[chain + 1] - 1
        changes = np.zeros(last - first + 1)
        for k in range(first + 1, last):
            change = max(change_beside(points, k, True, normals), change_beside(points, k, False, normals))
            changes[k - first] = change
        for k in range(1, changes.size - 1):
            is_peak = changes[k] > CREASE * CREASE
            for other in range(max(k - CREASE_SPACING, 0), min(k + CREASE_SPACING + 1, changes.size)):
                is_peak &= changes[other] < changes[k] or (changes[other] == changes[k] and other >= k)
            if is_peak:
                kept[first + k] = True


@inner
def corner_to_collapse(vertex, into, mesh):
    """Return the corner across from the edge whose collapse replaces a vertex by another one; −1 if there is none."""
    start = mesh.corner_of[vertex]
    corner = start
    while True:
        if vertex_at(previous_corner(corner), mesh.faces) == into:
            return next_corner(corner)
        corner = turn(corner, mesh.opposite)
        if corner == start:
            return np.int64(-1)


@inner
def makes_needle(vertex, into, mesh):
    """Return whether a face of a vertex becomes a needle if the vertex is collapsed into a neighbour."""
    u, v = mesh.vertices[into, 0], mesh.vertices[into, 1]
    start = mesh.corner_of[vertex]
    corner = start
    while True:
        one, two = vertex_at(next_corner(corner), mesh.faces), vertex_at(previous_corner(corner), mesh.faces)
        if into not in (one, two):
            b, c = point_of(one, mesh.vertices), point_of(two, mesh.vertices)
            double_area = (b[1] - v) * (c[0] - u) - (b[0] - u) * (c[1] - v)
            longest = max(
                (b[0] - u) ** 2 + (b[1] - v) ** 2,
                (c[0] - u) ** 2 + (c[1] - v) ** 2,
                (b[0] - c[0]) ** 2 + (b[1] - c[1]) ** 2,
            )
            if double_area < MIN_FLATNESS * longest:
                return True
        corner = turn(corner, mesh.opposite)
        if corner == start:
            return False


@inner
def collapse_into(vertex, into, mesh, mark, token):
    """Collapse a vertex into its neighbour, if the mesh stays valid; return whether it was done."""
    corner = corner_to_collapse(vertex, into, mesh)
    if corner < 0 or not link_is_simple(vertex, into, mesh, mark, token) or makes_needle(vertex, into, mesh):
        return False
    if not keeps_faces_upright(vertex, into, mesh.vertices[into, 0], mesh.vertices[into, 1], mesh):
        return False
    collapse_edge(corner, mesh)
    return True


@inner
def move_to_line(vertex, u, v, mesh):
    """Move a vertex, if all its faces stay upright."""
    # No vertex is left out of the check: −2 is none.
    if keeps_faces_upright(vertex, -2, u, v, mesh):
        mesh.vertices[vertex, 0], mesh.vertices[vertex, 1] = u, v


@kernel
def straighten_lines(lines, mesh, mark):
    """Move the inner vertices of chains to their smooth places, and collapse those that are not kept along the chain.

    ``mark`` (N,), zero before, is a work array. Collapsed vertices have no corner afterwards.
    """
    token = 0
    for _ in range(MOVES):
        for chain in range(lines.starts.size - 1):
            for k in range(lines.starts[chain] + 1, lines.starts[chain + 1] - 1):
                move_to_line(lines.vertices[k], lines.smooth[k, 0], lines.smooth[k, 1], mesh)
    for chain in range(lines.starts.size - 1):
        first, last = lines.starts[chain], lines.starts[chain + 1] - 1
        for _ in range(COLLAPSES):
            before, changed = first, False
            for k in range(first + 1, last):
                vertex = lines.vertices[k]
                if mesh.corner_of[vertex] < 0:
                    continue
                after = k + 1
                while mesh.corner_of[lines.vertices[after]] < 0:
                    after += 1
                token += 2
                if not lines.kept[k] and (
                    collapse_into(vertex, lines.vertices[before], mesh, mark, token)
                    or collapse_into(vertex, lines.vertices[after], mesh, mark, token + 1)
                ):
                    changed = True
                else:
                    before = k
            if not changed:
                break


@inner
def normal_spread(a, b, c, normals):
    """Return the sum over the pixels of a face of the squared difference between their normals and the mean."""
    rows, columns = normals.shape[0], normals.shape[1]
    top, middle, bottom = by_height(a, b, c)
    edges, middle_row = face_edges(top, middle, bottom), first_row(middle[1], rows)
    count = x = y = z = 0.0
    for row in range(first_row(top[1], rows), first_row(bottom[1], rows)):
        start, end = row_span(edges, row, middle_row, columns)
        for column in range(start, end):
            p, q, r = normals[row, column, 0], normals[row, column, 1], normals[row, column, 2]
            # Background has no normal.
            count += p * p + q * q + r * r > 0.5
            x, y, z = x + p, y + q, z + r
    return count - (x * x + y * y + z * z) / count if count > 0.0 else 0.0


@inner
def turn_squared(a, b, c):
    """Return the square of the angle by which a line turns at b, in units of 45°."""
    au, av, bu, bv = b[0] - a[0], b[1] - a[1], c[0] - b[0], c[1] - b[1]
    return (math.atan2(au * bv - av * bu, au * bu + av * bv) / (math.pi / 4.0)) ** 2


@inner
def point_of(vertex, vertices):
    """Return the position of a vertex."""
    return vertices[vertex, 0], vertices[vertex, 1]


@inner
def star_spread(vertex, mesh, normals):
    """Return the spread of the normals in the faces around a vertex; infinite if one of them is too small or thin."""
    total = 0.0
    start = mesh.corner_of[vertex]
    corner = start
    a = point_of(vertex, mesh.vertices)
    while True:
        one, two = vertex_at(next_corner(corner), mesh.faces), vertex_at(previous_corner(corner), mesh.faces)
        b, c = point_of(one, mesh.vertices), point_of(two, mesh.vertices)
        double_area = (b[1] - a[1]) * (c[0] - a[0]) - (b[0] - a[0]) * (c[1] - a[1])
        longest = max(
            (b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2,
            (c[0] - a[0]) ** 2 + (c[1] - a[1]) ** 2,
            (b[0] - c[0]) ** 2 + (b[1] - c[1]) ** 2,
        )
        if double_area < MIN_DOUBLE_AREA or double_area**2 < MIN_HEIGHT**2 * longest:
            return np.inf
        total += normal_spread(a, b, c, normals)
        corner = turn(corner, mesh.opposite)
        if corner == start:
            return total


@inner
def turns_around(vertex, before, after, vertices):
    """Return the squared turns of a polyline at a vertex and at its two neighbours, if these are inner ones."""
    here = point_of(vertex, vertices)
    one, two = before[vertex], after[vertex]
    total = turn_squared(point_of(one, vertices), here, point_of(two, vertices))
    for neighbour in (one, two):
        if before[neighbour] >= 0:
            beyond = before[neighbour] if before[neighbour] != vertex else after[neighbour]
            total += turn_squared(point_of(beyond, vertices), point_of(neighbour, vertices), here)
    return total


@kernel
def polish_lines(chosen, before, after, mesh, normals):
    """Move inner vertices of polylines so that normals differ less in the faces beside them, and the lines turn less.

    ``chosen`` are the vertices, ``before`` and ``after`` (N,) their neighbours on the line, −1 for all other vertices.
    Return the number of moves.
    """
    vertices = mesh.vertices
    start = vertices[chosen]
    moves = 0
    for step in POLISH_STEPS:
        for k in range(chosen.size):
            vertex = chosen[k]
            u, v = vertices[vertex, 0], vertices[vertex, 1]
            best_u, best_v, best = u, v, np.inf
            for place in range(9):
                vertices[vertex, 0] = u + step * (place % 3 - 1)
                vertices[vertex, 1] = v + step * (place // 3 - 1)
                away = max(abs(vertices[vertex, 0] - start[k, 0]), abs(vertices[vertex, 1] - start[k, 1]))
                if away > MAX_POLISH:
                    continue
                moved = vertices[vertex, 0] != u or vertices[vertex, 1] != v
                cost = star_spread(vertex, mesh, normals)
                cost += TURN_COST * turns_around(vertex, before, after, vertices) + MOVE_COST * moved
                if cost < best - 1e-9:
                    best_u, best_v, best = vertices[vertex, 0], vertices[vertex, 1], cost
            vertices[vertex, 0], vertices[vertex, 1] = best_u, best_v
            moves += best_u != u or best_v != v
    return moves
