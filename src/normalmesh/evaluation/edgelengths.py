"""Target lengths of edges, and the splits and collapses that bring a mesh to them: two steps of isotropic remeshing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from normalmesh.closedmesh import ClosedMesh
from normalmesh.evaluation import _isotropic
from normalmesh.quadrics import Pixels

Float32 = NDArray[np.float32]
Int32 = NDArray[np.int32]

#: Sweeps of splits or collapses, at most: each can halve or double edges.
MOST_SWEEPS = 100
#: A mesh that lost this share of its vertices is made compact, and its faces are sampled afresh.
STALE = 0.1


class EdgeLengths:
    """The edge lengths that a map and an error ask for, and those that a mesh has.

    Parameters
    ----------
    pixels
    curvature
        (H, W) in 1/px.
    error
        ε in pixels.

    Attributes
    ----------
    density : (H, W) float32
        h⁻² at each pixel, for the target length h in pixels.
    samples : (F, 4) float32
        Of the faces of a mesh, see :mod:`normalmesh.evaluation._isotropic`.
    densities : (N,) float32
        Mean density over the faces of each vertex.
    """

    def __init__(self, pixels: Pixels, curvature: Float32, error: float) -> None:
        self.pixels = pixels
        self.density = np.empty_like(curvature)
        _isotropic.fill_density(curvature, error, self.density)
        self.samples = np.empty((0, 4), np.float32)
        self.densities = np.empty(0, np.float32)

    def sample(self, mesh: ClosedMesh) -> None:
        """Evaluate all faces and vertices of a compact mesh from the pixels."""
        self.samples = np.empty((len(mesh.faces), 4), np.float32)
        self.densities = np.empty(len(mesh.vertices), np.float32)
        normal_map = self.pixels.normal_map
        _isotropic.sample_faces(
            mesh.vertices,
            mesh.faces,
            mesh.real_faces,
            normal_map.normals,
            self.density,
            normal_map.mask,
            *self.pixels.camera,
            self.samples,
        )
        _isotropic.vertex_densities(mesh.opposite, mesh.corner_of, self.samples, self.densities)

    def long_edges(self, mesh: ClosedMesh) -> NDArray[np.int64]:
        """Corners across from the edges that are too long, longest first."""
        stretches = np.empty(3 * mesh.real_faces, np.float32)
        _isotropic.stretches_of_long_edges(
            mesh.vertices, mesh.faces, mesh.real_faces, mesh.opposite, *self.measure, stretches
        )
        corners = np.flatnonzero(stretches)
        return corners[np.argsort(-stretches[corners], kind="stable")]

    def make_room(self, mesh: ClosedMesh, splits: int) -> tuple[int, int, int]:
        """Make room in a mesh, and follow; see :meth:`ClosedMesh.make_room`."""
        room = np.zeros((2 * splits, 4), np.float32)
        here = mesh.real_faces
        self.samples = np.concatenate([self.samples[:here], room, self.samples[here:], room[:splits]])
        self.densities = np.concatenate([self.densities, np.zeros(splits, np.float32)])
        return mesh.make_room(splits)

    def compact(self, mesh: ClosedMesh) -> None:
        """Make a mesh compact, and follow."""
        self.samples = self.samples[mesh.faces[:, 0] >= 0]
        self.densities = self.densities[mesh.corner_of[:-1] >= 0]
        mesh.compact()

    @property
    def measure(self) -> tuple[Float32, Float32, NDArray[np.float64], float, float]:
        """What kernels measure edges with: samples, densities and the camera."""
        return self.samples, self.densities, *self.pixels.camera

    def outline(
        self, mesh: ClosedMesh
    ) -> tuple[NDArray[np.uint8], Int32, Int32, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        """What kernels keep the outline with: flags, outline_of, next_point, smooth, mask and covered."""
        kept = mesh.outline
        return mesh.flags, mesh.outline_of, kept.next_point, kept.smooth, self.pixels.normal_map.mask, mesh.covered


def split(mesh: ClosedMesh, lengths: EdgeLengths) -> int:
    """Split edges longer than 4/3 of their target length in the middle, longest first, until none is left; the number.

    Edges of two pixels on the screen stay, and those of the boundary whose middle is not at the outline.
    """
    lengths.sample(mesh)
    total = 0
    for _ in range(MOST_SWEEPS):
        order = lengths.long_edges(mesh)
        first = lengths.make_room(mesh, len(order))
        splits = _isotropic.split_in_order(
            order, *mesh.topology, mesh.real_faces, *lengths.outline(mesh), *lengths.measure, *first
        )
        lengths.compact(mesh)
        total += splits
        if splits == 0:
            break
    return total


def collapse(mesh: ClosedMesh, lengths: EdgeLengths) -> int:
    """Collapse edges shorter than 4/5 of their target length until none is left that may; the number of collapses.

    An edge may not collapse where the mesh would become unsound, where the boundary would leave the outline, or where
    an edge would have to be split again. Sweeps over the vertices collapse one edge at each, its shortest, so that the
    mesh coarsens evenly. The mesh is compact afterwards.
    """
    total = 0
    states = np.full(len(mesh.vertices), _isotropic.ACTIVE, np.uint8)
    stale, token = len(mesh.vertices), 0
    mark = np.zeros(mesh.ghost + 1, np.int32)
    for _ in range(MOST_SWEEPS):
        if stale > STALE * len(mesh.vertices):
            if total > 0:
                states = states[mesh.corner_of[:-1] >= 0]
                mesh.compact()
            lengths.sample(mesh)
            mark = np.zeros(mesh.ghost + 1, np.int32)
            stale = token = 0
        collapses, token = _isotropic.collapse_sweep(
            *mesh.topology, *lengths.outline(mesh), *lengths.measure, mark, token, states
        )
        total += collapses
        stale += collapses
        if collapses == 0:
            break
    mesh.compact()
    return total
