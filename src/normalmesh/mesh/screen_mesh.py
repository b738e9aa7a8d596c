"""ScreenMesh: a triangle mesh on the screen, such as the mesh of all foreground pixels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_array, checked_nonzero
from normalmesh.array_types import Float, Int, Int32, Integer
from normalmesh.errors import NormalMeshError, count_text, shape_text
from normalmesh.mesh import _topology
from normalmesh.mesh.components import components
from normalmesh.mesh.surface_arrays import check_faces, check_positions
from normalmesh.runtime.threads import in_parallel

#: Largest number of foreground pixels: corners are numbered in 32 bits, six for each pixel.
MAX_PIXELS = (2**31 - 1) // 6

#: Largest screen position (px): products of differences stay far from overflow.
MAX_POSITION = 1e9


@dataclass(frozen=True, eq=False)
class ScreenMesh:
    """Triangles on the screen. Both arrays are kept as read-only views, without a copy.

    Parameters
    ----------
    vertices
        (N, 2) float64: u (right) and v (down) in pixels; pixel (row i, column j) covers [j, j+1] × [i, i+1].
    faces
        (M, 3) int32 vertex indices, counter-clockwise as the viewer sees them (v points down).
    """

    vertices: Float
    faces: Int32

    def __post_init__(self) -> None:
        vertices = checked_array(self.vertices, "vertices", "numbers")
        check_positions(vertices, 2, "vertices", MAX_POSITION)
        faces = checked_array(self.faces, "faces", "integers", "iu")
        check_faces(faces, len(vertices), least=0)
        object.__setattr__(self, "vertices", _read_only(vertices, np.float64))
        object.__setattr__(self, "faces", _read_only(faces, np.int32))

    @classmethod
    def from_mask(cls, mask: ArrayLike) -> ScreenMesh:
        """Make two triangles for every foreground pixel, with vertices on pixel corners.

        All components and holes of the mask are kept. If two foreground pixels touch only at a corner, the corner
        becomes two vertices: the mesh is manifold, and its components are those of pixels that share a side.

        Parameters
        ----------
        mask
            (H, W), True or nonzero = foreground.
        """
        foreground = checked_nonzero(mask)
        if foreground.ndim != 2 or not foreground.any():
            raise NormalMeshError(
                f"a mask must have rows, columns and a foreground pixel; got {shape_text(foreground.shape)}"
                + (" without any" if foreground.ndim == 2 else "")
            )
        rows, columns = foreground.shape
        before = np.zeros((rows + 2, 2), np.int64)
        in_parallel(_topology.count_rows, rows + 1, foreground, before[1:], grain=256)
        np.cumsum(before, axis=0, out=before)
        vertex_count, pixels = before[-1]
        if pixels > MAX_PIXELS:
            raise NormalMeshError(
                f"{pixels} foreground pixels are more than one mesh can hold ({MAX_PIXELS}): tile the map"
            )
        vertices = np.empty((vertex_count, 2), np.float64)
        faces = np.empty((2 * pixels, 3), np.int32)
        number = np.empty((rows + 1, columns + 1), np.int32)
        in_parallel(_topology.fill_vertices, rows + 1, foreground, before, number, vertices, grain=256)
        in_parallel(_topology.fill_faces, rows, foreground, before, number, faces, grain=256)
        return cls(vertices, faces)

    @cached_property
    def _corner_table(self) -> tuple[Int32, int, int]:
        return corner_table(self.faces, len(self.vertices))

    @property
    def opposite(self) -> Int32:
        """The corner (3M,) on the other side of the edge across from each corner, −1 at the boundary."""
        return self._corner_table[0]

    def find_opposite(self) -> Int32:
        """Return :attr:`opposite` without keeping it in the mesh: tables of a start mesh take much memory."""
        known = vars(self).get("_corner_table")
        return corner_table(self.faces, len(self.vertices))[0] if known is None else known[0]

    def keep_opposite(self, opposite: Int32) -> None:
        """Store a known :attr:`opposite`; the caller guarantees that no edge has more than two faces."""
        vars(self)["_corner_table"] = (opposite, 0, 0)

    @cached_property
    def components(self) -> Int32:
        """Connected component (N,) of each vertex, numbered in the order of their first vertices."""
        return components(self.faces, len(self.vertices))

    @property
    def areas(self) -> Float:
        """Area (M,) of each face in px², negative for inverted faces."""
        a, b, c = (self.vertices[self.faces[:, k]] for k in range(3))
        return 0.5 * ((b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0]) - (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]))

    def check(self) -> MeshCheck:
        """Check exactly whether the mesh is valid; see :class:`MeshCheck`."""
        signs = np.empty(len(self.faces), np.int8)
        in_parallel(_topology.face_orientations, len(self.faces), self.vertices, self.faces, signs, grain=100_000)
        opposite, non_manifold_edges, misoriented_edges = self._corner_table
        fan_counts = count_fans(self.faces, opposite, len(self.vertices))
        labels = self.components
        count = int(labels.max(initial=-1)) + 1
        loops = euler = np.zeros(count, np.int64)
        if non_manifold_edges == misoriented_edges == 0 and fan_counts.max(initial=0) <= 1:
            boundary = np.flatnonzero(opposite < 0)
            ends = self.faces.ravel()[np.stack([following(boundary), preceding(boundary)], axis=1)]
            boundary_edges = np.bincount(labels[ends[:, 0]], minlength=count)
            _, one_of_loop = np.unique(components(ends, len(labels))[ends[:, 0]], return_index=True)
            loops = np.bincount(labels[ends[one_of_loop, 0]], minlength=count)
            face_counts = np.bincount(labels[self.faces[:, 0]], minlength=count)
            edge_counts = (3 * face_counts + boundary_edges) // 2
            euler = np.bincount(labels, minlength=count) - edge_counts + face_counts
        return MeshCheck(
            inverted_faces=int(np.count_nonzero(signs < 0)),
            degenerate_faces=int(np.count_nonzero(signs == 0)),
            non_manifold_edges=non_manifold_edges,
            misoriented_edges=misoriented_edges,
            non_manifold_vertices=int(np.count_nonzero(fan_counts > 1)),
            unused_vertices=int(np.count_nonzero(fan_counts == 0)),
            boundary_loops=loops,
            euler_characteristics=euler,
        )

    def __repr__(self) -> str:
        return f"ScreenMesh({len(self.vertices)} vertices, {len(self.faces)} faces)"


@dataclass(frozen=True, eq=False)
class MeshCheck:
    """The result of :meth:`ScreenMesh.check`. All counts of faults are zero in a valid mesh.

    Attributes
    ----------
    boundary_loops, euler_characteristics
        (C,) numbers for each component, zeros if the mesh is not manifold. A component of the plane has one loop
        around it and one around each hole, and the Euler characteristic 1 − holes.
    """

    inverted_faces: int
    degenerate_faces: int
    non_manifold_edges: int
    misoriented_edges: int
    non_manifold_vertices: int
    unused_vertices: int
    boundary_loops: Int
    euler_characteristics: Int

    @property
    def components(self) -> int:
        """Number of connected components."""
        return len(self.boundary_loops)

    @property
    def holes(self) -> Int:
        """Number of holes (C,) of each component."""
        return self.boundary_loops - 1

    @property
    def manifold(self) -> bool:
        """Whether every edge has at most two faces, and every vertex one fan of faces."""
        return self.non_manifold_edges == 0 and self.non_manifold_vertices == 0

    @property
    def oriented(self) -> bool:
        """Whether all faces have the orientation of their neighbours, and are counter-clockwise on the screen."""
        return self.misoriented_edges == 0 and self.inverted_faces == 0

    @property
    def problems(self) -> tuple[str, ...]:
        """Descriptions of the faults; empty for a valid mesh."""
        counts = (
            (self.inverted_faces, "inverted face", "inverted faces", ""),
            (self.degenerate_faces, "degenerate face", "degenerate faces", ""),
            (self.non_manifold_edges, "edge", "edges", " with more than two faces"),
            (self.misoriented_edges, "edge", "edges", " with two faces of opposite orientation"),
            (self.non_manifold_vertices, "vertex", "vertices", " with more than one fan of faces"),
            (self.unused_vertices, "vertex", "vertices", " without a face"),
        )
        found = [count_text(count, one, many) + what for count, one, many, what in counts if count]
        # A vertex without a face is a component without a boundary, too.
        handles = int(np.count_nonzero(self.euler_characteristics != 1 - self.holes)) - self.unused_vertices
        if self.manifold and self.misoriented_edges == 0 and handles:
            found.append(count_text(handles, "component that does", "components that do") + " not lie in the plane")
        return tuple(found)

    @property
    def ok(self) -> bool:
        """Whether the mesh is valid."""
        return not self.problems

    def __str__(self) -> str:
        if not self.ok:
            return "invalid mesh: " + ", ".join(self.problems)
        return f"valid mesh: {count_text(self.components, 'component')}, {count_text(int(self.holes.sum()), 'hole')}"


def corner_table(faces: Int32, vertex_count: int) -> tuple[Int32, int, int]:
    """Return ``opposite`` (3M,) of faces (M, 3), and the numbers of non-manifold and of misoriented edges."""
    bucket, starts = np.empty(faces.size, np.int32), np.zeros(vertex_count + 2, np.int32)
    _topology.edge_buckets(faces, bucket, starts)
    opposite = np.empty(faces.size, np.int32)
    in_parallel(_topology.match_corners, vertex_count, faces, bucket, starts, opposite)
    non_manifold, misoriented = 0, 0
    if opposite.min(initial=0) < -1:
        non_manifold = int(np.count_nonzero(opposite == _topology.NON_MANIFOLD))
        misoriented = int(np.count_nonzero(opposite == _topology.MISORIENTED))
        np.maximum(opposite, -1, out=opposite)
    return opposite, non_manifold, misoriented


def fans(faces: Int32, opposite: Int32, uncut: Integer) -> tuple[Int32, Int32]:
    """Return the fan (3M,) of faces that each corner belongs to, and the vertex (F,) of each fan.

    Two corners of a vertex belong together if an edge runs from it between their faces, across from a corner ``uncut``.
    """
    across = opposite[uncut]
    first = np.concatenate([following(uncut), preceding(uncut)])
    second = np.concatenate([preceding(across), following(across)])
    fan = components(np.stack([first, second], axis=1), len(opposite))
    fan_vertex = np.empty(int(fan.max(initial=-1)) + 1, np.int32)
    fan_vertex[fan] = faces.ravel()
    return fan, fan_vertex


def count_fans(faces: Int32, opposite: Int32, vertex_count: int) -> Int:
    """Return the number (N,) of fans around each vertex: one if it is manifold."""
    return np.bincount(fans(faces, opposite, inner_edges(opposite))[1], minlength=vertex_count)


def inner_edges(opposite: Int32) -> Int:
    """Return one of the two corners (E,) across from each edge between two faces."""
    return np.flatnonzero(opposite > np.arange(len(opposite)))


def following(corner: Integer) -> Integer:
    """Return the next corners of the same faces."""
    return corner - corner % 3 + (corner + 1) % 3


def preceding(corner: Integer) -> Integer:
    """Return the previous corners of the same faces."""
    return corner - corner % 3 + (corner + 2) % 3


def _read_only(array: NDArray[Any], dtype: type) -> NDArray[Any]:
    """Return a contiguous read-only view."""
    view: NDArray[Any] = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view
