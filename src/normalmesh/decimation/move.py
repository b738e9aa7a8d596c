"""Vertex moves: inner vertices to the least of their quadrics, boundary vertices to the outline."""

from __future__ import annotations

import numpy as np

from normalmesh.decimation import _move
from normalmesh.decimation.quadrics import FaceRecords, Pixels, vertex_quadrics
from normalmesh.mesh import _outline
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.runtime.threads import in_parallel

#: Sweeps over the boundary vertices: each step is bounded by the faces as they are.
RIM_SWEEPS = 3


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


def smooth_rim(mesh: ClosedMesh, pixels: Pixels) -> None:
    """Move boundary vertices towards the smooth outline, as far as faces and coverage allow.

    No records may exist: all faces at the boundary may change.
    """
    _move.flip_ears(mesh.arrays, mesh.outline.smooth, mesh.outline.point_of)
    changed = np.empty(len(mesh.faces), np.bool_)
    for _ in range(RIM_SWEEPS):
        steps = np.zeros((len(mesh.vertices), 2))
        in_parallel(_outline.outline_steps, len(steps), mesh.arrays, mesh.outline, 1.0, steps)
        _move.take_steps(steps, mesh.arrays, pixels.normal_map.mask, mesh.outline.coverage, changed)
