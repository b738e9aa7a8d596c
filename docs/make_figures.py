"""Draw the figures of the pages conventions.md and how_it_works.md: ``python docs/make_figures.py``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

import normalmesh as nm
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.pictures import panels

IMAGES = Path(__file__).parent / "images"
#: Pixels of the map, the part that is shown, and its magnification.
SIZE, ROWS, COLUMNS, SCALE = 256, slice(96, 160), slice(60, 124), 5


def main() -> None:
    stages()
    axes()
    conventions()


def stages() -> None:
    """Draw a letter as normals, start mesh, decimated mesh and shaded surface."""
    truth = Medallion(SIZE)
    normal_map = truth.normal_map
    start = nm.ScreenMesh.from_mask(normal_map.mask[ROWS, COLUMNS])
    screen, faces = SCALE * start.vertices, start.faces
    side = SCALE * (ROWS.stop - ROWS.start)
    flat = nm.Surface(np.column_stack([screen, 0 * screen[:, :1]]), faces, screen, nm.Orthographic(), (side, side))
    surface = nm.reconstruct(normal_map, compression=0.96)
    enlarged = nm.Surface(
        surface.vertices, surface.faces, SCALE * surface.screen, surface.camera, (SCALE * SIZE, SCALE * SIZE)
    )
    part = np.s_[SCALE * ROWS.start : SCALE * ROWS.stop, SCALE * COLUMNS.start : SCALE * COLUMNS.stop]
    pictures = [
        panels.normal_colours(normal_map.normals)[ROWS, COLUMNS].repeat(SCALE, axis=0).repeat(SCALE, axis=1),
        panels.wireframe(flat),
        panels.wireframe(enlarged)[part],
        panels.shaded(enlarged.normal_map())[part],
    ]
    gap = np.full((side, 8, 3), 255, np.uint8)
    row = [piece for picture in pictures for piece in (picture, gap)][:-1]
    Image.fromarray(np.hstack(row)).save(IMAGES / "stages.png", optimize=True)


def arrow(start: tuple[float, float], end: tuple[float, float], label: str, colour: str) -> str:
    """Return an arrow with a label beyond its head."""
    x, y = end
    step = np.subtract(end, start)
    beyond = np.array(end) + 14 * step / np.linalg.norm(step)
    return (
        f'<line x1="{start[0]}" y1="{start[1]}" x2="{x}" y2="{y}" stroke="{colour}" marker-end="url(#{colour[1:]})"/>'
        f'<text x="{beyond[0]:.0f}" y="{beyond[1] + 5:.0f}" fill="{colour}">{label}</text>'
    )


def dot(x: float, y: float, label: str, colour: str, *, away: bool) -> str:
    """Return an axis along the line of sight: a dot towards the viewer, a cross away from the viewer."""
    mark = (
        f'<path d="M{x - 5} {y - 5}L{x + 5} {y + 5}M{x - 5} {y + 5}L{x + 5} {y - 5}" stroke="{colour}"/>'
        if away
        else f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>'
    )
    return (
        f'<circle cx="{x}" cy="{y}" r="8" fill="none" stroke="{colour}"/>{mark}'
        f'<text x="{x - 18}" y="{y + 20}" fill="{colour}">{label}</text>'
    )


RED, GREEN, BLUE, GREY = "#c62828", "#2e7d32", "#1565c0", "#777777"


def drawing(name: str, width: int, height: int, parts: list[str]) -> None:
    heads = "".join(
        f'<marker id="{colour[1:]}" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="5" markerHeight="5" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
        for colour in (RED, GREEN, BLUE, GREY)
    )
    style = 'font-family="sans-serif" font-size="14" text-anchor="middle" stroke-width="2" stroke-linecap="round"'
    (IMAGES / name).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/><defs>{heads}</defs>\n<g {style}>\n'
        + "\n".join(parts).replace("<text ", '<text stroke="none" ')
        + "\n</g></svg>\n"
    )


def caption(x: float, title: str, text: str) -> str:
    return (
        f'<text x="{x}" y="190" font-weight="bold" fill="#333333">{title}</text>'
        f'<text x="{x}" y="210" font-size="12" fill="#555555">{text}</text>'
    )


def axes() -> None:
    """Draw the axes of arrays, the screen and space."""
    grid = "".join(
        f'<path d="M{40 + 30 * k} 40V160M40 {40 + 30 * k}H160" stroke="#bbbbbb" stroke-width="1"/>' for k in range(5)
    )
    pixel = '<rect x="100" y="70" width="30" height="30" fill="#ffe082" stroke="#777777" stroke-width="1"/>'
    cell = '<text x="115" y="89" font-size="11" fill="#333333">1, 2</text>'
    corner = (
        '<circle cx="340" cy="70" r="4" fill="#333333"/>'
        '<text x="366" y="64" font-size="11" fill="#333333">(2, 1)</text>'
    )
    centre = (
        '<circle cx="355" cy="85" r="4" fill="#c62828"/>'
        '<text x="396" y="96" font-size="11" fill="#c62828">(2.5, 1.5)</text>'
    )
    parts = [
        grid,
        pixel + cell,
        arrow((40, 28), (100, 28), "j", GREY) + arrow((28, 40), (28, 100), "i", GREY),
        caption(100, "array", "row i, column j"),
        f'<g transform="translate(240 0)">{grid}</g>',
        arrow((280, 40), (420, 40), "u", RED) + arrow((280, 40), (280, 166), "v", GREEN),
        corner + centre,
        caption(345, "screen", "u right, v down; centres at halves"),
        arrow((580, 110), (670, 110), "x", RED) + arrow((580, 110), (580, 30), "y", GREEN),
        arrow((580, 110), (530, 155), "z", BLUE),
        '<text x="500" y="178" font-size="11" fill="#555555">viewer</text>',
        caption(610, "space", "x right, y up, z towards the viewer"),
    ]
    drawing("axes.svg", 740, 220, parts)


def conventions() -> None:
    """Draw the axes of the three channels in each convention, from the front."""
    parts = []
    for place, (name, y_up, z_away) in enumerate(
        [("opengl", True, False), ("directx", False, False), ("opencv", False, True)]
    ):
        x, y = 90 + 230 * place, 88
        tip = y - 55 if y_up else y + 55
        parts += [
            arrow((x + 8, y), (x + 75, y), "R: +x", RED).replace(f'x="{x + 89}"', f'x="{x + 105}"'),
            arrow((x, y - 8 if y_up else y + 8), (x, tip), "G", GREEN),
            dot(x, y, "B", BLUE, away=z_away),
            caption(
                x + 20, name, "+x" + ("+y" if y_up else "-y") + ("-z: z away" if z_away else "+z: z to the viewer")
            ),
        ]
    drawing("conventions.svg", 700, 220, parts)


if __name__ == "__main__":
    main()
