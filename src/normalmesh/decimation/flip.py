"""Edge flips: generalised Delaunay in the metric of the normals."""

from __future__ import annotations

import numpy as np

from normalmesh.decimation import _flip
from normalmesh.decimation._quadrics import RECORD
from normalmesh.decimation.quadrics import FaceRecords, Pixels
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.runtime.sorting import largest_first
from normalmesh.runtime.threads import in_parallel

#: Sweeps, at most: flips change the metric of their neighbours, so in rare cases a ring of edges could turn for ever.
MAX_SWEEPS = 10
#: Minimal number of flips that a thread judges.
JUDGED = 64


def flip(mesh: ClosedMesh, pixels: Pixels, records: FaceRecords) -> int:
    """Flip edges while that lowers the lifted diagonal, largest gain first.

    Afterwards no edge is left whose flip would be an improvement both by the metric before it and by the one after it,
    up to the limit of sweeps. The records must be up to date, and are so afterwards.

    Returns
    -------
    int
        The number of flips.
    """
    gains = np.empty(3 * mesh.real_faces)
    active = np.ones(len(mesh.faces), np.bool_)
    arrays, normal_map = mesh.arrays, pixels.normal_map.arrays
    flips = 0
    for _ in range(MAX_SWEEPS):
        judged_by = (records.table, active, normal_map.camera)
        in_parallel(_flip.gains_of_flips, len(gains), arrays, *judged_by, gains)
        order = largest_first(gains)
        made_from = (normal_map, pixels.regularisation)
        judged = _flip.JudgedFlips(np.empty((2 * len(order), RECORD)), np.empty(len(order), np.bool_))
        in_parallel(_flip.judge_flips, len(order), order, arrays, *made_from, judged, grain=JUDGED)
        flipped = _flip.flip_in_order(order, arrays, records.table, *made_from, judged, active)
        flips += flipped
        if flipped == 0:
            break
    return flips
