"""EdgeLengths: how long the edges of a mesh are on the surface, and how long its curvature wants them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from normalmesh.decimation.quadrics import Pixels
from normalmesh.evaluation.isotropic import _edge_lengths
from normalmesh.mesh.closed_mesh import ClosedMesh

Float32 = NDArray[np.float32]
Int32 = NDArray[np.int32]


#: About so many pixels are looked at to predict a vertex count.
SAMPLED = 2**20


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
        Of the faces of a mesh, see :mod:`normalmesh.evaluation.isotropic._edge_lengths`.
    densities : (N,) float32
        Mean density over the faces of each vertex.
    """

    def __init__(self, pixels: Pixels, curvature: Float32, error: float) -> None:
        self.pixels = pixels
        self.density = np.empty_like(curvature)
        _edge_lengths.fill_density(curvature, error, self.density)
        self.samples = np.empty((0, 4), np.float32)
        self.densities = np.empty(0, np.float32)

    def sample(self, mesh: ClosedMesh) -> None:
        """Evaluate all faces and vertices of a compact mesh from the pixels."""
        self.samples = np.empty((len(mesh.faces), 4), np.float32)
        self.densities = np.empty(len(mesh.vertices), np.float32)
        normal_map = self.pixels.normal_map
        _edge_lengths.sample_faces(
            mesh.vertices,
            mesh.faces,
            mesh.real_faces,
            normal_map.normals,
            self.density,
            normal_map.mask,
            *self.pixels.camera,
            self.samples,
        )
        _edge_lengths.vertex_densities(mesh.opposite, mesh.corner_of, self.samples, self.densities)

    def long_edges(self, mesh: ClosedMesh) -> NDArray[np.int64]:
        """Corners across from the edges that are too long, longest first."""
        stretches = np.empty(3 * mesh.real_faces, np.float32)
        _edge_lengths.stretches_of_long_edges(
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


def expected_vertices(pixels: Pixels, curvature: Float32, error: float) -> float:
    """Vertices of equilateral triangles of the target lengths: ∫ 2/(√3 h²) over the surface; large maps are sampled."""
    normal_map = pixels.normal_map
    frame, _, scale = pixels.camera
    step = max(1, normal_map.mask.size // SAMPLED)
    return _edge_lengths.expected_vertices(normal_map.normals, curvature, normal_map.mask, step, frame, scale, error)
