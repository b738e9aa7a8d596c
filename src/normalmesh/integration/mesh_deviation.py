"""How far the flat faces of a mesh deviate from the surface that the normals of their pixels show.

The slopes of the pixels of a face, without their noise, are those of the surface; the slopes of the face are those of
its plane. The difference says by how much the heights differ, without any truth. There are three parts, each a variance
over the face:

- *Curvature.* Let K be the covariance of slopes and places (δ, relative to the centroid). With constant second
  derivatives, the surface deviates from its best plane over a triangle by the variance ``0.24 tr K² + 0.03 (tr K)²``.
- *Tilt.* The plane has other slopes than the mean of its pixels, by d: ``dᵀ S d``, with the covariance S of places over
  the triangle.
- *Detail.* Slopes that vary by the variance E, besides curvature, are heights that vary by about 0.03 A E over a face
  of area A. For curvature the factor would be 0.027, and it cannot exceed 0.13, that of half a wave over an equilateral
  triangle.

Neighbouring planes meet, so that none is the best one of its face: measured against known heights, the part of
curvature is larger by :data:`UNEVEN` (``python -m benchmarks.uncertainty``). At the vertices, where planes that fit a
curved surface on average are farthest off, there is more: on a paraboloid with equal faces 15 times the variance over a
face, on reliefs about half of it.
"""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Float, Int32
from normalmesh.facets.gradient_moments import GradientMoments
from normalmesh.integration.noise_propagation import hat_gradients
from normalmesh.mesh.screen_mesh import ScreenMesh
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import in_parallel

#: Variance of curvature over a face relative to that against its best plane, fitted to surfaces of known height.
UNEVEN = 1.6
#: What is added at a vertex, in variances of curvature against the best planes of the faces around it, fitted as well.
AT_VERTEX = 7.0
#: Variance of heights over a face of area 1 whose slopes vary by the variance 1, fitted as well.
DETAIL = 0.03
#: Factor of the variance of noise up to which slopes are not taken for detail: the noise is an estimate, and large
#: faces are where there is no detail.
DOUBTED = 1.2
#: Share of the noise of slopes that is left between the means of pixels and the faces: there are four slopes for each
#: vertex.
UNFITTED = 0.75
#: Faces that are evaluated at once.
BLOCK = 8192


def face_variances(mesh: ScreenMesh, unknown: Float, normal_map: NormalMap, noise: Float) -> tuple[Float, Float]:
    """Estimate the variances (M,) of the unknown between the faces of a mesh and the surface of the normals.

    Parameters
    ----------
    mesh
    unknown
        (N,) height, or logarithm of the depth, at the vertices.
    normal_map
        The normals, with their noise.
    noise
        (M, 2) variance of the noise below each face, in rad², and the number of pixels that share it.

    Returns
    -------
    The whole variance of each face, and that of curvature against its best plane.
    """
    whole, curved = np.empty((2, len(mesh.faces)))

    def work(first: int, last: int) -> None:
        # Blocks are the same for any number of threads, and so are the results.
        for number in range(first, last):
            block = slice(number * BLOCK, (number + 1) * BLOCK)
            corners = mesh.faces[block].ravel()
            separate = np.arange(len(corners), dtype=np.int32).reshape(-1, 3)
            alone = ScreenMesh(mesh.vertices[corners], separate)
            whole[block], curved[block] = _variances(alone, unknown[corners], normal_map, noise[block])

    in_parallel(work, -(-len(whole) // BLOCK), grain=1)
    return whole, curved


def mesh_deviations(
    mesh: ScreenMesh, whole: Float, curved: Float, first_twins: Int32 | None = None
) -> tuple[Float, Float]:
    """Return the standard deviations of the unknown between a mesh and the surface of the normals.

    Parameters
    ----------
    mesh
    whole, curved
        (M,) variances of its faces, see :func:`face_variances`.
    first_twins
        (N,) the first vertex that each vertex is the same as, of a mesh that repeats.

    Returns
    -------
    faces : (M,)
        Over each face.
    vertices : (N,)
        At each vertex.
    """
    at_vertices = _around(mesh, whole + AT_VERTEX * curved, first_twins)
    return np.sqrt(np.maximum(whole, 0.0)), np.sqrt(np.maximum(at_vertices, 0.0))


def _variances(mesh: ScreenMesh, unknown: Float, normal_map: NormalMap, noise: Float) -> tuple[Float, Float]:
    """Return the variances (M,) over the faces: the whole, and that of curvature against their best planes."""
    moments = GradientMoments.of(mesh, normal_map)
    variance, shared = noise.T
    count = np.maximum(moments.count, 1.0)
    slopes = variance[:, None, None] * moments.noise
    # Of the mean over a face.
    of_mean = slopes * (np.minimum(shared, count) / count)[:, None, None]
    curved = _curvature(moments, of_mean)
    whole = np.where(moments.count > 0, UNEVEN * curved + _tilt(mesh, unknown, moments, of_mean), 0.0)
    whole += DETAIL * mesh.areas * _detail(moments, slopes, of_mean)
    return whole, curved


def _curvature(moments: GradientMoments, of_mean: Float) -> Float:
    """Return the variance (M,) of a curved surface against its best plane, below zero by chance where there is none."""
    mixed = moments.mixed
    by_noise = (0.24 + 0.03) * _product_trace(of_mean, moments.places)
    return 0.24 * _product_trace(mixed, mixed) + 0.03 * _trace(mixed) ** 2 - by_noise


def _tilt(mesh: ScreenMesh, unknown: Float, moments: GradientMoments, of_mean: Float) -> Float:
    """Return the variance (M,) over each face of the difference between its plane and one with the slopes of pixels."""
    corners = mesh.vertices[mesh.faces]
    aside = corners - corners.mean(axis=1, keepdims=True)
    spread = np.einsum("fki,fkj->fij", aside, aside) / 12
    own = np.einsum("fik,fk->fi", hat_gradients(corners), unknown[mesh.faces])
    slope = moments.slope - own
    return np.einsum("fi,fij,fj->f", slope, spread, slope) - UNFITTED * _product_trace(of_mean, spread)


def _detail(moments: GradientMoments, noise: Float, of_mean: Float) -> Float:
    """Return the variance (M,) of slopes that neither curvature nor noise can explain.

    ``noise`` (M, 2, 2) is the covariance of the slopes of a pixel by noise, ``of_mean`` (M, 2, 2) that of their mean.
    """
    places, mixed = moments.places, moments.mixed
    determinant = places[:, 0, 0] * places[:, 1, 1] - places[:, 0, 1] ** 2
    # Faces narrower than a pixel show no detail.
    wide = determinant > 1e-3
    # The trace of ``mixed places⁻¹ mixedᵀ``.
    uu, uv, _, vv = np.einsum("fij,fik->fjk", mixed, mixed).reshape(-1, 4).T
    bent = uu * places[:, 1, 1] - 2 * uv * places[:, 0, 1] + vv * places[:, 0, 0]
    bent /= np.where(wide, determinant, 1.0)
    # A mean and two second derivatives of each slope are fitted.
    expected = np.maximum(DOUBTED * _trace(noise) - 3 * _trace(of_mean), 0.0)
    by_chance = 2 * np.sqrt(2 * _product_trace(noise, of_mean))
    left = moments.spread - bent - expected - by_chance
    return np.where(wide, np.maximum(left, 0.0), 0.0)


def _around(mesh: ScreenMesh, values: Float, first_twins: Int32 | None) -> Float:
    """Return the means (N,), weighted by area, over the faces around each vertex, or its twins, of values (M,)."""
    count = len(mesh.vertices)
    first = np.arange(count, dtype=np.int32) if first_twins is None else first_twins
    corners = first[mesh.faces.ravel()]
    areas = np.bincount(corners, np.repeat(mesh.areas, 3), count)
    sums = np.bincount(corners, np.repeat(mesh.areas * values, 3), count)
    return (sums / np.where(areas > 0, areas, 1.0))[first]


def _trace(matrices: Float) -> Float:
    return matrices[:, 0, 0] + matrices[:, 1, 1]


def _product_trace(a: Float, b: Float) -> Float:
    """Return the traces (M,) of the products of matrices (M, 2, 2)."""
    return np.einsum("fij,fji->f", a, b)
