"""Oblique view: render a shaded surface from the side."""

from __future__ import annotations

import numpy as np

from normalmesh.array_types import Bool, Float, Float32, UInt8
from normalmesh.mesh.surface import Surface
from normalmesh.mesh.walls import with_walls
from normalmesh.pictures._oblique import draw_faces
from normalmesh.pictures.panels import reduced

#: Direction to the light: the upper left of the camera.
LIGHT = np.array([-0.60, 0.55, 0.58], np.float32) / np.float32(np.linalg.norm([-0.60, 0.55, 0.58]))
#: Colours of dark and bright areas, for front and back faces.
FRONT = np.array([[38, 34, 42], [250, 244, 232]], np.float64)
BACK = np.array([[44, 54, 78], [176, 196, 226]], np.float64)
#: Largest factor by which the contrast is stretched.
MAX_STRETCH = 3.0


def oblique(
    surface: Surface,
    size: tuple[int, int],
    azimuth: float = -35.0,
    elevation: float = 25.0,
    background: tuple[int, int, int] = (255, 255, 255),
) -> UInt8:
    """Render a surface with smooth shading in parallel projection, at size (columns, rows). Back faces are bluish.

    The viewer is ``azimuth`` degrees to the right of the camera, and ``elevation`` degrees above it.
    """
    surface = with_walls(surface)
    columns, rows = 2 * size[0], 2 * size[1]
    axes = _axes(azimuth, elevation)
    points = _fitted(surface.vertices @ axes.T, columns, rows)
    nearness = np.full((rows, columns), -np.inf)
    seen = np.zeros((rows, columns, 3), np.float32)
    back = np.zeros((rows, columns), np.bool_)
    draw_faces(points, surface.faces, surface.vertex_normals, nearness, seen, back)
    covered = np.isfinite(nearness)
    image = np.empty((rows, columns, 3), np.uint8)
    image[:] = background
    normals = seen[covered] * np.where(back[covered], np.float32(-1), np.float32(1))[:, None]
    image[covered] = _diffuse(normals, axes[2].astype(np.float32), back[covered])
    return reduced(image, size)


def _axes(azimuth: float, elevation: float) -> Float:
    """Return a matrix with the rows right, up and towards the viewer."""
    a, b = np.radians(azimuth), np.radians(elevation)
    near = np.array([np.sin(a) * np.cos(b), np.sin(b), np.cos(a) * np.cos(b)])
    right = np.array([np.cos(a), 0.0, -np.sin(a)])
    return np.stack([right, np.cross(near, right), near])


def _fitted(points: Float, columns: int, rows: int) -> Float:
    """Convert points (N, 3), given as right, up and near, to column, row and nearness such that they fill the image."""
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    inner = np.quantile(points[:, :2], [0.01, 0.99], axis=0)
    # A few distant parts, whose depth normals do not determine, would make all others small.
    if ((high - low) > 2 * (inner[1] - inner[0])).any():
        reach = 0.1 * (inner[1] - inner[0])
        low, high = np.maximum(low, inner[0] - reach), np.minimum(high, inner[1] + reach)
    scale = 0.97 * min(np.array([columns, rows]) / np.maximum(high - low, 1e-300))
    off = (points[:, :2] - (low + high) / 2) * scale
    return np.stack([columns / 2 + off[:, 0], rows / 2 - off[:, 1], points[:, 2]], axis=1)


def _diffuse(normals: Float32, towards_viewer: Float32, back: Bool) -> UInt8:
    """Return the colours (K, 3) of normals (K, 3), with the contrast stretched for flat reliefs.

    A weak second light at the viewer reveals the shape of areas that the main light does not reach.
    """
    normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), np.float32(1e-12))
    light = 0.05 + 0.75 * np.clip(normals @ LIGHT, 0, 1) + 0.25 * np.clip(normals @ towards_viewer, 0, 1)
    if len(light):
        low, high = np.quantile(light, [0.01, 0.99])
        stretch = np.clip(0.85 / max(high - low, 1e-6), 1, MAX_STRETCH)
        half = stretch * (high - low) / 2
        light = (light - (low + high) / 2) * stretch + np.clip((low + high) / 2, 0.1 + half, 0.97 - half)
    light = np.clip(light, 0, 1)[:, None]
    colours = np.where(back[:, None], *((1 - light) * tone[0] + light * tone[1] for tone in (BACK, FRONT)))
    image: UInt8 = np.round(colours).astype(np.uint8)
    return image
