"""Rounding of normals to 8 bits, as a map shows it.

Closure errors do not show it where the surface is gentle: neighbouring pixels are rounded alike there, and most of the
errors are exactly zero. Heights see it more than other noise, because errors keep their sign over as many pixels as are
rounded alike: in heights, rounding is like noise that so many pixels share (``tests/normals/test_rounding.py``).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normalmesh.array_types import Bool, Float, Int
from normalmesh.normals.normal_map import NormalMap

if TYPE_CHECKING:
    from normalmesh.pieces.map_windows import WindowedMap

#: Components of 8-bit normals are odd multiples of 1/255, before the normals are given unit length.
LEVELS = 255
#: Standard deviation of the error of rounding, in degrees along one direction.
DEGREES = math.degrees(2 / LEVELS / math.sqrt(12))
#: How far multiples may be from odd integers. Normals that were never rounded are that close in 7 of 10⁶ cases.
ODD_TOLERANCE = 1e-3
#: How far the odd integers that are tried are from 255 times the largest component of the unit normal: rounding down,
#: or a scale of 127 instead of 127.5, changes the length by several steps of 1/255.
FARTHEST = 6
#: Share of the normals that must have the ratios of odd integers. Others were changed after rounding.
ENOUGH = 0.5
#: Approximate numbers of pixels that are compared with their neighbours, and with odd multiples.
COMPARED, TESTED = 2**17, 2**12


def rounded_run(normal_map: NormalMap) -> float:
    """Return the number of neighbouring pixels that are rounded alike, 0 if the normals were not rounded to 8 bits."""
    return rounded_run_in(normal_map, np.flatnonzero(normal_map.mask.any(axis=1)), normal_map.foreground)


def rounded_run_in(normal_map: WindowedMap, rows: Int, foreground: int) -> float:
    """Return the same of a map that is read row by row; ``rows`` (K,) are those that hold the foreground pixels."""
    (height, width), chosen = normal_map.shape, rows[:: max(foreground // COMPARED, 1)].tolist()
    read = [normal_map.window(slice(row, min(row + 2, height)), slice(0, width)) for row in chosen]
    pairs = [each for each in read if each is not None]
    own, inside = np.stack([each.normals[0] for each in pairs]), np.stack([each.mask[0] for each in pairs])
    known = own[inside]
    if np.mean(_are_rounded(known[:: max(len(known) // TESTED, 1)].astype(np.float64))) < ENOUGH:
        return 0.0
    inner = [each for each in pairs if len(each.mask) > 1]
    beside = (own[:, 1:] != own[:, :-1]).any(axis=2)[inside[:, 1:] & inside[:, :-1]]
    under = [(each.normals[0] != each.normals[1]).any(axis=1)[each.mask[0] & each.mask[1]] for each in inner]
    changed = np.concatenate([beside, *under])
    if not changed.size:
        return 1.0
    return changed.size / max(float(np.count_nonzero(changed)), changed.size / max(height, width))


def _are_rounded(normals: Float) -> Bool:
    """Return which of the unit normals (K, 3) have components with the ratios of odd integers up to 255."""
    lead = np.take_along_axis(normals, np.abs(normals).argmax(axis=1)[:, None], axis=1)
    nearest = _odd(LEVELS * lead)
    found = np.zeros(len(normals), np.bool_)
    for step in range(-FARTHEST, FARTHEST + 1, 2):
        multiples = normals * (nearest + step) / lead
        found |= (np.abs(multiples - _odd(multiples)) < ODD_TOLERANCE).all(axis=1)
    return found


def _odd(values: Float) -> Float:
    """Return the nearest odd integers."""
    return 2 * np.round((values - 1) / 2) + 1
