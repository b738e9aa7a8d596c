"""Compute slowly, straight from the definitions, what the kernels of integration on meshes compute."""

from __future__ import annotations

import numpy as np

from naive import jacobian, nearest_pixel
from normalmesh import ScreenMesh, pixel_faces
from normalmesh.facets.robust_weights import MAX_WIDTHS, MIN_SHARE, SHARPNESS, RobustWeights


def face_means(mesh, normal_map, samples=1):
    """Return the number of samples of each face and means over them: ten columns of ``FaceMeans.table`` and the bulge.

    Faces below 64 px² take ``samples`` × ``samples`` samples of each pixel, others take pixel centres.
    """
    camera = normal_map.camera
    owner = pixel_faces(mesh, normal_map.shape)
    fine_owner = pixel_faces(
        ScreenMesh(samples * mesh.vertices, mesh.faces), tuple(samples * length for length in normal_map.shape)
    )
    table = []
    for f, corners in enumerate(mesh.vertices[mesh.faces]):
        if mesh.areas[f] < 64:
            pixels = [tuple(p // samples) for p in np.argwhere(fine_owner == f)]
            pixels = [p for p in pixels if normal_map.mask[p]]
        else:
            pixels = [tuple(p) for p in np.argwhere((owner == f) & normal_map.mask)]
        rows = []
        centroid = corners.mean(axis=0)
        for i, j in pixels or [nearest_pixel(normal_map.mask, centroid)]:
            n = normal_map.normals[i, j].astype(np.float64)
            w, at_centroid = n @ camera.rays(j + 0.5, i + 0.5), n @ camera.rays(*centroid)
            s = np.array([n @ tau for tau in camera.tangents])
            rows.append([*n, *(-s / at_centroid), w**-2, w**2, *(w * s), j + 0.5, i + 0.5])
        means, deviations = np.mean(rows, axis=0), rows - np.mean(rows, axis=0)
        bulge = -0.5 * (deviations[:, 3:5] * deviations[:, 9:11]).sum(axis=1).mean()
        table.append([len(rows), *means[:9], bulge])
    return np.array(table)


def inner_edges(faces):
    """Return (vertex, vertex, face, face) of each edge with two faces."""
    first: dict[frozenset[int], int] = {}
    edges = []
    for f, face in enumerate(faces):
        for k in range(3):
            edge = frozenset((int(face[k]), int(face[(k + 1) % 3])))
            if edge in first:
                edges.append((*edge, first[edge], f))
            first[edge] = f
    return edges


def rise(mesh, table, f, position, perspective):
    """Return the rise of the plane of a face from its centroid, of the height or of the logarithm of the depth."""
    linear = table[f, 4:6] @ (position - mesh.vertices[mesh.faces[f]].mean(axis=0))
    if not perspective:
        return linear
    return -np.log(1 - linear) if linear < 0.5 else np.log(2) + 2 * (linear - 0.5)


def facet_offsets(mesh, table, perspective):
    """Return offsets (M,) of planar faces by dense least squares over edges, of zero mean on each component."""
    rows, steps = [], []
    for a, b, f, g in inner_edges(mesh.faces):
        middle = (mesh.vertices[a] + mesh.vertices[b]) / 2
        weight = np.linalg.norm(mesh.vertices[a] - mesh.vertices[b]) * min(1 / table[f, 6], 1 / table[g, 6])
        row = np.zeros(len(mesh.faces))
        row[f], row[g] = 1, -1
        # Both planes have the same value at the midpoint.
        step = rise(mesh, table, g, middle, perspective) - rise(mesh, table, f, middle, perspective)
        rows.append(np.sqrt(weight) * row)
        steps.append(np.sqrt(weight) * step)
    return np.linalg.lstsq(np.array(rows), np.array(steps), rcond=1e-12)[0]


def facets_at_vertices(mesh, table, offsets, perspective):
    """Return values (N,) at the vertices: from the means of the planes around them, 70 % of the way to a minimum.

    Means are weighted by area and mobility. The minimum is that of a form of the distances to the planes, with the
    neighbours of the vertex at their means.
    """
    corners = mesh.vertices[mesh.faces]
    planes = np.array(
        [
            [offsets[f] + table[f, 10] + rise(mesh, table, f, corner, perspective) for corner in corners[f]]
            for f in range(len(mesh.faces))
        ]
    )
    means = np.zeros(len(mesh.vertices))
    for vertex in range(len(means)):
        around, place = np.nonzero(mesh.faces == vertex)
        means[vertex] = np.average(planes[around, place], weights=mesh.areas[around] / table[around, 6])

    def energy(vertex, own):
        values = means.copy()
        values[vertex] = own
        total = 0.0
        for f in np.nonzero((mesh.faces == vertex).any(axis=1))[0]:
            apart = values[mesh.faces[f]] - planes[f]
            # The midpoints of the edges integrate squares of linear functions exactly.
            height = np.mean(((apart + np.roll(apart, 1)) / 2) ** 2)
            slope = np.linalg.solve(corners[f][1:] - corners[f][0], apart[1:] - apart[0])
            total += mesh.areas[f] / table[f, 6] * (height + 0.1 * mesh.areas[f] * slope @ slope)
        return total

    least = [minimum_near(lambda own, v=vertex: energy(v, own), mean) for vertex, mean in enumerate(means)]
    return means + 0.7 * (np.array(least) - means)


def minimum_near(parabola, place):
    """Return where a parabola is least, from its values near a place."""
    bend, slope, _ = np.polyfit([-1, 0, 1], [parabola(place + step) for step in (-1.0, 0.0, 1.0)], 2)
    return place - slope / (2 * bend)


def face_parameters(mesh, f, table, camera, parameters):
    """Return m_f and b_f of the vertex system, for a choice of parameters of eq. (10)."""
    if parameters == "tight":
        return table[f, 7], table[f, 8:10]
    if parameters == "gradient":
        return 1 / table[f, 6], -table[f, 4:6] / table[f, 6]
    normal = table[f, 1:4] / np.linalg.norm(table[f, 1:4])
    w = normal @ camera.rays(*mesh.vertices[mesh.faces[f]].mean(axis=0))
    return w**2, w * np.array([normal @ tau for tau in camera.tangents])


def vertex_unknowns(mesh, table, camera, parameters, metric, clamp=None):
    """Return the solution (N,) of the equations of supplement A by dense least squares, of zero mean."""
    n = len(mesh.vertices)
    matrix, right = np.zeros((n, n)), np.zeros(n)
    for f, face in enumerate(mesh.faces):
        m, b = face_parameters(mesh, f, table, camera, parameters)
        lift = np.eye(2)
        if metric == "surface":
            normal = table[f, 1:4] / np.linalg.norm(table[f, 1:4])
            lift = jacobian(normal, camera.rays(*mesh.vertices[face].mean(axis=0)), *camera.tangents)
        for k in range(3):
            apex, v, w = (int(face[(k + shift) % 3]) for shift in range(3))
            one, two = (lift @ (mesh.vertices[end] - mesh.vertices[apex]) for end in (v, w))
            angle = np.arccos(one @ two / np.linalg.norm(one) / np.linalg.norm(two))
            cotangent = 1 / np.tan(angle) if clamp is None else np.clip(1 / np.tan(angle), *clamp)
            for here, there in ((v, w), (w, v)):
                matrix[here, here] += cotangent * m
                matrix[here, there] -= cotangent * m
                right[here] -= cotangent * b @ (mesh.vertices[here] - mesh.vertices[there])
    return np.linalg.lstsq(matrix, right, rcond=1e-12)[0]


def sum_of_angles(points, normals):
    """Return the sum of the angles between normals (K, 3) and that of a triangle (3, 3) in space."""
    normal = np.cross(points[1] - points[0], points[2] - points[0])
    normal /= np.linalg.norm(normal)
    return sum(np.arctan2(np.linalg.norm(np.cross(normal, n)), normal @ n) for n in normals.astype(np.float64))


def best_unknown(mesh, vertex, unknown, normal_map):
    """Return the unknown of one vertex that minimises Σ area · m_f ‖∇z − ḡ_f‖² over its faces, a parabola."""
    table = face_means(mesh, normal_map)

    def energy(own):
        values = unknown.copy()
        values[vertex] = own
        total = 0.0
        for f, face in enumerate(mesh.faces):
            if vertex in face:
                a, b, c = mesh.vertices[face]
                slope = np.linalg.solve([b - a, c - a], values[face[1:]] - values[face[0]])
                total += mesh.areas[f] / table[f, 6] * ((slope - table[f, 4:6]) ** 2).sum()
        return total

    return minimum_near(energy, 0.0)


def cost_and_bad_area(mesh, f, unknown, normal_map):
    """Return the cost of face f, and its bad area, 0 if it is not bad, in units of a pixel that faces the viewer."""
    camera, corners = normal_map.camera, mesh.vertices[mesh.faces[f]]
    points = camera.points(corners, unknown[mesh.faces[f]])
    normal = np.cross(points[1] - points[0], points[2] - points[0])
    depth = np.exp(unknown[mesh.faces[f]].mean()) if camera.is_central else 1.0
    area = np.linalg.norm(normal) / 2 / (camera.pixel_length * depth) ** 2
    pixels = normal_map.normals[(pixel_faces(mesh, normal_map.shape) == f) & normal_map.mask].astype(np.float64)
    if len(pixels) == 0:
        return np.radians(30) * area, area
    mean = pixels.mean(axis=0)
    off = np.arccos(normal @ mean / (np.linalg.norm(normal) * np.linalg.norm(mean)))
    # The mean cosine between the pixels' normals and the direction of their mean is the length of the mean.
    across_crease = off < np.arccos(min(np.linalg.norm(mean), 1))
    longest = max(np.linalg.norm(corners[k] - corners[k - 1]) for k in range(3))
    needle = longest**2 > 50 * 2 * mesh.areas[f]
    bad = area if needle or (off > np.radians(30) and not across_crease) else 0.0
    return sum_of_angles(points, pixels) + max(off, np.radians(30)) * bad, bad


class NaiveRobustWeights(RobustWeights):
    """Robust weights of all edges at once."""

    def one_sided(self, offsets):
        """Return the weights (E,) of the first stage, from offsets (M,).

        Each face distributes its weight among its edges, with a preference for neighbours at its own depth.
        """
        first, second = self.system.pairs.T
        centroids = self.system.means.centroids
        distance = np.hypot(*(centroids[first] - centroids[second]).T)
        step = (offsets[second] - offsets[first]) / self.system.means.camera.pixel_length / distance
        count = len(offsets)
        degree = np.bincount(first, minlength=count) + np.bincount(second, minlength=count)
        preferences = [np.exp(-SHARPNESS * (self.cosines[side] * step) ** 2) + 1e-30 for side in (first, second)]
        total = np.bincount(first, preferences[0], count) + np.bincount(second, preferences[1], count)
        weights = np.zeros(len(first))
        for side, preference in zip((first, second), preferences, strict=True):
            share = np.maximum(0.5 * degree[side] * preference / total[side], MIN_SHARE)
            weights += share * self.cosines[side] ** 2
        return self.trust * weights

    def cauchy(self, strain, width):
        """Return the weights (E,) of the second stage: beyond a width, they fall as the square of the strain (E,)."""
        return self.trust * self.edge_cosines**2 / (1 + np.minimum(strain / width, MAX_WIDTHS) ** 2)
