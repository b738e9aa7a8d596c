"""Compute slowly, straight from the definitions, what the kernels of meshes and decimation compute."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def jacobian(normal, ray, tau_u, tau_v):
    """Return J(n) (3, 2) of one normal, in pixels: eqs. (7) and (8)."""
    length = np.sqrt(np.linalg.norm(np.cross(tau_u, tau_v)))
    columns = [(tau - np.dot(normal, tau) / np.dot(normal, ray) * ray) / length for tau in (tau_u, tau_v)]
    return np.column_stack(columns)


def orientation(a, b, c):
    """Return the sign of the area of abc, computed in rational numbers: +1 if counter-clockwise, with v down."""
    (ax, ay), (bx, by), (cx, cy) = ([Fraction(float(x)) for x in point] for point in (a, b, c))
    area = (ay - cy) * (bx - cx) - (ax - cx) * (by - cy)
    return (area > 0) - (area < 0)


def owns(a, b, c, u, v):
    """Return whether the triangle abc is counter-clockwise and owns the point (u, v) by the top-left rule."""
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
    """Return the face that owns each pixel centre (H, W), −1 for none; fail if a centre has two owners."""
    owner = np.full(shape, -1)
    for f, (a, b, c) in enumerate(faces):
        for i in range(shape[0]):
            for j in range(shape[1]):
                if owns(vertices[a], vertices[b], vertices[c], j + 0.5, i + 0.5):
                    assert owner[i, j] == -1, f"pixel {i}, {j} has two owners"
                    owner[i, j] = f
    return owner


def mesh_faults(vertices, faces):
    """Count inverted and degenerate faces, non-manifold and misoriented edges, and non-manifold vertices."""
    signs = [orientation(*(vertices[k] for k in face)) for face in faces]
    edges: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for f, face in enumerate(faces):
        for k in range(3):
            a, b = int(face[k]), int(face[(k + 1) % 3])
            edges.setdefault((min(a, b), max(a, b)), []).append((f, a))
    non_manifold = sum(len(uses) > 2 for uses in edges.values())
    misoriented = sum(len(uses) == 2 and uses[0][1] == uses[1][1] for uses in edges.values())
    non_manifold_vertices = 0
    for vertex in range(len(vertices)):
        around = {f for f, face in enumerate(faces) if vertex in face}
        if around and len(_fan(vertex, around, edges)) < len(around):
            non_manifold_vertices += 1
    return signs.count(-1), signs.count(0), non_manifold, misoriented, non_manifold_vertices


def _fan(vertex, around, edges):
    """Return the faces that can be reached from the first one around a vertex through edges at the vertex."""
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
    """Return a unit normal, turned towards the viewer until it is at most 85° from the viewing ray."""
    view = towards_viewer * ray / np.linalg.norm(ray)
    normal = normal / np.linalg.norm(normal)
    if normal @ view >= np.cos(np.radians(85)):
        return normal
    side = normal - (normal @ view) * view
    return np.cos(np.radians(85)) * view + np.sin(np.radians(85)) * side / np.linalg.norm(side)


def nearest_pixel(mask, position):
    """Return the pixel with the nearest centre, at most two pixels from the one under (u, v), or (−1, −1)."""
    place = np.array(position, float)[::-1]
    pixels = np.argwhere(mask)
    pixels = pixels[np.abs(pixels - np.floor(place)).max(axis=1) <= 2]
    if len(pixels) == 0:
        return -1, -1
    return tuple(pixels[((pixels + 0.5 - place) ** 2).sum(axis=1).argmin()])


def face_record(corners, pixels, normal_map, regularisation):
    """Return n_f, A³_f and the quadric around the centroid: eqs. (11) to (13)."""
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
    """Return Q̃_v from the records of the faces around a vertex: eqs. (12), (14), (15)."""
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


def face_sum(corners, pixels, normal_map, regularisation):
    """Return the screen quadric of a face around its centroid from the quadrics that its pixels have on the grid."""
    camera, mask, centre = normal_map.camera, normal_map.mask, np.mean(corners, axis=0)
    total = np.zeros(6)
    for i, j in pixels:
        n = normal_map.normals[i, j].astype(float)
        own = jacobian(n, camera.rays(j + 0.5, i + 0.5), *camera.tangents)
        A = regularisation * own.T @ own
        for row, column in ((i, j), (i, j + 1), (i + 1, j), (i + 1, j + 1)):
            around = [(k, m) for k in (row - 1, row) for m in (column - 1, column)]
            inside = [at for at in around if 0 <= at[0] < mask.shape[0] and 0 <= at[1] < mask.shape[1] and mask[at]]
            mean = np.mean([normal_map.normals[at].astype(float) for at in inside], axis=0)
            along = n @ jacobian(mean, camera.rays(column, row), *camera.tangents)
            A = A + np.outer(along, along) / 4
        A *= np.sqrt(np.linalg.det(own.T @ own))
        total += moved_quadric(np.array([A[0, 0], A[0, 1], A[1, 1], 0, 0, 0]), centre - [j + 0.5, i + 0.5])
    a, b, c = np.asarray(corners)
    area = ((b[1] - a[1]) * (c[0] - a[0]) - (b[0] - a[0]) * (c[1] - a[1])) / 2
    return total * area / len(pixels)


def quadric_value(quadric, step):
    """Return Q̃(δu) of a quadric given as six numbers: A as uu, uv, vv, then b, then c."""
    A = np.array([[quadric[0], quadric[1]], [quadric[1], quadric[2]]])
    return step @ A @ step + 2 * quadric[3:5] @ step + quadric[5]


def collapse_cost(p, q, a, b, position):
    """Return Q̃_v + Q̃_w at a position, eq. (19)."""
    return quadric_value(p, position - a) + quadric_value(q, position - b)


def best_on_segment(p, q, a, b):
    """Return cost and position of the best point between a and b, from the parabola through three values."""
    start, middle, end = (collapse_cost(p, q, a, b, a + t * (b - a)) for t in (0.0, 0.5, 1.0))
    bend, slope = 2 * (start - 2 * middle + end), 4 * middle - 3 * start - end
    place = a + np.clip(-slope / (2 * bend), 0, 1) * (b - a) if bend > 0 else (a + b) / 2
    return collapse_cost(p, q, a, b, place), place


def moved_quadric(quadric, step):
    """Return the same quadric around a point that is ``step`` away."""
    A = np.array([[quadric[0], quadric[1]], [quadric[1], quadric[2]]])
    return np.array([*quadric[:3], *(quadric[3:5] + A @ step), quadric_value(quadric, step)])


def greedy_collapse(vertices, faces, quadrics, locked, target):
    """Collapse the cheapest of all edges repeatedly until ``target`` vertices are left.

    Locked vertices do not move, and edges between two of them are not collapsed. Return the remaining positions, and
    the costs of the collapses in their order.
    """
    place = dict(enumerate(np.array(vertices)))
    quadric = dict(enumerate(np.array(quadrics)))
    faces = [tuple(int(k) for k in face) for face in faces]
    costs = []
    while len(place) > target:
        options = []
        for a, b in {(min(e), max(e)) for f in faces for e in ((f[0], f[1]), (f[1], f[2]), (f[2], f[0]))}:
            if locked[a] and locked[b]:
                continue
            if locked[a] or locked[b]:
                position = place[a] if locked[a] else place[b]
                cost = collapse_cost(quadric[a], quadric[b], place[a], place[b], position)
            else:
                cost, position = best_on_segment(quadric[a], quadric[b], place[a], place[b])
            options.append((cost, a, b, position))
        options.sort(key=lambda option: option[:3])
        allowed = (option for option in options if stays_valid(*option[1:], place, faces))
        if (cheapest := next(allowed, None)) is None:
            break
        cost, a, b, position = cheapest
        keep, drop = (a, b) if locked[a] or not locked[b] else (b, a)
        quadric[keep] = sum(moved_quadric(quadric[k], position - place[k]) for k in (a, b))
        place[keep] = position
        del place[drop]
        faces = [tuple(keep if k == drop else k for k in f) for f in faces if not (a in f and b in f)]
        costs.append(cost)
    return np.array(list(place.values())), costs


def stays_valid(a, b, position, place, faces):
    """Return whether the edge ab may be collapsed: two common neighbours, and no face tiny, flat or inverted."""
    around = {k: {n for f in faces if k in f for n in f} - {k} for k in (a, b)}
    if len(around[a] & around[b]) != 2:
        return False
    for face in faces:
        if (a in face) != (b in face):
            corners = np.array([position if k in (a, b) else place[k] for k in face])
            x, y, z = corners
            double_area = (y[1] - x[1]) * (z[0] - x[0]) - (y[0] - x[0]) * (z[1] - x[1])
            longest = max(((corners - np.roll(corners, 1, axis=0)) ** 2).sum(axis=1))
            if double_area < max(2e-3, 1e-3 * longest):
                return False
    return True


def edge_metric(p, q, position, camera):
    """Return G_e (2, 2) from the records of two faces: eqs. (17), (18)."""
    ray = camera.rays(*position)
    normal = clamped(p[3] * p[:3] + q[3] * q[:3], ray, camera.towards_viewer)
    M = np.zeros((3, 3))
    M[np.triu_indices(3)] = p[4:10] + q[4:10]
    M = M + np.triu(M, 1).T
    J = jacobian(normal, ray, *camera.tangents)
    return J.T @ M @ J


def crossing(a, b, c, d):
    """Return s and t with a + s(b − a) = c + t(d − c)."""
    return np.linalg.solve(np.column_stack([b - a, c - d]), c - a)


def lowered_by_flip(a, b, c, d, G):
    """Return how far the lifted diagonal cd lies below ab at their crossing; the lift is x ↦ xᵀGx."""
    s, t = crossing(a, b, c, d)
    za, zb, zc, zd = ((x - a) @ G @ (x - a) for x in (a, b, c, d))
    return (1 - s) * za + s * zb - (1 - t) * zc - t * zd


def in_circle(a, b, c, d):
    """Return a positive number if d lies in the circle through a, b, c of any orientation: a determinant."""
    rows = [[*(x - d), (x - d) @ (x - d)] for x in (a, b, c)]
    turn = np.linalg.det([[*x, 1] for x in (a, b, c)])
    return np.linalg.det(rows) * np.sign(turn)


def distance_to_segment(position, start, end):
    """Return the distance from a position to the nearest point of a segment."""
    along = end - start
    t = np.clip((position - start) @ along / (along @ along), 0, 1) if along.any() else 0.0
    return np.linalg.norm(position - start - t * along)


def outline_segments(mask):
    """Return the unit segments (S, 2, 2), as u, v, between foreground and background pixels."""
    inside = np.pad(mask, 1)
    segments = []
    for i in range(mask.shape[0] + 1):
        for j in range(mask.shape[1] + 1):
            if inside[i, j + 1] != inside[i + 1, j + 1]:
                segments.append([(j, i), (j + 1, i)])
            if inside[i + 1, j] != inside[i + 1, j + 1]:
                segments.append([(j, i), (j, i + 1)])
    return np.array(segments, float)


def winding_numbers(polygon, shape):
    """Return how often a polygon winds around each pixel centre, counter-clockwise as the viewer sees it."""
    v, u = np.indices(shape) + 0.5
    total = np.zeros(shape)
    for start, end in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        x, y = (start[0] - u) + 1j * (v - start[1]), (end[0] - u) + 1j * (v - end[1])
        total += np.angle(y / x)
    return np.rint(total / (2 * np.pi)).astype(int)


def dense_solution(matrix, right_side):
    """Return the least-squares solution of smallest norm: zero mean on each component with a free constant."""
    return np.linalg.lstsq(matrix.toarray(), right_side, rcond=None)[0]


def connected_to_border(pixels, shortest):
    """Return the pixels (H, W) that are 8-connected, through such pixels, to a run of them on the image's border."""
    found = np.zeros_like(pixels)
    for side, marked in zip(_sides(pixels), _sides(found), strict=True):
        length = min(shortest, len(side))
        for k in range(len(side) - length + 1):
            if side[k : k + length].all():
                marked[k : k + length] = True
    while True:
        padded = np.pad(found, 1)
        rows, columns = pixels.shape
        around = [padded[i : i + rows, j : j + columns] for i in range(3) for j in range(3)]
        grown = pixels & np.any(around, axis=0)
        if (grown == found).all():
            return found
        found = grown


def _sides(image):
    return image[0], image[-1], image[:, 0], image[:, -1]


def naive_matt_normal(values, lights):
    """Fit ρ ⟨n, l⟩ to values (channels, K) of one pixel, weighted by brightness: normal, albedo, residual."""
    grey = [sum(channel[k] for channel in values) / len(values) for k in range(len(lights))]
    root = np.sqrt(grey)
    scaled = np.linalg.lstsq(root[:, None] * lights, root * grey, rcond=None)[0]
    normal = scaled / np.linalg.norm(scaled)
    shading = lights @ normal
    albedo = [np.linalg.lstsq((root * shading)[:, None], root * channel, rcond=None)[0][0] for channel in values]
    residual = np.sqrt(np.average((grey - lights @ scaled) ** 2, weights=grey))
    return normal, albedo, residual
