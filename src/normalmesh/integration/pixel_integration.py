"""Integration on the pixel grid, with one unknown per foreground pixel: the baseline of integration on meshes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from normalmesh.arguments import checked_bool, checked_instance
from normalmesh.integration.pixel_grid import PixelPlanes, no_edges, right_side, solve_grid, weigh_by_mobility
from normalmesh.integration.pixel_jumps import integrate_jumps
from normalmesh.normals.camera import checked_distance
from normalmesh.normals.normal_map import NormalMap

Float = NDArray[np.float64]


def integrate_pixels(normal_map: NormalMap, *, distance: float = 1.0, discontinuities: bool = False) -> Float:
    """Integrate a normal map on the pixel grid: find the heights or distances whose gradients fit the normals best.

    Minimises ``Σ_pq m_pq (z_q − z_p − g_pq)²`` over edges between adjacent foreground pixels, the functional
    ``∫ ‖⟨n, r⟩ ∇z + (⟨n, τ_u⟩, ⟨n, τ_v⟩)‖²`` of the paper (equation E_Int). Each pixel is a plane through its centre.
    ``g_pq`` is the rise on the plane of p from its centre to the midpoint of the common side, plus that on the plane of
    q from there to its centre, so that planes are exact for both cameras. ``m_pq`` is the mean of ``⟨n, r⟩²`` of both.

    Parameters
    ----------
    normal_map
        Normals, mask and camera.
    distance
        Mean distance along the optical axis of each component behind a :class:`Perspective` camera. Unused for
        :class:`Orthographic`.
    discontinuities
        Whether the depth may jump where one part of the scene occludes another. Minimises
        ``Σ_pq log(1 + (ν_pq r_pq / σ)²)`` instead of the squares, with the residuals ``r_pq = z_q − z_p − g_pq`` in
        pixels, the smaller cosine ν between normal and viewing ray of the two pixels, and σ = 0.05 px plus the
        estimated noise (rad): an edge loses weight with its residual. Initially, each pixel prefers the neighbours
        closest to its own depth, as in bilateral normal integration (Cao et al. 2022). Without occlusions the result is
        nearly the same; it takes about ten times as long. The depth of a part that is connected to the rest only across
        jumps is not determined.

    Returns
    -------
    (H, W) float64
        Orthographic: height towards the viewer, in the unit of the pixel size, mean zero. Perspective: distance
        along the optical axis, mean ``distance``. The means are those of each 4-connected component of the mask:
        normals do not determine the relative position of components. NaN outside the mask.

    Raises
    ------
    NormalMeshError
        ``distance`` is not positive, or the equations could not be solved.
    """
    checked_instance(normal_map, NormalMap, "normal_map")
    distance = checked_distance(distance)
    checked_bool(discontinuities, "discontinuities")
    unknown = integrate_jumps(normal_map) if discontinuities else _integrated(normal_map)
    component, count = ndimage.label(normal_map.mask, output=np.int32)
    index = component.ravel()
    pixels = np.maximum(np.bincount(index, minlength=count + 1), 1)
    mean = np.bincount(index, unknown.ravel(), count + 1) / pixels
    unknown -= mean[component]
    if normal_map.camera.is_central:
        normal_map.camera.depth_of_unknown(unknown, out=unknown)
        mean = np.bincount(index, unknown.ravel(), count + 1) / pixels
        unknown *= distance / mean[component]
    unknown[~normal_map.mask] = np.nan
    return unknown


def _integrated(normal_map: NormalMap) -> Float:
    """Return the unknown (H, W) of the camera, up to a constant per component; arbitrary finite values outside."""
    planes = PixelPlanes.of(normal_map)
    edges = no_edges(planes.mask.shape)
    weigh_by_mobility(planes.mask, planes.mobility, edges)
    b = right_side(planes.half_steps, edges)
    mask, window = planes.mask, planes.window
    del planes
    unknown = np.zeros(normal_map.shape)
    unknown[window] = solve_grid(mask, edges, b)
    return unknown
