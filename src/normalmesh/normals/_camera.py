"""Kernels of :mod:`normalmesh.normals.camera`: rays, points, and tangents of the surface from its normals.

``camera`` is :attr:`normalmesh.normals.camera.Camera.arrays`.
"""

import math
from typing import NamedTuple

import numpy as np

from normalmesh.runtime.kernels import inner

#: Normals closer than 5° to grazing carry no usable slope: they are clamped to this angle from the viewing ray.
CLAMP_COSINE = math.cos(math.radians(85))
CLAMP_SINE = math.sin(math.radians(85))
#: Rays that are farther from the optical axis than 45° see a level surface so obliquely that the angle from the ray
#: says nothing about its slope on the screen.
WIDE_COSINE = math.sqrt(0.5)
#: Cosine to the ray above which the rounding of normals to float32 changes slopes by a thousandth at most.
LEAST_COSINE = 1e-4
#: Least share of ⟨r,n⟩ at a place of a plane that must be left at another one. Beyond it the plane is seen from behind.
MIN_FACING = 0.2
#: Share of the way to the horizon of a plane up to which its depth is followed exactly: five times that at the centre.
HORIZON = 1.0 - MIN_FACING
#: Rise beyond, relative to that of first order: planes seen almost edge-on must not leave the range of numbers.
BEYOND = 2.0
#: Maximal relative change of the depth in half a step between pixels; only grazing normals reach it.
MAX_HALF_STEP = 0.9
FACING, ONE = np.float32(MIN_FACING), np.float32(1.0)

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
def frame_vector(row, camera):
    """Return a row of the frame, such as ``TANGENT_U``, as three numbers."""
    frame = camera.frame
    return frame[row, 0], frame[row, 1], frame[row, 2]


@inner(forceinline=True)
def tangents(camera):
    """Return τ_u and τ_v, each as three numbers."""
    return frame_vector(TANGENT_U, camera), frame_vector(TANGENT_V, camera)


@inner(forceinline=True)
def ray(u, v, camera):
    """Return the ray r(u, v) as three numbers."""
    frame = camera.frame
    return (
        frame[RAY, 0] + u * frame[RAY_U, 0] + v * frame[RAY_V, 0],
        frame[RAY, 1] + u * frame[RAY_U, 1] + v * frame[RAY_V, 1],
        frame[RAY, 2] + u * frame[RAY_U, 2] + v * frame[RAY_V, 2],
    )


@inner
def to_viewer(u, v, camera):
    """Return the unit direction from the surface at the screen position (u, v) to the viewer."""
    rx, ry, rz = ray(u, v, camera)
    x, y, z = camera.towards_viewer * rx, camera.towards_viewer * ry, camera.towards_viewer * rz
    length = math.sqrt(x * x + y * y + z * z)
    return x / length, y / length, z / length


@inner(forceinline=True)
def products(nx, ny, nz, u, v, camera):
    """Return ⟨n, τ_u⟩, ⟨n, τ_v⟩ and ⟨n, r⟩ of a normal at the screen position (u, v)."""
    (px, py, pz), (qx, qy, qz) = tangents(camera)
    rx, ry, rz = ray(u, v, camera)
    return nx * px + ny * py + nz * pz, nx * qx + ny * qy + nz * qz, nx * rx + ny * ry + nz * rz


@inner
def jacobian(nx, ny, nz, u, v, camera):
    """Return the tangents J(n) in pixels at the screen position (u, v), eqs. (7) and (8)."""
    scale = camera.scale
    (px, py, pz), (qx, qy, qz) = tangents(camera)
    rx, ry, rz = ray(u, v, camera)
    along_u, along_v, along_ray = products(nx, ny, nz, u, v, camera)
    # One division for both slopes.
    inverse = 1.0 / along_ray
    slope_u, slope_v = along_u * inverse, along_v * inverse
    return Tangents(
        (px - slope_u * rx) * scale,
        (py - slope_u * ry) * scale,
        (pz - slope_u * rz) * scale,
        (qx - slope_v * rx) * scale,
        (qy - slope_v * ry) * scale,
        (qz - slope_v * rz) * scale,
    )


@inner
def steepest(rx, ry, rz, camera):
    """Return cosine and sine of the largest angle of a normal from the unit ray (rx, ry, rz): 85°, or more if oblique.

    Along rays that are oblique to the screen, slopes on the screen are bounded as they are along those at 45°.
    """
    (px, py, pz), (qx, qy, qz) = tangents(camera)
    x, y, z = py * qz - pz * qy, pz * qx - px * qz, px * qy - py * qx
    obliqueness = abs(rx * x + ry * y + rz * z) / math.sqrt(x * x + y * y + z * z)
    if obliqueness >= WIDE_COSINE:
        return CLAMP_COSINE, CLAMP_SINE
    cosine = max(CLAMP_COSINE * obliqueness / WIDE_COSINE, LEAST_COSINE)
    return cosine, math.sqrt(1.0 - cosine * cosine)


@inner
def facing(nx, ny, nz, u, v, camera):
    """Normalise a sum of normals and clamp it to the steepest one that the viewing ray allows."""
    rx, ry, rz = to_viewer(u, v, camera)
    length = math.sqrt(nx * nx + ny * ny + nz * nz)
    if length < 1e-12:
        return rx, ry, rz
    nx, ny, nz = nx / length, ny / length, nz / length
    cosine = nx * rx + ny * ry + nz * rz
    if cosine >= CLAMP_COSINE:
        return nx, ny, nz
    limit, sine = steepest(rx, ry, rz, camera)
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
        depth, (rx, ry, rz) = math.exp(unknown), ray(u, v, camera)
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
    rx, ry, rz = ray(u, v, camera)
    if camera.is_central:
        depth = z / rz
        return x - depth * rx, y - depth * ry, depth
    (px, py, pz), (qx, qy, qz) = tangents(camera)
    along = (z - u * pz - v * qz) / rz
    return x - u * px - v * qx - along * rx, y - u * py - v * qy - along * ry, z


@inner(forceinline=True)
def pixels_per_length(unknown, camera):
    """Return how many pixels that face the viewer are as long as one unit where the unknown is ``unknown``."""
    return camera.scale * math.exp(-unknown) if camera.is_central else camera.scale


@inner(forceinline=True)
def change_of_depth(nx, ny, nz, u, v, camera):
    """Return how much the logarithm of a depth changes from the centre (u, v) of a pixel to its corners, at most.

    Zero for parallel rays, whose depths have no logarithm.
    """
    if not camera.is_central:
        return 0.0
    along_u, along_v, along_ray = products(nx, ny, nz, u, v, camera)
    return 0.5 * (abs(along_u) + abs(along_v)) / abs(along_ray)


@inner(forceinline=True)
def plane_rise(linear, camera):
    """Return the rise of the unknown along a plane in space whose first-order rise on the screen is ``linear``.

    Along a plane, the logarithm of the depth rises by −log(1 − ĝ·δu). Beyond :data:`HORIZON` it is continued linearly.
    """
    if not camera.is_central:
        return linear
    near = min(linear, HORIZON)
    return -math.log1p(-near) + BEYOND * (linear - near)


@inner(forceinline=True)
def half_rises(half, camera):
    """Return the rises of the unknown to and from the centre of a pixel along its plane, in half a step each.

    ``half`` is the rise of first order, which is limited so that it stays away from the horizon.
    """
    if not camera.is_central:
        return half, half
    half = min(max(half, -MAX_HALF_STEP), MAX_HALF_STEP)
    return np.log1p(half), -np.log1p(-half)


@inner(forceinline=True)
def slope_weight(weight, slope_u, slope_v, step_u, step_v, camera):
    """Return the weight of float32 slopes at a pixel in a sum of those that its plane has a step farther.

    Along a plane in space, the slope of a logarithm becomes slope/(1 − slope·δu).
    """
    if not camera.is_central:
        return weight
    left = ONE - slope_u * step_u - slope_v * step_v
    return weight / (left if left >= FACING else ONE)


@inner(forceinline=True)
def plane_depth(a, b, c, first, second, third, camera):
    """Return the depth of a point of a triangle on the screen from the depths a, b, c of its corners and their weights.

    On a plane in space the height is linear on the screen; behind a pinhole the inverse of the depth is.
    """
    if camera.is_central:
        return 1.0 / (first / a + second / b + third / c)
    return first * a + second * b + third * c


@inner(forceinline=True)
def middle_unknown(one, other, camera):
    """Return the unknown in the middle, on the screen, of a straight line in space between points with two unknowns."""
    middle = 0.5 * (one + other)
    # The inverse of the depth is linear on the screen.
    return middle - math.log(math.cosh(0.5 * (one - other))) if camera.is_central else middle
