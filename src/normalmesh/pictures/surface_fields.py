"""Fields over the image of a surface for pictures: vertex density and angular error."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter

from normalmesh.array_types import Float, Float32, Floating, Int32
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.evaluation.metrics import angles_between
from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map import NormalMap
from normalmesh.pictures.frame import Frame, Samples
from normalmesh.runtime.row_blocks import row_blocks

#: Standard deviation of the smoothing of densities, in mean vertex distances, and its minimum in pixels of the picture.
SMOOTHING, MIN_SMOOTHING = 1.2, 2.0


def vertex_density(surface: Surface, frame: Frame, size: tuple[int, int], owners: Int32) -> Float:
    """Return the smoothed number of vertices per 100 image pixels, in a picture of size (columns, rows); NaN outside.

    ``owners`` (H, W) are the faces at the samples of the frame, −1 outside.
    """
    columns, rows = size
    covered = resized((owners >= 0).astype(np.float32), size)
    u, v = np.floor(frame.places(surface.screen, size)).astype(np.int64).T
    at = np.clip(v, 0, rows - 1) * columns + np.clip(u, 0, columns - 1)
    counts = np.bincount(at, minlength=rows * columns).reshape(rows, columns).astype(np.float64)
    spacing = np.sqrt(max(covered.sum(), 1.0) / len(surface.vertices))
    width = max(SMOOTHING * spacing, MIN_SMOOTHING)
    area = frame.columns * frame.rows / (columns * rows)
    # Smoothing moves weight across the outline; dividing by the smoothed mask compensates for it.
    density = gaussian_filter(counts, width) / np.maximum(gaussian_filter(covered, width), 1e-3)
    return np.where(covered >= 0.5, 100 * density / area, np.nan)


def density_range(density: Float) -> tuple[float, float]:
    """Return the limits of a logarithmic colour scale for densities (H, W)."""
    known = density[density > 0]
    low, high = np.quantile(known, [0.03, 0.99]) if len(known) else (1.0, 1.0)
    middle, spread = np.sqrt(low * high), np.clip(np.sqrt(high / low), 1.7, 30)
    return float(middle / spread), float(middle * spread)


def check_same_shape(surface: Surface, normal_map: NormalMap) -> None:
    """Raise if the normal map and the image of the surface have different shapes."""
    if surface.shape != normal_map.shape:
        raise NormalMeshError(
            f"the surface has {shape_text(surface.shape)} pixels but the normal map has "
            f"{shape_text(normal_map.shape)}; give the map that the surface was reconstructed from"
        )


def angular_errors(surface: Surface, normal_map: NormalMap, samples: Samples, owners: Int32) -> Float32:
    """Return the angles (H, W) in degrees between face and pixel normals at the samples; NaN where one is unknown."""
    normals, faces = samples.of(normal_map.normals), surface.face_normals
    angles = np.empty(owners.shape, np.float32)
    for rows in row_blocks(owners.shape):
        angles[rows] = angles_between(faces[owners[rows]], normals[rows])
    angles[owners < 0] = np.nan
    return angles


def resized(values: Floating, size: tuple[int, int]) -> Float:
    """Resample values (H, W) to size (columns, rows): means of the known values, NaN where most are unknown."""
    known = np.isfinite(values)
    weight = _resized(known.astype(np.float32), size)
    total = _resized(np.where(known, values, 0).astype(np.float32), size)
    return np.where(weight >= 0.5, total / np.maximum(weight, 1e-6), np.nan)


def _resized(values: Float32, size: tuple[int, int]) -> Float:
    from PIL import Image as Canvas

    return np.asarray(Canvas.fromarray(values).resize(size, Canvas.Resampling.BOX), np.float64)
