"""Slow, obvious twins of the kernels. Tests compare the two."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from normalmesh import ScreenMesh
from normalmesh import pixel_faces as real_pixel_faces


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


def quadric_value(quadric, step):
    """Q̃(δu) of six numbers: A as uu, uv, vv, then b, then c."""
    A = np.array([[quadric[0], quadric[1]], [quadric[1], quadric[2]]])
    return step @ A @ step + 2 * quadric[3:5] @ step + quadric[5]


def collapse_cost(p, q, a, b, position):
    """Q̃_v + Q̃_w at a position, eq. (19)."""
    return quadric_value(p, position - a) + quadric_value(q, position - b)


def best_on_segment(p, q, a, b):
    """Cost and place of the best point between a and b: the parabola through three values, cut off at the ends."""
    start, middle, end = (collapse_cost(p, q, a, b, a + t * (b - a)) for t in (0.0, 0.5, 1.0))
    bend, slope = 2 * (start - 2 * middle + end), 4 * middle - 3 * start - end
    place = a + np.clip(-slope / (2 * bend), 0, 1) * (b - a) if bend > 0 else (a + b) / 2
    return collapse_cost(p, q, a, b, place), place


def moved_quadric(quadric, step):
    """The same function around a point that is ``step`` away."""
    A = np.array([[quadric[0], quadric[1]], [quadric[1], quadric[2]]])
    return np.array([*quadric[:3], *(quadric[3:5] + A @ step), quadric_value(quadric, step)])


def greedy_collapse(vertices, faces, quadrics, locked, target):
    """Collapse the cheapest edge again and again, looking at all edges each time, until ``target`` vertices are left.

    Locked vertices stay, and edges between two of them. Returns the positions left and the costs in their order.
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
        allowed = [option for option in options if stays_valid(*option[1:], place, faces)]
        if not allowed:
            break
        cost, a, b, position = min(allowed, key=lambda option: option[:3])
        keep, drop = (a, b) if locked[a] or not locked[b] else (b, a)
        quadric[keep] = sum(moved_quadric(quadric[k], position - place[k]) for k in (a, b))
        place[keep] = position
        del place[drop]
        faces = [tuple(keep if k == drop else k for k in f) for f in faces if not (a in f and b in f)]
        costs.append(cost)
    return np.array(list(place.values())), costs


def stays_valid(a, b, position, place, faces):
    """Whether the edge ab may become a vertex: two common neighbours, and no face tiny, flat or turned over."""
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
    """G_e of two faces' records: eqs. (17), (18)."""
    ray = camera.rays(*position)
    normal = clamped(p[3] * p[:3] + q[3] * q[:3], ray, camera.towards_viewer)
    M = np.zeros((3, 3))
    M[np.triu_indices(3)] = p[4:10] + q[4:10]
    M = M + np.triu(M, 1).T
    J = jacobian(normal, ray, *camera.tangents)
    return J.T @ M @ J


def crossing(a, b, c, d):
    """s and t with a + s(b − a) = c + t(d − c)."""
    return np.linalg.solve(np.column_stack([b - a, c - d]), c - a)


def lowered_by_flip(a, b, c, d, G):
    """By how much the lifted diagonal cd lies below ab where they cross; the lift is x ↦ xᵀGx."""
    s, t = crossing(a, b, c, d)
    za, zb, zc, zd = ((x - a) @ G @ (x - a) for x in (a, b, c, d))
    return (1 - s) * za + s * zb - (1 - t) * zc - t * zd


def in_circle(a, b, c, d):
    """Positive where d lies in the circle through a, b, c, of any orientation: the classical determinant."""
    rows = [[*(x - d), (x - d) @ (x - d)] for x in (a, b, c)]
    turn = np.linalg.det([[*x, 1] for x in (a, b, c)])
    return np.linalg.det(rows) * np.sign(turn)


def distance_to_segment(position, start, end):
    along = end - start
    t = np.clip((position - start) @ along / (along @ along), 0, 1) if along.any() else 0.0
    return np.linalg.norm(position - start - t * along)


def outline_segments(mask):
    """Unit segments (S, 2, 2) as u, v between foreground and background pixels."""
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
    """How often a polygon turns around each pixel centre, counter-clockwise as the viewer sees it (v down)."""
    v, u = np.indices(shape) + 0.5
    total = np.zeros(shape)
    for start, end in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        x, y = (start[0] - u) + 1j * (v - start[1]), (end[0] - u) + 1j * (v - end[1])
        total += np.angle(y / x)
    return np.rint(total / (2 * np.pi)).astype(int)


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


def _grid_neighbours(mask, p):
    """Foreground pixels beside, above and below pixel p."""
    around = [(p[0], p[1] + 1), (p[0], p[1] - 1), (p[0] + 1, p[1]), (p[0] - 1, p[1])]
    return [q for q in around if 0 <= q[0] < mask.shape[0] and 0 <= q[1] < mask.shape[1] and mask[q]]


def _grid_weights(mask, weight):
    """Arrays right and down of weight(p, q) over edges between foreground pixels."""
    right, down = np.zeros(mask.shape), np.zeros(mask.shape)
    for p in map(tuple, np.argwhere(mask)):
        for q in _grid_neighbours(mask, p):
            if q > p:
                (right if q[0] == p[0] else down)[p] = weight(p, q)
    return right, down


def one_sided_weights(mask, upright, z, sharpness, least):
    """Each pixel's ν² times half its number of edges, shared out by a softmax over −sharpness (ν Δz)²."""

    def share(p, q):
        around = _grid_neighbours(mask, p)
        likings = [-sharpness * (upright[p] * (z[o] - z[p])) ** 2 for o in around]
        parts = np.exp(np.array(likings) - max(likings))
        return max(len(around) / 2 * parts[around.index(q)] / parts.sum(), least) * upright[p] ** 2

    return _grid_weights(mask, lambda p, q: share(p, q) + share(q, p))


def cauchy_weights(mask, upright, z, half_steps, width):
    """ν² / ((ν misfit)² + width²) with the smaller ν of the two pixels."""

    def weight(p, q):
        first = 1 if p[0] == q[0] else 3
        misfit = z[q] - z[p] - half_steps[p][first] - half_steps[q][first - 1]
        nu = min(upright[p], upright[q])
        return nu**2 / ((nu * misfit) ** 2 + width**2)

    return _grid_weights(mask, weight)


def strong_parts(mask, right, down, strong):
    """Sets of pixels of a 2×2 block that edges join which are at least this share of the strongest at either end."""

    def weight(p, q):
        return right[min(p, q)] if p[0] == q[0] else down[min(p, q)]

    def strongest(p):
        return max(weight(p, q) for q in _grid_neighbours(mask, p))

    parts = {p: frozenset([p]) for p in map(tuple, np.argwhere(mask))}
    for p in list(parts):
        for q in _grid_neighbours(mask, p):
            same_block = p[0] // 2 == q[0] // 2 and p[1] // 2 == q[1] // 2
            if same_block and weight(p, q) >= strong * max(strongest(p), strongest(q)):
                both = parts[p] | parts[q]
                parts.update(dict.fromkeys(both, both))
    return set(parts.values())


def face_means(mesh, normal_map, samples=1):
    """Sums over the pixels of each face, divided by their number: (M, 10) as ``FaceMeans.table``.

    Faces below 64 px² take several samples of each pixel.
    """
    camera = normal_map.camera
    owner = real_pixel_faces(mesh, normal_map.shape)
    fine_owner = real_pixel_faces(
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
            rows.append([*n, *(-s / at_centroid), w**-2, w**2, *(w * s)])
        table.append([len(rows), *np.mean(rows, axis=0)])
    return np.array(table)


def inner_edges(faces):
    """(vertex, vertex, face, face) of each edge with two faces."""
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
    """How the plane of a face, straight or in space, rises from its centroid."""
    linear = table[f, 4:6] @ (position - mesh.vertices[mesh.faces[f]].mean(axis=0))
    if not perspective:
        return linear
    return -np.log(1 - linear) if linear < 0.5 else np.log(2) + 2 * (linear - 0.5)


def facet_offsets(mesh, table, perspective):
    """Offsets (M,) of planar faces by dense least squares over edges, zero mean on each component."""
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
    """Mean (N,) of the planes around each vertex, weighted by area and mobility."""
    values = np.zeros(len(mesh.vertices))
    for vertex, position in enumerate(mesh.vertices):
        around = [f for f, face in enumerate(mesh.faces) if vertex in face]
        planes = [offsets[f] + rise(mesh, table, f, position, perspective) for f in around]
        values[vertex] = np.average(planes, weights=[mesh.areas[f] / table[f, 6] for f in around])
    return values


def face_parameters(mesh, f, table, camera, parameters):
    """m_f and b_f of the vertex system, DESIGN §3.8."""
    if parameters == "tight":
        return table[f, 7], table[f, 8:10]
    if parameters == "gradient":
        return 1 / table[f, 6], -table[f, 4:6] / table[f, 6]
    normal = table[f, 1:4] / np.linalg.norm(table[f, 1:4])
    w = normal @ camera.rays(*mesh.vertices[mesh.faces[f]].mean(axis=0))
    return w**2, w * np.array([normal @ tau for tau in camera.tangents])


def vertex_unknowns(mesh, table, camera, parameters, metric, clamp=None):
    """Solution (N,) of supplement A's equations by dense least squares, zero mean on each component."""
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
    """Sum of the angles between normals (K, 3) and that of the triangle (3, 3) in space."""
    normal = np.cross(points[1] - points[0], points[2] - points[0])
    normal /= np.linalg.norm(normal)
    return sum(np.arctan2(np.linalg.norm(np.cross(normal, n)), normal @ n) for n in normals.astype(np.float64))


def bilateral(normals, mask, radius, width, spread):
    """Normals averaged with their neighbours in a square window, weighted by nearness and likeness."""
    smooth = np.zeros_like(normals, dtype=np.float64)
    pixels = [tuple(p) for p in np.argwhere(mask)]
    for i, j in pixels:
        total = np.zeros(3)
        for k, m in pixels:
            if max(abs(k - i), abs(m - j)) <= radius:
                near = np.hypot(k - i, m - j) / width
                alike = np.linalg.norm(normals[k, m].astype(np.float64) - normals[i, j]) / spread
                total += np.exp(-(near**2 + alike**2) / 2) * normals[k, m]
        smooth[i, j] = total / np.linalg.norm(total)
    return smooth


def best_unknown(mesh, vertex, unknown, normal_map):
    """The unknown of one vertex that minimises Σ area · m_f ‖∇z − ḡ_f‖² over its faces: a parabola's lowest point."""
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

    bend, slope, _ = np.polyfit([-1, 0, 1], [energy(own) for own in (-1.0, 0.0, 1.0)], 2)
    return -slope / (2 * bend)
