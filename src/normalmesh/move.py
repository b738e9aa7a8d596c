"""Vertex moves: inner vertices to the least of their quadrics, boundary vertices to the outline."""

from __future__ import annotations

import numpy as np

from normalmesh import _move, _outline
from normalmesh.closedmesh import ClosedMesh
from normalmesh.quadrics import FaceRecords, Pixels, vertex_quadrics


def move(mesh: ClosedMesh, pixels: Pixels, records: FaceRecords, step: float) -> int:
    """Move vertices by ``step``·argmin of their quadrics, eq. (16); the number of moves.

    Steps are shortened where a face would turn over. Boundary vertices instead fit their two edges to the outline, and
    stay within a pixel of it. The records must be up to date; the faces that changed are marked in them.
    """
    steps = np.empty((len(mesh.vertices), 2))
    _move.best_steps(vertex_quadrics(mesh, pixels, records), mesh.flags, step, steps)
    _outline.outline_steps(
        *mesh.topology, mesh.flags, mesh.outline_of, mesh.outline.next_point, mesh.outline.smooth, step, steps
    )
    return _move.take_steps(steps, *mesh.topology, mesh.flags, pixels.normal_map.mask, mesh.covered, records.changed)
