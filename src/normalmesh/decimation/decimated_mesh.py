"""DecimatedMesh: a mesh on the screen with the record of its decimation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from normalmesh.arguments import checked_array, checked_instance
from normalmesh.array_types import Bool, Int32
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.mesh._closed_mesh import LOCKED
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.jumps import JumpLine
from normalmesh.mesh.origin import Decimation
from normalmesh.mesh.repeats import Repeats
from normalmesh.mesh.screen_mesh import ScreenMesh


@dataclass(frozen=True, eq=False, repr=False)
class DecimatedMesh(ScreenMesh):
    """A mesh that :func:`decimate` made.

    Attributes
    ----------
    locked : (N,) bool
        Vertices that were locked.
    report : Decimation
    seams : (S, 2) int32
        Vertices of the edges along which depth jumps: :func:`integrate` cuts the mesh there.
    repeats : Repeats or None
        Directions in which the mesh repeats: vertices on opposite sides have the same places.
    lines : tuple of JumpLine or None
        The lines that seams follow, if others were dropped.
    """

    locked: Bool
    report: Decimation
    seams: Int32 = field(default_factory=lambda: np.empty((0, 2), np.int32))
    repeats: Repeats | None = None
    lines: tuple[JumpLine, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        locked = checked_array(self.locked, "locked", "booleans", "b")
        if locked.shape != (len(self.vertices),):
            raise NormalMeshError(
                f"locked must be one boolean for each of the {len(self.vertices)} vertices, "
                f"not {shape_text(locked.shape)}"
            )
        object.__setattr__(self, "locked", locked)
        checked_instance(self.report, Decimation, "report")

    @classmethod
    def joined(cls, parts: Sequence[DecimatedMesh]) -> DecimatedMesh:
        """Join meshes of different components."""
        if len(parts) == 1:
            return parts[0]
        first = np.cumsum([0, *(len(each.vertices) for each in parts[:-1])], dtype=np.int32)
        faces, seams = (
            np.concatenate([getattr(each, name) + start for each, start in zip(parts, first, strict=True)])
            for name in ("faces", "seams")
        )
        vertices, locked = (np.concatenate([getattr(each, name) for each in parts]) for name in ("vertices", "locked"))
        lines = None
        if any(each.lines is not None for each in parts):
            lines = tuple(line for each in parts for line in each.lines or ())
        return cls(vertices, faces, locked, Decimation.joined([each.report for each in parts]), seams, lines=lines)

    @classmethod
    def from_closed(
        cls, mesh: ClosedMesh, report: Decimation, seams: Int32, lines: tuple[JumpLine, ...] | None
    ) -> DecimatedMesh:
        """Return a copy of the real faces of a compact closed mesh, with the edges (S, 2) along which to cut it."""
        locked = (mesh.flags & LOCKED).astype(np.bool_)
        decimated = cls(mesh.vertices.copy(), mesh.faces[: mesh.real_faces].copy(), locked, report, seams, lines=lines)
        decimated.keep_opposite(mesh.real_opposite())
        return decimated
