"""Thinning: coarser meshes of parts of a surface whose vertices are some of its own, in their places.

The classical decimation by quadrics in space (Garland and Heckbert 1997) for levels of detail of a surface that exists
already. A vertex moves onto a neighbour, so that all levels share the arrays of the surface, and vertices on the border
between two parts stay: parts fit together exactly, whatever their levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from normalmesh.array_types import Bool, Float, Int32
from normalmesh.decimation import _thinning
from normalmesh.decimation._thinning import SPACE_QUADRIC, SpaceArrays
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.screen_mesh import ScreenMesh, corner_table, fans, inner_edges
from normalmesh.mesh.surface import Surface

#: Share of the vertices that thinning keeps, of those that are not on the border of the part.
KEPT = 0.25

#: Which of some vertices (n,) of the surface have faces outside a part, too.
IsShared: TypeAlias = Callable[[Int32], Bool]


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a surface, thinned or not.

    Attributes
    ----------
    faces : (M, 3) int32
        Vertices of the surface.
    vertices : (N,) int32
        The vertices that the faces use, in ascending order.
    quadrics : (N, 11) float64
        Their quadrics in space; see :mod:`normalmesh.decimation._thinning`.
    walls : (W, 3) int32
        Walls of the surface, whose vertices stay.
    error : float
        Estimated distance from the surface, in its unit.
    """

    faces: Int32
    vertices: Int32
    quadrics: Float
    walls: Int32
    error: float = 0.0

    @classmethod
    def of_faces(cls, surface: Surface, faces: Int32, walls: Int32, is_shared: IsShared) -> Part:
        """Make a part of faces (M, 3) and walls (W, 3) of a surface."""
        vertices, local = _compact(faces)
        opposite, _, _ = corner_table(local, len(vertices))
        quadrics = np.zeros((len(vertices), SPACE_QUADRIC))
        _thinning.fill_quadrics(surface.vertices[vertices], local, opposite, is_shared(vertices), quadrics)
        return cls(faces, vertices, quadrics, walls)

    @classmethod
    def joined(cls, parts: Sequence[Part]) -> Part:
        """Join parts of one surface."""
        vertices, place = np.unique(np.concatenate([part.vertices for part in parts]), return_inverse=True)
        quadrics = np.zeros((len(vertices), SPACE_QUADRIC))
        start = 0
        for part in parts:
            end = start + len(part.vertices)
            quadrics[place[start:end]] += part.quadrics
            start = end
        faces, walls = (np.concatenate([getattr(part, name) for part in parts]) for name in ("faces", "walls"))
        return cls(faces, vertices, quadrics, walls, max(part.error for part in parts))

    def thinned(self, surface: Surface, is_shared: IsShared) -> Part:
        """Return the part with a quarter of its vertices, and all that it shares with others or with walls.

        More may stay: none goes that would turn a face over on the screen, close a hole or pinch the mesh.
        """
        local = np.searchsorted(self.vertices, self.faces).astype(np.int32)
        place, separate, opposite = _fans(local, len(self.vertices))
        quadrics = np.zeros((len(place), SPACE_QUADRIC))
        # Of the fans of one vertex, which are no neighbours of each other, one carries its quadric.
        _, first = np.unique(place, return_index=True)
        quadrics[first] = self.quadrics
        origin = self.vertices[place]
        stays = is_shared(origin) | np.isin(origin, self.walls)
        screen = ScreenMesh(surface.screen[origin], separate)
        screen.keep_opposite(opposite)
        mesh = ClosedMesh.from_screen(screen, surface.shape, stays, np.zeros((1, 1), np.uint8))
        centre = surface.vertices[origin[0]]
        space = SpaceArrays(surface.vertices[origin] - centre, quadrics, np.zeros(len(origin), np.int32))
        most = int((1 - KEPT) * np.count_nonzero(~stays))
        _, error = _thinning.thin(mesh.arrays, space, most)
        kept = mesh.compact()
        faces = origin[kept][mesh.faces[: mesh.real_faces]]
        vertices, number = np.unique(origin[kept], return_inverse=True)
        summed = np.zeros((len(vertices), SPACE_QUADRIC))
        np.add.at(summed, number, quadrics[kept])
        return Part(faces, vertices, summed, self.walls, max(self.error, error))


def _compact(faces: Int32) -> tuple[Int32, Int32]:
    """Return the vertices (N,) that faces use, in ascending order, and the faces with these numbered from 0 on."""
    vertices, local = np.unique(faces, return_inverse=True)
    return vertices, local.reshape(-1, 3).astype(np.int32)


def _fans(faces: Int32, vertex_count: int) -> tuple[Int32, Int32, Int32]:
    """Return the vertex of each fan of faces, the faces (M, 3) with fans as vertices, and their corner table (3M,).

    A part may have several fans around a vertex, with faces of other parts between them. A closed mesh must not.
    """
    opposite, _, _ = corner_table(faces, vertex_count)
    fan, place = fans(faces, opposite, inner_edges(opposite))
    return place, fan.reshape(-1, 3), opposite
