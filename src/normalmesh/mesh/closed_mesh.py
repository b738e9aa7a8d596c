"""ClosedMesh: a mesh that is being changed. A ghost vertex closes its boundary, and its arrays may be written."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Bool, Float, Int, Int32, UInt8
from normalmesh.mesh import _closed_mesh
from normalmesh.mesh._closed_mesh import BOUNDARY, LOCKED, MeshArrays
from normalmesh.mesh._outline import COVERED, OutlineArrays
from normalmesh.mesh.cut_mesh import edge_ends
from normalmesh.mesh.raster import covered_pixels
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.runtime.threads import in_parallel

#: Passes of smoothing with (1, 2, 1)/4 that remove the staircase of a slanted outline, so that slopes along it are
#: even: where a surface is steep, half a pixel on the screen is several of depth.
SMOOTHING_PASSES = 24
#: The same for loops of fewer points than :data:`SMALL_LOOP`, which would shrink.
FEW_PASSES, SMALL_LOOP = 3, 64
#: Weight (px³) of the distance of a vertex to its own point of the smooth outline, over the squared lengths of its
#: edges: edges of a pixel would fit the outline also as a zigzag.
PULL = 4.0
#: Distance (px) by which smoothing moves a point at most: staircases need less, and small fragments must not vanish.
MAX_SMOOTHING = 0.5
#: Pixels that the outline must run straight on both sides of a true corner; a staircase has a short side.
STRAIGHT = 4


@dataclass(eq=False)
class ClosedMesh:
    """A mesh whose edges can be collapsed, flipped and split, with arrays as in :class:`._closed_mesh.MeshArrays`.

    Vertex N is the ghost and has no position. The outline is that of the mesh as it was at the start, which decimation
    must keep, with the pixels that it covers.
    """

    vertices: Float
    faces: Int32
    real_faces: int
    opposite: Int32
    corner_of: Int32
    flags: UInt8
    outline: OutlineArrays

    @property
    def ghost(self) -> int:
        """Index of the ghost vertex."""
        return len(self.vertices)

    @property
    def covered(self) -> Bool:
        """The pixels (H, W) whose centres lie in the mesh."""
        return (self.outline.coverage & COVERED).view(np.bool_)

    @property
    def arrays(self) -> MeshArrays:
        """The mesh as kernels take it; no longer valid once the mesh is made compact or larger."""
        return MeshArrays(
            self.vertices, self.faces, self.opposite, self.corner_of, self.flags, self.ghost, self.real_faces
        )

    @classmethod
    def from_screen(
        cls,
        mesh: ScreenMesh,
        shape: tuple[int, int],
        locked: Bool | None = None,
        coverage: UInt8 | None = None,
        smooth_rim: bool = True,
    ) -> ClosedMesh:
        """Close a copy of a mesh of an image, in which vertices that are ``locked`` (N,) must stay as they are.

        ``coverage`` (H, W) are the ``COVERED`` and ``FIXED`` pixels; by default it is computed, and none is fixed.
        Vertices are drawn to a smooth outline, unless ``smooth_rim`` is False, as for the method of the paper.
        """
        ghost = len(mesh.vertices)
        faces, opposite, after = _closed(mesh)
        corner_of = _corners(faces, ghost + 1)
        on_boundary = after >= 0
        flags = np.where(on_boundary, BOUNDARY, 0).astype(np.uint8)
        if locked is not None:
            flags[locked] |= LOCKED
        point_of = np.where(on_boundary, np.cumsum(on_boundary) - 1, -1).astype(np.int32)
        points = mesh.vertices[on_boundary]
        next_point = point_of[after[on_boundary]]
        fixed = ((points == 0) | (points == shape[::-1])).any(axis=1)
        if locked is not None:
            fixed |= locked[on_boundary]
        if coverage is None:
            coverage = covered_pixels(mesh, shape).view(np.uint8)
        smooth = _without_staircase(points, next_point, fixed, smooth_rim)
        outline = OutlineArrays(point_of, next_point, points, smooth, PULL if smooth_rim else 0.0, coverage)
        return cls(mesh.vertices.copy(), faces, len(mesh.faces), opposite, corner_of, flags, outline)

    def compact(self) -> Int:
        """Drop collapsed vertices and faces; return the former numbers of the vertices that are kept, in order."""
        kept = np.flatnonzero(self.corner_of[:-1] >= 0)
        renumber = np.full(self.ghost + 1, -1, np.int32)
        renumber[kept] = np.arange(len(kept), dtype=np.int32)
        renumber[self.ghost] = len(kept)
        alive = np.flatnonzero(self.faces[:, 0] >= 0)
        faces, opposite = np.empty((len(alive), 3), np.int32), np.empty(3 * len(alive), np.int32)
        numbers = np.empty(len(self.faces), np.int32), renumber
        numbers[0][alive] = np.arange(len(alive))
        tables = self.faces, self.opposite, faces, opposite
        in_parallel(_closed_mesh.compact_faces, len(alive), alive, numbers, *tables)
        self.faces, self.opposite, self.corner_of = faces, opposite, _corners(faces, len(kept) + 1)
        self.real_faces = int(np.searchsorted(alive, self.real_faces))
        self.vertices = self.vertices[kept]
        self.flags = self.flags[kept]
        self.outline = self.outline._replace(point_of=self.outline.point_of[kept])
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
        point_of = np.concatenate([self.outline.point_of, np.full(vertices, -1, np.int32)])
        self.outline = self.outline._replace(point_of=point_of)
        return firsts

    def copy(self) -> ClosedMesh:
        """Copy the mesh with all of its arrays."""
        return deepcopy(self)

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
    # A ghost face (b, a, ghost) closes the boundary edge from a to b.
    a, b = edge_ends(mesh, boundary).T
    faces = np.concatenate([mesh.faces, np.stack([b, a, np.full_like(a, ghost)], axis=1)])
    after, ghost_face = np.full(ghost, -1, np.int32), np.empty(ghost, np.int64)
    after[a], ghost_face[b] = b, real + np.arange(len(boundary))
    corner = 3 * np.arange(real, len(faces))
    opposite = np.concatenate([known, np.empty(3 * len(boundary), np.int32)])
    opposite[boundary], opposite[corner + 2] = corner + 2, boundary
    across = 3 * ghost_face[a] + 1
    opposite[corner], opposite[across] = across, corner
    return faces, opposite, after


def _corners(faces: Int32, vertex_count: int) -> Int32:
    """Return one corner of each vertex, −1 for vertices without faces."""
    corner_of = np.full(vertex_count, -1, np.int32)
    _closed_mesh.fill_corners(faces, corner_of)
    return corner_of


def _without_staircase(points: Float, next_point: Int32, fixed: Bool, smooth_rim: bool) -> Float:
    """Smooth points (P, 2) of closed loops along the loops, enough to remove the staircase of the pixels.

    Without ``smooth_rim`` it is removed from long edges only.

    Corners between two straight sides, such as those of a rectangle, stay, and so do ``fixed`` points (P,) and the ends
    of edges that are longer than the side of a pixel: they are no staircase.
    """
    previous_point = np.empty_like(next_point)
    previous_point[next_point] = np.arange(len(points), dtype=np.int32)
    fixed = fixed & smooth_rim | _ends_straight_side(points, next_point) & _ends_straight_side(points, previous_point)
    few = _averaged(points, next_point, previous_point, fixed, FEW_PASSES) - points
    moved = few
    if smooth_rim:
        for other in (next_point, previous_point):
            fixed |= np.abs(points[other] - points).sum(axis=1) > 1
        moved = _averaged(points, next_point, previous_point, fixed, SMOOTHING_PASSES) - points
        # A second smoothing puts back what the first one takes off curves.
        moved -= _averaged(moved, next_point, previous_point, fixed, SMOOTHING_PASSES)
        moved = np.where((_loop_lengths(next_point) < SMALL_LOOP)[:, None], few, moved)
    distance = np.hypot(moved[:, 0], moved[:, 1])
    return points + moved * np.minimum(1.0, MAX_SMOOTHING / np.maximum(distance, MAX_SMOOTHING))[:, None]


def _averaged(values: Float, after: Int32, before: Int32, fixed: Bool, passes: int) -> Float:
    """Average values (P, 2) with those of both neighbours; those of fixed points stay."""
    average = values
    for _ in range(passes):
        average = (average[before] + 2 * average + average[after]) / 4
        average[fixed] = values[fixed]
    return average


def _loop_lengths(next_point: Int32) -> Int:
    """Return the number of points (P,) of the loop of each point."""
    label, ahead = np.arange(len(next_point)), next_point
    # After k turns, each label is the least of 2ᵏ points.
    for _ in range(len(next_point).bit_length()):
        label, ahead = np.minimum(label, label[ahead]), ahead[ahead]
    return np.bincount(label, minlength=len(label))[label]


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
