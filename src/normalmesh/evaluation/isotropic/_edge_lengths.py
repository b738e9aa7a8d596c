"""Kernels of :mod:`.edge_lengths`: curvature at pixels, lengths of edges on the surface, and their target lengths.

A *sample* of a face is four numbers: its mean normal times its area on the surface, and its mean density times that
area. *Density* is h⁻² (px⁻²) for a target edge length h. The *stretch* of an edge is its squared length on the surface
times the larger density of its ends: 1 if it is as long as the smaller of the two target lengths.
"""

import math
from typing import NamedTuple

from normalmesh.array_types import Float32
from normalmesh.mesh._closed_mesh import turn, vertex_at
from normalmesh.mesh._raster import by_height, face_edges, first_row, row_span
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.normals._camera import facing, jacobian
from normalmesh.normals._normal_map import nearest_pixel
from normalmesh.normals.camera import CameraArrays
from normalmesh.runtime.kernels import inner, kernel

#: Columns of the samples (F, 4): components of the normal, and the density, all times the area.
NX, NY, NZ, DENSITY = range(4)
#: Limits of target edge lengths (px).
MIN_LENGTH, MAX_LENGTH = 1.0, 100.0
#: Smallest curvature (1/px) that is used; smaller ones are replaced by it.
FLAT = 1e-12
#: Stretches beyond which edges are split and below which they are collapsed: (4/3)² and (4/5)².
LONG, SHORT = 16.0 / 9.0, 16.0 / 25.0
#: Edges not longer than this on the screen (px) are never split, since pixels show nothing between them.
UNSPLIT = 2.0


class LengthArrays(NamedTuple):
    """The arrays of :class:`.edge_lengths.EdgeLengths`, as kernels take them."""

    samples: Float32  # (F, 4) of the faces
    densities: Float32  # (N,) mean density over the faces of each vertex
    camera: CameraArrays


@inner
def largest_normal_curvature(uu, uv, vv, second_uu, second_uv, second_vv):
    """Return the largest absolute eigenvalue of I⁻¹ II, from both fundamental forms as uu, uv, vv."""
    determinant = uu * vv - uv * uv
    mean = 0.5 * (second_uu * vv - 2.0 * second_uv * uv + second_vv * uu) / determinant
    gauss = (second_uu * second_vv - second_uv * second_uv) / determinant
    return abs(mean) + math.sqrt(max(mean * mean - gauss, 0.0))


@inner
def slope_between(smooth, mask, i, j, down, right):
    """Return the derivative of the normals in a direction (down, right), one-sided at the border of the mask."""
    rows, columns = mask.shape
    k, m = i + down, j + right
    before_k, before_m = i - down, j - right
    ahead = k < rows and m < columns and mask[k, m]
    behind = before_k >= 0 and before_m >= 0 and mask[before_k, before_m]
    if not ahead:
        k, m = i, j
    if not behind:
        before_k, before_m = i, j
    share = 0.5 if ahead and behind else 1.0
    return (
        share * (smooth[k, m, 0] - smooth[before_k, before_m, 0]),
        share * (smooth[k, m, 1] - smooth[before_k, before_m, 1]),
        share * (smooth[k, m, 2] - smooth[before_k, before_m, 2]),
    )


@kernel
def fill_curvature(first, last, smooth, mask, camera, curvature):
    """Fill rows of the curvature (H, W) in 1/px of unit normals (H, W, 3); zero outside the mask."""
    for i in range(first, last):
        for j in range(mask.shape[1]):
            curvature[i, j] = 0.0
            if not mask[i, j]:
                continue
            u, v = j + 0.5, i + 0.5
            nx, ny, nz = facing(smooth[i, j, 0], smooth[i, j, 1], smooth[i, j, 2], u, v, camera)
            tangents = jacobian(nx, ny, nz, u, v, camera)
            ux, uy, uz, vx, vy, vz = tangents
            by_u = slope_between(smooth, mask, i, j, 0, 1)
            by_v = slope_between(smooth, mask, i, j, 1, 0)
            curvature[i, j] = largest_normal_curvature(
                ux * ux + uy * uy + uz * uz,
                ux * vx + uy * vy + uz * vz,
                vx * vx + vy * vy + vz * vz,
                -(by_u[0] * ux + by_u[1] * uy + by_u[2] * uz),
                -0.5 * ((by_u[0] * vx + by_u[1] * vy + by_u[2] * vz) + (by_v[0] * ux + by_v[1] * uy + by_v[2] * uz)),
                -(by_v[0] * vx + by_v[1] * vy + by_v[2] * vz),
            )


@inner
def target_squared(curvature, error):
    """Return the squared target length h² = 6ε/κ − 3ε² (px²), clamped.

    It is the edge of an equilateral triangle in a sphere of curvature κ, whose centre is off the sphere by ε. The
    formula has its maximum where ε is the radius 1/κ of the sphere. Beyond it, h² = 3ε/κ is used, which continues it
    monotonically.
    """
    radius = 1.0 / max(curvature, FLAT)
    return min(max(3.0 * error * max(2.0 * radius - error, radius), MIN_LENGTH * MIN_LENGTH), MAX_LENGTH * MAX_LENGTH)


@kernel
def fill_density(first, last, curvature, error, density):
    """Fill rows of the density h⁻² (H, W) float32."""
    for i in range(first, last):
        for j in range(curvature.shape[1]):
            density[i, j] = 1.0 / target_squared(curvature[i, j], error)


@kernel
def count_vertices(first, last, normal_map, curvature, step, error, counts):
    """Fill ``counts`` with the vertices of equilateral triangles of the target lengths, for every ``step``-th row.

    The count of a row is 2/(√3 h²), summed over the surface that is visible in it.
    """
    normals, mask = normal_map.normals, normal_map.mask
    for k in range(first, last):
        i = k * step
        total = 0.0
        for j in range(mask.shape[1]):
            if mask[i, j]:
                u, v = j + 0.5, i + 0.5
                t = jacobian(normals[i, j, 0], normals[i, j, 1], normals[i, j, 2], u, v, normal_map.camera)
                total += surface_share(t) / target_squared(curvature[i, j], error)
        counts[k] = total * 2.0 / math.sqrt(3.0)


@inner
def surface_share(t):
    """Return √det JᵀJ, the area on the surface of a unit area of the screen, from the tangents t."""
    uu = t.ux * t.ux + t.uy * t.uy + t.uz * t.uz
    uv = t.ux * t.vx + t.uy * t.vy + t.uz * t.vz
    vv = t.vx * t.vx + t.vy * t.vy + t.vz * t.vz
    return math.sqrt(max(uu * vv - uv * uv, 0.0))


@kernel
def sample_faces(first, last, mesh, normal_map, density, samples):
    """Fill the samples (F, 4) float32 of faces from their pixels; those of ghost faces are zero.

    Faces that own no pixel centre take the pixel under their centroid.
    """
    vertices, faces, real_faces = mesh.vertices, mesh.faces, mesh.real_faces
    normals, mask, camera = normal_map.normals, normal_map.mask, normal_map.camera
    rows, columns = mask.shape
    for f in range(first, last):
        samples[f] = 0.0
        if f >= real_faces:
            continue
        a, b, c = vertices[faces[f, 0]], vertices[faces[f, 1]], vertices[faces[f, 2]]
        top, middle, bottom = by_height(a, b, c)
        edges, middle_row = face_edges(top, middle, bottom), first_row(middle[1], rows)
        nx = ny = nz = total = 0.0
        pixels = 0
        for row in range(first_row(top[1], rows), first_row(bottom[1], rows)):
            start, end = row_span(edges, row, middle_row, columns)
            for column in range(start, end):
                if mask[row, column]:
                    pixels += 1
                    nx += normals[row, column, 0]
                    ny += normals[row, column, 1]
                    nz += normals[row, column, 2]
                    total += density[row, column]
        u, v = (a[0] + b[0] + c[0]) / 3.0, (a[1] + b[1] + c[1]) / 3.0
        if pixels == 0:
            row, column = nearest_pixel(mask, u, v)
            if row < 0:
                continue
            pixels = 1
            nx += normals[row, column, 0]
            ny += normals[row, column, 1]
            nz += normals[row, column, 2]
            total += density[row, column]
        nx, ny, nz = facing(nx, ny, nz, u, v, camera)
        area = 0.5 * abs((b[1] - a[1]) * (c[0] - a[0]) - (b[0] - a[0]) * (c[1] - a[1]))
        area *= surface_share(jacobian(nx, ny, nz, u, v, camera))
        samples[f, NX], samples[f, NY], samples[f, NZ] = area * nx, area * ny, area * nz
        samples[f, DENSITY] = area * total / pixels


@kernel
def vertex_densities(first, last, mesh, samples, densities):
    """Fill the mean density (N,) float32 over the faces of each vertex."""
    for vertex in range(first, last):
        densities[vertex] = 1.0 / (MAX_LENGTH * MAX_LENGTH)
        start = mesh.corner_of[vertex]
        if start < 0:
            continue
        area = density = 0.0
        corner = start
        while True:
            s = samples[corner // 3]
            area += math.sqrt(s[NX] * s[NX] + s[NY] * s[NY] + s[NZ] * s[NZ])
            density += s[DENSITY]
            corner = turn(corner, mesh.opposite)
            if corner == start:
                break
        if area > 0.0:
            densities[vertex] = density / area


@inner
def surface_length_squared(u, v, du, dv, one, two, lengths):
    """Return ‖J δu‖² (px²) of the step (du, dv) from (u, v), with J of the mean normal of two faces."""
    mid_u, mid_v = u + 0.5 * du, v + 0.5 * dv
    p, q = lengths.samples[one], lengths.samples[two]
    nx, ny, nz = facing(p[NX] + q[NX], p[NY] + q[NY], p[NZ] + q[NZ], mid_u, mid_v, lengths.camera)
    t = jacobian(nx, ny, nz, mid_u, mid_v, lengths.camera)
    x, y, z = t.ux * du + t.vx * dv, t.uy * du + t.vy * dv, t.uz * du + t.vz * dv
    return x * x + y * y + z * z


@inner
def can_be_long(corner, mesh):
    """Return whether the edge across from a corner is long enough on the screen to be split."""
    vertices, faces = mesh.vertices, mesh.faces
    a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    du, dv = vertices[b, 0] - vertices[a, 0], vertices[b, 1] - vertices[a, 1]
    return du * du + dv * dv > UNSPLIT * UNSPLIT


@inner
def stretch_of(corner, mesh, lengths):
    """Return the stretch of the edge across from a corner."""
    vertices, faces, densities = mesh.vertices, mesh.faces, lengths.densities
    a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    u, v = vertices[a, 0], vertices[a, 1]
    return max(densities[a], densities[b]) * surface_length_squared(
        u, v, vertices[b, 0] - u, vertices[b, 1] - v, corner // 3, mesh.opposite[corner] // 3, lengths
    )


@kernel
def stretches_of_long_edges(first, last, mesh, lengths, stretches):
    """Fill the stretches (3M,) float32 of edges that are too long, each at one of its corners; zero elsewhere."""
    for corner in range(first, last):
        stretches[corner] = 0.0
        if corner < mesh.opposite[corner] and can_be_long(corner, mesh):
            stretch = stretch_of(corner, mesh, lengths)
            if stretch > LONG:
                stretches[corner] = stretch


@inner
def stays_short(vertex, other, u, v, density, mesh, lengths):
    """Return whether no edge of a vertex would have to be split if the vertex moved to (u, v).

    The edge to the vertex ``other`` does not count. ``density`` is that of the moved vertex.
    """
    vertices, faces, opposite = mesh.vertices, mesh.faces, mesh.opposite
    start = mesh.corner_of[vertex]
    corner = start
    while True:
        end = vertex_at(next_corner(corner), faces)
        if end != mesh.ghost and end != other:
            du, dv = vertices[end, 0] - u, vertices[end, 1] - v
            if du * du + dv * dv > UNSPLIT * UNSPLIT:
                two = opposite[previous_corner(corner)] // 3
                length = surface_length_squared(u, v, du, dv, corner // 3, two, lengths)
                if length * max(density, lengths.densities[end]) > LONG:
                    return False
        corner = turn(corner, opposite)
        if corner == start:
            return True
