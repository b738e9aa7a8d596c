"""Cutting: a mesh on the screen, opened along some of its edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.mesh.components import components
from normalmesh.mesh.screen_mesh import ScreenMesh

#: Strain, in pixels or larger units (:mod:`normalmesh.integration.gluing`), from which on an edge is cut.
CUT = 0.5
#: Strain that a line of cut edges reaches somewhere; along a jump that fades out it falls to :data:`CUT`.
CLEAR = 1.0


@dataclass(frozen=True, eq=False)
class CutMesh:
    """A mesh whose vertices are split where cut edges part the faces around them.

    Attributes
    ----------
    mesh : ScreenMesh
        Before cutting, N vertices.
    strain : (3M,)
        At each corner that of the edge across: by how much its two faces miss each other.
    faces : (M, 3) int32
        Vertices of the faces after cutting. Corners that meet across uncut edges share one; the first of a vertex keeps
        its number, the others follow from N on.
    origin : (N',) int32
        The vertex of ``mesh`` that each vertex was.
    """

    mesh: ScreenMesh
    strain: NDArray[np.float64]
    faces: NDArray[np.int32]
    origin: NDArray[np.int32]

    @classmethod
    def whole(cls, mesh: ScreenMesh) -> CutMesh:
        """The mesh as it is."""
        return cls(mesh, np.zeros(mesh.faces.size), mesh.faces, np.arange(len(mesh.vertices), dtype=np.int32))

    @classmethod
    def of(cls, mesh: ScreenMesh, corners: NDArray[np.integer], edge_strain: NDArray[np.float64]) -> CutMesh:
        """Cut edges by the strain (E,) of those across from some corners (E,)."""
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
        """The mesh after cutting."""
        return ScreenMesh(self.mesh.vertices[self.origin], self.faces)


def along_cuts(mesh: ScreenMesh, corners: NDArray[np.integer], cut: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Vertices (N,) of the cut ones (E,) of the edges across from corners (E,), and of the faces that touch them.

    A few edges among them may happen to fit: they hold nothing, if those before and after them are cut.
    """
    seam = np.zeros(len(mesh.vertices), np.bool_)
    seam[edge_ends(mesh, corners[cut])] = True
    seam[mesh.faces[seam[mesh.faces].any(axis=1)]] = True
    return seam


def without_specks(mesh: ScreenMesh, corners: NDArray[np.integer], strain: NDArray[np.float64]) -> NDArray[np.float64]:
    """Strain (E,) of edges, lowered to just hold on lines of cut edges that open nothing or are nowhere clear."""
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
    speck = (strongest < CLEAR) | ~opens
    kept = strain.copy()
    kept[cut] = np.where(speck[line], np.nextafter(CUT, 0), strain[cut])
    return kept


def edge_ends(mesh: ScreenMesh, corners: NDArray[np.integer]) -> NDArray[np.int32]:
    """The two vertices (E, 2) of the edges across from corners (E,)."""
    return mesh.faces.ravel()[np.stack([following(corners), preceding(corners)], axis=1)]


def following(corner: NDArray[np.integer]) -> NDArray[np.integer]:
    """The next corners of the same faces."""
    return corner - corner % 3 + (corner + 1) % 3


def preceding(corner: NDArray[np.integer]) -> NDArray[np.integer]:
    """The previous corners of the same faces."""
    return corner - corner % 3 + (corner + 2) % 3
