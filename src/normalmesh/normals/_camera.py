"""Kernels of :mod:`normalmesh.normals.camera`: rays, points, and tangents of the surface from its normals.

``camera`` is :attr:`normalmesh.normals.camera.Camera.arrays`.
"""

import math
from typing import NamedTuple

from normalmesh.runtime.kernels import inner

#: Normals closer than 5° to grazing carry no usable slope: they are clamped to this angle from the viewing ray.
CLAMP_COSINE = math.cos(math.radians(85))
CLAMP_SINE = math.sin(math.radians(85))
#: Rays that are farther from the optical axis than 45° see a level surface so obliquely that the angle from the ray
#: says nothing about its slope on the screen.
WIDE_COSINE = math.sqrt(0.5)
#: Cosine to the ray above which the rounding of normals to float32 changes slopes by a thousandth at most.
LEAST_COSINE = 1e-4


#: Rows of a frame: τ_u, τ_v, and r₀, ∂_u r, ∂_v r of the ray r(u, v) = r₀ + u ∂_u r + v ∂_v r.
TANGENT_U, TANGENT_V, RAY, RAY_U, RAY_V = range(5)


class Tangents(NamedTuple):
    """The columns of a matrix J (3, 2): steps on the surface for steps along u and along v on the screen."""

    ux: float
    uy: float
    uz: float
    vx: float
    vy: float
    vz: float


@inner(forceinline=True)
def frame_vector(row, frame):
    """Return a row of a frame, such as ``TANGENT_U``, as three numbers."""
    return frame[row, 0], frame[row, 1], frame[row, 2]


@inner(forceinline=True)
def ray(u, v, frame):
    """Return the ray r(u, v) as three numbers."""
    return (
        frame[RAY, 0] + u * frame[RAY_U, 0] + v * frame[RAY_V, 0],
        frame[RAY, 1] + u * frame[RAY_U, 1] + v * frame[RAY_V, 1],
        frame[RAY, 2] + u * frame[RAY_U, 2] + v * frame[RAY_V, 2],
    )


@inner
def to_viewer(u, v, frame, towards_viewer):
    """Return the unit direction from the surface at the screen position (u, v) to the viewer."""
    rx, ry, rz = ray(u, v, frame)
    x, y, z = towards_viewer * rx, towards_viewer * ry, towards_viewer * rz
    length = math.sqrt(x * x + y * y + z * z)
    return x / length, y / length, z / length


@inner(forceinline=True)
def along_tangents(nx, ny, nz, frame):
    """Return ⟨n, τ_u⟩ and ⟨n, τ_v⟩ of a normal."""
    return (
        nx * frame[TANGENT_U, 0] + ny * frame[TANGENT_U, 1] + nz * frame[TANGENT_U, 2],
        nx * frame[TANGENT_V, 0] + ny * frame[TANGENT_V, 1] + nz * frame[TANGENT_V, 2],
    )


@inner
def jacobian(nx, ny, nz, u, v, camera):
    """Return the tangents J(n) in pixels at the screen position (u, v), eqs. (7) and (8)."""
    frame, scale = camera.frame, camera.scale
    rx, ry, rz = ray(u, v, frame)
    # One division for both slopes.
    inverse = 1.0 / (nx * rx + ny * ry + nz * rz)
    along_u, along_v = along_tangents(nx, ny, nz, frame)
    slope_u, slope_v = along_u * inverse, along_v * inverse
    return Tangents(
        (frame[TANGENT_U, 0] - slope_u * rx) * scale,
        (frame[TANGENT_U, 1] - slope_u * ry) * scale,
        (frame[TANGENT_U, 2] - slope_u * rz) * scale,
        (frame[TANGENT_V, 0] - slope_v * rx) * scale,
        (frame[TANGENT_V, 1] - slope_v * ry) * scale,
        (frame[TANGENT_V, 2] - slope_v * rz) * scale,
    )


@inner
def steepest(rx, ry, rz, frame):
    """Return cosine and sine of the largest angle of a normal from the unit ray (rx, ry, rz): 85°, or more if oblique.

    Along rays that are oblique to the screen, slopes on the screen are bounded as they are along those at 45°.
    """
    (px, py, pz), (qx, qy, qz) = frame_vector(TANGENT_U, frame), frame_vector(TANGENT_V, frame)
    x, y, z = py * qz - pz * qy, pz * qx - px * qz, px * qy - py * qx
    obliqueness = abs(rx * x + ry * y + rz * z) / math.sqrt(x * x + y * y + z * z)
    if obliqueness >= WIDE_COSINE:
        return CLAMP_COSINE, CLAMP_SINE
    cosine = max(CLAMP_COSINE * obliqueness / WIDE_COSINE, LEAST_COSINE)
    return cosine, math.sqrt(1.0 - cosine * cosine)


@inner
def facing(nx, ny, nz, u, v, camera):
    """Normalise a sum of normals and clamp it to the steepest one that the viewing ray allows."""
    rx, ry, rz = to_viewer(u, v, camera.frame, camera.towards_viewer)
    length = math.sqrt(nx * nx + ny * ny + nz * nz)
    if length < 1e-12:
        return rx, ry, rz
    nx, ny, nz = nx / length, ny / length, nz / length
    cosine = nx * rx + ny * ry + nz * rz
    if cosine >= CLAMP_COSINE:
        return nx, ny, nz
    limit, sine = steepest(rx, ry, rz, camera.frame)
    if cosine < limit:
        nx, ny, nz = nx - cosine * rx, ny - cosine * ry, nz - cosine * rz
        length = math.sqrt(nx * nx + ny * ny + nz * nz)
        if length < 1e-12:
            return rx, ry, rz
        scale = sine / length
        nx, ny, nz = limit * rx + scale * nx, limit * ry + scale * ny, limit * rz + scale * nz
    return nx, ny, nz


@inner
def space_point(u, v, unknown, camera):
    """Return the point in space at the screen position (u, v) with the unknown of integration there."""
    frame = camera.frame
    if camera.is_central:
        depth, (rx, ry, rz) = math.exp(unknown), ray(u, v, frame)
        return depth * rx, depth * ry, depth * rz
    return (
        u * frame[TANGENT_U, 0] + v * frame[TANGENT_V, 0] + unknown * frame[RAY, 0],
        u * frame[TANGENT_U, 1] + v * frame[TANGENT_V, 1] + unknown * frame[RAY, 1],
        u * frame[TANGENT_U, 2] + v * frame[TANGENT_V, 2] + unknown * frame[RAY, 2],
    )


@inner
def offset_from_ray(x, y, z, u, v, camera):
    """Return how far the point (x, y, z) is from the ray of the screen position (u, v), along x and y; and its depth.

    The ray is followed to the z of the point, so it must not run across z.
    """
    frame = camera.frame
    rx, ry, rz = ray(u, v, frame)
    if camera.is_central:
        depth = z / rz
        return x - depth * rx, y - depth * ry, depth
    (px, py, pz), (qx, qy, qz) = frame_vector(TANGENT_U, frame), frame_vector(TANGENT_V, frame)
    along = (z - u * pz - v * qz) / rz
    return x - u * px - v * qx - along * rx, y - u * py - v * qy - along * ry, z
