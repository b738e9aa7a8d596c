"""Draw the pictures of README.md and docs/commands.md: ``python docs/make_pictures.py``."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image as Canvas

from normalmesh import NormalMap, Surface, reconstruct
from normalmesh.array_types import UInt8
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.files.atomic import write_atomically
from normalmesh.pictures.frame import Frame
from normalmesh.pictures.oblique import oblique
from normalmesh.pictures.panels import cut_edges, edges, normal_colours, reduced, with_edges
from normalmesh.pictures.preview import preview
from normalmesh.pictures.sheet import PALE_INK, PAPER, Sheet

DOCS = Path(__file__).parent
#: Columns and rows of each picture, and the width of the gap with an arrow to the next one, in pixels.
SIZE, GAP = (440, 440), 70


def strip(surface: Surface, normal_map: NormalMap) -> UInt8:
    """Draw normal map, wireframe and surface in a row, with arrows in between."""
    frame = Frame.around(normal_map.mask)
    colours = normal_colours(normal_map.normals)
    colours[~normal_map.mask] = PAPER
    shown = reduced(frame.samples(np.inf).of(colours), SIZE)
    faint = (255 - 0.35 * (255.0 - shown)).astype(np.uint8)
    places = frame.places(surface.screen, SIZE)
    pictures = {
        f"{normal_map.foreground:,} normals": shown,
        f"{len(surface.vertices):,} vertices": with_edges(
            faint, places[edges(surface)], frame.places(cut_edges(surface)[0], SIZE)
        ),
        "3D surface": oblique(surface, SIZE, azimuth=-30, elevation=20),
    }
    sheet = Sheet(3 * SIZE[0] + 2 * GAP, SIZE[1] + 46)
    for number, (caption, picture) in enumerate(pictures.items()):
        left = number * (SIZE[0] + GAP)
        sheet.put(picture, left, 0)
        sheet.write(caption.replace(",", " "), left + SIZE[0] / 2, SIZE[1] + 10, 24, anchor="ma")
        if number:
            _arrow(sheet, left - GAP + 8, left - 8, SIZE[1] // 2)
    return sheet.image


def _arrow(sheet: Sheet, start: float, end: float, row: float) -> None:
    sheet.rule((start, row), (end, row), PALE_INK, 4)
    for side in (-14, 14):
        sheet.rule((end - 14, row + side), (end, row), PALE_INK, 4)


def write(image: UInt8, path: Path) -> None:
    """Write an image as PNG with 256 colours, which takes a third of the size."""
    canvas = Canvas.fromarray(image)
    # Pillow dithers only if a palette is given.
    palette = canvas.quantize(256, Canvas.Quantize.MAXCOVERAGE)
    few = canvas.quantize(palette=palette, dither=Canvas.Dither.FLOYDSTEINBERG)
    encoded = io.BytesIO()
    few.save(encoded, format="png", optimize=True)
    write_atomically({path: encoded.getvalue()})


def main() -> None:
    normal_map = Medallion(1024).normal_map
    surface = reconstruct(normal_map, compression=0.995)
    write(strip(surface, normal_map), DOCS / "medallion.png")
    write(reduced(preview(surface, normal_map), (1200, 833)), DOCS / "images" / "preview.png")


if __name__ == "__main__":
    main()
