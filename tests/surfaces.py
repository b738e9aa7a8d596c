"""Make surfaces with exact normals to integrate, and measure the errors of the results."""

from __future__ import annotations

import numpy as np

from normalmesh import NormalMap, Orthographic, Perspective, ScreenMesh


def centres(shape):
    """Return the screen positions u, v (H, W) of the pixel centres."""
    v, u = np.indices(shape) + 0.5
    return u, v


def plane_map(direction, shape, camera=None, mask=None):
    """Return a normal map with the same normal everywhere."""
    direction = np.array(direction, float) / np.linalg.norm(direction)
    return NormalMap(np.broadcast_to(direction, (*shape, 3)).copy(), mask, camera or Orthographic())


def wave_height(u, v, pixel_size=1.0, steepness=0.5):
    """Return the height of a sum of waves in several directions, and its derivatives by u and v."""
    height, slope_u, slope_v = np.zeros_like(u), np.zeros_like(u), np.zeros_like(u)
    for along_u, along_v, phase in ((0.21, 0.05, 0.3), (-0.08, 0.17, 1.2), (0.1, 0.13, 2.0)):
        angle = along_u * u + along_v * v + phase
        scale = steepness * pixel_size / 3 / np.hypot(along_u, along_v)
        height += scale * np.sin(angle)
        slope_u += scale * along_u * np.cos(angle)
        slope_v += scale * along_v * np.cos(angle)
    return height, slope_u, slope_v


def waves(shape=(64, 64), pixel_size=1.0, mask=None, steepness=1.2, shift=(0, 0)):
    """Return an orthographic normal map of waves, and its heights (H, W)."""
    u, v = centres(shape)
    height, slope_u, slope_v = wave_height(u - shift[0], v - shift[1], pixel_size, steepness)
    normals = np.stack([-slope_u / pixel_size, slope_v / pixel_size, np.ones(shape)], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    return NormalMap(normals, mask, Orthographic(pixel_size)), height


def sphere(size=64, camera=None, radius=0.8, mask=None):
    """Return the normal map of a sphere that fills the image, and its heights or distances (H, W).

    ``radius`` is in image widths. For a perspective camera, the centre is at the distance 2 on the optical axis.
    """
    camera = camera or Orthographic()
    u, v = centres((size, size))
    if isinstance(camera, Orthographic):
        step = camera.pixel_size
        x, y = step * (u - size / 2), -step * (v - size / 2)
        z = np.sqrt((radius * size * step) ** 2 - x**2 - y**2)
        normals = np.stack([x, y, z], axis=-1) / (radius * size * step)
        return NormalMap(normals, mask, camera), z
    rays = camera.rays(u, v)
    along, squared = -2 * rays[..., 2], (rays**2).sum(axis=-1)
    inside = along**2 - squared * (4 - radius**2)
    hit = inside > 0.05 * inside.max()
    depth = (along - np.sqrt(np.where(hit, inside, 0))) / squared
    normals = depth[..., None] * rays + [0, 0, 2]
    normals[~hit] = [0, 0, 1]
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    return NormalMap(normals, hit if mask is None else hit & mask, camera), depth


def noisy(normal_map, degrees, seed=0):
    """Return a normal map with white noise of this standard deviation (degrees) on its normals."""
    rng = np.random.default_rng(seed)
    normals = normal_map.normals + np.radians(degrees) * rng.normal(size=normal_map.normals.shape)
    normals[~normal_map.mask] = [0, 0, 1]
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    return NormalMap(normals, normal_map.mask, normal_map.camera)


def grid_mesh(cells, size):
    """Return a mesh of ``cells`` × ``cells`` squares, two triangles each, over an image of ``size`` pixels a side."""
    mesh = ScreenMesh.from_mask(np.ones((cells, cells), bool))
    return ScreenMesh(mesh.vertices * (size / cells), mesh.faces)


def rmse(surface, depth, mask):
    """Return the root mean square depth error on the mask, after alignment by the best constant or scale."""
    found = surface.depth_map()
    here = mask & np.isfinite(found)
    assert np.count_nonzero(here) > 0.9 * np.count_nonzero(mask)
    found, truth = found[here], depth[here]
    if isinstance(surface.camera, Perspective):
        error = found * (found @ truth) / (found @ found) - truth
    else:
        error = found - truth - (found - truth).mean()
    return np.sqrt((error**2).mean())


def angle_error(surface, normal_map):
    """Return the mean angle in degrees between the normals of pixels and faces."""
    found = surface.normal_map()
    here = normal_map.mask & found.any(axis=-1)
    cosine = (found[here].astype(np.float64) * normal_map.normals[here]).sum(axis=1)
    return np.degrees(np.arccos(np.clip(cosine, -1, 1))).mean()


def flap(size=96):
    """Return height (size, size) and normal map of a flap that rises to the right and ends in a jump.

    The jump fades out above and below.
    """
    v, u = np.mgrid[:size, :size] + 0.5
    fade = np.clip(1 - ((v - size / 2) / (0.35 * size)) ** 2, 0, None) ** 2
    fade_slope = np.where(fade > 0, -4 * (v - size / 2) / (0.35 * size) ** 2 * np.sqrt(fade), 0)
    ramp = np.where(u < 0.6 * size, np.clip(u - 0.2 * size, 0, None), 0)
    height = 0.5 * ramp * fade
    slope_u = np.where((u < 0.6 * size) & (u > 0.2 * size), 0.5 * fade, 0)
    slope_v = 0.5 * ramp * fade_slope
    normals = np.stack([-slope_u, slope_v, np.ones_like(u)], axis=-1)
    return height, NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True))
