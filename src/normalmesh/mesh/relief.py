"""Exaggerating or flattening the relief of a surface."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from normalmesh.arguments import checked_finite
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.mesh.flattening import restored
from normalmesh.normals.camera import MAX_COORDINATE
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.row_blocks import row_blocks

if TYPE_CHECKING:
    from normalmesh.mesh.surface import Surface
    from normalmesh.normals.camera import Camera


def checked_strength(strength: object) -> float:
    """Return a factor of the relief: a finite number other than zero."""
    number = checked_finite(strength, "strength", "a finite number other than 0")
    if number == 0:
        raise NormalMeshError(f"strength must be a finite number other than 0, not {repr_for_error(strength)}")
    return number


def check_parallel(camera: Camera) -> None:
    """Raise an error if a camera has no heights that could be multiplied."""
    camera.require_heights(
        "strength is for orthographic maps: behind a perspective camera, other depths would be seen at other pixels; "
        "leave it out, or scale the mesh in a 3D program"
    )


def exaggerated_surface(surface: Surface, strength: float) -> Surface:
    """Return the surface with all heights multiplied; see :meth:`Surface.exaggerated`."""
    strength = checked_strength(strength)
    check_parallel(surface.camera)
    if not float(np.abs(surface.vertices[:, 2]).max()) * abs(strength) <= MAX_COORDINATE:
        raise NormalMeshError(f"strength is too large: heights may be at most {MAX_COORDINATE:.0e}")
    jumps, flattening = surface.discontinuities, surface.flattening
    return replace(
        surface,
        vertices=surface.vertices * [1.0, 1.0, strength],
        discontinuities=None if jumps is None else replace(jumps, jumps=jumps.jumps * strength),
        flattening=None if flattening is None else replace(flattening, strength=flattening.strength * strength),
        strength=surface.strength * strength,
    )


def measured_surface(surface: Surface) -> Surface:
    """Return the surface as the normals have it: before it was flattened or exaggerated."""
    whole = restored(surface)
    return whole if whole.strength == 1 else exaggerated_surface(whole, 1 / whole.strength)


def normals_of_relief(surface: Surface, normal_map: NormalMap) -> NormalMap:
    """Return the normals of a map, at any resolution, as the surface has them.

    What was taken away, the mean slope of a map that repeats or by flattening, is taken away from them, too, and slopes
    are exaggerated.
    """
    strength, flattening = surface.strength, surface.flattening
    mean_slope = (0.0, 0.0) if surface.repeats is None else surface.repeats.mean_slope
    if strength == 1 and flattening is None and not any(mean_slope):
        return normal_map
    normals, (height, width) = np.empty_like(normal_map.normals), normal_map.shape
    u = (np.arange(width) + 0.5) * (surface.shape[1] / width)
    for rows in row_blocks(normal_map.shape):
        # The slopes along x and y are −n_x/n_z and −n_y/n_z.
        changed = normal_map.normals[rows].astype(np.float64)
        changed[..., :2] = strength * (changed[..., :2] + changed[..., 2:] * mean_slope)
        if flattening is not None:
            v = np.arange(rows.start, rows.stop)[:, None] + 0.5
            screen = np.stack(np.broadcast_arrays(u, v * (surface.shape[0] / height)), axis=-1)
            x, y, _ = np.moveaxis(surface.camera.points(screen, np.zeros(screen.shape[:2])), -1, 0)
            changed[..., :2] += changed[..., 2:] * np.stack(flattening.slopes(x, y), axis=-1)
        lengths = np.linalg.norm(changed, axis=2, keepdims=True)
        normals[rows] = changed / np.maximum(lengths, np.finfo(np.float64).tiny)
    return NormalMap.cleaned(normals, normal_map.mask, normal_map.camera, normal_map.repairs)
