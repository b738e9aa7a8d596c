"""Kernels for the collapse of one edge: its cost and best position, whether it is valid, and the collapse itself.

The order of collapses, and their division among threads, is that of :mod:`normalmesh.decimation._collapse`.
"""

import math
from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Bool, Float, Int32
from normalmesh.decimation._quadrics import BU, BV, CONSTANT, QUADRIC, UU, UV, VV
from normalmesh.mesh._closed_mesh import BOUNDARY, LINE, LOCKED, boundary_neighbours, collapse_edge, vertex_at
from normalmesh.mesh._outline import change_outline, near_outline, nearest_point
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.mesh._validity import keeps_faces_upright, link_is_simple
from normalmesh.runtime.kernels import inner

#: Lines of pixel sides that meet at a vertex, at most.
MOST_BESIDE = 4
#: Variance (px²) of the place of a line of jumps, which is known to a pixel.
PLACE_VARIANCE = 1.0 / 12.0
#: Length (px) of edges along lines below which their directions follow the rounding to pixels.
SHORT = 3.0


class CostArrays(NamedTuple):
    """The data from which the costs of edges are computed.

    Attributes
    ----------
    quadrics : (N, QUADRIC) float64
        Screen quadrics of the vertices.
    mask : (H, W) bool
        Foreground pixels, near whose outline boundary vertices must stay.
    in_plane : bool
        Whether new vertices may leave the edge for the best point of the plane.
    beside : (N, MOST_BESIDE, 2) int32
        Neighbours of each vertex along lines of jumps, and the line that leads there; −1 for none. It is empty if there
        are no lines.
    """

    quadrics: Float
    mask: Bool
    in_plane: bool
    beside: Int32


class Quadric(NamedTuple):
    """A screen quadric, ``Q̃(δu) = ⟨δu, A δu⟩ + 2⟨b, δu⟩ + c``, with A as uu, uv, vv and b as bu, bv."""

    uu: float
    uv: float
    vv: float
    bu: float
    bv: float
    constant: float


@inner
def evaluate(quadric, du, dv):
    """Return Q̃(δu)."""
    return (
        quadric.uu * du * du
        + 2.0 * quadric.uv * du * dv
        + quadric.vv * dv * dv
        + 2.0 * (quadric.bu * du + quadric.bv * dv)
        + quadric.constant
    )


@inner
def quadric_of(vertex, quadrics):
    """Return the quadric of a vertex as a tuple: views of arrays cost more than the arithmetic."""
    return Quadric(
        quadrics[vertex, UU],
        quadrics[vertex, UV],
        quadrics[vertex, VV],
        quadrics[vertex, BU],
        quadrics[vertex, BV],
        quadrics[vertex, CONSTANT],
    )


@inner(forceinline=True)
def best_position(a, b, on_boundary, mesh, costs):
    """Compute cost and position (u, v) of the collapse of the edge ab, eq. (19), for each vertex that it saves.

    The cost is infinite if the outline, a line or a lock forbids the collapse. ``on_boundary`` says whether the edge is
    part of the outline. Vertices of lines have two copies where the mesh is cut: their collapses save two. What a
    deviation within the variance of their places costs is free for short edges of lines.
    """
    vertices, flags = mesh.vertices, mesh.flags
    au, av, bu, bv = vertices[a, 0], vertices[a, 1], vertices[b, 0], vertices[b, 1]
    duties = min(flags[a], flags[b])
    if duties & LOCKED or (duties & BOUNDARY and not on_boundary):
        return np.inf, 0.0, 0.0
    if duties & LINE and not is_along_line(a, b, costs.beside):
        return np.inf, 0.0, 0.0
    p, q = quadric_of(a, costs.quadrics), quadric_of(b, costs.quadrics)
    if flags[a] != flags[b]:
        # The vertex with fewer duties moves onto the other one.
        u, v = (bu, bv) if flags[a] < flags[b] else (au, av)
    else:
        u, v = _best_on_segment(p, q, au, av, bu - au, bv - av)
        if duties & BOUNDARY:
            u, v = _best_near_outline(p, q, (au, av), (bu, bv), (u, v), costs.mask)
        elif costs.in_plane or duties & LINE:
            u, v = _best_in_plane(p, q, (au, av), (bu - au, bv - av), (u, v))
    cost = max(evaluate(p, u - au, v - av) + evaluate(q, u - bu, v - bv), 0.0)
    if duties & LINE:
        is_short = (bu - au) ** 2 + (bv - av) ** 2 < SHORT**2
        # The lesser quadric counts: tips of lines carry what it costs to bridge these.
        cost = 0.5 * max(cost - is_short * 2.0 * PLACE_VARIANCE * min(p.uu + p.vv, q.uu + q.vv), 0.0)
    return cost, u, v


@inner
def is_along_line(a, b, beside):
    """Check whether an edge is part of a line, and a collapse leaves other edges of it, without a loop of two."""
    along, count = False, 0
    for k in range(MOST_BESIDE):
        near = beside[a, k, 0]
        along |= near == b
        count += (near >= 0) + (beside[b, k, 0] >= 0)
        for other in range(MOST_BESIDE):
            if near >= 0 and near == beside[b, other, 0]:
                return False
    # Two of them are the edge itself.
    return along and 2 < count <= MOST_BESIDE + 2


@inner
def join_lines(vertex, other, beside):
    """Let a vertex take the place of another one, which it is joined with, on all lines through that one."""
    free = 0
    for k in range(MOST_BESIDE):
        if beside[vertex, k, 0] == other:
            beside[vertex, k, 0] = -1
    for k in range(MOST_BESIDE):
        near = beside[other, k, 0]
        if near < 0 or near == vertex:
            continue
        while beside[vertex, free, 0] >= 0:
            free += 1
        beside[vertex, free, 0], beside[vertex, free, 1] = near, beside[other, k, 1]
        for back in range(MOST_BESIDE):
            if beside[near, back, 0] == other:
                beside[near, back, 0] = vertex


@inner(forceinline=True)
def _best_on_segment(p, q, u, v, du, dv):
    """Return where the sum of two quadrics, around (u, v) and (u + du, v + dv), is least between the two points."""
    bend_q = q.uu * du * du + 2.0 * q.uv * du * dv + q.vv * dv * dv
    bend = p.uu * du * du + 2.0 * p.uv * du * dv + p.vv * dv * dv + bend_q
    slope = (p.bu + q.bu) * du + (p.bv + q.bv) * dv - bend_q
    t = min(max(-slope / bend, 0.0), 1.0) if bend > 0.0 else 0.5
    return u + t * du, v + t * dv


@inner
def _best_in_plane(p, q, start, edge, otherwise):
    """Return where the sum of two quadrics, around ``start`` and ``start + edge``, is least in the plane.

    If there is no such point, or it is farther from the edge's middle than the edge is long, return ``otherwise``.
    """
    du, dv = edge
    uu, uv, vv = p.uu + q.uu, p.uv + q.uv, p.vv + q.vv
    right_u = q.uu * du + q.uv * dv - p.bu - q.bu
    right_v = q.uv * du + q.vv * dv - p.bv - q.bv
    determinant = uu * vv - uv * uv
    if determinant <= 1e-12 * (uu + vv) ** 2:
        return otherwise
    step_u = (vv * right_u - uv * right_v) / determinant
    step_v = (uu * right_v - uv * right_u) / determinant
    if math.hypot(step_u - 0.5 * du, step_v - 0.5 * dv) > math.hypot(du, dv):
        return otherwise
    return start[0] + step_u, start[1] + step_v


@inner(forceinline=True)
def _best_near_outline(p, q, a, b, on_segment, mask):
    """Return the best point of the plane if it lies at the outline, else that of the segment, else the better end.

    On a curved outline the best point lies outside the segment; ends are at the outline already.
    """
    du, dv = b[0] - a[0], b[1] - a[1]
    u, v = _best_in_plane(p, q, a, (du, dv), on_segment)
    if near_outline(u, v, mask):
        return u, v
    if near_outline(on_segment[0], on_segment[1], mask):
        return on_segment
    if p.constant + evaluate(q, a[0] - b[0], a[1] - b[1]) <= q.constant + evaluate(p, du, dv):
        return a
    return b


@inner
def edge_on_boundary(corner, mesh):
    """Check whether the edge from a corner's vertex to the next one is part of the outline."""
    back = previous_corner(corner)
    return vertex_at(back, mesh.faces) == mesh.ghost or vertex_at(mesh.opposite[back], mesh.faces) == mesh.ghost


@inner
def boundary_order(corner, mesh):
    """Return the ends of the boundary edge from a corner's vertex to the next one, in the order of the boundary."""
    vertex, other = vertex_at(corner, mesh.faces), vertex_at(next_corner(corner), mesh.faces)
    if vertex_at(previous_corner(corner), mesh.faces) == mesh.ghost:
        return other, vertex
    return vertex, other


@inner
def outline_follows(first, second, u, v, mesh, coverage, commit):
    """Check whether the boundary edge from first to second may become the vertex (u, v).

    With ``commit``, also update ``coverage``; see :func:`normalmesh.mesh._outline.change_outline`.
    """
    vertices = mesh.vertices
    before, _ = boundary_neighbours(first, mesh)
    _, after = boundary_neighbours(second, mesh)
    polygon = (
        (vertices[before, 0], vertices[before, 1]),
        (u, v),
        (vertices[after, 0], vertices[after, 1]),
        (vertices[second, 0], vertices[second, 1]),
        (vertices[first, 0], vertices[first, 1]),
    )
    return change_outline(polygon, coverage, commit)


@inner(forceinline=True)
def may_collapse(corner, u, v, mesh, coverage, mark, token):
    """Check that the mesh stays valid if the edge from a corner's vertex to the next one becomes the vertex (u, v).

    ``mark`` (N,) is a work array in which ``token`` has not been used.
    """
    vertex, other = vertex_at(corner, mesh.faces), vertex_at(next_corner(corner), mesh.faces)
    if not link_is_simple(vertex, other, mesh, mark, token):
        return False
    if not keeps_faces_upright(vertex, other, u, v, mesh):
        return False
    if not keeps_faces_upright(other, vertex, u, v, mesh):
        return False
    if mesh.flags[vertex] & mesh.flags[other] & BOUNDARY:
        first, second = boundary_order(corner, mesh)
        return outline_follows(first, second, u, v, mesh, coverage, False)
    return True


@inner(forceinline=True)
def collapse_to(corner, u, v, mesh, outline, costs):
    """Collapse the edge from a corner's vertex to the next one; the vertex then lies at (u, v).

    It takes over flags, place in the outline and on lines, and quadric of the other one. Return the number of vertices
    that this saves.
    """
    flags, point_of = mesh.flags, outline.point_of
    vertex, other = vertex_at(corner, mesh.faces), vertex_at(next_corner(corner), mesh.faces)
    if flags[vertex] & flags[other] & BOUNDARY:
        first, second = boundary_order(corner, mesh)
        outline_follows(first, second, u, v, mesh, outline.coverage, True)
        point_of[vertex] = nearest_point(point_of[first], point_of[second], u, v, outline.next_point, outline.points)
    elif flags[other] & BOUNDARY:
        point_of[vertex] = point_of[other]
    saved = 2 if flags[vertex] & flags[other] & LINE else 1
    if costs.beside.shape[0] > 0:
        join_lines(vertex, other, costs.beside)
    merge_quadrics(vertex, other, u, v, mesh.vertices, costs.quadrics)
    collapse_edge(previous_corner(corner), mesh)
    flags[vertex] = max(flags[vertex], flags[other])
    mesh.vertices[vertex, 0], mesh.vertices[vertex, 1] = u, v
    return saved


@inner(forceinline=True)
def merge_quadrics(a, b, u, v, vertices, quadrics):
    """Add the quadrics of two vertices, moved to the new position (u, v), and store the sum at a."""
    for vertex in (a, b):
        q = quadrics[vertex]
        du, dv = u - vertices[vertex, 0], v - vertices[vertex, 1]
        constant = evaluate(quadric_of(vertex, quadrics), du, dv)
        q[BU] += q[UU] * du + q[UV] * dv
        q[BV] += q[UV] * du + q[VV] * dv
        q[CONSTANT] = constant
    for k in range(QUADRIC):
        quadrics[a, k] += quadrics[b, k]
