"""ScreenMesh: a triangle mesh on the screen, and the mesh of all foreground pixels with which everything starts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_array, checked_nonzero
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.mesh import _topology
from normalmesh.mesh.components import components
from normalmesh.runtime.threads import in_parallel

#: Corners are numbered in 32 bits, six for each pixel of the start mesh.
MOST_PIXELS = (2**31 - 1) // 6

#: Screen positions (px) up to which products of differences are far from overflow.
FARTHEST = 1e9


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

    vertices: NDArray[np.float64]
    faces: NDArray[np.int32]

    def __post_init__(self) -> None:
        vertices = _array(self.vertices, "fiu", 2, "vertices")
        faces = _array(self.faces, "iu", 3, "faces")
        if not np.all(np.abs(vertices) <= FARTHEST):
            raise NormalMeshError(f"vertices must be finite, and within {FARTHEST:g} px of the image")
        if faces.size and not 0 <= faces.min() <= faces.max() < len(vertices):
            raise NormalMeshError(
                f"faces name vertices {faces.min()} to {faces.max()}, but there are {len(vertices)} vertices"
            )
        vertices, faces = _read_only(vertices, np.float64), _read_only(faces, np.int32)
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "faces", faces)

    @classmethod
    def from_mask(cls, mask: ArrayLike) -> ScreenMesh:
        """Two triangles for every foreground pixel, vertices on pixel corners.

        All components and holes of the mask are kept. Where two foreground pixels touch only at a corner, the corner
        becomes two vertices: the mesh is manifold, and components are those of pixels that share a side.

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
        if pixels > MOST_PIXELS:
            raise NormalMeshError(
                f"{pixels} foreground pixels are more than one mesh can hold ({MOST_PIXELS}): tile the map"
            )
        vertices = np.empty((vertex_count, 2), np.float64)
        faces = np.empty((2 * pixels, 3), np.int32)
        number = np.empty((rows + 1, columns + 1), np.int32)
        in_parallel(_topology.fill_vertices, rows + 1, foreground, before, number, vertices, grain=256)
        in_parallel(_topology.fill_faces, rows, foreground, before, number, faces, grain=256)
        return cls(vertices, faces)

    @cached_property
    def _corner_table(self) -> tuple[NDArray[np.int32], int, int]:
        return corner_table(self.faces, len(self.vertices))

    @property
    def opposite(self) -> NDArray[np.int32]:
        """(3M,): for each corner the corner across the edge that faces it, −1 at the boundary (:mod:`._topology`)."""
        return self._corner_table[0]

    def find_opposite(self) -> NDArray[np.int32]:
        """:attr:`opposite`, which the mesh does not keep if it has to be found: on a start mesh every table counts."""
        known = vars(self).get("_corner_table")
        return corner_table(self.faces, len(self.vertices))[0] if known is None else known[0]

    def keep_opposite(self, opposite: NDArray[np.int32]) -> None:
        """Take :attr:`opposite` from a caller who vouches for it, and for edges with at most two faces each."""
        vars(self)["_corner_table"] = (opposite, 0, 0)

    @cached_property
    def components(self) -> NDArray[np.int32]:
        """(N,): connected component of each vertex, numbered in the order of their first vertices."""
        return components(self.faces, len(self.vertices))

    @property
    def areas(self) -> NDArray[np.float64]:
        """(M,): area of each face in px², negative where it is inverted."""
        a, b, c = (self.vertices[self.faces[:, k]] for k in range(3))
        return 0.5 * ((b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0]) - (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]))

    def check(self) -> MeshCheck:
        """Test all that a mesh of this project promises, exactly; see :class:`MeshCheck`."""
        signs = np.empty(len(self.faces), np.int8)
        in_parallel(_topology.face_orientations, len(self.faces), self.vertices, self.faces, signs, grain=100_000)
        opposite, non_manifold_edges, misoriented_edges = self._corner_table
        _, fans = _topology.vertex_corners(self.faces, opposite, len(self.vertices))
        labels = self.components
        count = int(labels.max(initial=-1)) + 1
        loops = euler = np.zeros(count, np.int64)
        if non_manifold_edges == misoriented_edges == 0 and fans.max(initial=0) <= 1:
            boundary_edges, loops = _topology.boundary_loops(self.faces, opposite, labels, count)
            face_counts = np.bincount(labels[self.faces[:, 0]], minlength=count)
            edge_counts = (3 * face_counts + boundary_edges) // 2
            euler = np.bincount(labels, minlength=count) - edge_counts + face_counts
        return MeshCheck(
            inverted_faces=int(np.count_nonzero(signs < 0)),
            degenerate_faces=int(np.count_nonzero(signs == 0)),
            non_manifold_edges=non_manifold_edges,
            misoriented_edges=misoriented_edges,
            non_manifold_vertices=int(np.count_nonzero(fans > 1)),
            unused_vertices=int(np.count_nonzero(fans == 0)),
            boundary_loops=loops,
            euler_characteristics=euler,
        )

    def __repr__(self) -> str:
        return f"ScreenMesh({len(self.vertices)} vertices, {len(self.faces)} faces)"


@dataclass(frozen=True, eq=False)
class MeshCheck:
    """What :meth:`ScreenMesh.check` found. All counts of faults are zero in a sound mesh.

    Attributes
    ----------
    boundary_loops, euler_characteristics
        (C,) for each component, zeros where the mesh is not manifold. A component of the plane has one loop around it
        and one around each hole, and the Euler characteristic 1 − holes.
    """

    inverted_faces: int
    degenerate_faces: int
    non_manifold_edges: int
    misoriented_edges: int
    non_manifold_vertices: int
    unused_vertices: int
    boundary_loops: NDArray[np.int64]
    euler_characteristics: NDArray[np.int64]

    @property
    def components(self) -> int:
        """Number of connected components."""
        return len(self.boundary_loops)

    @property
    def holes(self) -> NDArray[np.int64]:
        """(C,): holes of each component."""
        return self.boundary_loops - 1

    @property
    def manifold(self) -> bool:
        """Every edge has at most two faces, every vertex one fan of faces."""
        return self.non_manifold_edges == 0 and self.non_manifold_vertices == 0

    @property
    def oriented(self) -> bool:
        """All faces turn the same way as their neighbours, and the right way round on the screen."""
        return self.misoriented_edges == 0 and self.inverted_faces == 0

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, in words; empty for a sound mesh."""
        counts = {
            "inverted faces": self.inverted_faces,
            "degenerate faces": self.degenerate_faces,
            "edges with more than two faces": self.non_manifold_edges,
            "edges whose two faces turn different ways": self.misoriented_edges,
            "vertices where fans of faces touch only in a point": self.non_manifold_vertices,
            "vertices without a face": self.unused_vertices,
        }
        found = [f"{count} {name}" for name, count in counts.items() if count]
        # A vertex without a face is a component without a boundary, too.
        handles = int(np.count_nonzero(self.euler_characteristics != 1 - self.holes)) - self.unused_vertices
        if self.manifold and self.misoriented_edges == 0 and handles:
            found.append(f"{handles} components that do not lie in the plane")
        return tuple(found)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        if not self.ok:
            return "unsound mesh: " + ", ".join(self.problems)
        return f"sound mesh: {self.components} components, {int(self.holes.sum())} holes"


def corner_table(faces: NDArray[np.int32], vertex_count: int) -> tuple[NDArray[np.int32], int, int]:
    """``opposite`` (3M,) of faces (M, 3), and the numbers of non-manifold and of inconsistently oriented edges."""
    bucket, starts = np.empty(faces.size, np.int32), np.zeros(vertex_count + 2, np.int32)
    _topology.edge_buckets(faces, bucket, starts)
    opposite = np.empty(faces.size, np.int32)
    in_parallel(_topology.match_corners, vertex_count, faces, bucket, starts, opposite, grain=8192)
    non_manifold, misoriented = 0, 0
    if opposite.min(initial=0) < -1:
        non_manifold = int(np.count_nonzero(opposite == _topology.NON_MANIFOLD))
        misoriented = int(np.count_nonzero(opposite == _topology.MISORIENTED))
        np.maximum(opposite, -1, out=opposite)
    return opposite, non_manifold, misoriented


def _array(values: ArrayLike, kinds: str, width: int, name: str) -> NDArray:
    """The values as they are (n, width), or an error."""
    array = checked_array(values, name, "integers" if kinds == "iu" else "numbers", kinds)
    if array.ndim != 2 or array.shape[1] != width:
        raise NormalMeshError(f"{name} must have the shape (number, {width}), not {shape_text(array.shape)}")
    return array


def _read_only(array: NDArray, dtype: type) -> NDArray:
    """A contiguous read-only view."""
    view: NDArray = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view
