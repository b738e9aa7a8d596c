"""Kernels that check whether a change keeps a mesh valid: no inverted or degenerate face, no edge or face twice."""

from normalmesh.mesh._closed_mesh import turn, vertex_at
from normalmesh.mesh._predicates import orientation
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.runtime.kernels import inner

#: Area (px²) that a well-shaped face has at least.
MIN_AREA = 1e-3
#: Ratio of twice its area to the square of its longest side that a well-shaped face has at least.
MIN_FLATNESS = 1e-3


@inner
def is_well_shaped(double_area, longest_squared):
    """Check whether a face of this area and longest side is neither tiny nor a needle."""
    return double_area >= max(2.0 * MIN_AREA, MIN_FLATNESS * longest_squared)


@inner
def crossing(a, b, c, d, vertices):
    """Find where the diagonals ab and cd of two faces cross, as shares s of ab and t of cd, and twice the faces' area.

    The area is 0 if they do not cross, or if a flip from ab to cd would make a face that is not well shaped.
    """
    bu, bv = vertices[b, 0] - vertices[a, 0], vertices[b, 1] - vertices[a, 1]
    cu, cv = vertices[c, 0] - vertices[a, 0], vertices[c, 1] - vertices[a, 1]
    du, dv = vertices[d, 0] - vertices[c, 0], vertices[d, 1] - vertices[c, 1]
    cross = bu * dv - bv * du
    if cross == 0.0:
        return 0.0, 0.0, 0.0
    s, t = (cu * dv - cv * du) / cross, (cu * bv - cv * bu) / cross
    if not (0.0 < s < 1.0 and 0.0 < t < 1.0):
        return s, t, 0.0
    # The new faces (c, a, d) and (d, b, c) share out the area of the patch as s divides the edge ab.
    if not is_well_shaped(min(s, 1.0 - s) * abs(cross), max(bu * bu + bv * bv, du * du + dv * dv)):
        return s, t, 0.0
    return s, t, abs(cross)


@inner
def keeps_faces_upright(vertex, other, u, v, mesh):
    """Check that all faces of a vertex, but those with the other one, are well shaped if the vertex moves to (u, v).

    A face that is not well shaped already must stay counter-clockwise and not lose area.
    """
    vertices, faces, ghost = mesh.vertices, mesh.faces, mesh.ghost
    start = mesh.corner_of[vertex]
    corner = start
    while True:
        b, c = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
        if b != other and c != other and b != ghost and c != ghost:
            bu, bv, cu, cv = vertices[b, 0], vertices[b, 1], vertices[c, 0], vertices[c, 1]
            double_area = (bv - v) * (cu - u) - (bu - u) * (cv - v)
            longest = max((bu - u) ** 2 + (bv - v) ** 2, (cu - u) ** 2 + (cv - v) ** 2, (bu - cu) ** 2 + (bv - cv) ** 2)
            if not is_well_shaped(double_area, longest):
                au, av = vertices[vertex, 0], vertices[vertex, 1]
                before = (bv - av) * (cu - au) - (bu - au) * (cv - av)
                if double_area < before or orientation(u, v, bu, bv, cu, cv) <= 0:
                    return False
        corner = turn(corner, mesh.opposite)
        if corner == start:
            return True


@inner(forceinline=True)
def link_is_simple(a, b, mesh, mark, token):
    """Check the link condition: only the two vertices across from the edge ab are neighbours of both its ends.

    With the ghost among the vertices this also refuses to pinch the mesh between two boundary vertices and to close a
    hole. A lone triangle, whose ends both have three neighbours, is refused as well. ``mark`` (N,) is a work
    array in which ``token`` has not been used.
    """
    faces, corner_of, ghost = mesh.faces, mesh.corner_of, mesh.ghost
    valence_a, ghosts_a = 0, 0
    corner = corner_of[a]
    while True:
        other = vertex_at(next_corner(corner), faces)
        if other == ghost:
            ghosts_a += 1
        else:
            mark[other] = token
        valence_a += 1
        corner = turn(corner, mesh.opposite)
        if corner == corner_of[a]:
            break
    valence_b, shared = 0, 0
    corner = corner_of[b]
    while True:
        other = vertex_at(next_corner(corner), faces)
        shared += ghosts_a > 0 if other == ghost else mark[other] == token
        valence_b += 1
        corner = turn(corner, mesh.opposite)
        if corner == corner_of[b]:
            break
    return shared == 2 and (valence_a > 3 or valence_b > 3)
