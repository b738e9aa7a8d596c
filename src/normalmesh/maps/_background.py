"""Kernels of :mod:`normalmesh.maps.background`.

``state`` (H, W) uint8: 0 is foreground, :data:`COLOURED` has the colour of the background, :data:`BACKGROUND` is
background, and :data:`BACKGROUND` + k became background in round k of growing.
"""

import math

from normalmesh.runtime.kernels import inner, kernel

COLOURED = 1
BACKGROUND = 2
#: Pixels inside the outline in which the steepest normal is looked for: lossy files blur those at the outline itself.
INSIDE = 4


@inner(forceinline=True)
def _deviation(vectors, i, j, colour):
    """Return the largest difference of a component from the colour; NaN counts as none, as it is background anyway."""
    x, y, z = vectors[i, j, 0] - colour[0], vectors[i, j, 1] - colour[1], vectors[i, j, 2] - colour[2]
    return max(abs(x), abs(y), abs(z))


@kernel
def mark_coloured(first, last, vectors, colour, tolerance, mark, state):
    """Set rows of ``state``, which is zero before, to ``mark`` where vectors have the colour up to the tolerance."""
    for i in range(first, last):
        for j in range(state.shape[1]):
            if _deviation(vectors, i, j, colour) <= tolerance:
                state[i, j] = mark


@kernel
def flood_from_border(state, shortest):
    """Turn what is ``COLOURED`` and 8-connected to a run of such pixels on the image's border into ``BACKGROUND``.

    ``shortest``: least number of pixels of a run.
    """
    rows = state.shape[0]
    for side in (0, -1):
        _mark_runs(state[side], shortest)
        _mark_runs(state[:, side], shortest)
    changed = True
    while changed:
        changed = False
        for i in range(rows):
            changed |= _flood_row(i, state)
        for i in range(rows - 1, -1, -1):
            changed |= _flood_row(i, state)


@inner
def _mark_runs(side, shortest):
    """Turn runs of ``COLOURED`` pixels of a side of the image into ``BACKGROUND``; corners may already be."""
    first = 0
    for k in range(len(side) + 1):
        if k < len(side) and side[k] > 0:
            continue
        if k - first >= min(shortest, len(side)):
            side[first:k] = BACKGROUND
        first = k + 1


@inner
def _flood_row(i, state):
    """Spread background into row i from the rows beside it, then along the row; return whether a pixel changed."""
    columns, changed = state.shape[1], False
    for j in range(columns):
        if state[i, j] == COLOURED and _is_beside(i, j, state, BACKGROUND, BACKGROUND):
            state[i, j], changed = BACKGROUND, True
    for j in range(columns - 2, -1, -1):
        if state[i, j] == COLOURED and state[i, j + 1] == BACKGROUND:
            state[i, j], changed = BACKGROUND, True
    return changed


@kernel
def pixels_beside(state, places):
    """Write row and column of the first pixels beside the background to ``places`` (n, 2); return their number."""
    count = 0
    for i in range(state.shape[0]):
        for j in range(state.shape[1]):
            if state[i, j] < BACKGROUND and _is_beside(i, j, state, BACKGROUND, BACKGROUND):
                if count == len(places):
                    return count
                places[count, 0], places[count, 1] = i, j
                count += 1
    return count


@kernel
def grow_background(first, last, vectors, colour, tolerance, state, turn):
    """Turn pixels of rows beside the background of round ``turn`` − 1 into background if they are near its colour.

    Threads only test for a value that none of them writes.
    """
    for i in range(first, last):
        for j in range(state.shape[1]):
            if (
                state[i, j] < BACKGROUND
                and _is_beside(i, j, state, BACKGROUND + turn - 1, BACKGROUND + turn - 1)
                and _deviation(vectors, i, j, colour) <= tolerance
            ):
                state[i, j] = BACKGROUND + turn


@inner
def _is_beside(i, j, state, least, most):
    """Return whether one of the 3 × 3 neighbours has a value from the least to the most."""
    for row in range(max(i - 1, 0), min(i + 2, state.shape[0])):
        for column in range(max(j - 1, 0), min(j + 2, state.shape[1])):
            if least <= state[row, column] <= most:
                return True
    return False


@kernel
def steep_outline(vectors, colour, state, cosine, top, left, bottom, right):
    """Return along how many pixels of the outline the foreground is steep within four pixels, and the length of it.

    Steep: the angle between a vector and the colour has at most this cosine. Of the outline, pixels in the rows ``top``
    to ``bottom`` − 1 and the columns ``left`` to ``right`` − 1 count.
    """
    steep = total = 0
    for i in range(top, bottom):
        for j in range(left, right):
            if state[i, j] < BACKGROUND and _is_beside(i, j, state, BACKGROUND, 255):
                total += 1
                steep += _is_steep(i, j, vectors, colour, state, cosine)
    return steep, total


@inner
def _is_steep(i, j, vectors, colour, state, cosine):
    size = math.sqrt(colour[0] ** 2 + colour[1] ** 2 + colour[2] ** 2)
    for row in range(max(i - INSIDE, 0), min(i + INSIDE + 1, state.shape[0])):
        for column in range(max(j - INSIDE, 0), min(j + INSIDE + 1, state.shape[1])):
            if state[row, column] < BACKGROUND:
                x, y, z = vectors[row, column, 0], vectors[row, column, 1], vectors[row, column, 2]
                along = x * colour[0] + y * colour[1] + z * colour[2]
                length = math.sqrt(x * x + y * y + z * z)
                if length > 0.5 and along <= cosine * length * size:
                    return True
    return False
