"""Extending normals to pixels of the mask that have no measurement, from the measurements around them.

A pixel takes the mean of its 3 × 3 neighbours that have a normal, ring by ring away from the measurements.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Int, UInt8
from normalmesh.normals._extension import extend_ring, mark_missing
from normalmesh.normals._normal_map import NormalMapArrays
from normalmesh.runtime.threads import in_parallel


@dataclass(frozen=True)
class Reach:
    """How far normals are extended.

    Attributes
    ----------
    rim
        Pixels beyond the measurements at the rim of the mask, and in holes that are not filled.
    hole
        Pixels from the measurements around a hole to its middle; deeper holes are not filled.
    largest
        Pixels of a hole that is filled.
    """

    rim: int
    hole: int
    largest: int


#: A given mask is believed: it is often some pixels larger than the object, and includes highlights and shadows.
WITH_MASK = Reach(rim=4, hole=16, largest=2**62)
#: Without a mask, what has no measurement is background, except for specks that are smaller than any gap between parts.
WITHOUT_MASK = Reach(rim=0, hole=2, largest=16)


def extend_rings(arrays: NormalMapArrays, missing: Int, reach: Reach, top: int = 0, left: int = 0) -> tuple[UInt8, Int]:
    """Extend normals ring by ring as far as holes allow; return the ring of each pixel, and what is still missing.

    ``top`` and ``left``: row and column of the first pixel in the image of the camera. The ring (H, W) of a pixel is
    0 where there is a measurement or no mask, and :data:`._extension.MISSING` where there is no normal yet. Pixels of a
    window are as in the whole image if they are farther than the reach from its border.
    """
    rows = len(missing)
    rings = np.zeros(arrays.mask.shape, np.uint8)
    in_parallel(mark_missing, rows, arrays, rings, grain=64)
    still = missing.copy()
    count = int(missing.sum())
    for ring in range(1, max(reach.rim, reach.hole) + 1):
        in_parallel(extend_ring, rows, arrays, rings, ring, still, top, left, grain=64)
        before, count = count, int(still.sum())
        if count in (0, before):
            break
    return rings, still
