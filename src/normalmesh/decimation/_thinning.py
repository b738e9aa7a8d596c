"""Kernels of :mod:`normalmesh.decimation.thinning`: removing vertices of a mesh in space, cheapest first.

A *space quadric* sums the squared distances from planes, ``Q(d) = ⟨d, A d⟩ + 2⟨b, d⟩ + c`` at the offset d from its
vertex: A as xx, xy, xz, yy, yz, zz, then b, c, and the sum of the weights of the planes, an area.
"""

import math
from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Float, Int32
from normalmesh.decimation._edge_collapse import edge_on_boundary
from normalmesh.mesh._closed_mesh import BOUNDARY, LOCKED, collapse_edge, turn, vertex_at
from normalmesh.mesh._surface import cross, face_cross, unit_vector
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.mesh._validity import keeps_faces_upright, link_is_simple
from normalmesh.runtime._heap import sift_down
from normalmesh.runtime.kernels import inner, kernel

XX, XY, XZ, YY, YZ, ZZ, BX, BY, BZ, CONSTANT, WEIGHT = range(11)
#: Numbers of a space quadric.
SPACE_QUADRIC = 11
#: Cost of a step along the surface, as a share of the same step away from it: where all is flat, edges stay even.
ALONG = 1e-4
#: Weight of the planes upright on the outline, by the square of the length of its edges.
OUTLINE = 1.0
#: Cosine of the angle by which a face may turn.
MIN_COSINE = 0.5


class SpaceArrays(NamedTuple):
    """What is known of the vertices in space.

    Attributes
    ----------
    points : (N, 3) float64
        Positions in space.
    quadrics : (N, SPACE_QUADRIC) float64
        Space quadrics.
    mark : (N,) int32
        A work array, zero at the start.
    """

    points: Float
    quadrics: Float
    mark: Int32


@inner
def _add_plane(quadrics, vertex, x, y, z, weight):
    """Add the plane through a vertex with the unit normal (x, y, z)."""
    quadrics[vertex, WEIGHT] += weight
    quadrics[vertex, XX] += weight * x * x
    quadrics[vertex, XY] += weight * x * y
    quadrics[vertex, XZ] += weight * x * z
    quadrics[vertex, YY] += weight * y * y
    quadrics[vertex, YZ] += weight * y * z
    quadrics[vertex, ZZ] += weight * z * z


@kernel
def fill_quadrics(points, faces, opposite, shared, quadrics):
    """Add the planes of faces, and of the edges of the outline, to the quadrics (N, SPACE_QUADRIC) of the vertices.

    ``shared`` (N,) are vertices with faces elsewhere: an edge between two of them may be no outline.
    """
    for f in range(len(faces)):
        x, y, z = face_cross(points, faces, f)
        area = math.sqrt(x * x + y * y + z * z) / 2.0
        x, y, z = unit_vector(x, y, z)
        for k in range(3):
            _add_plane(quadrics, faces[f, k], x, y, z, area / 3.0)
        for k in range(3):
            a, b = faces[f, (k + 1) % 3], faces[f, (k + 2) % 3]
            if opposite[3 * f + k] >= 0 or (shared[a] and shared[b]):
                continue
            du, dv, dw = points[b, 0] - points[a, 0], points[b, 1] - points[a, 1], points[b, 2] - points[a, 2]
            weight = OUTLINE * (du * du + dv * dv + dw * dw)
            across = unit_vector(*cross(du, dv, dw, x, y, z))
            _add_plane(quadrics, a, across[0], across[1], across[2], weight)
            _add_plane(quadrics, b, across[0], across[1], across[2], weight)


@inner
def _distance(quadrics, vertex, x, y, z):
    """Return the sum of squared distances at the offset (x, y, z) from a vertex."""
    q = quadrics[vertex]
    square = q[XX] * x * x + q[YY] * y * y + q[ZZ] * z * z + 2.0 * (q[XY] * x * y + q[XZ] * x * z + q[YZ] * y * z)
    return max(square + 2.0 * (q[BX] * x + q[BY] * y + q[BZ] * z) + q[CONSTANT], 0.0)


@inner
def _cost(vertex, other, space):
    """Return the cost of moving a vertex onto another one."""
    points = space.points
    x = points[other, 0] - points[vertex, 0]
    y = points[other, 1] - points[vertex, 1]
    z = points[other, 2] - points[vertex, 2]
    step = ALONG * space.quadrics[vertex, WEIGHT] * (x * x + y * y + z * z)
    return _distance(space.quadrics, vertex, x, y, z) + step


@inner
def _next_cheapest(vertex, refused_cost, refused, mesh, space):
    """Return cost, corner and other end of the cheapest edge of a vertex beyond (refused_cost, refused)."""
    best, best_corner, best_other = np.inf, -1, -1
    on_boundary = mesh.flags[vertex] & BOUNDARY
    start = mesh.corner_of[vertex]
    corner = start
    while True:
        other = vertex_at(next_corner(corner), mesh.faces)
        if other != mesh.ghost and (not on_boundary or edge_on_boundary(corner, mesh)):
            cost = _cost(vertex, other, space)
            untried = cost > refused_cost or (cost == refused_cost and other > refused)
            if untried and (cost < best or (cost == best and other < best_other)):
                best, best_corner, best_other = cost, corner, other
        corner = turn(corner, mesh.opposite)
        if corner == start:
            return best, best_corner, best_other


@inner
def _turns_little(vertex, other, mesh, points):
    """Check that no face of a vertex turns by more than 60° in space if the vertex moves onto another one.

    Three vertices in a line on the screen could make a wall.
    """
    px, py, pz = points[vertex, 0], points[vertex, 1], points[vertex, 2]
    qx, qy, qz = points[other, 0], points[other, 1], points[other, 2]
    start = mesh.corner_of[vertex]
    corner = start
    while True:
        b, c = vertex_at(next_corner(corner), mesh.faces), vertex_at(previous_corner(corner), mesh.faces)
        if b != other and c != other and b != mesh.ghost and c != mesh.ghost:
            bx, by, bz = points[b, 0], points[b, 1], points[b, 2]
            ex, ey, ez = points[c, 0] - bx, points[c, 1] - by, points[c, 2] - bz
            ax, ay, az = cross(bx - px, by - py, bz - pz, ex, ey, ez)
            nx, ny, nz = cross(bx - qx, by - qy, bz - qz, ex, ey, ez)
            along = ax * nx + ay * ny + az * nz
            if along < MIN_COSINE * math.sqrt((ax * ax + ay * ay + az * az) * (nx * nx + ny * ny + nz * nz)):
                return False
        corner = turn(corner, mesh.opposite)
        if corner == start:
            return True


@inner
def _merge(vertex, other, space):
    """Add the quadric of a vertex to that of the vertex onto which it moves."""
    points, quadrics = space.points, space.quadrics
    x = points[other, 0] - points[vertex, 0]
    y = points[other, 1] - points[vertex, 1]
    z = points[other, 2] - points[vertex, 2]
    q = quadrics[vertex]
    constant = _distance(quadrics, vertex, x, y, z)
    q[BX] += q[XX] * x + q[XY] * y + q[XZ] * z
    q[BY] += q[XY] * x + q[YY] * y + q[YZ] * z
    q[BZ] += q[XZ] * x + q[YZ] * y + q[ZZ] * z
    q[CONSTANT] = constant
    for k in range(SPACE_QUADRIC):
        quadrics[other, k] += q[k]


@inner
def _try(vertex, beyond, mesh, space, token):
    """Move a vertex onto its cheapest valid neighbour if that costs no more than ``beyond``.

    Return the cost, or a bound on it if the vertex stays, the mean squared distance, and the last token used.
    """
    cost, other = -1.0, -1
    while True:
        cost, corner, other = _next_cheapest(vertex, cost, other, mesh, space)
        if corner < 0 or cost > beyond:
            return cost, -1.0, token
        token += 1
        u, v = mesh.vertices[other, 0], mesh.vertices[other, 1]
        if (
            link_is_simple(vertex, other, mesh, space.mark, token)
            and keeps_faces_upright(vertex, other, u, v, mesh)
            and _turns_little(vertex, other, mesh, space.points)
        ):
            _merge(vertex, other, space)
            weight = space.quadrics[vertex, WEIGHT]
            distance = space.quadrics[vertex, CONSTANT] / weight if weight > 0.0 else 0.0
            # The face behind the edge has it in the other direction, so that its end is the vertex that goes.
            collapse_edge(mesh.opposite[previous_corner(corner)], mesh)
            return cost, distance, token


@kernel
def thin(mesh, space, most):
    """Remove at most ``most`` vertices that are not locked, cheapest first; return how many, and their largest error.

    The error is the root of the mean squared distance between a vertex and the planes that it stands for.
    """
    count = len(mesh.flags)
    keys, items = np.empty(count), np.empty(count, np.int32)
    done, largest, token = 0, 0.0, 0
    before = -1
    # Removals may have made others possible that were refused before.
    while before < done < most:
        before, size = done, 0
        for vertex in range(count):
            if mesh.corner_of[vertex] >= 0 and not mesh.flags[vertex] & LOCKED:
                cost, _, _ = _next_cheapest(vertex, -1.0, -1, mesh, space)
                keys[size], items[size] = cost, vertex
                size += 1
        for place in range(size // 2 - 1, -1, -1):
            sift_down(keys, items, place, size)
        while size > 0 and done < most:
            runner_up = min(keys[1] if size > 1 else np.inf, keys[2] if size > 2 else np.inf)
            keys[0], distance, token = _try(items[0], runner_up, mesh, space, token)
            if distance >= 0.0:
                done += 1
                largest = max(largest, distance)
            if distance >= 0.0 or keys[0] == np.inf:
                size -= 1
                keys[0], items[0] = keys[size], items[size]
            if size > 0:
                sift_down(keys, items, 0, size)
    return done, math.sqrt(largest)
