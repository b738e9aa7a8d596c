"""ClosedMesh: a mesh that is being changed. A ghost vertex closes its boundary, and its arrays may be written."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from normalmesh.array_types import Bool, Float, Int, Int32, UInt8
from normalmesh.mesh import _closed_mesh
from normalmesh.mesh._closed_mesh import BOUNDARY, LOCKED, MeshArrays
from normalmesh.mesh._outline import COVERED, OutlineArrays
from normalmesh.mesh.raster import covered_pixels
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.runtime.threads import in_parallel

#: Minimum number of faces for each thread.
GRAIN = 8192
#: Passes of smoothing with (1, 2, 1)/4 that remove the staircase of a slanted outline.
SMOOTHING_PASSES = 3
#: Distance (px) by which smoothing moves a point at most: staircases need less, and small fragments must not vanish.
MAX_SHIFT = 0.5
#: The same for a rim that must be smooth in space, too, where half a pixel of a steep slope is two of depth: corners of
#: staircases are up to 0.71 px from the true outline.
RIM_PASSES, RIM_SHIFT = 24, 0.75
#: Points of loops that are too small for that: they would shrink.
SMALL_LOOP = 32
#: Pixels that the outline must run straight on both sides of a true corner; a staircase has a short side.
STRAIGHT = 4


@dataclass(eq=False)
class Outline:
    """The outline of the start mesh, which decimation must keep.

    Attributes
    ----------
    points : (P, 2) float64
        Boundary vertices of the start mesh, in pixels.
    smooth : (P, 2) float64
        The same points without the staircase of the pixel grid.
    next_point : (P,) int32
        The next point along the boundary, with the foreground on the left.
    """

    points: Float
    smooth: Float
    next_point: Int32

    def smoothed(self) -> Outline:
        """Return the outline with ``smooth`` so even that slopes along it are even, too."""
        small = _loop_lengths(self.next_point) < SMALL_LOOP
        return replace(self, smooth=np.where(small[:, None], self.smooth, _smooth_rim(self.points, self.next_point)))


@dataclass(eq=False)
class ClosedMesh:
    """A mesh whose edges can be collapsed, flipped and split.

    Attributes
    ----------
    vertices : (N, 2) float64
        Screen positions in pixels. Vertex N is the ghost and has none.
    faces : (F, 3) int32
        Real faces first, then one ghost face for each boundary edge. Collapsed faces have −1 as first vertex.
    real_faces : int
        Number of real faces.
    opposite : (3F,) int32
        Corner table without boundary.
    corner_of : (N + 1,) int32
        One corner of each vertex, −1 for collapsed vertices.
    flags : (N,) uint8
        ``BOUNDARY``, ``LOCKED``, ``LINE`` and ``NEEDED``.
    outline_of : (N,) int32
        The point of the outline that a boundary vertex stands for, −1 for inner vertices.
    outline : Outline
        The outline of the mesh as it was at the start.
    coverage : (H, W) uint8
        ``COVERED`` pixels, whose centres lie in the mesh, and ``FIXED`` ones, for which this must not change.
    """

    vertices: Float
    faces: Int32
    real_faces: int
    opposite: Int32
    corner_of: Int32
    flags: UInt8
    outline_of: Int32
    outline: Outline
    coverage: UInt8

    @property
    def ghost(self) -> int:
        """Index of the ghost vertex."""
        return len(self.vertices)

    @property
    def covered(self) -> Bool:
        """The pixels (H, W) whose centres lie in the mesh."""
        return (self.coverage & COVERED).view(np.bool_)

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
        return OutlineArrays(self.outline_of, outline.next_point, outline.points, outline.smooth, self.coverage)

    @classmethod
    def from_screen(
        cls,
        mesh: ScreenMesh,
        shape: tuple[int, int],
        locked: Bool | None = None,
        coverage: UInt8 | None = None,
    ) -> ClosedMesh:
        """Close a mesh of an image of the given shape.

        Parameters
        ----------
        mesh
            The mesh; it is copied.
        shape
            Rows and columns of the image.
        locked
            (N,) vertices that must stay as they are.
        coverage
            (H, W) ``COVERED`` and ``FIXED`` pixels; default: computed, none of them fixed.
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
        outline = Outline(points, _without_staircase(points, next_point), next_point)
        if coverage is None:
            coverage = covered_pixels(mesh, shape).view(np.uint8)
        return cls(
            mesh.vertices.copy(), faces, len(mesh.faces), opposite, corner_of, flags, outline_of, outline, coverage
        )

    def compact(self) -> Int:
        """Drop collapsed vertices and faces; return the former numbers of the vertices that are kept, in order."""
        kept = np.flatnonzero(self.corner_of[:-1] >= 0)
        renumber = np.full(self.ghost + 1, -1, np.int32)
        renumber[kept] = np.arange(len(kept), dtype=np.int32)
        renumber[self.ghost] = len(kept)
        alive = np.flatnonzero(self.faces[:, 0] >= 0)
        faces, opposite = np.empty((len(alive), 3), np.int32), np.empty(3 * len(alive), np.int32)
        numbers = np.empty(len(self.faces), np.int32), renumber
        in_parallel(_closed_mesh.number_faces, len(alive), alive, numbers[0], grain=GRAIN)
        tables = self.faces, self.opposite, faces, opposite
        in_parallel(_closed_mesh.compact_faces, len(alive), alive, numbers, *tables, grain=GRAIN)
        self.faces, self.opposite, self.corner_of = faces, opposite, _corners(faces, len(kept) + 1)
        self.real_faces = int(np.searchsorted(alive, self.real_faces))
        self.vertices = self.vertices[kept]
        self.flags = self.flags[kept]
        self.outline_of = self.outline_of[kept]
        return kept

    def reserve_for_splits(self, splits: int) -> tuple[int, int, int]:
        """Reserve vertices and faces to split ``splits`` edges; return the first new vertex, real face and ghost face.

        An inner edge needs one vertex and two real faces, a boundary edge a vertex, a real and a ghost face. Those that
        are not used are dropped when the mesh is made compact.
        """
        vertices, real, ghosts = splits, 2 * splits, splits
        firsts = self.ghost, self.real_faces, len(self.faces) + real
        faces, opposite = self.faces, self.opposite
        faces[faces == self.ghost] = self.ghost + vertices
        opposite[opposite >= 3 * self.real_faces] += 3 * real
        self.corner_of[self.corner_of >= 3 * self.real_faces] += 3 * real

        def spread(table: Int32, width: int) -> Int32:
            """Insert unused rows, ``width`` for a face, after the real faces and after the ghost faces."""
            here = width * self.real_faces
            unused = [np.full((width * count, *table.shape[1:]), -1, np.int32) for count in (real, ghosts)]
            return np.concatenate([table[:here], unused[0], table[here:], unused[1]])

        self.faces, self.opposite = spread(faces, 1), spread(opposite, 3)
        self.real_faces += real
        self.corner_of = np.insert(self.corner_of, self.ghost, np.full(vertices, -1, np.int32))
        self.vertices = np.concatenate([self.vertices, np.zeros((vertices, 2))])
        self.flags = np.concatenate([self.flags, np.zeros(vertices, np.uint8)])
        self.outline_of = np.concatenate([self.outline_of, np.full(vertices, -1, np.int32)])
        return firsts

    def copy(self) -> ClosedMesh:
        """Copy the mesh; the outline, which nothing changes, is shared."""
        return replace(
            self,
            vertices=self.vertices.copy(),
            faces=self.faces.copy(),
            opposite=self.opposite.copy(),
            corner_of=self.corner_of.copy(),
            flags=self.flags.copy(),
            outline_of=self.outline_of.copy(),
            coverage=self.coverage.copy(),
        )

    def to_screen(self) -> ScreenMesh:
        """Return the real faces as a mesh on the screen. The closed mesh must be compact."""
        mesh = ScreenMesh(self.vertices.copy(), self.faces[: self.real_faces].copy())
        mesh.keep_opposite(self.real_opposite())
        return mesh

    def real_opposite(self) -> Int32:
        """Return :attr:`opposite` of the real faces alone, −1 at the boundary."""
        opposite = self.opposite[: 3 * self.real_faces]
        return np.where(opposite < len(opposite), opposite, -1).astype(np.int32)


def _closed(mesh: ScreenMesh) -> tuple[Int32, Int32, Int32]:
    """Return faces and opposite with a ghost face for each boundary edge, and the next boundary vertex (N,) or −1."""
    real, ghost = len(mesh.faces), len(mesh.vertices)
    known = mesh.find_opposite()
    boundary = np.flatnonzero(known < 0)
    faces = np.empty((real + len(boundary), 3), np.int32)
    opposite = np.empty(faces.size, np.int32)
    faces[:real], opposite[: 3 * real] = mesh.faces, known
    after = np.full(ghost, -1, np.int32)
    _closed_mesh.close_boundary(boundary, faces, opposite, ghost, after, np.empty(ghost, np.int32))
    return faces, opposite, after


def _corners(faces: Int32, vertex_count: int) -> Int32:
    """Return one corner of each vertex, −1 for vertices without faces."""
    corner_of = np.full(vertex_count, -1, np.int32)
    _closed_mesh.fill_corners(faces, corner_of)
    return corner_of


def _without_staircase(points: Float, next_point: Int32) -> Float:
    """Smooth points (P, 2) of closed loops along the loops, just enough to remove the staircase of the pixels.

    Corners between two straight sides, such as those of a rectangle, stay.
    """
    previous_point = _previous(next_point)
    corners = _ends_straight_side(points, next_point) & _ends_straight_side(points, previous_point)
    moved = _averaged(points, (previous_point, next_point), corners, SMOOTHING_PASSES) - points
    return points + _bounded(moved, MAX_SHIFT)


def _smooth_rim(points: Float, next_point: Int32) -> Float:
    """Smooth points (P, 2) of closed loops of pixel sides until no staircase is left, but keep curves and corners.

    Longer sides, and what lies between them, are no staircase.
    """
    neighbours = _previous(next_point), next_point
    fixed = _ends_straight_side(points, next_point) & _ends_straight_side(points, neighbours[0])
    for other in neighbours:
        fixed |= np.abs(points[other] - points).sum(axis=1) > 1
    moved = _averaged(points, neighbours, fixed, RIM_PASSES) - points
    # A second smoothing puts back what the first one takes off curves.
    moved -= _averaged(moved, neighbours, fixed, RIM_PASSES)
    return points + _bounded(moved, RIM_SHIFT)


def _previous(next_point: Int32) -> Int32:
    """Return the point (P,) before each."""
    previous_point = np.empty_like(next_point)
    previous_point[next_point] = np.arange(len(next_point), dtype=np.int32)
    return previous_point


def _loop_lengths(next_point: Int32) -> Int:
    """Return the number of points (P,) of the loop of each point."""
    label, ahead = np.arange(len(next_point)), next_point
    # After k turns, each label is the least of 2ᵏ points.
    for _ in range(len(next_point).bit_length()):
        label, ahead = np.minimum(label, label[ahead]), ahead[ahead]
    return np.bincount(label, minlength=len(label))[label]


def _averaged(values: Float, neighbours: tuple[Int32, Int32], fixed: Bool, passes: int) -> Float:
    """Average values (P, 2) with those of both neighbours some times; those of fixed points stay."""
    before, after = neighbours
    average = values
    for _ in range(passes):
        average = (average[before] + 2 * average + average[after]) / 4
        average[fixed] = values[fixed]
    return average


def _bounded(moved: Float, most: float) -> Float:
    """Shorten vectors (P, 2) to a length."""
    distance = np.hypot(moved[:, 0], moved[:, 1])
    bounded: Float = moved * np.minimum(1.0, most / np.maximum(distance, most))[:, None]
    return bounded


def _ends_straight_side(points: Float, following: Int32) -> Bool:
    """Return the points (P,) from which the outline runs straight for :data:`STRAIGHT` pixels."""
    step = points[following] - points
    straight = np.ones(len(points), np.bool_)
    there = following
    for _ in range(STRAIGHT - 1):
        straight &= (step[there] == step).all(axis=1)
        there = following[there]
    # A point in the middle of a side is no corner, but keeping it changes nothing.
    return straight
