"""Panels: images (H, W, 3) uint8 of a normal map or a surface from the camera's point of view."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from normalmesh.array_types import Float, Float32, Int32, UInt8
from normalmesh.files.atomic import write_atomically
from normalmesh.files.encoding import encode_picture
from normalmesh.mesh.cut_mesh import edge_ends
from normalmesh.mesh.surface import Surface

#: Direction to the light: upper left, in front.
LIGHT = np.array([-0.5, 0.5, 0.7]) / np.linalg.norm([-0.5, 0.5, 0.7])

#: Colours of errors from 0 to the end of the scale: black, violet, red, orange, pale yellow.
HEAT = np.array([[0, 0, 4], [80, 18, 123], [182, 54, 121], [251, 136, 97], [252, 253, 191]], np.float64)

#: Colours of densities from low to high: dark violet, blue, green, yellow.
DENSITY = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]], np.float64)

#: Colours of edges and of cut edges.
EDGE, CUT = (40, 40, 40), (220, 30, 30)


def normal_colours(normals: Float32) -> UInt8:
    """Return normals (H, W, 3) as the colours of a normal map; the background is grey."""
    return np.round(255 * (normals + 1) / 2).astype(np.uint8)


def shaded(normals: Float32) -> UInt8:
    """Return the diffuse shading of normals (H, W, 3); the background is white."""
    background = ~normals.any(axis=-1)
    light = np.clip(0.15 + 0.85 * (normals @ LIGHT), 0, 1)
    light[background] = 1
    image: UInt8 = np.round(255 * light).astype(np.uint8)[..., None].repeat(3, axis=-1)
    return image


def heat(values: Float, end: float) -> UInt8:
    """Return a heat map of values (H, W) from 0 to ``end``; NaN is white."""
    return coloured(np.abs(values) / end, HEAT)


def coloured(values: Float, colours: Float) -> UInt8:
    """Map values (H, W) between 0 and 1 to a colour scale (K, 3); NaN is white."""
    along = np.clip(np.nan_to_num(values), 0, 1) * (len(colours) - 1)
    image = np.stack([np.interp(along, np.arange(len(colours)), colours[:, k]) for k in range(3)], axis=-1)
    image[np.isnan(values)] = 255
    return np.round(image).astype(np.uint8)


def wireframe(surface: Surface) -> UInt8:
    """Draw the edges of a surface on white; cut edges are red."""
    white = np.full((*surface.shape, 3), 255, np.uint8)
    return with_edges(white, surface.screen[edges(surface)], cut_edges(surface)[0])


def with_edges(image: UInt8, lines: Float, cuts: Float, width: int = 1) -> UInt8:
    """Draw edges (K, 2, 2), given in pixels, over an image, and cut edges in red."""
    image = with_lines(image, lines, [EDGE] * len(lines), width)
    return with_lines(image, cuts, [CUT] * len(cuts), width + 1)


def edges(surface: Surface) -> Int32:
    """Return the vertices (E, 2) of each edge."""
    opposite = surface.mesh.opposite
    return edge_ends(surface.mesh, np.flatnonzero(opposite < np.arange(len(opposite))))


def jumps(surface: Surface) -> UInt8:
    """Draw the cut edges of a surface over its faint shading, coloured by the size of the jump (violet to yellow)."""
    lines, sizes = cut_edges(surface)
    # Jumps differ by orders of magnitude: use a logarithmic scale from a hundredth of the largest jump.
    place = 1 + np.log10(np.maximum(sizes / sizes.max(initial=1e-300), 1e-2)) / 2
    colours = heat(0.25 + 0.65 * place, 1.0)
    faint = 255 - (255 - shaded(surface.normal_map()).astype(np.float64)) * 0.4
    return with_lines(faint.astype(np.uint8), lines, [tuple(colour) for colour in colours.tolist()], width=3)


def cut_edges(surface: Surface) -> tuple[Float, Float]:
    """Return the ends (K, 2, 2) of the cut edges on the screen, and the depth differences (K,) across them."""
    found = surface.discontinuities
    if found is None:
        return np.zeros((0, 2, 2)), np.zeros(0)
    return found.screen, np.abs(found.jumps)


def with_lines(image: UInt8, lines: Float, colours: Sequence[tuple[int, ...]], width: int = 1) -> UInt8:
    """Draw lines (K, 2, 2), given in pixels, over an image, at twice the resolution for antialiasing."""
    from PIL import Image as Canvas
    from PIL import ImageDraw

    rows, columns = image.shape[:2]
    canvas = Canvas.fromarray(image.repeat(2, axis=0).repeat(2, axis=1))
    draw = ImageDraw.Draw(canvas)
    for (start, end), colour in zip((2 * lines).tolist(), colours, strict=True):
        draw.line([*start, *end], fill=colour, width=width)
    return reduced(np.asarray(canvas), (columns, rows))


def reduced(image: UInt8, size: tuple[int, int]) -> UInt8:
    """Reduce an image to size (columns, rows) by averaging."""
    from PIL import Image as Canvas

    return np.asarray(Canvas.fromarray(image).resize(size, Canvas.Resampling.BOX))


def write_picture(path: Path, image: UInt8) -> None:
    """Write an image (H, W, 3) as PNG."""
    write_atomically({path: encode_picture(path, image)})
