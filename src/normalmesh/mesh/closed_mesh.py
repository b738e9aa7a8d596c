"""ClosedMesh: the form a mesh has while it is decimated. A ghost vertex closes the boundary, arrays may be written."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from normalmesh.mesh import _closed_mesh
from normalmesh.mesh._closed_mesh import BOUNDARY, LOCKED, MeshArrays
from normalmesh.mesh._outline import OutlineArrays
from normalmesh.mesh.raster import pixel_faces
from normalmesh.mesh.screen_mesh import ScreenMesh

#: Passes of smoothing (1, 2, 1)/4 that level the stairs of a slanted outline.
SMOOTHINGS = 3
#: Smoothing moves no point of the outline farther (px): stairs need less, and specks must not shrink to nothing.
FARTHEST = 0.5
#: Pixels that the outline must run straight on both sides of a true corner; stairs have a short side.
STRAIGHT = 4


@dataclass(eq=False)
class Outline:
    """The outline of the start mesh, which decimation must keep.

    Attributes
    ----------
    points : (P, 2) float64
        Boundary vertices of the start mesh, in pixels.
    smooth : (P, 2) float64
        The same without the stairs of the pixel grid.
    next_point : (P,) int32
        The next point along the boundary, with the foreground on the left.
    """

    points: NDArray[np.float64]
    smooth: NDArray[np.float64]
    next_point: NDArray[np.int32]


@dataclass(eq=False)
class ClosedMesh:
    """A mesh under decimation.

    Attributes
    ----------
    vertices : (N, 2) float64
        Screen positions in pixels. Vertex N is the ghost and has none.
    faces : (F, 3) int32
        Real faces first, then one ghost face for each boundary edge. Collapsed faces have −1 as first vertex.
    real_faces : int
    opposite : (3F,) int32
        Corner table without boundary.
    corner_of : (N + 1,) int32
        One corner of each vertex, −1 for collapsed vertices.
    flags : (N,) uint8
        ``BOUNDARY`` and ``LOCKED``.
    outline_of : (N,) int32
        The point of the outline that a boundary vertex stands for, −1 inside.
    outline : Outline
    covered : (H, W) bool
        Pixels whose centres lie in the mesh.
    """

    vertices: NDArray[np.float64]
    faces: NDArray[np.int32]
    real_faces: int
    opposite: NDArray[np.int32]
    corner_of: NDArray[np.int32]
    flags: NDArray[np.uint8]
    outline_of: NDArray[np.int32]
    outline: Outline
    covered: NDArray[np.bool_]

    @property
    def ghost(self) -> int:
        """Index of the ghost vertex."""
        return len(self.vertices)

    @property
    def arrays(self) -> MeshArrays:
        """The mesh as kernels take it; no longer valid once the mesh is made compact or larger."""
        return MeshArrays(
            self.vertices, self.faces, self.opposite, self.corner_of, self.flags, self.ghost, self.real_faces
        )

    @property
    def outline_arrays(self) -> OutlineArrays:
        """The outline as kernels take it; no longer valid once the mesh is made compact or larger."""
        outline = self.outline
        return OutlineArrays(self.outline_of, outline.next_point, outline.points, outline.smooth, self.covered)

    @classmethod
    def from_screen(
        cls,
        mesh: ScreenMesh,
        shape: tuple[int, int],
        locked: NDArray[np.bool_] | None = None,
        covered: NDArray[np.bool_] | None = None,
    ) -> ClosedMesh:
        """Close a mesh of an image of the given shape.

        ``locked`` (N,) marks vertices that must stay as they are; ``covered`` may be given where it is known.
        """
        ghost = len(mesh.vertices)
        faces, opposite, after = _closed(mesh)
        corner_of = _corners(faces, ghost + 1)
        on_boundary = after >= 0
        flags = np.where(on_boundary, BOUNDARY, 0).astype(np.uint8)
        if locked is not None:
            flags[locked] |= LOCKED
        outline_of = np.where(on_boundary, np.cumsum(on_boundary) - 1, -1).astype(np.int32)
        points = mesh.vertices[on_boundary]
        next_point = outline_of[after[on_boundary]]
        outline = Outline(points, _without_stairs(points, next_point), next_point)
        if covered is None:
            covered = pixel_faces(mesh, shape) >= 0
        return cls(
            mesh.vertices.copy(), faces, len(mesh.faces), opposite, corner_of, flags, outline_of, outline, covered
        )

    def compact(self) -> NDArray[np.int64]:
        """Drop collapsed vertices and faces, in order; the vertices that are kept, as they were numbered before."""
        kept = np.flatnonzero(self.corner_of[:-1] >= 0)
        renumber = np.full(self.ghost + 1, -1, np.int32)
        renumber[kept] = np.arange(len(kept), dtype=np.int32)
        renumber[self.ghost] = len(kept)
        alive = np.flatnonzero(self.faces[:, 0] >= 0)
        faces, opposite = np.empty((len(alive), 3), np.int32), np.empty(3 * len(alive), np.int32)
        number = np.empty(len(self.faces), np.int32)
        _closed_mesh.compact_faces(alive, number, renumber, self.faces, self.opposite, faces, opposite)
        self.faces, self.opposite, self.corner_of = faces, opposite, _corners(faces, len(kept) + 1)
        self.real_faces = int(np.searchsorted(alive, self.real_faces))
        self.vertices = self.vertices[kept]
        self.flags = self.flags[kept]
        self.outline_of = self.outline_of[kept]
        return kept

    def make_room(self, splits: int) -> tuple[int, int, int]:
        """Room to split so many edges: the first new vertex, real face and ghost face.

        An inner edge needs one vertex and two real faces, one of the boundary a vertex, a real and a ghost face. What
        is not used goes when the mesh is made compact.
        """
        vertices, real, ghosts = splits, 2 * splits, splits
        firsts = self.ghost, self.real_faces, len(self.faces) + real
        faces, opposite = self.faces, self.opposite
        faces[faces == self.ghost] = self.ghost + vertices
        opposite[opposite >= 3 * self.real_faces] += 3 * real
        self.corner_of[self.corner_of >= 3 * self.real_faces] += 3 * real

        def spread(table: NDArray[np.int32], width: int) -> NDArray[np.int32]:
            here = width * self.real_faces
            room = [np.full((width * count, *table.shape[1:]), -1, np.int32) for count in (real, ghosts)]
            return np.concatenate([table[:here], room[0], table[here:], room[1]])

        self.faces, self.opposite = spread(faces, 1), spread(opposite, 3)
        self.real_faces += real
        self.corner_of = np.insert(self.corner_of, self.ghost, np.full(vertices, -1, np.int32))
        self.vertices = np.concatenate([self.vertices, np.zeros((vertices, 2))])
        self.flags = np.concatenate([self.flags, np.zeros(vertices, np.uint8)])
        self.outline_of = np.concatenate([self.outline_of, np.full(vertices, -1, np.int32)])
        return firsts

    def copy(self) -> ClosedMesh:
        """A mesh of its own; the outline, which nothing changes, is shared."""
        return replace(
            self,
            vertices=self.vertices.copy(),
            faces=self.faces.copy(),
            opposite=self.opposite.copy(),
            corner_of=self.corner_of.copy(),
            flags=self.flags.copy(),
            outline_of=self.outline_of.copy(),
            covered=self.covered.copy(),
        )

    def to_screen(self) -> ScreenMesh:
        """The real faces as a mesh of their own. The closed mesh must be compact."""
        mesh = ScreenMesh(self.vertices.copy(), self.faces[: self.real_faces].copy())
        mesh.keep_opposite(self.real_opposite())
        return mesh

    def real_opposite(self) -> NDArray[np.int32]:
        """:attr:`opposite` of the real faces alone, −1 at the boundary."""
        opposite = self.opposite[: 3 * self.real_faces]
        return np.where(opposite < len(opposite), opposite, -1).astype(np.int32)


def _closed(mesh: ScreenMesh) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Faces and opposite with a ghost face for each boundary edge; the next vertex (N,) on the boundary, −1 inside."""
    real, ghost = len(mesh.faces), len(mesh.vertices)
    known = mesh.find_opposite()
    boundary = np.flatnonzero(known < 0)
    faces = np.empty((real + len(boundary), 3), np.int32)
    opposite = np.empty(faces.size, np.int32)
    faces[:real], opposite[: 3 * real] = mesh.faces, known
    after = np.full(ghost, -1, np.int32)
    _closed_mesh.close_boundary(boundary, faces, opposite, ghost, after, np.empty(ghost, np.int32))
    return faces, opposite, after


def _corners(faces: NDArray[np.int32], vertex_count: int) -> NDArray[np.int32]:
    """One corner of each vertex, −1 for vertices without faces."""
    corner_of = np.full(vertex_count, -1, np.int32)
    _closed_mesh.fill_corners(faces, corner_of)
    return corner_of


def _without_stairs(points: NDArray[np.float64], next_point: NDArray[np.int32]) -> NDArray[np.float64]:
    """Points (P, 2) of closed loops, smoothed along the loops just enough to level pixel stairs.

    Corners between two straight sides, such as those of a rectangle, stay.
    """
    previous_point = np.empty_like(next_point)
    previous_point[next_point] = np.arange(len(points), dtype=np.int32)
    corners = _ends_straight_side(points, next_point) & _ends_straight_side(points, previous_point)
    smooth = points
    for _ in range(SMOOTHINGS):
        smooth = (smooth[previous_point] + 2 * smooth + smooth[next_point]) / 4
        smooth[corners] = points[corners]
    moved = smooth - points
    distance = np.hypot(moved[:, 0], moved[:, 1])
    return points + moved * np.minimum(1.0, FARTHEST / np.maximum(distance, FARTHEST))[:, None]


def _ends_straight_side(points: NDArray[np.float64], following: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Points (P,) from which the outline runs straight for :data:`STRAIGHT` pixels."""
    step = points[following] - points
    straight = np.ones(len(points), np.bool_)
    there = following
    for _ in range(STRAIGHT - 1):
        straight &= (step[there] == step).all(axis=1)
        there = following[there]
    # A point in the middle of a side is no corner, but keeping it changes nothing.
    return straight
