"""Kernels that keep the outline of the mask: its quadrics, moves of boundary vertices, and the pixels covered.

The outline is the boundary of the start mesh, a list of points with ``next_point``. A boundary vertex stands for one of
them, ``point_of[vertex]``, and an edge between two boundary vertices for the points between theirs.
"""

import math
from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Float, Int32, UInt8
from normalmesh.mesh._closed_mesh import BOUNDARY, boundary_neighbours
from normalmesh.mesh._raster import edge, first_column, first_row
from normalmesh.runtime.kernels import inner, kernel

#: Bits of the coverage of a pixel: its centre lies in the mesh; and whether it does must not change.
COVERED = 1
FIXED = 2

#: Resistance of boundary vertices to sliding along a straight outline, as a share of the fit's stiffness.
INERTIA = 0.01


class OutlineArrays(NamedTuple):
    """The arrays of the outline that a :class:`.closed_mesh.ClosedMesh` keeps, as kernels take them."""

    point_of: Int32  # (N,) the point of the outline that a boundary vertex stands for, −1 for inner vertices
    next_point: Int32  # (P,) the next point along the boundary, with the foreground on the left
    points: Float  # (P, 2) boundary vertices of the start mesh, in pixels
    smooth: Float  # (P, 2) the same points without the staircase of the pixel grid
    pull: float  # weight (px³) of the distance of a vertex to its smooth point, over the squared lengths of its edges
    coverage: UInt8  # (H, W) COVERED pixels, whose centres lie in the mesh; for FIXED ones this must not change


@inner
def near_outline(u, v, mask):
    """Check whether the outline of the mask passes within one pixel of (u, v)."""
    row, column = int(math.floor(v)), int(math.floor(u))
    here = 0 <= row < mask.shape[0] and 0 <= column < mask.shape[1] and mask[row, column]
    for i in range(row - 1, row + 2):
        for j in range(column - 1, column + 2):
            there = 0 <= i < mask.shape[0] and 0 <= j < mask.shape[1] and mask[i, j]
            if there != here:
                off_u = max(j - u, u - (j + 1), 0.0)
                off_v = max(i - v, v - (i + 1), 0.0)
                if off_u * off_u + off_v * off_v <= 1.0:
                    return True
    return False


@kernel
def add_outline_quadrics(first, last, mesh, outline, weight, quadrics):
    """Add the squared distance to the outline that their edges stand for to quadrics (N, 6) of boundary vertices."""
    point_of, next_point, smooth = outline.point_of, outline.next_point, outline.smooth
    for vertex in range(first, last):
        if point_of[vertex] < 0:
            continue
        before, after = boundary_neighbours(vertex, mesh)
        point = point_of[before]
        while True:
            end = next_point[point]
            add_line(smooth[point], smooth[end], mesh.vertices[vertex], weight, quadrics[vertex])
            point = end
            if point == point_of[after]:
                break


@inner(forceinline=True)
def add_line(start, end, position, weight, quadric):
    """Add weight · length · (distance to the line)² to a screen quadric around a position."""
    du, dv = end[0] - start[0], end[1] - start[1]
    length = math.hypot(du, dv)
    if length == 0.0:
        return
    nu, nv = -dv / length, du / length
    distance = nu * (position[0] - start[0]) + nv * (position[1] - start[1])
    quadric[0] += weight * length * nu * nu
    quadric[1] += weight * length * nu * nv
    quadric[2] += weight * length * nv * nv
    quadric[3] += weight * length * distance * nu
    quadric[4] += weight * length * distance * nv
    quadric[5] += weight * length * distance * distance


@kernel
def outline_steps(first, last, mesh, outline, step, steps):
    """Fill the steps (N, 2) that fit the boundary edges of free boundary vertices to the outline, by least squares."""
    vertices, point_of = mesh.vertices, outline.point_of
    for vertex in range(first, last):
        if mesh.flags[vertex] != BOUNDARY:
            continue
        before, after = boundary_neighbours(vertex, mesh)
        here = point_of[vertex]
        system = np.zeros(5)
        _fit_edge(vertices[vertex], vertices[before], point_of[before], here, outline, system)
        _fit_edge(vertices[vertex], vertices[after], here, point_of[after], outline, system)
        squared = _squared_length(vertex, before, vertices) + _squared_length(vertex, after, vertices)
        pull = outline.pull / max(squared, 1.0)
        inertia = INERTIA * (system[0] + system[2]) + pull
        uu, uv, vv = system[0] + inertia, system[1], system[2] + inertia
        system[3] += pull * (outline.smooth[here, 0] - vertices[vertex, 0])
        system[4] += pull * (outline.smooth[here, 1] - vertices[vertex, 1])
        determinant = uu * vv - uv * uv
        if determinant > 0.0:
            steps[vertex, 0] = step * (vv * system[3] - uv * system[4]) / determinant
            steps[vertex, 1] = step * (uu * system[4] - uv * system[3]) / determinant


@inner
def _squared_length(one, other, vertices):
    """Return the squared length (px²) of an edge."""
    return (vertices[one, 0] - vertices[other, 0]) ** 2 + (vertices[one, 1] - vertices[other, 1]) ** 2


@inner
def _fit_edge(moving, fixed, start, end, outline, system):
    """Add the distances of the outline, from start to end, to an edge as linear functions of the edge's moving end.

    ``system`` holds the normal equations: the matrix as uu, uv, vv and the right side.
    """
    next_point, smooth = outline.next_point, outline.smooth
    du, dv = moving[0] - fixed[0], moving[1] - fixed[1]
    squared = du * du + dv * dv
    if squared == 0.0:
        return
    nu, nv = -dv / math.sqrt(squared), du / math.sqrt(squared)
    point = start
    while point != end:
        following = next_point[point]
        u, v = 0.5 * (smooth[point, 0] + smooth[following, 0]), 0.5 * (smooth[point, 1] + smooth[following, 1])
        weight = math.hypot(smooth[following, 0] - smooth[point, 0], smooth[following, 1] - smooth[point, 1])
        t = min(max(((u - fixed[0]) * du + (v - fixed[1]) * dv) / squared, 0.0), 1.0)
        off = nu * (u - fixed[0]) + nv * (v - fixed[1])
        system[0] += weight * t * t * nu * nu
        system[1] += weight * t * t * nu * nv
        system[2] += weight * t * t * nv * nv
        system[3] += weight * t * off * nu
        system[4] += weight * t * off * nv
        point = following


@inner(forceinline=True)
def nearest_point(start, end, u, v, next_point, points):
    """Return the point of the outline from start to end that is nearest to (u, v)."""
    nearest = start
    least = np.inf
    point = start
    while True:
        distance = (points[point, 0] - u) ** 2 + (points[point, 1] - v) ** 2
        if distance < least:
            least = distance
            nearest = point
        if point == end:
            return nearest
        point = next_point[point]


@inner
def deviation_squared(start, end, au, av, bu, bv, next_point, points):
    """Return the largest squared distance (px²) of the outline's points from start to end to the segment ab."""
    du, dv = bu - au, bv - av
    squared = du * du + dv * dv
    largest = 0.0
    point = start
    while True:
        u, v = points[point, 0] - au, points[point, 1] - av
        t = min(max((u * du + v * dv) / squared, 0.0), 1.0) if squared > 0.0 else 0.0
        largest = max(largest, (u - t * du) ** 2 + (v - t * dv) ** 2)
        if point == end:
            return largest
        point = next_point[point]


@inner
def change_outline(polygon, coverage, commit):
    """Check whether a piece of the boundary can be replaced so that no pixel then lies in two faces.

    Fixed pixels must stay covered, or uncovered. With ``commit``, also update the ``coverage`` (H, W) of pixels.

    The polygon, five points (u, v), runs along the new piece and back along the old one, with the foreground on the
    left of the new piece: it winds once around pixels that become covered, and once backwards around those that become
    uncovered. Points may be repeated.
    """
    a, b, c, d, e = polygon
    rows = coverage.shape[0]
    sides = _side(a, b, rows), _side(b, c, rows), _side(c, d, rows), _side(d, e, rows), _side(e, a, rows)
    return _winds_well(sides, coverage, False) and (not commit or _winds_well(sides, coverage, True))


@inner(forceinline=True)
def _side(start, end, rows):
    """Return the :func:`edge` of a side of a polygon, its first row, the row after its last, and 1 if it runs down."""
    top, bottom, turns = (end, start, -1) if end[1] < start[1] else (start, end, 1)
    return edge(top, bottom), first_row(top[1], rows), first_row(bottom[1], rows), turns


@inner(forceinline=True)
def _crossing(side, row, columns):
    """Return the first column of a row on the right of a side, ``columns`` for none, and what it adds to windings."""
    line, first, last, turns = side
    return first_column(line, row, columns) if first <= row < last else columns, turns


@inner
def _winds_well(sides, coverage, commit):
    """Return whether the winding numbers of a polygon suit the coverage of pixels; with ``commit``, only update it."""
    columns = coverage.shape[1]
    one, two, three, four, five = sides
    first, last = coverage.shape[0], 0
    for side in sides:
        first, last = min(first, side[1]), max(last, side[2])
    for row in range(first, last):
        crossings = (
            _crossing(one, row, columns),
            _crossing(two, row, columns),
            _crossing(three, row, columns),
            _crossing(four, row, columns),
            _crossing(five, row, columns),
        )
        column = 0
        while column < columns:
            winding, end = 0, columns
            for place, turns in crossings:
                if place <= column:
                    winding += turns
                else:
                    end = min(end, place)
            for j in range(column, end if winding != 0 else column):
                if commit:
                    coverage[row, j] = COVERED if winding > 0 else 0
                elif winding > 1 or (winding > 0 and coverage[row, j] & COVERED) or coverage[row, j] & FIXED:
                    return False
            column = end
    return True
