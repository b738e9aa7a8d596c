"""Kernels of :mod:`normalmesh.mesh.surface` and of the normal texture in :mod:`normalmesh.output.mesh_writing`."""

import math
from typing import NamedTuple

import numpy as np

from normalmesh.array_types import Float, Float32, Int32
from normalmesh.normals._camera import plane_depth
from normalmesh.runtime.kernels import inner, kernel

#: Determinant of (T, B, N) below which an interpolated frame is too flat to express a normal.
MIN_DETERMINANT = 1e-3


class TexturedMesh(NamedTuple):
    """The mesh for which a normal texture is baked."""

    screen: Float  # (N, 2) positions of the vertices in texels
    faces: Int32  # (M, 3)
    depth: Float  # (N,) depth of the vertices behind a pinhole, 1 for parallel rays
    tangents: Float32  # (N, 3) of the frames of the vertices
    bitangents: Float32  # (N, 3)
    normals: Float32  # (N, 3)


@inner
def cross(ax, ay, az, bx, by, bz):
    """Return the cross product of two vectors."""
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@inner
def unit_vector(x, y, z):
    """Scale a vector to length one, without overflow or underflow of its squares; zero stays zero."""
    largest = max(abs(x), abs(y), abs(z))
    if largest == 0.0:
        return 0.0, 0.0, 0.0
    x, y, z = x / largest, y / largest, z / largest
    length = math.sqrt(x * x + y * y + z * z)
    return x / length, y / length, z / length


@inner
def face_cross(vertices, faces, f):
    """Return the normal of face f, twice its area long."""
    a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
    return cross(
        vertices[b, 0] - vertices[a, 0],
        vertices[b, 1] - vertices[a, 1],
        vertices[b, 2] - vertices[a, 2],
        vertices[c, 0] - vertices[a, 0],
        vertices[c, 1] - vertices[a, 1],
        vertices[c, 2] - vertices[a, 2],
    )


@inner
def barycentric(screen, a, b, c, u, v):
    """Return the barycentric coordinates of (u, v) in the triangle a, b, c on the screen, clipped to the triangle."""
    bu, bv = screen[b, 0] - screen[a, 0], screen[b, 1] - screen[a, 1]
    cu, cv = screen[c, 0] - screen[a, 0], screen[c, 1] - screen[a, 1]
    u, v = u - screen[a, 0], v - screen[a, 1]
    area = bu * cv - bv * cu
    if area == 0.0:
        return 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0
    second = min(max((u * cv - v * cu) / area, 0.0), 1.0)
    third = min(max((bu * v - bv * u) / area, 0.0), 1.0 - second)
    return 1.0 - second - third, second, third


@kernel
def fill_depth(top, bottom, owners, screen, faces, depth, camera, depth_map):
    """Fill rows of ``depth_map`` (H, W), at pixel centres, from the depth (N,) of the vertices."""
    for i in range(top, bottom):
        for j in range(owners.shape[1]):
            f = owners[i, j]
            if f < 0:
                depth_map[i, j] = np.nan
                continue
            a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
            first, second, third = barycentric(screen, a, b, c, j + 0.5, i + 0.5)
            depth_map[i, j] = plane_depth(depth[a], depth[b], depth[c], first, second, third, camera)


@inner(forceinline=True)
def box_sum(normals, u, v, width, height):
    """Sum the normals (H, W, 3) over a box around (u, v), in pixels, weighted by the area of each pixel in it.

    A box of one pixel is bilinear interpolation. Pixels outside the mask are zero and add nothing.
    """
    rows, columns, _ = normals.shape
    left, right, top, bottom = u - 0.5 * width, u + 0.5 * width, v - 0.5 * height, v + 0.5 * height
    x = y = z = 0.0
    for i in range(max(int(math.floor(top)), 0), min(int(math.ceil(bottom)), rows)):
        tall = min(bottom, i + 1.0) - max(top, float(i))
        for j in range(max(int(math.floor(left)), 0), min(int(math.ceil(right)), columns)):
            weight = tall * (min(right, j + 1.0) - max(left, float(j)))
            x += weight * normals[i, j, 0]
            y += weight * normals[i, j, 1]
            z += weight * normals[i, j, 2]
    return x, y, z


@inner
def mix(vectors, a, b, c, first, second, third):
    """Mix row vectors a, b, c linearly and normalise the result, as a fragment shader does."""
    return unit_vector(
        first * vectors[a, 0] + second * vectors[b, 0] + third * vectors[c, 0],
        first * vectors[a, 1] + second * vectors[b, 1] + third * vectors[c, 1],
        first * vectors[a, 2] + second * vectors[b, 2] + third * vectors[c, 2],
    )


@inner(forceinline=True)
def in_frame(tangent, bitangent, normal, n):
    """Return unit coordinates (x, y, z ≥ 0) with x T + y B + z N ∥ n; zero if the frame is flat or n has no length."""
    tx, ty, tz = tangent
    bx, by, bz = bitangent
    nx, ny, nz = normal
    px, py, pz = cross(bx, by, bz, nx, ny, nz)
    qx, qy, qz = cross(nx, ny, nz, tx, ty, tz)
    rx, ry, rz = cross(tx, ty, tz, bx, by, bz)
    determinant = tx * px + ty * py + tz * pz
    if determinant < MIN_DETERMINANT:
        return 0.0, 0.0, 0.0
    x, y, z = n
    return unit_vector(x * px + y * py + z * pz, x * qx + y * qy + z * qz, max(x * rx + y * ry + z * rz, 0.0))


@kernel
def bake_normals(top, bottom, owners, mesh, normals, texture, covered):
    """Fill rows of ``texture`` (H, W, 3) uint8 with ``normals`` (H', W', 3) in the tangent frames of the faces.

    A viewer mixes positions, texture coordinates and frames with the same weights, so the texel at the weights λ lies
    on the surface at Σ λ_k P_k, which the camera sees at Σ λ_k d_k u_k / Σ λ_k d_k: there the normal is looked up.
    ``owners`` (H, W) are the faces that own the texels; ``covered`` (H, W) becomes True where there is a normal.
    """
    screen, faces, depth = mesh.screen, mesh.faces, mesh.depth
    rows, columns = owners.shape
    wide, tall = normals.shape[1] / columns, normals.shape[0] / rows
    for i in range(top, bottom):
        for j in range(columns):
            f = owners[i, j]
            if f < 0:
                continue
            a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
            first, second, third = barycentric(screen, a, b, c, j + 0.5, i + 0.5)
            at_a, at_b, at_c = first * depth[a], second * depth[b], third * depth[c]
            along = at_a + at_b + at_c
            u = (at_a * screen[a, 0] + at_b * screen[b, 0] + at_c * screen[c, 0]) / along
            v = (at_a * screen[a, 1] + at_b * screen[b, 1] + at_c * screen[c, 1]) / along
            x, y, z = in_frame(
                mix(mesh.tangents, a, b, c, first, second, third),
                mix(mesh.bitangents, a, b, c, first, second, third),
                mix(mesh.normals, a, b, c, first, second, third),
                box_sum(normals, u * wide, v * tall, wide, tall),
            )
            if x == 0.0 and y == 0.0 and z == 0.0:
                continue
            covered[i, j] = True
            texture[i, j, 0] = np.uint8(127.5 * (x + 1.0) + 0.5)
            texture[i, j, 1] = np.uint8(127.5 * (y + 1.0) + 0.5)
            texture[i, j, 2] = np.uint8(127.5 * (z + 1.0) + 0.5)


@kernel
def dilate(top, bottom, texture, covered, grown):
    """Fill uncovered texels of rows with the mean of covered neighbours, and note in ``grown`` what is covered then."""
    rows, columns = covered.shape
    for i in range(top, bottom):
        for j in range(columns):
            grown[i, j] = covered[i, j]
            if covered[i, j]:
                continue
            count = 0
            red = green = blue = 0
            for k in range(max(i - 1, 0), min(i + 2, rows)):
                for m in range(max(j - 1, 0), min(j + 2, columns)):
                    if covered[k, m]:
                        count += 1
                        red += texture[k, m, 0]
                        green += texture[k, m, 1]
                        blue += texture[k, m, 2]
            if count > 0:
                grown[i, j] = True
                texture[i, j, 0] = np.uint8((red + count // 2) // count)
                texture[i, j, 1] = np.uint8((green + count // 2) // count)
                texture[i, j, 2] = np.uint8((blue + count // 2) // count)
