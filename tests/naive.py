"""Slow, obvious twins of the kernels. Tests compare the two."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def jacobian(normal, ray, tau_u, tau_v):
    """J(n) of one normal, DESIGN §2."""
    length = np.sqrt(np.linalg.norm(np.cross(tau_u, tau_v)))
    columns = [(tau - np.dot(normal, tau) / np.dot(normal, ray) * ray) / length for tau in (tau_u, tau_v)]
    return np.column_stack(columns)


def orientation(a, b, c):
    """Sign of the area of abc in rational numbers, +1 counter-clockwise for v down."""
    (ax, ay), (bx, by), (cx, cy) = ([Fraction(float(x)) for x in point] for point in (a, b, c))
    area = (ay - cy) * (bx - cx) - (ax - cx) * (by - cy)
    return (area > 0) - (area < 0)


def owns(a, b, c, u, v):
    """Whether the counter-clockwise triangle abc owns the point (u, v) by the top-left rule."""
    if orientation(a, b, c) <= 0:
        return False
    for start, end in ((a, b), (b, c), (c, a)):
        side = orientation(start, end, (u, v))
        # Counter-clockwise with v down: left edges run down the screen, top edges run from right to left.
        left = end[1] > start[1]
        top = end[1] == start[1] and end[0] < start[0]
        if side < 0 or (side == 0 and not (left or top)):
            return False
    return True


def pixel_faces(vertices, faces, shape):
    """Owners of all pixel centres; fails where a centre has two."""
    owner = np.full(shape, -1)
    for f, (a, b, c) in enumerate(faces):
        for i in range(shape[0]):
            for j in range(shape[1]):
                if owns(vertices[a], vertices[b], vertices[c], j + 0.5, i + 0.5):
                    assert owner[i, j] == -1, f"pixel {i}, {j} has two owners"
                    owner[i, j] = f
    return owner


def mesh_faults(vertices, faces):
    """Counts of MeshCheck: inverted and degenerate faces, non-manifold and misoriented edges, bad vertices."""
    signs = [orientation(*(vertices[k] for k in face)) for face in faces]
    edges: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for f, face in enumerate(faces):
        for k in range(3):
            a, b = int(face[k]), int(face[(k + 1) % 3])
            edges.setdefault((min(a, b), max(a, b)), []).append((f, a))
    non_manifold = sum(len(uses) > 2 for uses in edges.values())
    misoriented = sum(len(uses) == 2 and uses[0][1] == uses[1][1] for uses in edges.values())
    bad_vertices = 0
    for vertex in range(len(vertices)):
        around = {f for f, face in enumerate(faces) if vertex in face}
        if around and len(_fan(vertex, around, edges)) < len(around):
            bad_vertices += 1
    return signs.count(-1), signs.count(0), non_manifold, misoriented, bad_vertices


def _fan(vertex, around, edges):
    """Faces reached from one of those around a vertex through edges at the vertex."""
    reached: set[int] = set()
    todo = [min(around)]
    while todo:
        face = todo.pop()
        reached.add(face)
        for edge, uses in edges.items():
            if vertex in edge and len(uses) == 2 and face in (uses[0][0], uses[1][0]) and uses[0][1] != uses[1][1]:
                todo += [f for f, _ in uses if f not in reached]
    return reached


def clamped(normal, ray, towards_viewer):
    """A unit normal at most 85° from the viewing ray."""
    view = towards_viewer * ray / np.linalg.norm(ray)
    normal = normal / np.linalg.norm(normal)
    if normal @ view >= np.cos(np.radians(85)):
        return normal
    side = normal - (normal @ view) * view
    return np.cos(np.radians(85)) * view + np.sin(np.radians(85)) * side / np.linalg.norm(side)


def nearest_pixel(mask, position):
    """The first foreground pixel in growing squares around the one under (u, v)."""
    row, column = int(np.floor(position[1])), int(np.floor(position[0]))
    for reach in range(3):
        for i in range(row - reach, row + reach + 1):
            for j in range(column - reach, column + reach + 1):
                if 0 <= i < mask.shape[0] and 0 <= j < mask.shape[1] and mask[i, j]:
                    return i, j
    raise AssertionError("no pixel near")


def face_record(corners, pixels, normal_map, regularisation):
    """n_f, A³_f and the quadric around the centroid: eqs. (11) to (13), DESIGN §3.2."""
    camera = normal_map.camera
    centre = corners.mean(axis=0)
    ray = camera.rays(*centre)
    normals = np.array([normal_map.normals[i, j] for i, j in pixels], np.float64)
    normal = clamped(normals.sum(axis=0), ray, camera.towards_viewer)
    J = jacobian(normal, ray, *camera.tangents)
    (au, av), (bu, bv), (cu, cv) = corners
    screen_area = 0.5 * ((bv - av) * (cu - au) - (bu - au) * (cv - av))
    area = np.sqrt(np.linalg.det(J.T @ J)) * screen_area
    A, b, c = np.zeros((3, 3)), np.zeros(3), 0.0
    for n, (i, j) in zip(normals, pixels, strict=True):
        M = np.outer(n, n) + regularisation * np.eye(3)
        off = J @ (centre - [j + 0.5, i + 0.5])
        A, b, c = A + M, b + M @ off, c + off @ M @ off
    quadric = np.concatenate([A[np.triu_indices(3)], b, [c]]) * area / len(pixels)
    return np.concatenate([normal, [area], quadric])


def vertex_quadric(position, triangles, records, camera):
    """Q̃_v from the records of the faces around a vertex: eqs. (12), (14), (15)."""
    A, b, c = np.zeros((3, 3)), np.zeros(3), 0.0
    for corners, record in zip(triangles, records, strict=True):
        Af = np.zeros((3, 3))
        Af[np.triu_indices(3)] = record[4:10]
        Af = Af + np.triu(Af, 1).T
        centre = corners.mean(axis=0)
        shift = jacobian(record[:3], camera.rays(*centre), *camera.tangents) @ (position - centre)
        A, b = A + Af, b + record[10:13] + Af @ shift
        c += record[13] + 2 * record[10:13] @ shift + shift @ Af @ shift
    ray = camera.rays(*position)
    normal = clamped((records[:, 3:4] * records[:, :3]).sum(axis=0), ray, camera.towards_viewer)
    J = jacobian(normal, ray, *camera.tangents)
    return np.concatenate([(J.T @ A @ J)[np.triu_indices(2)], J.T @ b, [c]])
