"""Kernels of :mod:`normalmesh.decimation.move`."""

import numpy as np

from normalmesh.mesh._closed_mesh import BOUNDARY, boundary_neighbours, turn
from normalmesh.mesh._outline import change_outline, near_outline
from normalmesh.mesh._validity import keeps_faces_upright
from normalmesh.runtime.kernels import inner, kernel

#: Steps shorter than this (px) are not taken: the faces around keep their records.
LEAST_STEP = 0.02
#: How often a step that is not allowed is halved before it is given up.
HALVINGS = 5


@kernel
def best_steps(first, last, quadrics, flags, step, steps):
    """Fill the steps (N, 2): α·argmin Q̃_v for inner vertices, eq. (16) and supplement B; zero for others."""
    for vertex in range(first, last):
        steps[vertex, 0] = steps[vertex, 1] = 0.0
        q = quadrics[vertex]
        determinant = q[0] * q[2] - q[1] * q[1]
        if flags[vertex] == 0 and determinant > 1e-14 * (q[0] + q[2]) ** 2:
            steps[vertex, 0] = -step * (q[2] * q[3] - q[1] * q[4]) / determinant
            steps[vertex, 1] = -step * (q[0] * q[4] - q[1] * q[3]) / determinant


@kernel
def take_steps(steps, vertices, faces, opposite, corner_of, ghost, flags, mask, covered, changed):
    """Move vertices one after another, each step halved until it is allowed; marks the faces that changed."""
    moves = 0
    for vertex in range(steps.shape[0]):
        du, dv = steps[vertex, 0], steps[vertex, 1]
        if du * du + dv * dv < LEAST_STEP**2:
            continue
        for _ in range(HALVINGS + 1):
            u, v = vertices[vertex, 0] + du, vertices[vertex, 1] + dv
            if may_move(vertex, u, v, vertices, faces, opposite, corner_of, ghost, flags, mask, covered):
                vertices[vertex, 0], vertices[vertex, 1] = u, v
                moves += 1
                start = corner_of[vertex]
                corner = start
                while True:
                    changed[corner // 3] = True
                    corner = turn(corner, opposite)
                    if corner == start:
                        break
                break
            du, dv = 0.5 * du, 0.5 * dv
    return moves


@inner(forceinline=True)
def may_move(vertex, u, v, vertices, faces, opposite, corner_of, ghost, flags, mask, covered):
    """Whether the mesh stays valid when a vertex moves to (u, v); the outline then follows a boundary vertex."""
    if not keeps_faces_upright(vertex, -1, u, v, vertices, faces, opposite, corner_of, ghost):
        return False
    if flags[vertex] & BOUNDARY:
        if not near_outline(u, v, mask):
            return False
        before, after = boundary_neighbours(vertex, faces, opposite, corner_of, ghost)
        polygon = np.empty((4, 2))
        for k in range(2):
            polygon[0, k], polygon[2, k], polygon[3, k] = vertices[before, k], vertices[after, k], vertices[vertex, k]
        polygon[1, 0], polygon[1, 1] = u, v
        return change_outline(polygon, covered, True)
    return True
