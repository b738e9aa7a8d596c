"""Kernels of :mod:`normalmesh.evaluation.rendering.rendering`."""

import math

from normalmesh.mesh._surface import face_cross, mix, unit_vector
from normalmesh.normals._camera import offset_from_ray, to_viewer
from normalmesh.runtime.kernels import inner, kernel

#: Smallest cosine between a normal and the viewing ray, so that rounding does not turn it away from the viewer.
MIN_COSINE = 1e-5


@inner
def weights(face, vertices, faces, u, v, camera):
    """Return the barycentric weights of the intersection of a face and a ray, and the depths of the corners.

    In the plane of the offsets of the corners from the ray, the ray is the origin: the weights are the areas of the
    triangles between the origin and the sides. A face that is seen edge-on gets equal weights.
    """
    a, b, c = faces[face, 0], faces[face, 1], faces[face, 2]
    ax, ay, a_depth = offset_from_ray(vertices[a, 0], vertices[a, 1], vertices[a, 2], u, v, camera)
    bx, by, b_depth = offset_from_ray(vertices[b, 0], vertices[b, 1], vertices[b, 2], u, v, camera)
    cx, cy, c_depth = offset_from_ray(vertices[c, 0], vertices[c, 1], vertices[c, 2], u, v, camera)
    wa, wb, wc = bx * cy - by * cx, cx * ay - cy * ax, ax * by - ay * bx
    total = wa + wb + wc
    if total == 0.0:
        third = 1.0 / 3.0
        return third, third, third, a_depth, b_depth, c_depth
    return wa / total, wb / total, wc / total, a_depth, b_depth, c_depth


@kernel
def fill_hit_depths(first, last, hits, vertices, faces, camera, depth):
    """Fill rows of ``depth`` (H, W) with that of the faces ``hits`` (H, W), NaN where there is none.

    Faces may have been found in single precision: just outside its border, a face is extrapolated, but not beyond the
    depths of its corners.
    """
    for i in range(first, last):
        for j in range(hits.shape[1]):
            depth[i, j] = math.nan
            if hits[i, j] < 0:
                continue
            wa, wb, wc, da, db, dc = weights(hits[i, j], vertices, faces, j + 0.5, i + 0.5, camera)
            depth[i, j] = min(max(wa * da + wb * db + wc * dc, min(da, db, dc)), max(da, db, dc))


@kernel
def fill_hit_normals(first, last, hits, vertices, faces, vertex_normals, camera, normals):
    """Fill rows of ``normals`` (H, W, 3) with unit normals of the faces ``hits`` towards the viewer, else with zero.

    Normals are interpolated between ``vertex_normals`` (N, 3). Face normals are used if there are none (0, 3) or if the
    interpolated normal faces away.
    """
    for i in range(first, last):
        for j in range(hits.shape[1]):
            normals[i, j, :] = 0.0
            face = hits[i, j]
            if face < 0:
                continue
            u, v = j + 0.5, i + 0.5
            rx, ry, rz = to_viewer(u, v, camera)
            fx, fy, fz = face_normal(face, vertices, faces)
            cosine = fx * rx + fy * ry + fz * rz
            side = -1.0 if cosine < 0.0 else 1.0
            x, y, z, cosine = side * fx, side * fy, side * fz, side * cosine
            if len(vertex_normals) > 0:
                sx, sy, sz = smooth_normal(face, vertices, faces, vertex_normals, u, v, camera)
                # Use the visible side of the face, whatever the order of its corners.
                side = -1.0 if sx * x + sy * y + sz * z < 0.0 else 1.0
                smooth_cosine = side * (sx * rx + sy * ry + sz * rz)
                if smooth_cosine > MIN_COSINE:
                    x, y, z, cosine = side * sx, side * sy, side * sz, smooth_cosine
            lift = max(MIN_COSINE - cosine, 0.0)
            x, y, z = x + lift * rx, y + lift * ry, z + lift * rz
            length = math.sqrt(x * x + y * y + z * z)
            normals[i, j, 0], normals[i, j, 1], normals[i, j, 2] = x / length, y / length, z / length


@inner
def face_normal(face, vertices, faces):
    """Return the unit normal given by the order of the corners; zero for a face without area."""
    x, y, z = face_cross(vertices, faces, face)
    return unit_vector(x, y, z)


@inner
def smooth_normal(face, vertices, faces, vertex_normals, u, v, camera):
    """Return the interpolated unit normal of the corners; zero if they cancel."""
    wa, wb, wc, _, _, _ = weights(face, vertices, faces, u, v, camera)
    a, b, c = faces[face, 0], faces[face, 1], faces[face, 2]
    return mix(vertex_normals, a, b, c, max(wa, 0.0), max(wb, 0.0), max(wc, 0.0))
