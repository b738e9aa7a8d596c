"""Jumps: lines along which the depth of a surface jumps, and where they place its parts, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from normalmesh.array_types import Float, Int, Integer
from normalmesh.errors import count_text
from normalmesh.mesh.screen_mesh import ScreenMesh

#: Arrays of a placement beside its mesh.
PLANES = ("centroids", "gradients", "areas", "offsets")


@dataclass(frozen=True, eq=False)
class JumpLine:
    """One line along which the depth jumps.

    Attributes
    ----------
    path : (P, 2) int64
        Pixel corners u, v along the line, one px apart.
    height
        Mean distance, in px, between the surfaces on both sides, perpendicular to them.
    certainty
        The energy per px that opening the line releases, in units of what connected lines must release on average:
        a branch of a clear line may have less than 1.
    """

    path: Int
    height: float
    certainty: float

    @property
    def length(self) -> int:
        """Length in px, along pixel sides."""
        return len(self.path) - 1

    @property
    def worth(self) -> float:
        """What the line is worth: lines of the least worth are dropped first where vertices are scarce."""
        return self.certainty * self.length


@dataclass(frozen=True, eq=False)
class Placement:
    """Planes of the faces of a mesh that say where the parts of a surface stand."""

    mesh: ScreenMesh  # on which jumps were found: it covers the components of the mask that have jumps
    centroids: Float  # (M, 2) in px
    gradients: Float  # (M, 2)
    areas: Float  # (M,) in px²
    offsets: Float  # (M,) unknown of the camera at the centroids

    @classmethod
    def joined(cls, parts: Sequence[Placement]) -> Placement:
        """Join the placements of several components."""
        first = np.cumsum([0, *(len(each.mesh.vertices) for each in parts)])
        faces = [each.mesh.faces + np.int32(start) for each, start in zip(parts, first[:-1], strict=True)]
        mesh = ScreenMesh(np.concatenate([each.mesh.vertices for each in parts]), np.concatenate(faces))
        return cls(mesh, *(np.concatenate([getattr(each, name) for each in parts]) for name in PLANES))

    def shifted(self, left: int, top: int) -> Placement:
        """Return the placement of a window as it lies in the image, in which it has this column and row."""
        by = np.array([left, top], np.float64)
        mesh = ScreenMesh(self.mesh.vertices + by, self.mesh.faces)
        return replace(self, mesh=mesh, centroids=self.centroids + by)

    def part(self, faces: Integer) -> Placement:
        """Return the planes of some faces (K,)."""
        used, corners = np.unique(self.mesh.faces[faces], return_inverse=True)
        mesh = ScreenMesh(self.mesh.vertices[used], corners.reshape(-1, 3).astype(np.int32))
        return Placement(mesh, self.centroids[faces], self.gradients[faces], self.areas[faces], self.offsets[faces])

    def window(self, rows: slice, columns: slice) -> Placement:
        """Return the planes of all faces that may reach into a window of the image, as they lie in the window."""
        corners = self.mesh.vertices[self.mesh.faces]
        low, high = corners.min(axis=1), corners.max(axis=1)
        near = ((low <= [columns.stop, rows.stop]) & (high >= [columns.start, rows.start])).all(axis=1)
        return self.part(np.flatnonzero(near)).shifted(-columns.start, -rows.start)


@dataclass(frozen=True, eq=False)
class Jumps:
    """What is known of the jumps of a normal map.

    Attributes
    ----------
    lines
        The lines; empty if the surface is continuous.
    placement
        Where the lines place the parts of the surface, or None if there are no lines.
    noise
        Strain, in px, that inconsistent normals alone cause: the largest of all components.
    """

    lines: tuple[JumpLine, ...] = ()
    placement: Placement | None = None
    noise: float = 0.0

    @classmethod
    def joined(cls, parts: Iterable[Jumps]) -> Jumps:
        """Join the jumps of several components."""
        found = list(parts)
        placements = [each.placement for each in found if each.placement is not None]
        placement = Placement.joined(placements) if placements else None
        lines = tuple(line for each in found for line in each.lines)
        return cls(lines, placement, max((each.noise for each in found), default=0.0))

    def shifted(self, left: int, top: int) -> Jumps:
        """Return the jumps of a window as they lie in the image, in which it has this column and row."""
        lines = tuple(replace(line, path=line.path + np.array([left, top])) for line in self.lines)
        placement = None if self.placement is None else self.placement.shifted(left, top)
        return replace(self, lines=lines, placement=placement)

    @property
    def length(self) -> int:
        """Length of all lines, in px."""
        return sum(line.length for line in self.lines)

    def __str__(self) -> str:
        if not self.lines:
            return "no jumps"
        return f"{count_text(len(self.lines), 'jump')}, {self.length} px"
