"""Panels: images (H, W, 3) uint8 of a normal map or a surface, as the camera sees it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from normalmesh.screenmesh import ScreenMesh

Image = NDArray[np.uint8]

#: Towards the light: upper left, in front.
LIGHT = np.array([-0.5, 0.5, 0.7]) / np.linalg.norm([-0.5, 0.5, 0.7])

#: Colours of errors from none to the scale's end: black, violet, red, orange, pale yellow.
HEAT = np.array([[0, 0, 4], [80, 18, 123], [182, 54, 121], [251, 136, 97], [252, 253, 191]], np.float64)


def normal_colours(normals: NDArray[np.float32]) -> Image:
    """Normals (H, W, 3) as normal maps show them; background grey."""
    return np.round(255 * (normals + 1) / 2).astype(np.uint8)


def shaded(normals: NDArray[np.float32]) -> Image:
    """A matt surface with these normals (H, W, 3); background white."""
    background = ~normals.any(axis=-1)
    light = np.clip(0.15 + 0.85 * (normals @ LIGHT), 0, 1)
    light[background] = 1
    return np.round(255 * light).astype(np.uint8)[..., None].repeat(3, axis=-1)


def heat(values: NDArray[np.float64], end: float) -> Image:
    """Values (H, W) from 0 to the end of the scale; NaN white."""
    place = np.clip(np.nan_to_num(np.abs(values) / end), 0, 1) * (len(HEAT) - 1)
    image = np.stack([np.interp(place, np.arange(len(HEAT)), HEAT[:, k]) for k in range(3)], axis=-1)
    image[np.isnan(values)] = 255
    return np.round(image).astype(np.uint8)


def wireframe(mesh: ScreenMesh, shape: tuple[int, int], scale: int = 2) -> Image:
    """The edges of a mesh on white, drawn at ``scale`` times the resolution and reduced."""
    from PIL import Image as Canvas
    from PIL import ImageDraw

    rows, columns = shape
    canvas = Canvas.new("L", (columns * scale, rows * scale), 255)
    draw = ImageDraw.Draw(canvas)
    sides = np.concatenate([mesh.faces[:, [k, (k + 1) % 3]] for k in range(3)])
    sides = np.unique(np.sort(sides, axis=1), axis=0)
    for start, end in mesh.vertices[sides] * scale:
        draw.line([*start, *end], fill=40)
    return np.asarray(canvas.resize((columns, rows), Canvas.Resampling.BOX))[..., None].repeat(3, axis=-1)
