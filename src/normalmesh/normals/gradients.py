"""Gradients of heights and slopes on the screen: normals of them, and back.

Unlike normals, slopes may be averaged and interpolated: the mean slope of a region is the slope of the mean surface.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from normalmesh.arguments import checked_array
from normalmesh.array_types import Float, Float32, Floating
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.normals.camera import Camera, checked_camera
from normalmesh.normals.conventions import Convention
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.orthographic import Orthographic
from normalmesh.runtime.row_blocks import row_blocks


def from_gradients(
    p: ArrayLike,
    q: ArrayLike,
    mask: ArrayLike | None = None,
    camera: Camera | None = None,
    *,
    convention: str | Convention = "opengl",
) -> NormalMap:
    """Return the normal map of the gradients of a height map: normals (−p, −q, 1), normalised.

    Parameters
    ----------
    p, q
        (H, W): p = ∂z/∂x with x to the right, q = ∂z/∂y with y up, where z is the height towards the viewer. Both are
        slopes, without a unit: rise over run in the same unit. NaN where unknown.
    mask
        (H, W), nonzero = foreground; default: where p and q are known, and enclosed specks of at most 16 pixels.
    camera
        Default :class:`Orthographic`. With another camera, p and q are the slopes of the surface in space.
    convention
        The axes of x, y and z, if they are others. ``"directx"``: y down, as for q = ∂z/∂row, such as the first result
        of :func:`numpy.gradient`. ``"opencv"``: y down and z away from the viewer, for gradients of a depth.

    Returns
    -------
    NormalMap
        Background where p or q is unknown, or outside the mask.

    Raises
    ------
    NormalMeshError
        p and q are not floats of one shape, or their third axis is not z.

    Examples
    --------
    >>> z = np.hypot(*np.mgrid[-20:20, -20:20])  # heights in pixels
    >>> q, p = np.gradient(z)  # along rows, which go down, and along columns
    >>> normal_map = nm.from_gradients(p, q, convention="directx")
    """
    axes, view = Convention.parse(convention), Orthographic() if camera is None else checked_camera(camera)
    if axes.order[2] != 2:
        raise NormalMeshError(f"gradients are those of z over x and y: the third axis must be z, not {axes.axes}")
    first, second = (checked_array(values, name, "an array of floats", "f") for values, name in ((p, "p"), (q, "q")))
    if first.ndim != 2 or first.shape != second.shape or first.size == 0:
        raise NormalMeshError(
            "p and q must have the same shape (rows, columns), "
            f"not {shape_text(first.shape)} and {shape_text(second.shape)}"
        )
    if not (np.isfinite(first) & np.isfinite(second)).any():
        raise NormalMeshError("p and q are empty: there is no pixel in which both are finite")
    # The normal that points towards the viewer, whichever way z does.
    normals = axes.signs[2] * axes.to_project(normals_of_gradients(first, second))
    return NormalMap(normals.astype(np.float32), mask, view)  # type: ignore[arg-type]  # None: no mask


def normals_of_gradients(p: Floating, q: Floating) -> Float32:
    """Return the unit vectors (H, W, 3) along (−p, −q, 1) for slopes (H, W); NaN where one of them is not finite."""
    normals = np.empty((*p.shape, 3), np.float32)
    for rows in row_blocks(p.shape):
        along_x, along_y = p[rows].astype(np.float64), q[rows].astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            length = np.hypot(np.hypot(along_x, along_y), 1)
            for axis, component in enumerate((-along_x, -along_y, 1)):
                normals[rows, :, axis] = component / length
        normals[rows][~np.isfinite(length)] = np.nan
    return normals


def slopes_of(normals: Float32, camera: Camera) -> Float:
    """Return the slopes (H, W, 2) of clean normals (H, W, 3): ``∂_i z = −⟨n, τ_i⟩ / ⟨n, r⟩``; zero where n is zero."""
    slopes = np.zeros((*normals.shape[:2], 2))
    for rows in row_blocks(normals.shape[:2]):
        n = normals[rows].astype(np.float64)
        along_ray = np.sum(n * _rays(camera, rows, normals.shape[1]), axis=-1)
        for axis, tangent in enumerate(camera.tangents):
            np.divide(-(n @ tangent), along_ray, out=slopes[rows, :, axis], where=along_ray != 0)
    return slopes


def normals_of_slopes(slopes: Float, camera: Camera) -> Float32:
    """Return the unit normals (H, W, 3), towards the viewer, of slopes (H, W, 2); NaN where one of them is NaN."""
    normals = np.empty((*slopes.shape[:2], 3), np.float32)
    tau_u, tau_v = camera.tangents
    for rows in row_blocks(slopes.shape[:2]):
        rays = _rays(camera, rows, slopes.shape[1])
        along_u, along_v = np.moveaxis(slopes[rows], -1, 0)
        n = np.cross(tau_u + along_u[..., None] * rays, tau_v + along_v[..., None] * rays)
        facing = camera.towards_viewer * np.sign(np.sum(n * rays, axis=-1))
        normals[rows] = n * (facing / np.linalg.norm(n, axis=-1))[..., None]
    return normals


def _rays(camera: Camera, rows: slice, columns: int) -> Float:
    """Return the rays (h, W, 3) of the pixel centres of some rows."""
    u, v = np.arange(columns) + 0.5, np.arange(rows.start, rows.stop) + 0.5
    return camera.rays(u[None, :], v[:, None])
