"""Kernels for the dense fronts of the multifrontal Cholesky factorisation.

The front of a block has k own rows and columns and b columns beyond, its border. Its own rows are the *panel*; the
Schur complement of the border is the *update*. Both are upper triangles. Columns are padded to whole vectors: the panel
has ``pivot_column(k)`` unused columns on the left, so that the border starts at a multiple of four, and the update has
a multiple of four rows and columns. Values below the diagonal and in the padding of the update are undefined.

A front may have the *excess* of its rows, their sums in the whole Schur complement, beside its numbers. Pivots are then
computed from sums of rows instead of differences, which loses no digits where all numbers beside the diagonal are
negative, as in Laplacians, however much they differ: this is what makes float32 sufficient.

Pivots are eliminated in strips of four rows; the first strip has one to four. A copy of the eliminated rows, *packed*,
lies in blocks of ``_COLUMNS`` columns, at distances known at compile time, because loops are vectorised only then.
"""

import numpy as np

from normalmesh.runtime.kernels import inner

#: Columns of a packed block, the distance between its rows (no power of two, for the cache), and its maximum of pivots.
_COLUMNS, _STRIDE, PIVOTS = 256, 264, 64
_BLOCK = _STRIDE * PIVOTS
#: Rows of a target that stay in the cache while all pivots are subtracted from them.
ROWS = 64


@inner(forceinline=True)
def padded(count):
    """Return the next multiple of four."""
    return (count + 3) & ~3


@inner(forceinline=True)
def pivot_column(k):
    """Return the column of a panel with k pivots that holds the first of them."""
    return -k & 3


@inner(forceinline=True)
def packed_size(columns):
    """Return the length of the work array ``packed`` for fronts of at most ``columns`` columns."""
    return (columns + _COLUMNS - 1) // _COLUMNS * _BLOCK


@inner(forceinline=True)
def _sweep_eight(target, other, source, f, g):
    """Subtract eight packed rows, times their numbers in columns f and g, from two rows."""
    f0, f1, f2, f3 = f[0], f[_STRIDE], f[2 * _STRIDE], f[3 * _STRIDE]
    f4, f5, f6, f7 = f[4 * _STRIDE], f[5 * _STRIDE], f[6 * _STRIDE], f[7 * _STRIDE]
    g0, g1, g2, g3 = g[0], g[_STRIDE], g[2 * _STRIDE], g[3 * _STRIDE]
    g4, g5, g6, g7 = g[4 * _STRIDE], g[5 * _STRIDE], g[6 * _STRIDE], g[7 * _STRIDE]
    for i in range(target.size):
        a, b, c, d = source[i], source[i + _STRIDE], source[i + 2 * _STRIDE], source[i + 3 * _STRIDE]
        x = target[i] - f0 * a - f1 * b - f2 * c - f3 * d
        y = other[i] - g0 * a - g1 * b - g2 * c - g3 * d
        a, b = source[i + 4 * _STRIDE], source[i + 5 * _STRIDE]
        c, d = source[i + 6 * _STRIDE], source[i + 7 * _STRIDE]
        target[i] = x - f4 * a - f5 * b - f6 * c - f7 * d
        other[i] = y - g4 * a - g5 * b - g6 * c - g7 * d


@inner(forceinline=True)
def _sweep_four(target, other, source, f, g):
    """Subtract four packed rows, times their numbers in columns f and g, from two rows."""
    f0, f1, f2, f3 = f[0], f[_STRIDE], f[2 * _STRIDE], f[3 * _STRIDE]
    g0, g1, g2, g3 = g[0], g[_STRIDE], g[2 * _STRIDE], g[3 * _STRIDE]
    for i in range(target.size):
        a, b, c, d = source[i], source[i + _STRIDE], source[i + 2 * _STRIDE], source[i + 3 * _STRIDE]
        target[i] = target[i] - f0 * a - f1 * b - f2 * c - f3 * d
        other[i] = other[i] - g0 * a - g1 * b - g2 * c - g3 * d


@inner
def subtract(packed, pivots, strips, target, rows, own, shift, end):
    """Subtract packed pivots, ``strips`` strips of four beginning with pivot ``pivots``, from rows of the target.

    ``rows`` are the first row and the last row plus one, an even number of rows. Row r belongs to column r + ``own`` of
    the front, and column c of the front is column c − ``shift`` of the target. The front has ``end`` columns.
    """
    low, high = rows
    begin = (low + own) // _COLUMNS * _COLUMNS
    for left in range(begin, end, _COLUMNS):
        right = min(left + _COLUMNS, end)
        bottom = min(high, right - own)
        for top in range(low, bottom, ROWS):
            for strip in range(0, strips, 2):
                at = (pivots + 4 * strip) * _STRIDE
                for r in range(top, min(top + ROWS, bottom), 2):
                    c = r + own
                    f = packed[at + c // _COLUMNS * _BLOCK + c % _COLUMNS :]
                    g = f[1:]
                    c = max(c & ~3, left)
                    source = packed[at + left // _COLUMNS * _BLOCK + c - left :]
                    one, two = target[r, c - shift : right - shift], target[r + 1, c - shift : right - shift]
                    if strip + 1 < strips:
                        _sweep_eight(one, two, source, f, g)
                    else:
                        _sweep_four(one, two, source, f, g)


@inner(forceinline=True)
def _strip(panel, first, last, begin, end):
    """Return columns begin … end − 1 of the four rows before row ``last``.

    Rows before ``first`` are replaced by others, whose coefficients are zero.
    """
    return (
        panel[first, begin:end],
        panel[max(first, last - 3), begin:end],
        panel[max(first, last - 2), begin:end],
        panel[last - 1, begin:end],
    )


@inner(forceinline=True)
def _sums_beyond(rows):
    """Return the sums of four rows."""
    a, b, c, d = rows
    v, w, x, y = 0.0, 0.0, 0.0, 0.0
    for i in range(a.size):
        v += a[i]
        w += b[i]
        x += c[i]
        y += d[i]
    return v, w, x, y


@inner(forceinline=True)
def _factorise_corner(panel, first, last, corner, excess):
    """Factorise at most four pivots among themselves, and return the first that is not positive, or −1.

    Fill ``corner[:4]`` with their rows of U, with reciprocal pivots, and zeros for missing rows. The excess of rows,
    if there is any, becomes the solution with the transposed corner; their sums beyond it go to ``corner[4]``.
    """
    lead, missing = pivot_column(panel.shape[0]), 4 - (last - first)
    for j in range(missing):
        for i in range(4):
            corner[j, i] = 0
    if excess.size > 0:
        column = lead + last
        beyond = _sums_beyond(_strip(panel, first, last, column, panel.shape[1]))
        corner[4, 0], corner[4, 1], corner[4, 2], corner[4, 3] = beyond
    for j in range(first, last):
        place = missing + j - first
        pivot = panel[j, lead + j]
        if excess.size > 0:
            beside = corner[4, place]
            for i in range(j + 1, last):
                beside += panel[j, lead + i]
            pivot = excess[lead + j] - beside
        if not 0 < pivot < np.inf:
            return j
        root = np.sqrt(pivot)
        panel[j, lead + j] = root
        scale = 1 / root
        corner[place, place] = scale
        for i in range(j + 1, last):
            panel[j, lead + i] *= scale
            corner[place, missing + i - first] = panel[j, lead + i]
            for h in range(j + 1, i + 1):
                panel[h, lead + i] -= panel[j, lead + h] * panel[j, lead + i]
        if excess.size > 0:
            excess[lead + j] *= scale
            corner[4, place] *= scale
            for i in range(j + 1, last):
                excess[lead + i] -= panel[j, lead + i] * excess[lead + j]
                corner[4, missing + i - first] -= panel[j, lead + i] * corner[4, place]
    return -1


@inner(forceinline=True)
def _solve_strip(rows, corner, packed):
    """Fill ``packed`` with the rows of U right of the corner, from the four rows of the panel there."""
    a, b, c, d = rows
    s, t, u, v = corner[0, 0], corner[1, 1], corner[2, 2], corner[3, 3]
    e, f, g = corner[0, 1], corner[0, 2], corner[0, 3]
    h, j, k = corner[1, 2], corner[1, 3], corner[2, 3]
    for i in range(a.size):
        w = a[i] * s
        x = (b[i] - e * w) * t
        y = (c[i] - f * w - h * x) * u
        packed[i] = w
        packed[i + _STRIDE] = x
        packed[i + 2 * _STRIDE] = y
        packed[i + 3 * _STRIDE] = (d[i] - g * w - j * x - k * y) * v


@inner(forceinline=True)
def _lower_excess(excess, packed, solved):
    """Subtract four packed rows, times the solutions of their excess, from the excess of later rows."""
    v, w, x, y = solved
    for i in range(excess.size):
        excess[i] -= v * packed[i] + w * packed[i + _STRIDE] + x * packed[i + 2 * _STRIDE] + y * packed[i + 3 * _STRIDE]


@inner(forceinline=True)
def _eliminate_strip(panel, first, last, pivot, packed, corner, excess):
    """Turn rows first … last − 1 of the panel, at most four, into rows of U, packed as pivots ``pivot`` and following.

    Return the first row whose pivot is not positive, or −1.
    """
    bad = _factorise_corner(panel, first, last, corner, excess)
    if bad >= 0:
        return bad
    k, end = panel.shape
    column = pivot_column(k) + last
    missing = 4 - (last - first)
    while column < end:
        right = min((column // _COLUMNS + 1) * _COLUMNS, end)
        there = packed[column // _COLUMNS * _BLOCK + pivot * _STRIDE + column % _COLUMNS :]
        _solve_strip(_strip(panel, first, last, column, right), corner, there)
        if excess.size > 0:
            # Columns left of the first pivot have no excess, so missing rows have the solution zero.
            at = pivot_column(k) + last - 4
            solved = excess[at], excess[at + 1], excess[at + 2], excess[at + 3]
            _lower_excess(excess[column:right], there, solved)
        for j in range(first, last):
            row, copy = panel[j, column:right], there[(missing + j - first) * _STRIDE :]
            for i in range(row.size):
                row[i] = copy[i]
        column = right
    return -1


@inner(forceinline=True)
def eliminate_pivots(panel, start, packed, corner, excess):
    """Eliminate the rows of a panel from ``start`` on that fit into packed blocks, among themselves.

    The first ``start`` is ``-pivot_column(k)``, later ones are :data:`PIVOTS` farther. Return the first row whose pivot
    is not positive, or −1.
    """
    k, end = panel.shape
    lead = pivot_column(k)
    stop = min(start + PIVOTS, k)
    for low in range(start, stop, 4):
        pivot = low - start
        bad = _eliminate_strip(panel, max(low, 0), low + 4, pivot, packed, corner, excess)
        if bad >= 0:
            return bad
        # Two strips at a time are subtracted from all rows to be packed next, one from the next strip only.
        if pivot & 4:
            subtract(packed, pivot - 4, 2, panel, (low + 4, stop), lead, 0, end)
        else:
            subtract(packed, pivot, 1, panel, (low + 4, min(low + 8, stop)), lead, 0, end)
    return -1


@inner
def factorise_front(panel, update, packed, corner, excess):
    """Eliminate the own rows of a front, in place; return the first row whose pivot is not positive, or −1.

    ``packed`` (:func:`packed_size`) and ``corner`` (5, 4) are work arrays. ``excess`` (one for each column) is that of
    the rows of the front, zero in padding. It becomes that of the border. It is empty if pivots are to be differences.
    """
    k, end = panel.shape
    lead = pivot_column(k)
    for start in range(-lead, k, PIVOTS):
        stop = min(start + PIVOTS, k)
        bad = eliminate_pivots(panel, start, packed, corner, excess)
        if bad >= 0:
            return bad
        strips = (stop - start) // 4
        subtract(packed, 0, strips, panel, (stop, k), lead, 0, end)
        subtract(packed, 0, strips, update, (0, update.shape[0]), lead + k, lead + k, end)
    return -1


@inner(forceinline=True)
def _subtract_four(front, rows, coefficients):
    """Subtract four rows, times their coefficients, from the front."""
    a, b, c, d = rows
    v, w, x, y = coefficients
    for i in range(front.size):
        front[i] = front[i] - v * a[i] - w * b[i] - x * c[i] - y * d[i]


@inner(forceinline=True)
def _dot_four(front, rows):
    """Return the scalar products of four rows with the front."""
    a, b, c, d = rows
    v, w, x, y = 0.0, 0.0, 0.0, 0.0
    for i in range(front.size):
        v += a[i] * front[i]
        w += b[i] * front[i]
        x += c[i] * front[i]
        y += d[i] * front[i]
    return v, w, x, y


@inner(forceinline=True)
def solve_transposed(panel, front, end):
    """Solve with the transposed own columns of a panel, in place.

    ``front`` holds the right-hand side, ``end`` numbers. It becomes the solution, followed by the right-hand side that
    is left for the border.
    """
    k = panel.shape[0]
    lead = pivot_column(k)
    for strip in range(-lead, k, 4):
        first, last = max(strip, 0), strip + 4
        for j in range(first, last):
            value = front[lead + j] / panel[j, lead + j]
            front[lead + j] = value
            for i in range(j + 1, last):
                front[lead + i] -= panel[j, lead + i] * value
        # The front is zero in the padding left of the first pivot, so missing rows have the coefficient zero.
        at = lead + strip
        coefficients = front[at], front[at + 1], front[at + 2], front[at + 3]
        at += 4
        _subtract_four(front[at:end], _strip(panel, first, last, at, end), coefficients)


@inner(forceinline=True)
def solve_panel(panel, front, end):
    """Solve with the own columns of a panel, in place.

    ``front``, ``end`` numbers, holds the right-hand side, which becomes the solution, then the border's solution.
    """
    k = panel.shape[0]
    lead = pivot_column(k)
    for strip in range(k - 4, -lead - 1, -4):
        first, last = max(strip, 0), strip + 4
        at = lead + last
        v, w, x, y = _dot_four(front[at:end], _strip(panel, first, last, at, end))
        front[at - 4] -= v
        front[at - 3] -= w
        front[at - 2] -= x
        front[at - 1] -= y
        for j in range(last - 1, first - 1, -1):
            value = front[lead + j]
            for i in range(j + 1, last):
                value -= panel[j, lead + i] * front[lead + i]
            front[lead + j] = value / panel[j, lead + j]
