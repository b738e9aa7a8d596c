"""Kernels of :mod:`normalmesh.evaluation.isotropic.curvature`."""

import math

from normalmesh.normals._camera import facing, jacobian
from normalmesh.runtime.kernels import inner, kernel


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
