"""Kernels of :mod:`normalmesh.decimation.move`: steps to the least of the quadrics, shortened to keep faces valid."""

from normalmesh.decimation._quadrics import BU, BV, UU, UV, VV
from normalmesh.mesh._closed_mesh import (
    BOUNDARY,
    LOCKED,
    are_neighbours,
    boundary_neighbours,
    flip_edge,
    turn,
    vertex_at,
)
from normalmesh.mesh._outline import change_outline, near_outline
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.mesh._validity import crossing, keeps_faces_upright
from normalmesh.runtime.kernels import inner, kernel

#: Steps shorter than this (px) are not taken, so that the faces around keep their records.
MIN_STEP = 0.02
#: Number of times that a step that is not allowed is halved before it is given up.
HALVINGS = 5
#: Area (px²) on the smooth outline below which a face with two boundary edges gets an inner vertex.
MIN_EAR = 0.3


@kernel
def best_steps(first, last, quadrics, flags, step, steps):
    """Fill the steps (N, 2): α·argmin Q̃_v for inner vertices, eq. (16) and supplement B; zero for others."""
    for vertex in range(first, last):
        steps[vertex, 0] = steps[vertex, 1] = 0.0
        q = quadrics[vertex]
        determinant = q[UU] * q[VV] - q[UV] * q[UV]
        if flags[vertex] == 0 and determinant > 1e-14 * (q[UU] + q[VV]) ** 2:
            steps[vertex, 0] = -step * (q[VV] * q[BU] - q[UV] * q[BV]) / determinant
            steps[vertex, 1] = -step * (q[UU] * q[BV] - q[UV] * q[BU]) / determinant


@kernel
def flip_ears(mesh, smooth, point_of):
    """Flip the inner edges of faces with two boundary edges that the smooth outline (P, 2) would make flat.

    ``point_of`` (N,) are the points of the outline that boundary vertices stand for. Return the number of flips.
    """
    faces, flags, opposite, end = mesh.faces, mesh.flags, mesh.opposite, 3 * mesh.real_faces
    flips = 0
    for corner in range(end):
        vertex, other = vertex_at(corner, faces), opposite[corner]
        if vertex < 0 or flags[vertex] != BOUNDARY or other >= end:
            continue
        a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
        if opposite[next_corner(corner)] < end or opposite[previous_corner(corner)] < end:
            continue
        if flags[a] & flags[b] & LOCKED or crossing(a, b, vertex, vertex_at(other, faces), mesh.vertices)[2] == 0.0:
            continue
        p, q, r = smooth[point_of[vertex]], smooth[point_of[a]], smooth[point_of[b]]
        flattened = (q[1] - p[1]) * (r[0] - p[0]) - (q[0] - p[0]) * (r[1] - p[1])
        if flattened < 2.0 * MIN_EAR and not are_neighbours(vertex, vertex_at(other, faces), mesh):
            flip_edge(corner, mesh)
            flips += 1
    return flips


@kernel
def take_steps(steps, mesh, mask, coverage, changed):
    """Move vertices one after another, each step (N, 2) halved until it is allowed; return the number of moves.

    Mark the faces of moved vertices in ``changed`` (F,), and let ``coverage`` (H, W) follow the boundary.
    """
    vertices = mesh.vertices
    moves = 0
    for vertex in range(steps.shape[0]):
        du, dv = steps[vertex, 0], steps[vertex, 1]
        if du * du + dv * dv < MIN_STEP**2:
            continue
        for _ in range(HALVINGS + 1):
            u, v = vertices[vertex, 0] + du, vertices[vertex, 1] + dv
            if may_move(vertex, u, v, mesh, mask, coverage):
                vertices[vertex, 0], vertices[vertex, 1] = u, v
                moves += 1
                start = mesh.corner_of[vertex]
                corner = start
                while True:
                    changed[corner // 3] = True
                    corner = turn(corner, mesh.opposite)
                    if corner == start:
                        break
                break
            du, dv = 0.5 * du, 0.5 * dv
    return moves


@inner(forceinline=True)
def may_move(vertex, u, v, mesh, mask, coverage):
    """Check that the mesh stays valid if a vertex moves to (u, v); if so, let ``coverage`` follow a boundary vertex."""
    if not keeps_faces_upright(vertex, -1, u, v, mesh):
        return False
    if mesh.flags[vertex] & BOUNDARY:
        if not near_outline(u, v, mask):
            return False
        vertices = mesh.vertices
        before, after = boundary_neighbours(vertex, mesh)
        here = vertices[vertex, 0], vertices[vertex, 1]
        behind, ahead = (vertices[before, 0], vertices[before, 1]), (vertices[after, 0], vertices[after, 1])
        return change_outline((behind, (u, v), ahead, here, here), coverage, True)
    return True
