"""Kernels of :mod:`normalmesh.decimation.polylines`."""

import math

import numpy as np

from normalmesh.mesh._closed_mesh import turn, vertex_at
from normalmesh.mesh._outline import add_line
from normalmesh.mesh._raster import by_height, face_edges, first_row, row_span
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.mesh._validity import keeps_faces_upright
from normalmesh.runtime.kernels import inner, kernel

#: Times that vertices are moved to the smooth line.
MOVES = 2
#: Sweeps in which polylines are polished, and the steps (px) of the sweeps.
POLISH_STEPS = (0.5, 0.5, 0.25, 0.25)
#: Distance (px), in u and v, by which polishing moves a vertex at most: lines are known to half a pixel.
MAX_POLISH = 0.5
#: What a turn by 45° costs in squared differences of unit normals, summed over pixels; and what any move costs.
TURN_COST, MOVE_COST = 4.0, 0.02
#: Faces beside a polyline have twice this area (px²), and this height over their longest side (px), at least.
MIN_DOUBLE_AREA, MIN_HEIGHT = 0.2, 0.4


@kernel
def move_to_line(chosen, goal, mesh):
    """Move vertices of chains to their goals (K, 2), if all their faces stay upright."""
    for _ in range(MOVES):
        for k in range(chosen.size):
            # No vertex is left out of the check: −2 is none.
            if keeps_faces_upright(chosen[k], -2, goal[k, 0], goal[k, 1], mesh):
                mesh.vertices[chosen[k], 0], mesh.vertices[chosen[k], 1] = goal[k, 0], goal[k, 1]


@kernel
def add_line_quadrics(pairs, goal, vertices, weight, quadrics):
    """Add weight · length · (squared distance) to segments, the ``goal`` (S, 2, 2), to quadrics (N, QUADRIC).

    ``pairs`` (S, 2) are the vertices at the ends of each segment.
    """
    for k in range(len(pairs)):
        for end in range(2):
            vertex = pairs[k, end]
            add_line(goal[k, 0], goal[k, 1], vertices[vertex], weight, quadrics[vertex])


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
