"""Kernels of :mod:`.edge_lengths`: how long edges are on the surface, and how long they should be.

A *sample* of a face is four numbers: its mean normal times its area on the surface, and its mean density times that
area. *Density* is h⁻² (px⁻²) for a target edge length h. The *stretch* of an edge is its squared length on the surface
times the larger density of its ends: 1 where it is as long as the shorter of both lengths wants it.
"""

import math

import numpy as np
from numba import prange

from normalmesh.decimation._quadrics import facing, jacobian, sample_pixel
from normalmesh.mesh._closed_mesh import turn, vertex_at
from normalmesh.mesh._raster import by_height, face_edges, first_row, row_span
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.runtime.kernels import inner, kernel

#: Target edge lengths lie between these (px).
SHORTEST, LONGEST = 1.0, 100.0
#: Curvature (1/px) that counts as none.
FLAT = 1e-12
#: Stretches beyond which edges are split and below which they are collapsed: (4/3)² and (4/5)².
LONG, SHORT = 16.0 / 9.0, 16.0 / 25.0
#: Edges not longer than this on the screen (px) are never split: there is nothing to see between pixels.
UNSPLIT = 2.0


@inner
def target_squared(curvature, error):
    """h² = 6ε/κ − 3ε² (px²), clamped: the equilateral triangle in a sphere of curvature κ, off it by ε in the middle.

    Triangles in the sphere grow until ε is its radius 1/κ, where h² = 3ε/κ. They go on so, for small bumps count less
    the larger ε is.
    """
    radius = 1.0 / max(curvature, FLAT)
    return min(max(3.0 * error * max(2.0 * radius - error, radius), SHORTEST * SHORTEST), LONGEST * LONGEST)


@kernel(parallel=True)
def fill_density(curvature, error, density):
    """Density h⁻² (H, W) float32 at all pixels."""
    for i in prange(curvature.shape[0]):
        for j in range(curvature.shape[1]):
            density[i, j] = 1.0 / target_squared(curvature[i, j], error)


@kernel(parallel=True)
def expected_vertices(normals, curvature, mask, step, frame, scale, error):
    """Vertices of equilateral triangles of the target lengths, ∫ 2/(√3 h²) over the surface; every ``step``-th row."""
    # Row by row, so that the sum does not depend on the threads.
    totals = np.zeros((mask.shape[0] + step - 1) // step)
    for k in prange(totals.size):
        i = k * step
        for j in range(mask.shape[1]):
            if mask[i, j]:
                u, v = j + 0.5, i + 0.5
                t = jacobian(normals[i, j, 0], normals[i, j, 1], normals[i, j, 2], u, v, frame, scale)
                totals[k] += surface_share(t) / target_squared(curvature[i, j], error)
    total = 0.0
    for k in range(totals.size):
        total += totals[k]
    return total * step * 2.0 / math.sqrt(3.0)


@inner
def surface_share(t):
    """√det JᵀJ: area on the surface of a piece of the screen."""
    uu = t[0] * t[0] + t[1] * t[1] + t[2] * t[2]
    uv = t[0] * t[3] + t[1] * t[4] + t[2] * t[5]
    vv = t[3] * t[3] + t[4] * t[4] + t[5] * t[5]
    return math.sqrt(max(uu * vv - uv * uv, 0.0))


@kernel(parallel=True)
def sample_faces(vertices, faces, real_faces, normals, density, mask, frame, towards_viewer, scale, samples):
    """Samples (F, 4) float32 of all faces from their pixels; zero for ghosts.

    Faces without a pixel centre sample the pixel under their centroid.
    """
    rows, columns = mask.shape
    for f in prange(faces.shape[0]):
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
            row, column = sample_pixel(mask, u, v)
            if row < 0:
                continue
            pixels = 1
            nx += normals[row, column, 0]
            ny += normals[row, column, 1]
            nz += normals[row, column, 2]
            total += density[row, column]
        nx, ny, nz = facing(nx, ny, nz, u, v, frame, towards_viewer)
        area = 0.5 * abs((b[1] - a[1]) * (c[0] - a[0]) - (b[0] - a[0]) * (c[1] - a[1]))
        area *= surface_share(jacobian(nx, ny, nz, u, v, frame, scale))
        samples[f, 0], samples[f, 1], samples[f, 2] = area * nx, area * ny, area * nz
        samples[f, 3] = area * total / pixels


@kernel(parallel=True)
def vertex_densities(opposite, corner_of, samples, densities):
    """Mean density (N,) float32 over the faces of each vertex."""
    for vertex in prange(densities.size):
        densities[vertex] = 1.0 / (LONGEST * LONGEST)
        start = corner_of[vertex]
        if start < 0:
            continue
        area = density = 0.0
        corner = start
        while True:
            s = samples[corner // 3]
            area += math.sqrt(s[0] * s[0] + s[1] * s[1] + s[2] * s[2])
            density += s[3]
            corner = turn(corner, opposite)
            if corner == start:
                break
        if area > 0.0:
            densities[vertex] = density / area


@inner
def surface_length_squared(u, v, du, dv, one, two, samples, frame, towards_viewer, scale):
    """‖J δu‖² (px²) of the step (du, dv) from (u, v), with J of the mean normal of two faces."""
    mid_u, mid_v = u + 0.5 * du, v + 0.5 * dv
    p, q = samples[one], samples[two]
    nx, ny, nz = facing(p[0] + q[0], p[1] + q[1], p[2] + q[2], mid_u, mid_v, frame, towards_viewer)
    t = jacobian(nx, ny, nz, mid_u, mid_v, frame, scale)
    x, y, z = t[0] * du + t[3] * dv, t[1] * du + t[4] * dv, t[2] * du + t[5] * dv
    return x * x + y * y + z * z


@inner
def can_be_long(corner, vertices, faces):
    """Whether the edge across from a corner is long enough on the screen to be split."""
    a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    du, dv = vertices[b, 0] - vertices[a, 0], vertices[b, 1] - vertices[a, 1]
    return du * du + dv * dv > UNSPLIT * UNSPLIT


@inner
def stretch_of(corner, vertices, faces, opposite, samples, densities, frame, towards_viewer, scale):
    """Stretch of the edge across from a corner."""
    a, b = vertex_at(next_corner(corner), faces), vertex_at(previous_corner(corner), faces)
    u, v = vertices[a, 0], vertices[a, 1]
    return max(densities[a], densities[b]) * surface_length_squared(
        u, v, vertices[b, 0] - u, vertices[b, 1] - v, corner // 3, opposite[corner] // 3, samples, frame,
        towards_viewer, scale,
    )  # fmt: skip


@kernel(parallel=True)
def stretches_of_long_edges(
    vertices, faces, real_faces, opposite, samples, densities, frame, towards_viewer, scale, stretches
):  # fmt: skip
    """Stretches (3M,) float32 of the edges that are to be split, each at one of its corners; zero elsewhere."""
    for corner in prange(3 * real_faces):
        stretches[corner] = 0.0
        if corner < opposite[corner] and can_be_long(corner, vertices, faces):
            stretch = stretch_of(corner, vertices, faces, opposite, samples, densities, frame, towards_viewer, scale)
            if stretch > LONG:
                stretches[corner] = stretch


@inner
def stays_short(vertex, other, u, v, density, vertices, faces, opposite, corner_of, ghost, samples, densities, frame,
                towards_viewer, scale):  # fmt: skip
    """Whether no edge of a vertex, but that to the other one, is to be split when the vertex moves to (u, v)."""
    start = corner_of[vertex]
    corner = start
    while True:
        end = vertex_at(next_corner(corner), faces)
        if end != ghost and end != other:
            du, dv = vertices[end, 0] - u, vertices[end, 1] - v
            if du * du + dv * dv > UNSPLIT * UNSPLIT:
                two = opposite[previous_corner(corner)] // 3
                length = surface_length_squared(
                    u, v, du, dv, corner // 3, two, samples, frame, towards_viewer, scale
                )  # fmt: skip
                if length * max(density, densities[end]) > LONG:
                    return False
        corner = turn(corner, opposite)
        if corner == start:
            return True
