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


# Integration and solves


def dense_solution(matrix, right_side):
    """Least-squares solution of smallest norm: zero mean on each component with a free constant."""
    return np.linalg.lstsq(matrix.toarray(), right_side, rcond=None)[0]


def pixel_depths(normals, mask, camera):
    """The unknown at foreground pixels by dense least squares over pairs of neighbours, zero mean a component."""
    pixels = [tuple(p) for p in np.argwhere(mask)]
    number = {p: k for k, p in enumerate(pixels)}
    rows, steps = [], []
    tangents = camera.tangents
    for i, j in pixels:
        for axis, q in ((0, (i, j + 1)), (1, (i + 1, j))):
            if q not in number:
                continue
            weight, step = 0.0, 0.0
            for (y, x), towards in (((i, j), 1), (q, -1)):
                n = np.asarray(normals[y, x], np.float64)
                along_ray = n @ camera.rays(x + 0.5, y + 0.5)
                half = (0.5, 0.0) if axis == 0 else (0.0, 0.5)
                middle = n @ camera.rays(x + 0.5 + towards * half[0], y + 0.5 + towards * half[1])
                weight += along_ray**2 / 2
                if middle == along_ray:
                    step += -0.5 * (n @ tangents[axis]) / along_ray
                else:
                    step += towards * np.log(along_ray / middle)
            row = np.zeros(len(pixels))
            row[number[q]], row[number[i, j]] = np.sqrt(weight), -np.sqrt(weight)
            rows.append(row)
            steps.append(np.sqrt(weight) * step)
    if not rows:
        return np.zeros(len(pixels))
    return np.linalg.lstsq(np.array(rows), np.array(steps), rcond=1e-12)[0]
