"""Integration on the pixel grid, with one unknown per foreground pixel: the baseline of integration on meshes."""

from __future__ import annotations

import math

import numpy as np
from scipy import ndimage

from normalmesh.arguments import checked_instance
from normalmesh.array_types import Float
from normalmesh.errors import NormalMeshError
from normalmesh.integration.pixel_grid import PixelPlanes, no_edges, right_side, solve_grid, weigh_by_mobility
from normalmesh.integration.pixel_jumps import with_jumps
from normalmesh.integration.repeating_pixels import repeating_heights
from normalmesh.jumps.finding import checked_discontinuities, find_jumps
from normalmesh.mesh.jumps import Jumps
from normalmesh.mesh.repeats import Repeats
from normalmesh.normals.camera import checked_distance
from normalmesh.normals.normal_map import NormalMap
from normalmesh.normals.normal_map_like import NormalMapLike, as_normal_map
from normalmesh.runtime.memory_budget import limited_memory, require_memory
from normalmesh.runtime.threads import limited_threads

#: Root of the energy of the error, in px, that is small enough in each component.
MAX_ERROR = 1e-4
#: Bytes for each pixel of the rectangle around the foreground, and of the image.
RECTANGLE_BYTES, IMAGE_BYTES = 95, 20
#: What to do about a map that does not fit into memory.
REMEDY = "mask or crop what you do not need, halve the resolution, or use reconstruct, which needs far less"


def integrate_pixels(
    normal_map: NormalMapLike,
    *,
    distance: float = 1.0,
    discontinuities: bool | str = False,
    jumps: Jumps | None = None,
    tileable: bool | str = False,
    threads: int | None = None,
    memory_limit: float | None = None,
) -> Float:
    """Integrate a normal map on the pixel grid: find the heights or distances whose gradients fit the normals best.

    Minimises ``Σ_pq m_pq (z_q − z_p − g_pq)²`` over edges between adjacent foreground pixels, the functional
    ``∫ ‖⟨n, r⟩ ∇z + (⟨n, τ_u⟩, ⟨n, τ_v⟩)‖²`` of the paper (equation E_Int). Each pixel is a plane through its centre.
    ``g_pq`` is the rise on the plane of p from its centre to the midpoint of the common side, plus that on the plane of
    q from there to its centre, so that planes are exact for both cameras. ``m_pq`` is the mean of ``⟨n, r⟩²`` of both.

    Parameters
    ----------
    normal_map
        Normals, mask and camera, or what :func:`reconstruct` takes for them.
    distance
        Mean distance along the optical axis of each component behind a :class:`Perspective` camera. Unused for
        :class:`Orthographic`.
    discontinuities
        Whether the depth may jump where one part of the scene occludes another: ``"auto"`` and ``True`` as for
        :func:`reconstruct`, with the same lines and the same placement of parts.
    jumps
        The jumps, from :func:`find_jumps`; found by default if discontinuities are allowed.
    tileable
        Whether the map repeats: True, or ``"x"`` or ``"y"`` for one direction only. The heights then repeat, too: edges
        also connect the pixels of opposite sides, and a mean slope is left out. For orthographic maps without
        background or jumps.
    threads
        As for :func:`reconstruct`; the result does not depend on it.
    memory_limit
        Maximal number of bytes to use beside the normal map; by default what is available.

    Returns
    -------
    (H, W) float64
        Orthographic: height towards the viewer, in the unit of the pixel size, mean zero. Perspective: distance
        along the optical axis, mean ``distance``. The means are those of each 4-connected component of the mask:
        normals do not determine the relative position of components. NaN outside the mask.

    Raises
    ------
    NormalMeshError
        ``distance`` is not positive, the equations could not be solved, or more memory is needed than there is.
    """
    normal_map = as_normal_map(normal_map)
    distance = checked_distance(distance)
    if jumps is not None:
        checked_instance(jumps, Jumps, "jumps")
    chosen = checked_discontinuities(discontinuities)
    repeats = Repeats.of(tileable, normal_map.shape)
    with limited_memory(memory_limit), limited_threads(threads):
        rectangle = math.prod(normal_map.rectangle()[2:])
        task = f"the integration on the pixel grid, of {rectangle} pixels with the background between them,"
        require_memory(RECTANGLE_BYTES * rectangle + IMAGE_BYTES * normal_map.mask.size, task, REMEDY)
        if repeats is not None:
            if jumps is not None or chosen is not False:
                raise NormalMeshError(
                    "heights on the pixel grid that repeat have no jumps: leave out jumps and discontinuities"
                )
            return repeating_heights(normal_map, repeats)
        if jumps is None:
            jumps = Jumps() if chosen is False else find_jumps(normal_map, discontinuities=chosen)
        unknown = _integrated(normal_map, jumps)
    return _centred(unknown, normal_map, distance)


def _centred(unknown: Float, normal_map: NormalMap, distance: float) -> Float:
    """Turn the unknown (H, W) of the camera into depths whose mean over each component is as documented, in place."""
    component, count = ndimage.label(normal_map.mask, output=np.int32)
    index = component.ravel()
    pixels = np.maximum(np.bincount(index, minlength=count + 1), 1)
    mean = np.bincount(index, unknown.ravel(), count + 1) / pixels
    unknown -= mean[component]
    if normal_map.camera.gauge == "scale":
        normal_map.camera.depth_of_unknown(unknown, out=unknown)
        mean = np.bincount(index, unknown.ravel(), count + 1) / pixels
        unknown *= distance / mean[component]
    unknown[~normal_map.mask] = np.nan
    return unknown


def _integrated(normal_map: NormalMap, jumps: Jumps) -> Float:
    """Return the unknown (H, W) of the camera, up to a constant per component; arbitrary finite values outside."""
    planes = PixelPlanes.of(normal_map)
    edges = no_edges(planes.mask.shape)
    weigh_by_mobility(planes.mask, planes.mobility, edges)
    pull: Float | float = 0.0
    if jumps.lines:
        edges, pull = with_jumps(jumps, planes, edges, normal_map)
    b = right_side(planes.half_steps, edges) + pull
    mask, window = planes.mask, planes.window
    del planes
    unknown = np.zeros(normal_map.shape)
    unknown[window] = solve_grid(mask, edges, b, MAX_ERROR * normal_map.camera.pixel_length)
    return unknown
