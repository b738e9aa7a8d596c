"""Slow, obvious twins of the kernels of isotropic remeshing. Tests compare the two."""

from __future__ import annotations

import numpy as np

import naive


def blurred(normals, mask):
    """Unit means over the foreground of 5×5 pixels, with the weights of a Gaussian of deviation √2 px."""
    smooth = np.zeros(normals.shape)
    for i, j in np.argwhere(mask):
        for k, m in np.argwhere(mask):
            if max(abs(k - i), abs(m - j)) <= 2:
                smooth[i, j] += np.exp(-((k - i) ** 2 + (m - j) ** 2) / 4) * normals[k, m].astype(float)
        smooth[i, j] /= np.linalg.norm(smooth[i, j])
    return smooth


def derivative(smooth, mask, i, j, step):
    """Central difference along a step (rows, columns), one-sided where a neighbour is missing."""
    here, known = np.array([i, j]), []
    for sign in (-1, 1):
        place = here + sign * np.array(step)
        if (place >= 0).all() and (place < mask.shape).all() and mask[tuple(place)]:
            known.append(sign)
    if not known:
        return np.zeros(3)
    first, last = min(0, *known, 0), max(0, *known, 0)
    ahead, behind = (smooth[tuple(here + k * np.array(step))] for k in (last, first))
    return (ahead - behind) / (last - first)


def curvature(normal_map):
    """Largest absolute eigenvalue of I⁻¹ II at each pixel."""
    smooth = blurred(normal_map.normals, normal_map.mask)
    found = np.zeros(normal_map.shape)
    for i, j in np.argwhere(normal_map.mask):
        J = camera_jacobian(normal_map.camera, smooth[i, j], j + 0.5, i + 0.5)
        slopes = np.column_stack([derivative(smooth, normal_map.mask, i, j, step) for step in ((0, 1), (1, 0))])
        second = -slopes.T @ J
        found[i, j] = np.abs(np.linalg.eigvals(np.linalg.solve(J.T @ J, (second + second.T) / 2))).max()
    return found


def camera_jacobian(camera, normal, u, v):
    return naive.jacobian(normal, camera.rays(u, v), *camera.tangents)


def target_length(curvature, error):
    """h (px)."""
    if curvature == 0:
        return 100.0
    squared = 6 * error / curvature - 3 * error**2 if error <= 1 / curvature else 3 * error / curvature
    return np.clip(np.sqrt(squared), 1, 100)


def expected_vertices(normal_map, curvature, error):
    """∫ 2/(√3 h²) over the surface."""
    total = 0.0
    for i, j in np.argwhere(normal_map.mask):
        J = camera_jacobian(normal_map.camera, normal_map.normals[i, j].astype(float), j + 0.5, i + 0.5)
        total += np.sqrt(np.linalg.det(J.T @ J)) * 2 / np.sqrt(3) / target_length(curvature[i, j], error) ** 2
    return total


def face_sample(vertices, face, owner, f, normal_map, density):
    """Mean normal and mean density of a face that owns pixels, both times its area on the surface."""
    here = (owner == f) & normal_map.mask
    normal = normal_map.normals[here].astype(float).sum(axis=0)
    normal /= np.linalg.norm(normal)
    a, b, c = vertices[face]
    J = camera_jacobian(normal_map.camera, normal, *(a + b + c) / 3)
    area = np.linalg.norm(np.cross(J @ (b - a), J @ (c - a))) / 2
    return np.append(area * normal, area * density[here].mean())


def stretches(mesh, samples, camera):
    """Stretches of the edges of a mesh, as a dictionary by their ends, from the samples of the faces."""
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
    return [np.flatnonzero((mesh.faces == vertex).any(axis=1)) for vertex in range(len(mesh.vertices))]
