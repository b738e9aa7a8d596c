"""UnrolledMesh: a mesh that repeats, with copies of the faces near its sides beyond the opposite ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from normalmesh.array_types import Bool, Int32, Integer
from normalmesh.mesh.repeats import Repeats
from normalmesh.mesh.screen_mesh import ScreenMesh


@dataclass(frozen=True, eq=False)
class UnrolledMesh:
    """A mesh that goes on beyond its sides, in the plane: its vertices and faces first, then copies.

    Copies have vertices on the sides in common with the mesh.
    """

    mesh: ScreenMesh
    face_of: Int32  # (M',): the face that each face is, or is a copy of
    beyond: Int32  # (M',): −1 for copies beyond the left or the upper side, 1 beyond the others, 0 for the mesh

    @classmethod
    def of(cls, mesh: ScreenMesh, repeats: Repeats | None, rings: int) -> UnrolledMesh:
        """Return a mesh with so many rings of faces beyond its sides; none if it does not repeat."""
        count = len(mesh.faces)
        unrolled = cls(mesh, np.arange(count, dtype=np.int32), np.zeros(count, np.int32))
        if repeats is not None:
            for axis, period in repeats.axes:
                unrolled = unrolled._along(axis, period, repeats, rings)
        return unrolled

    def _along(self, axis: int, period: int, repeats: Repeats, rings: int) -> UnrolledMesh:
        """Return the mesh with faces beyond its two sides in one direction."""
        mesh, count = self.mesh, len(self.mesh.vertices)
        joined = replace(repeats, x=axis == 0, y=axis == 1).wrap(mesh)
        # Rings near a corner go on beyond the sides in the other direction.
        ringed = replace(repeats, x=repeats.x and axis == 1, y=repeats.y and axis == 0).wrap(mesh).first_twins
        # A vertex at the end of a cut may be several ones at the near or the far side: the first there stands for all.
        first = np.full((2, count), count)
        for side, vertices in enumerate(joined.twins.T):
            np.minimum.at(first[side], joined.first_twins[vertices], vertices)
        first = first[:, joined.first_twins]
        name = np.arange(count)
        for side, vertices in enumerate(joined.twins.T):
            name[vertices] = first[side, vertices]
        faces = name[mesh.faces]
        places, parts, face_of, beyond = [mesh.vertices], [faces], [self.face_of], [self.beyond]
        for side, (origin, shift) in enumerate(((1, -period), (0, period))):
            starts = name[joined.twins[:, origin]]
            chosen = _near(ringed[mesh.faces], ringed[starts], rings)
            used = np.setdiff1d(faces[chosen], starts)
            number = np.empty(count, np.int64)
            number[used] = sum(map(len, places)) + np.arange(len(used))
            number[starts] = first[side, starts]
            copies = mesh.vertices[used]
            copies[:, axis] += shift
            places.append(copies)
            parts.append(number[faces[chosen]])
            face_of.append(self.face_of[chosen])
            beyond.append(np.full(len(parts[-1]), np.sign(shift), np.int32))
        opened = ScreenMesh(np.concatenate(places), np.concatenate(parts).astype(np.int32))
        return UnrolledMesh(opened, np.concatenate(face_of), np.concatenate(beyond))


def _near(faces: Integer, starts: Integer, rings: int) -> Bool:
    """Return the faces (M,) within so many rings around some of their vertices (K,)."""
    marked, chosen = np.zeros(int(faces.max()) + 1, np.bool_), np.zeros(len(faces), np.bool_)
    marked[starts] = True
    for _ in range(rings):
        chosen = np.asarray(marked[faces].any(axis=1))
        marked[faces[chosen]] = True
    return chosen
