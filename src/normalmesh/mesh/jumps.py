"""Jumps: lines along which the depth of a surface jumps, and where they place its parts, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.mesh.screen_mesh import ScreenMesh

Float = NDArray[np.float64]


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
        The energy that opening the line releases, in units of what is asked for: 1 for a line that is just accepted.
    """

    path: NDArray[np.int64]
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
    """Planes that say where the parts of a surface stand.

    Attributes
    ----------
    mesh : ScreenMesh
        The mesh on which jumps were found.
    centroids : (M, 2)
        Centroids of its faces, in px.
    gradients : (M, 2)
        Gradients of the planes of its faces.
    areas : (M,)
        Areas of its faces, in px².
    offsets : (M,)
        Unknown of the camera at the centroids.
    holds : (M,) bool
        Faces of components with a line: only there do the planes count.
    """

    mesh: ScreenMesh
    centroids: Float
    gradients: Float
    areas: Float
    offsets: Float
    holds: NDArray[np.bool_]


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

    @property
    def length(self) -> int:
        """Length of all lines, in px."""
        return sum(line.length for line in self.lines)

    def corners(self, shape: tuple[int, int]) -> NDArray[np.bool_]:
        """Return the pixel corners (H + 1, W + 1) on the lines."""
        corners = np.zeros((shape[0] + 1, shape[1] + 1), np.bool_)
        for line in self.lines:
            corners[line.path[:, 1], line.path[:, 0]] = True
        return corners

    def __str__(self) -> str:
        if not self.lines:
            return "no jumps"
        return f"{len(self.lines)} {'jump' if len(self.lines) == 1 else 'jumps'}, {self.length} px"
