"""Vertex moves: inner vertices to the least of their quadrics, boundary vertices to the outline."""

from __future__ import annotations

import numpy as np

from normalmesh.decimation import _move
from normalmesh.decimation.quadrics import FaceRecords, Pixels, vertex_quadrics
from normalmesh.mesh import _outline
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.runtime.threads import in_parallel


def move(mesh: ClosedMesh, pixels: Pixels, records: FaceRecords, step: float) -> int:
    """Move vertices by ``step``·argmin of their quadrics, eq. (16).

    Steps are shortened if a face would turn over. Boundary vertices instead fit their two edges to the outline, and
    stay within a pixel of it. The records must be up to date; the faces that changed are marked in them.

    Returns
    -------
    int
        The number of moves.
    """
    steps = np.empty((len(mesh.vertices), 2))
    quadrics = vertex_quadrics(mesh, pixels, records)
    in_parallel(_move.best_steps, len(steps), quadrics, mesh.flags, step, steps)
    in_parallel(_outline.outline_steps, len(steps), mesh.arrays, mesh.outline, step, steps)
    return _move.take_steps(steps, mesh.arrays, pixels.normal_map.mask, mesh.outline.coverage, records.changed)
