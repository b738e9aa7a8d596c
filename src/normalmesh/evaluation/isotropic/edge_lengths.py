"""EdgeLengths: lengths of edges on the surface, and target lengths from its curvature at each pixel."""

from __future__ import annotations

import math

import numpy as np
from scipy import ndimage

from normalmesh.array_types import Float32, Int
from normalmesh.decimation.quadrics import Pixels
from normalmesh.evaluation.isotropic import _edge_lengths
from normalmesh.evaluation.isotropic._edge_lengths import LengthArrays
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import in_parallel

#: Approximate number of pixels that are sampled to predict a vertex count.
PREDICTING_PIXELS = 2**20
#: The Gaussian window that normals are averaged over before derivatives are taken: deviation and reach in pixels.
WINDOW_WIDTH, WINDOW_REACH = math.sqrt(2), 2
#: Minimum number of rows of pixels for each thread.
ROWS = 64


def curvature(normal_map: NormalMap) -> Float32:
    """Compute the largest absolute normal curvature (H, W) at each pixel, in 1/px; zero outside the mask.

    It is the largest absolute eigenvalue of I⁻¹ II (Heep and Zell, ECCV 2024). The first fundamental form is I = JᵀJ
    with the tangents J(n) of the camera, in pixels. The second is II_ij = −⟨∂_i n, J_j⟩, symmetrised. Derivatives are
    central differences of normals averaged over 5×5 pixels, one-sided at the border of the mask. Pixels outside the
    mask are ignored. For a perspective camera, lengths are measured in pixels at the depth of the surface.
    """
    # Normals are zero outside the mask, and only directions matter, so that this is the mean over the foreground.
    window = {"sigma": WINDOW_WIDTH, "radius": WINDOW_REACH}
    smooth = ndimage.gaussian_filter(normal_map.normals, **window, mode="constant", axes=(0, 1))
    found = np.empty(normal_map.shape, np.float32)
    mask, camera = normal_map.mask, normal_map.camera.arrays
    np.divide(smooth, np.sqrt((smooth**2).sum(axis=2, keepdims=True)), out=smooth, where=mask[..., None])
    in_parallel(_edge_lengths.fill_curvature, len(mask), smooth, mask, camera, found, grain=ROWS)
    return found


class EdgeLengths:
    """Target edge lengths of a map for an error ε (px), and samples of a mesh to measure its edges with.

    ``curvature`` (H, W) is in 1/px, ``density`` (H, W) is h⁻² for the target length h in px. Samples of faces (F, 4)
    and mean densities over the faces of vertices (N,) are those of
    :mod:`normalmesh.evaluation.isotropic._edge_lengths`.
    """

    def __init__(self, pixels: Pixels, curvature: Float32, error: float) -> None:
        self.pixels = pixels
        self.density = np.empty_like(curvature)
        in_parallel(_edge_lengths.fill_density, len(curvature), curvature, error, self.density, grain=ROWS)
        self.samples = np.empty((0, 4), np.float32)
        self.densities = np.empty(0, np.float32)

    def sample(self, mesh: ClosedMesh) -> None:
        """Sample all faces and vertices of a compact mesh from the pixels."""
        self.samples = np.empty((len(mesh.faces), 4), np.float32)
        self.densities = np.empty(len(mesh.vertices), np.float32)
        arrays, normal_map = mesh.arrays, self.pixels.normal_map.arrays
        in_parallel(_edge_lengths.sample_faces, len(mesh.faces), arrays, normal_map, self.density, self.samples)
        in_parallel(_edge_lengths.vertex_densities, len(mesh.vertices), arrays, self.samples, self.densities)

    def long_edges(self, mesh: ClosedMesh) -> Int:
        """Return the corners across from the edges that are too long, longest first."""
        stretches = np.empty(3 * mesh.real_faces, np.float32)
        in_parallel(_edge_lengths.stretches_of_long_edges, len(stretches), mesh.arrays, self.arrays, stretches)
        corners = np.flatnonzero(stretches)
        return corners[np.argsort(-stretches[corners], kind="stable")]

    def reserve_for_splits(self, mesh: ClosedMesh, splits: int) -> tuple[int, int, int]:
        """Extend a mesh and the samples for ``splits`` splits; see :meth:`ClosedMesh.reserve_for_splits`."""
        new = np.zeros((2 * splits, 4), np.float32)
        here = mesh.real_faces
        self.samples = np.concatenate([self.samples[:here], new, self.samples[here:], new[:splits]])
        self.densities = np.concatenate([self.densities, np.zeros(splits, np.float32)])
        return mesh.reserve_for_splits(splits)

    def compact(self, mesh: ClosedMesh) -> None:
        """Make a mesh compact, and drop the samples of removed faces and vertices."""
        self.samples = self.samples[mesh.faces[:, 0] >= 0]
        self.densities = self.densities[mesh.corner_of[:-1] >= 0]
        mesh.compact()

    @property
    def arrays(self) -> LengthArrays:
        """Samples, densities and camera, as kernels take them."""
        return LengthArrays(self.samples, self.densities, self.pixels.normal_map.camera.arrays)


def expected_vertices(pixels: Pixels, curvature: Float32, error: float) -> float:
    """Return the number of vertices of equilateral triangles of the target lengths, ∫ 2/(√3 h²) over the surface.

    Of large maps, only some rows are used.
    """
    normal_map = pixels.normal_map
    step = max(1, normal_map.mask.size // PREDICTING_PIXELS)
    counts = np.zeros(-(-len(curvature) // step))
    in_parallel(
        _edge_lengths.count_vertices, len(counts), normal_map.arrays, curvature, step, error, counts, grain=ROWS
    )
    return step * float(counts.sum())
