"""Kernels of :mod:`normalmesh.mesh.raster`: the pixels of a face, row by row.

A face owns the pixels whose centres lie in it. Centres on an edge belong to the face on the right of the edge, or
below it if the edge is horizontal (the top-left rule). A row of pixels crosses each edge at one column, which both
faces of the edge compute from the same numbers and exactly: there are no cracks and no doubles.
"""

import math

from normalmesh.mesh._predicates import orientation
from normalmesh.runtime.kernels import inner, kernel


@inner(forceinline=True)
def by_height(a, b, c):
    """Sort three points (u, v) from top to bottom of the screen, as tuples: views of arrays cost more than the rest."""
    a, b, c = (a[0], a[1]), (b[0], b[1]), (c[0], c[1])
    if b[1] < a[1]:
        a, b = b, a
    if c[1] < b[1]:
        b, c = c, b
        if b[1] < a[1]:
            a, b = b, a
    return a, b, c


@inner(forceinline=True)
def first_row(v, rows):
    """Return the first row of pixels whose centres are not above v, within 0 … rows."""
    return int(min(max(math.ceil(v - 0.5), 0.0), float(rows)))


@inner(forceinline=True)
def edge(top, bottom):
    """Return the upper and the lower end of an edge, du/dv, and a bound on the rounding errors of its columns."""
    u, v, end_u, end_v = top[0], top[1], bottom[0], bottom[1]
    # Between the ends of an edge a column has seven roundings, each of at most 1.2e-16 (|u| + |end_u| + 1).
    slope = (end_u - u) / (end_v - v) if v < end_v else 0.0
    return u, v, end_u, end_v, slope, 4e-15 * (abs(u) + abs(end_u) + 1.0)


@inner(forceinline=True)
def face_edges(top, middle, bottom):
    """Return the long edge of a face, the edge above its middle corner, and the edge below."""
    return edge(top, bottom), edge(top, middle), edge(middle, bottom)


@inner(forceinline=True)
def first_column(edge, row, columns):
    """Return the first column, within 0 … columns, whose pixel centre in this row is not left of the edge."""
    u, v, end_u, end_v, slope, rounding = edge
    height = row + 0.5
    column = u + (height - v) * slope - 0.5
    first, nearest = int(math.ceil(column)), int(math.floor(column + 0.5))
    # Within rounding errors of a pixel centre the side is decided exactly.
    if abs(column - nearest) <= rounding:
        first = nearest + (orientation(u, v, end_u, end_v, nearest + 0.5, height) < 0)
    return min(max(first, 0), columns)


@inner(forceinline=True)
def row_span(edges, row, middle_row, columns):
    """Return the columns start … end − 1 of a row that a face owns; from the middle corner on the lower edge counts."""
    long, upper, lower = edges
    one, other = first_column(long, row, columns), first_column(upper if row < middle_row else lower, row, columns)
    return min(one, other), max(one, other)


@kernel
def fill_pixel_faces(first, last, vertices, faces, marks, owner):
    """Write the indices of faces, or one if ``marks``, into the pixels (H, W) that they own.

    Inverted faces own nothing.
    """
    rows, columns = owner.shape
    for f in range(first, last):
        i, j, k = faces[f, 0], faces[f, 1], faces[f, 2]
        a, b, c = (vertices[i, 0], vertices[i, 1]), (vertices[j, 0], vertices[j, 1]), (vertices[k, 0], vertices[k, 1])
        if orientation(a[0], a[1], b[0], b[1], c[0], c[1]) <= 0:
            continue
        top, middle, bottom = by_height(a, b, c)
        edges, middle_row = face_edges(top, middle, bottom), first_row(middle[1], rows)
        code = 1 if marks else f
        for row in range(first_row(top[1], rows), first_row(bottom[1], rows)):
            start, end = row_span(edges, row, middle_row, columns)
            for column in range(start, end):
                owner[row, column] = code
