"""Kernels of :mod:`normalmesh.mesh.closed_mesh`: walking around vertices; collapsing, flipping and splitting edges.

They work on a corner table (:mod:`normalmesh.mesh._topology`) without boundary: one ghost vertex, the last, is joined
to every boundary edge. So every vertex but the ghost has a closed ring of faces.
"""

from typing import NamedTuple

from normalmesh.array_types import Float, Int32, UInt8
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.runtime.kernels import inner, kernel

#: Bits of a vertex's flags. Vertices of lines are locked, too, but may be moved and collapsed along their line, except
#: that needed ones are not collapsed. Those of finished components are locked for a while.
BOUNDARY = 1
LOCKED = 2
LINE = 4
NEEDED = 8
FINISHED = 16


class MeshArrays(NamedTuple):
    """The arrays of a :class:`.closed_mesh.ClosedMesh`, as kernels take them."""

    vertices: Float  # (N, 2) screen positions in pixels
    faces: Int32  # (F, 3) real faces first, then ghost faces; collapsed ones have −1 as first vertex
    opposite: Int32  # (3F,) the corner on the other side of the edge across from each corner
    corner_of: Int32  # (N + 1,) one corner of each vertex, −1 for collapsed vertices
    flags: UInt8  # (N,) BOUNDARY, LOCKED, LINE and NEEDED
    ghost: int  # index of the ghost vertex, N
    real_faces: int  # number of them


@inner
def turn(corner, opposite):
    """Return the corner of the same vertex in the next face counter-clockwise."""
    return next_corner(opposite[next_corner(corner)])


@inner
def vertex_at(corner, faces):
    """Return the vertex of a corner."""
    return faces[corner // 3, corner % 3]


@kernel
def fill_corners(faces, corner_of):
    """Fill ``corner_of`` with the first corner of each vertex that has a face."""
    for corner in range(faces.size - 1, -1, -1):
        corner_of[vertex_at(corner, faces)] = corner


@kernel
def compact_faces(first, last, alive, numbers, faces, opposite, kept, across):
    """Copy the faces ``alive[first:last]`` to ``kept``, and their corner table to ``across``.

    ``numbers`` are the new numbers of faces (F,) and of vertices (N,).
    """
    number, renumber = numbers
    for f in range(first, last):
        for k in range(3):
            other = opposite[3 * alive[f] + k]
            kept[f, k] = renumber[faces[alive[f], k]]
            across[3 * f + k] = 3 * number[other // 3] + other % 3


@inner
def boundary_neighbours(vertex, mesh):
    """Return the boundary vertices before and after a boundary vertex, with the foreground on the left."""
    faces, opposite = mesh.faces, mesh.opposite
    corner = mesh.corner_of[vertex]
    while vertex_at(next_corner(corner), faces) != mesh.ghost:
        corner = turn(corner, opposite)
    before = vertex_at(opposite[previous_corner(corner)], faces)
    after = vertex_at(previous_corner(corner), faces)
    return before, after


@inner
def are_neighbours(one, two, mesh):
    """Check whether two vertices share an edge."""
    start = mesh.corner_of[one]
    corner = start
    while True:
        if vertex_at(next_corner(corner), mesh.faces) == two:
            return True
        corner = turn(corner, mesh.opposite)
        if corner == start:
            return False


@inner(forceinline=True)
def collapse_edge(corner, mesh):
    """Collapse the edge across from a corner: its end becomes its start. Both faces of the edge die (vertex −1)."""
    faces, opposite, corner_of = mesh.faces, mesh.opposite, mesh.corner_of
    keep, drop = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    other = opposite[corner]
    start = corner_of[drop]
    walk = start
    while True:
        faces[walk // 3, walk % 3] = keep
        walk = turn(walk, opposite)
        if walk == start:
            break
    _close_face(corner, keep, mesh)
    _close_face(other, keep, mesh)
    faces[corner // 3, 0] = faces[other // 3, 0] = -1
    corner_of[drop] = -1


@inner
def _close_face(corner, keep, mesh):
    """Join the two neighbours of a dying face along its edges at the corner's vertex."""
    faces, opposite, corner_of = mesh.faces, mesh.opposite, mesh.corner_of
    one, two = opposite[next_corner(corner)], opposite[previous_corner(corner)]
    _join(one, two, opposite)
    corner_of[vertex_at(corner, faces)] = next_corner(one)
    corner_of[keep] = previous_corner(one)


@inner
def flip_edge(corner, mesh):
    """Replace the edge across from a corner by the other diagonal of its two faces.

    Faces (apex, start, end) and (far, end, start) become (apex, start, far) and (far, end, apex).
    """
    faces, opposite, corner_of = mesh.faces, mesh.opposite, mesh.corner_of
    other = opposite[corner]
    at_start, at_end = next_corner(corner), next_corner(other)
    apex, far = vertex_at(corner, faces), vertex_at(other, faces)
    across_start, across_end = opposite[at_start], opposite[at_end]
    moved, moved_too = previous_corner(corner), previous_corner(other)
    faces[moved // 3, moved % 3] = far
    faces[moved_too // 3, moved_too % 3] = apex
    _join(corner, across_end, opposite)
    _join(other, across_start, opposite)
    _join(at_start, at_end, opposite)
    corner_of[apex], corner_of[far] = corner, other
    corner_of[vertex_at(at_start, faces)], corner_of[vertex_at(at_end, faces)] = at_start, at_end


@inner
def split_edge(corner, middle, face, other_face, mesh):
    """Insert the vertex ``middle`` into the edge across from a corner; two unused faces take the far halves.

    Faces (apex, start, end) and (far, end, start) become (apex, start, middle) and (far, end, middle); the new ones are
    ``face``, (apex, middle, end), and ``other_face``, (far, middle, start). Corners keep their places in a face.
    """
    faces, opposite, corner_of = mesh.faces, mesh.opposite, mesh.corner_of
    other = opposite[corner]
    start, end = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    half = _cut_off_half(corner, middle, face, mesh)
    other_half = _cut_off_half(other, middle, other_face, mesh)
    _join(corner, other_half, opposite)
    _join(other, half, opposite)
    corner_of[middle] = previous_corner(corner)
    corner_of[start], corner_of[end] = next_corner(corner), next_corner(other)
    corner_of[vertex_at(corner, faces)], corner_of[vertex_at(other, faces)] = corner, other


@inner
def _cut_off_half(corner, middle, face, mesh):
    """Give the half of a face behind the middle of its edge to an unused face; return the corner of its apex there."""
    faces, opposite = mesh.faces, mesh.opposite
    before, after = next_corner(corner), previous_corner(corner)
    half = 3 * face + corner % 3
    faces[face, corner % 3] = vertex_at(corner, faces)
    faces[face, before % 3] = middle
    faces[face, after % 3] = vertex_at(after, faces)
    faces[after // 3, after % 3] = middle
    _join(next_corner(half), opposite[before], opposite)
    _join(before, previous_corner(half), opposite)
    return half


@inner
def _join(one, two, opposite):
    """Make two corners opposite each other."""
    opposite[one], opposite[two] = two, one
