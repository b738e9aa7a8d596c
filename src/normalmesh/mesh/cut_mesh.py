"""CutMesh: a mesh on the screen that is cut open along some of its edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.mesh.components import components
from normalmesh.mesh.screen_mesh import ScreenMesh

#: Strain, in pixels or larger units (:mod:`normalmesh.integration.gluing`), from which an edge is cut.
CUT = 0.5
#: Strain that a line of cut edges must reach somewhere; along a jump that fades out it falls to :data:`CUT`.
CLEAR = 1.0


@dataclass(frozen=True, eq=False)
class CutMesh:
    """A mesh whose vertices are split where cut edges separate the faces around them.

    Attributes
    ----------
    mesh : ScreenMesh
        The mesh before cutting, with N vertices.
    strain : (3M,) float64
        At each corner the strain of the edge across: the gap between its two faces.
    faces : (M, 3) int32
        Vertices of the faces after cutting. Corners that meet across uncut edges share one; the first copy of a vertex
        keeps its number, the others are numbered from N on.
    origin : (N',) int32
        The vertex of ``mesh`` that each vertex is a copy of.
    """

    mesh: ScreenMesh
    strain: NDArray[np.float64]
    faces: NDArray[np.int32]
    origin: NDArray[np.int32]

    @classmethod
    def whole(cls, mesh: ScreenMesh) -> CutMesh:
        """Take a mesh without cuts."""
        return cls(mesh, np.zeros(mesh.faces.size), mesh.faces, np.arange(len(mesh.vertices), dtype=np.int32))

    @classmethod
    def of(cls, mesh: ScreenMesh, corners: NDArray[np.integer], edge_strain: NDArray[np.float64]) -> CutMesh:
        """Cut a mesh by the strain (E,) of the edges across from corners (E,); other edges are not cut."""
        count, opposite = mesh.faces.size, mesh.opposite
        strain = np.zeros(count)
        strain[corners] = strain[opposite[corners]] = edge_strain
        cut = strain >= CUT
        vertex = mesh.faces.ravel()
        everyone = np.arange(len(mesh.vertices), dtype=np.int32)
        if not cut.any():
            return cls(mesh, strain, mesh.faces, everyone)
        # Two corners of a vertex belong together if an uncut edge runs from it between their faces.
        one = np.flatnonzero(~cut & (opposite > np.arange(count)))
        other = opposite[one]
        first = np.concatenate([following(one), preceding(one)])
        second = np.concatenate([preceding(other), following(other)])
        fan = components(np.stack([first, second], axis=1), count)
        fans = int(fan.max()) + 1
        fan_vertex = np.empty(fans, np.int32)
        fan_vertex[fan] = vertex
        by_vertex = np.argsort(fan_vertex, kind="stable")
        repeated = np.zeros(fans, np.bool_)
        repeated[by_vertex[1:]] = np.diff(fan_vertex[by_vertex]) == 0
        number = fan_vertex.copy()
        number[repeated] = len(mesh.vertices) + np.arange(np.count_nonzero(repeated))
        return cls(mesh, strain, number[fan].reshape(-1, 3), np.concatenate([everyone, fan_vertex[repeated]]))

    def screen(self) -> ScreenMesh:
        """Return the mesh after cutting."""
        return ScreenMesh(self.mesh.vertices[self.origin], self.faces)


def along_cuts(mesh: ScreenMesh, corners: NDArray[np.integer], cut: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the vertices (N,) of cut edges, and of the faces that touch them.

    ``cut`` (E,) are the edges across from ``corners`` (E,) that are cut. A few edges between these vertices may happen
    to fit: they hold nothing together if the edges before and after them are cut.
    """
    seam = np.zeros(len(mesh.vertices), np.bool_)
    seam[edge_ends(mesh, corners[cut])] = True
    seam[mesh.faces[seam[mesh.faces].any(axis=1)]] = True
    return seam


def without_isolated_cuts(
    mesh: ScreenMesh, corners: NDArray[np.integer], strain: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the strain (E,), lowered to just below :data:`CUT` on lines that open nothing or are nowhere clear."""
    cut = strain >= CUT
    ends, count = edge_ends(mesh, corners[cut]), len(mesh.vertices)
    line_of = components(ends, count)
    lines, line = int(line_of.max()) + 1, line_of[ends[:, 0]]
    strongest = np.zeros(lines)
    np.maximum.at(strongest, line, strain[cut])
    outline = np.zeros(count, np.bool_)
    outline[edge_ends(mesh, np.flatnonzero(mesh.opposite < 0))] = True
    opens = np.bincount(line, minlength=lines) > 1
    opens[line[outline[ends].any(axis=1)]] = True
    isolated = (strongest < CLEAR) | ~opens
    kept = strain.copy()
    kept[cut] = np.where(isolated[line], np.nextafter(CUT, 0), strain[cut])
    return kept


def edge_ends(mesh: ScreenMesh, corners: NDArray[np.integer]) -> NDArray[np.int32]:
    """Return the two vertices (E, 2) of the edges across from corners (E,)."""
    return mesh.faces.ravel()[np.stack([following(corners), preceding(corners)], axis=1)]


def following(corner: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return the next corners of the same faces."""
    following: NDArray[np.integer] = corner - corner % 3 + (corner + 1) % 3
    return following


def preceding(corner: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return the previous corners of the same faces."""
    preceding: NDArray[np.integer] = corner - corner % 3 + (corner + 2) % 3
    return preceding
