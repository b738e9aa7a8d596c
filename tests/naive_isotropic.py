"""Compute slowly, straight from the definitions, what the kernels of isotropic remeshing compute."""

from __future__ import annotations

import numpy as np

import naive
import naive_pixels


def derivatives(smooth, mask, axis):
    """Return the means (H, W, 3) of forward and backward differences along an axis, of those that exist; else zero."""
    steps = np.diff(np.where(mask[..., None], smooth, np.nan), axis=axis)
    missing = np.full_like(np.take(smooth, [0], axis), np.nan)
    both = [np.concatenate(parts, axis) for parts in ((steps, missing), (missing, steps))]
    return np.ma.masked_invalid(both).mean(axis=0).filled(0)


def curvature(normal_map):
    """Return the largest absolute eigenvalue (H, W) of I⁻¹ II, of normals blurred by a Gaussian of deviation √2 px."""
    mask = normal_map.mask
    smooth = naive_pixels.bilateral(normal_map.normals, mask, radius=2, width=np.sqrt(2), spread=np.inf)
    along_u, along_v = derivatives(smooth, mask, 1), derivatives(smooth, mask, 0)
    found = np.zeros(normal_map.shape)
    for i, j in np.argwhere(mask):
        J = camera_jacobian(normal_map.camera, smooth[i, j], j + 0.5, i + 0.5)
        second = -np.column_stack([along_u[i, j], along_v[i, j]]).T @ J
        found[i, j] = np.abs(np.linalg.eigvals(np.linalg.solve(J.T @ J, (second + second.T) / 2))).max()
    return found


def camera_jacobian(camera, normal, u, v):
    """Return J(n) (3, 2) of a normal at the screen position (u, v)."""
    return naive.jacobian(normal, camera.rays(u, v), *camera.tangents)


def target_length(curvature, error):
    """Return the side (px) of an equilateral triangle in a sphere of this curvature, clipped to 1 … 100 px.

    Its centre lies ``error`` below the sphere. For an error beyond the radius, h² grows in proportion to it.
    """
    if curvature == 0:
        return 100.0
    radius = 1 / curvature
    circumradius = np.sqrt(radius**2 - (radius - error) ** 2) if error <= radius else np.sqrt(radius * error)
    return np.clip(np.sqrt(3) * circumradius, 1, 100)


def expected_vertices(normal_map, curvature, error):
    """Return ∫ 2/(√3 h²) over the surface."""
    total = 0.0
    for i, j in np.argwhere(normal_map.mask):
        J = camera_jacobian(normal_map.camera, normal_map.normals[i, j].astype(float), j + 0.5, i + 0.5)
        total += np.sqrt(np.linalg.det(J.T @ J)) * 2 / np.sqrt(3) / target_length(curvature[i, j], error) ** 2
    return total


def face_sample(vertices, face, owner, f, normal_map, density):
    """Return mean normal and mean density of a face that owns pixels, both times its area on the surface."""
    here = (owner == f) & normal_map.mask
    normal = normal_map.normals[here].astype(float).sum(axis=0)
    normal /= np.linalg.norm(normal)
    a, b, c = vertices[face]
    J = camera_jacobian(normal_map.camera, normal, *(a + b + c) / 3)
    area = np.linalg.norm(np.cross(J @ (b - a), J @ (c - a))) / 2
    return np.append(area * normal, area * density[here].mean())


def stretches(mesh, samples, camera):
    """Return the stretches of the edges of a mesh, as a dictionary by their ends, from the samples of the faces."""
    areas = np.linalg.norm(samples[:, :3], axis=1)
    densities = np.array([samples[around, 3].sum() / areas[around].sum() for around in _faces_of_vertices(mesh)])
    normals: dict[tuple[int, int], np.ndarray] = {}
    for f, face in enumerate(mesh.faces):
        for k in range(3):
            edge = tuple(sorted((int(face[k]), int(face[k - 1]))))
            normals[edge] = normals.get(edge, 0) + samples[f, :3]
    found = {}
    for (a, b), normal in normals.items():
        step = mesh.vertices[b] - mesh.vertices[a]
        J = camera_jacobian(camera, normal, *(mesh.vertices[a] + mesh.vertices[b]) / 2)
        found[a, b] = np.sum((J @ step) ** 2) * max(densities[a], densities[b])
    return found


def _faces_of_vertices(mesh):
    """Return the indices of the faces around each vertex."""
    return [np.flatnonzero((mesh.faces == vertex).any(axis=1)) for vertex in range(len(mesh.vertices))]
