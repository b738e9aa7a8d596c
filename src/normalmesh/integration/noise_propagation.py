"""From the noise of normals to the noise of heights: the linear model behind ``Surface.uncertainty``.

A normal with noise of standard deviation σ in all directions tilts the tangent vectors t_i = τ_i + g_i r of the surface
and gives the slopes g the covariance ``σ² ⟨t_i, t_j⟩ / ⟨n, r⟩²``: σ²/cos⁴ along the tilt, σ²/cos² across. The mean over
a face of A pixels has the covariance C_f, which is that divided by A and multiplied by the number of pixels that share
their noise.

Heights z follow from slopes by least squares. The facet system weighs the mean slopes of a face by
``W_f = ½ m_f Σ_k l_k (x_k − b)(x_k − b)ᵀ``, with edges of length l_k across from the corners x_k, and the centroid b:
the cost of another slope at its three edges, half of each. The paper's system has ``W_f = m_f A_f``. With the gradients
D_f of the hat functions of a face, the heights at the vertices have the covariance ``H⁻¹ B H⁻¹``, where
``H = Σ_f D_fᵀ W_f D_f`` and ``B = Σ_f D_fᵀ W_f C_f W_f D_f``. Points of a prior add to H, as if they were exact.

For the facet system this is a model, because its unknowns are not the heights of vertices: it agrees with noise that is
sampled on the same mesh within about 10 % (``tests/integration/test_uncertainty.py``). That another mesh would give
other heights is not noise: see :mod:`.mesh_deviation`. For a perspective camera, z is the logarithm of the depth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix

from normalmesh.array_types import Float, Int32
from normalmesh.errors import NormalMeshError
from normalmesh.mesh.interpolation import barycentric_rows
from normalmesh.mesh.origin import HeightNoise
from normalmesh.mesh.surface import Surface
from normalmesh.runtime.memory_budget import require_memory
from normalmesh.solvers.cholesky import Cholesky
from normalmesh.solvers.gauge import Gauge
from normalmesh.solvers.selected_inverse import sandwich_diagonal
from normalmesh.solvers.sparse_system import PreparedSystem

#: Largest tilt of a face: normals beyond it are not trusted (:mod:`normalmesh.normals.repairs`).
MAX_TILT = math.radians(85)
#: Memory of the factor and of inverses of its fronts, relative to the factor.
INVERSE_BYTES = 2.0
#: Smallest double area (px²) of a face that is divided by.
MIN_DOUBLE_AREA = 1e-9


@dataclass(frozen=True, eq=False)
class NoisePropagation:
    """The matrices that take noise of normals to noise of heights, for noise of one radian that is not correlated.

    Attributes
    ----------
    surface : Surface
        As the normals have it.
    depth : (N,)
        Depth of the vertices.
    unknown : (N,) int32
        Number of the unknown of each vertex: vertices on opposite sides of a surface that repeats have the same one.
    matrix, middle : (n, n) sparse
        H and B, of the same pattern.
    bound
        Largest possible quotient of their quadratic forms.
    gauge : Gauge
        The connected parts of the unknowns; those that no prior holds are floating.
    """

    surface: Surface
    depth: Float
    unknown: Int32
    matrix: csr_matrix
    middle: csr_matrix
    bound: float
    gauge: Gauge

    @classmethod
    def of(cls, surface: Surface, record: HeightNoise | None) -> NoisePropagation:
        """Return the model of a surface; without a record, it is taken to come from the facet system."""
        mesh, depth = surface.mesh, surface.camera.depth(surface.vertices)
        slopes = hat_gradients(mesh.vertices[mesh.faces])
        if not mesh.areas.any():
            raise NormalMeshError("the surface has no area on the screen: nothing is known about its heights")
        own, covariance = _face_matrices(surface, depth, slopes, record is None or record.formulation == "facets")
        weighted = own @ slopes
        held, spread = slopes.transpose(0, 2, 1) @ weighted, weighted.transpose(0, 2, 1) @ covariance @ weighted
        unknown, part = _unknowns(surface)
        floating = np.ones(int(part.max()) + 1, np.bool_)
        if record is not None and len(record.faces):
            hats = barycentric_rows(mesh, record.feet, record.faces).data.reshape(-1, 3)
            terms = record.weights[:, None, None] * hats[:, :, None] * hats[:, None, :]
            np.add.at(held, record.faces, terms)
            floating[part[unknown[mesh.faces[record.faces, 0]]]] = False
        product = own @ covariance
        half, determinant = np.trace(product, axis1=1, axis2=2) / 2, np.linalg.det(product)
        bound = float((half + np.sqrt(np.maximum(half**2 - determinant, 0.0))).max())
        matrix, middle = (_assembled(unknown[mesh.faces], each, len(part)) for each in (held, spread))
        return cls(surface, depth, unknown, matrix, middle, bound, Gauge(part, floating))

    @cached_property
    def places(self) -> Float:
        """Positions (n, 2) on the screen at which the solver is to see the unknowns."""
        screen, repeats = self.surface.screen, self.surface.repeats
        places = np.empty((len(self.gauge.component), 2))
        places[self.unknown] = screen if repeats is None else repeats.folded(screen)
        return places

    @cached_property
    def levels(self) -> Float:
        """Weights (n,) of the unknowns in what stays fixed of each floating part: its mean height, or mean depth."""
        mesh, part = self.surface.mesh, self.gauge.component
        areas = np.bincount(mesh.faces.ravel(), np.repeat(np.abs(mesh.areas), 3), len(self.depth))
        weights = areas * self.surface.camera.depth_per_unknown(self.depth)
        weights = np.bincount(self.unknown, weights, len(part)).astype(np.float64)
        total = np.bincount(part, weights)
        return np.where(self.gauge.floating, 1.0 / np.where(total > 0, total, 1.0), 0.0)[part] * weights

    def variances(self) -> Float:
        """Return the variances (N,) of the unknown at the vertices, relative to the level of floating parts."""
        cholesky = Cholesky(self.matrix, self.places)
        task = f"the uncertainty of {len(self.depth)} vertices"
        require_memory(INVERSE_BYTES * cholesky.bytes, task, "ask for differences of heights instead")
        extra = self.gauge.pins(self.matrix.diagonal(), cholesky.last)
        # Relative to the pinned vertices.
        variances = sandwich_diagonal(cholesky, self.matrix, extra, self.middle, self.bound)
        cholesky.factorise(self.matrix, extra)
        shared = cholesky.solve(self.middle @ cholesky.solve(self.levels))
        part = self.gauge.component
        of_level = np.bincount(part, self.levels * shared)
        relative: Float = variances - 2 * shared + of_level[part]
        return np.maximum(relative, 0.0)[self.unknown]

    def determines(self, first: int, second: int) -> bool:
        """Return whether normals, or a prior, determine how much higher one vertex is than another."""
        parts = self.gauge.component[self.unknown[[first, second]]]
        return bool(parts[0] == parts[1]) or not self.gauge.floating[parts].any()

    def variance(self, functional: Float) -> Float:
        """Return the variance (P,), by parts of the surface, of a linear functional (N,) of heights of vertices.

        It is relative to the level of floating parts.
        """
        part = self.gauge.component
        functional = np.bincount(self.unknown, functional, len(part)).astype(np.float64)
        functional -= np.bincount(part, functional)[part] * self.levels
        system = PreparedSystem(self.matrix, coordinates=self.places, gauge=self.gauge)
        adjoint = system.solve(functional).x
        shares = np.maximum(np.bincount(part, adjoint * (self.middle @ adjoint)), 0.0)
        # Parts that meet across a side of a surface that repeats are one: the first of them stands for it.
        variance, part_of = np.zeros(int(self.surface.components.max()) + 1), np.empty(len(shares), np.int32)
        part_of[part[self.unknown][::-1]] = self.surface.components[::-1]
        variance[part_of] = shares
        return variance


def _unknowns(surface: Surface) -> tuple[Int32, Int32]:
    """Return the number (N,) of the unknown of each vertex, and the connected part (n,) of each unknown."""
    if surface.repeats is None:
        return np.arange(len(surface.vertices), dtype=np.int32), surface.mesh.components
    whole = surface.repeats.wrap(surface.mesh)
    first, unknown = np.unique(whole.first_twins, return_inverse=True)
    return unknown.reshape(-1).astype(np.int32), whole.components[first]


def hat_gradients(corners: Float) -> Float:
    """Return the gradients (M, 2, 3) of the hat functions of the corners (M, 3, 2) of faces."""
    across = np.roll(corners, 1, axis=1) - np.roll(corners, -1, axis=1)
    turned = np.stack([-across[..., 1], across[..., 0]], axis=1)
    (u, v), (other_u, other_v) = across[:, 1].T, across[:, 2].T
    double = u * other_v - v * other_u
    double = np.where(np.abs(double) < MIN_DOUBLE_AREA, np.copysign(MIN_DOUBLE_AREA, double), double)
    return turned / double[:, None, None]


def _face_matrices(surface: Surface, depth: Float, slopes: Float, facets: bool) -> tuple[Float, Float]:
    """Return W_f and C_f (M, 2, 2) of the faces for noise of one radian, from the gradients (M, 2, 3) of hats."""
    camera, mesh = surface.camera, surface.mesh
    corners = mesh.vertices[mesh.faces]
    centre = corners.mean(axis=1)
    rays, tangents = camera.rays(*centre.T), np.stack(camera.tangents)
    squared = (rays**2).sum(axis=1)
    # Slopes against a plane across the ray, along which the tangents have the products `flat`.
    along = rays @ tangents.T
    unknown = camera.unknown_of_depth(depth)
    tilt = np.einsum("fik,fk->fi", slopes, unknown[mesh.faces]) + along / squared[:, None]
    flat = tangents @ tangents.T - along[:, :, None] * along[:, None, :] / squared[:, None, None]
    steepness = np.sqrt(squared * np.einsum("fi,fij,fj->f", tilt, np.linalg.inv(flat), tilt))
    tilt *= np.minimum(1.0, math.tan(MAX_TILT) / np.maximum(steepness, 1e-300))[:, None]
    mobility = squared / (1 + np.minimum(steepness, math.tan(MAX_TILT)) ** 2)
    products = flat + squared[:, None, None] * tilt[:, :, None] * tilt[:, None, :]
    areas = np.maximum(np.abs(mesh.areas), MIN_DOUBLE_AREA)
    covariance = products / (mobility * areas)[:, None, None]
    if facets:
        lengths = np.linalg.norm(np.roll(corners, 1, axis=1) - np.roll(corners, -1, axis=1), axis=2)
        aside = corners - centre[:, None]
        own = np.einsum("fk,fki,fkj->fij", lengths, aside, aside) / 2
    else:
        own = areas[:, None, None] * np.eye(2)
    return mobility[:, None, None] * own, covariance


def _assembled(faces: Int32, elements: Float, count: int) -> csr_matrix:
    """Return the sum (N, N) of the matrices (M, 3, 3) of faces; all numbers on the diagonal are stored."""
    every = np.arange(count, dtype=np.int32)
    rows = np.concatenate([np.repeat(faces, 3, axis=1).ravel(), every])
    columns = np.concatenate([np.tile(faces, 3).ravel(), every])
    matrix = csr_matrix((np.concatenate([elements.ravel(), np.zeros(count)]), (rows, columns)), shape=(count, count))
    matrix.sum_duplicates()
    return matrix
