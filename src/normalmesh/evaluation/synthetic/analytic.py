"""Analytic surfaces with exact depth and normals, for both cameras.

Sizes are the side of a square image, or rows and columns, in pixels. Heights are fractions of the shorter side. All but
the sphere are reliefs over the image: see :func:`normalmesh.evaluation.synthetic.relief_case.lift`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from normalmesh.array_types import Float
from normalmesh.evaluation.cases import Case
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.evaluation.synthetic.relief_case import (
    Relief,
    checked_shape,
    chosen_camera,
    exact_case,
    lift,
    pixel_centres,
)
from normalmesh.normals.camera import Camera
from normalmesh.runtime.row_blocks import row_blocks

Size = int | tuple[int, int]

#: Largest angle in degrees between the normals of the sphere and the viewing ray; the rest is background.
MAX_ANGLE = 80.0
#: The waves: periods to the right and upwards across the shorter side of the image, phase, fraction of the height.
WAVES = np.array(
    [
        [1.3, 0.4, 0.3, 0.40],
        [-0.7, 1.9, 1.2, 0.25],
        [2.6, 2.3, 2.0, 0.15],
        [-5.1, 2.2, 0.7, 0.08],
        [4.4, 7.3, 2.9, 0.05],
    ]
)


def sphere(size: Size = 512, camera: Camera | str = "orthographic", radius: float = 0.45) -> Case:
    """Return a sphere in the middle of the image, without the parts steeper than 80°.

    The radius of the outline is a fraction of the shorter side of the image. Heights are relative to the centre
    (orthographic); for a perspective camera, the depth of the centre is the focal length in pixels.
    """
    shape = checked_shape(size)
    camera = chosen_camera(camera, shape)
    depth, normals = np.full(shape, np.nan), np.zeros((*shape, 3), np.float32)
    centre, length = _ball(camera, shape, radius * min(shape))
    for rows in row_blocks(shape):
        u, v = np.moveaxis(pixel_centres(rows, shape[1]), -1, 0)
        rays = camera.rays(u, v)
        start = camera.ray_starts(u, v)
        # Solve |start + t·ray − centre| = length for the root nearer to the viewer.
        offset, squared = centre - start, (rays**2).sum(axis=-1)
        along = (offset * rays).sum(axis=-1)
        inside = along**2 - squared * ((offset**2).sum(axis=-1) - length**2)
        t = (along + camera.towards_viewer * np.sqrt(np.maximum(inside, 0))) / squared
        outwards = (t[..., None] * rays - offset) / length
        cosine = camera.towards_viewer * (outwards * rays).sum(axis=-1) / np.sqrt(squared)
        seen = (inside > 0) & (cosine > np.cos(np.radians(MAX_ANGLE)))
        depth[rows][seen] = camera.depth(start + t[..., None] * rays)[seen]
        normals[rows][seen] = outwards[seen]
    return exact_case("sphere", depth, normals, camera)


def _ball(camera: Camera, shape: tuple[int, int], outline: float) -> tuple[Float, float]:
    """Return centre (3,) and radius of the sphere whose outline in the image has the given radius in pixels."""
    middle = np.array([shape[1] / 2, shape[0] / 2])
    depth = np.array(camera.reference_depth)
    radius = outline * camera.reference_pixel
    if camera.is_central:
        # Rays touch the sphere in front of the plane through its centre.
        radius = float(depth * radius / np.hypot(depth, radius))
    return camera.points(middle, camera.unknown_of_depth(depth)), radius


def ridges(size: Size = 512, camera: Camera | str = "orthographic", height: float = 0.06) -> Case:
    """Return winding ridges and furrows with sharp creases on a shallow bowl; ``height`` is from furrow to crest."""

    def heights(x: Float, y: Float) -> Relief:
        winding, winding_slope = 0.1 * np.sin(5 * y), 0.5 * np.cos(5 * y)
        # A triangle wave across winding lines: 1 at the crests, 0 in the furrows.
        place = 5 * (x + 0.3 * y + winding)
        share = np.abs(2 * (place - np.floor(place)) - 1)
        slope = height * 2 * np.sign(2 * (place - np.floor(place)) - 1) * 5
        bowl = 0.2 * (x**2 + y**2)
        return height * share + bowl, slope + 0.4 * x, slope * (0.3 + winding_slope) + 0.4 * y

    return _lifted("ridges", heights, size, camera)


def cone(size: Size = 512, camera: Camera | str = "orthographic", height: float = 0.5) -> Case:
    """Return a cone on a plane, with a sharp apex and a circular crease; the radius of the base is 0.4."""

    def heights(x: Float, y: Float) -> Relief:
        distance = np.hypot(x, y)
        steepness = np.where(distance < 0.4, height / 0.4, 0.0)
        away = -steepness / np.maximum(distance, 1e-12)
        return steepness * (0.4 - distance), away * x, away * y

    return _lifted("cone", heights, size, camera)


def waves(size: Size = 512, camera: Camera | str = "orthographic", height: float = 0.12) -> Case:
    """Return smooth waves of five directions and wavelengths; ``height`` is the largest one above the mean."""

    def heights(x: Float, y: Float) -> Relief:
        total, right, up = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
        for along_x, along_y, phase, share in WAVES:
            angle = 2 * np.pi * (along_x * x + along_y * y) + phase
            slope = height * share * 2 * np.pi * np.cos(angle)
            total += height * share * np.sin(angle)
            right += slope * along_x
            up += slope * along_y
        return total, right, up

    return _lifted("waves", heights, size, camera)


def medallion(size: int = 512, camera: Camera | str = "orthographic") -> Case:
    """Return the medallion of the demo: lettering, flutes with sharp crests, a rim and a smooth bowl."""
    return Medallion(size).seen_by(camera)


def _lifted(name: str, heights: Callable[[Float, Float], Relief], size: Size, camera: Camera | str) -> Case:
    """Return the case of a relief over x (right) and y (up) from the centre of the image.

    These and the heights are fractions of the shorter side of the image.
    """
    rows, columns = shape = checked_shape(size)

    def relief(screen: Float) -> Relief:
        height, right, up = heights(
            (screen[..., 0] - columns / 2) / min(shape), (rows / 2 - screen[..., 1]) / min(shape)
        )
        return min(shape) * height, right, up

    return lift(name, relief, shape, camera)
