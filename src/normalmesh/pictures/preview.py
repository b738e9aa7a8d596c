"""Preview: a normal map, its mesh and its surface at a glance, on one sheet of the same layout for maps of any size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Canvas

from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map import NormalMap
from normalmesh.pictures.detail import detail_of
from normalmesh.pictures.fields import angular_errors, density_range, refuse_other_image, resized, vertex_density
from normalmesh.pictures.framing import Frame, Samples
from normalmesh.pictures.oblique import oblique
from normalmesh.pictures.panels import CUT, DENSITY, HEAT, Image, coloured, cut_edges, edges, normal_colours, with_edges
from normalmesh.pictures.sheet import PALE_INK, Page, linear_ticks, logarithmic_ticks, round_up

#: The sheet, its margin, the height of its header, and the box for a picture in each of 3 × 2 panels.
WIDTH, HEIGHT, MARGIN, HEADER = 1800, 1250, 30, 120
BOX = (560, 450)
#: Pixels at which errors are looked at, and edges in a legible wireframe; of larger meshes a detail is drawn.
MOST_SAMPLES, MOST_EDGES = 4e6, 40_000
#: Columns and rows from one panel to the next, and from its top to picture and scale.
STEP = (590, 562)
TO_PICTURE, TO_SCALE = 34, 492
#: Colour behind the pictures, and how much of the normal map is left under the wireframe.
TINT, FAINT = (244, 245, 248), 0.45


def preview(surface: Surface, normal_map: NormalMap) -> Image:
    """One picture of a reconstruction: six captioned panels under a line of figures.

    Normal map, wireframe (a detail where there are too many edges), density of vertices, the surface from two sides,
    and the angle between faces and pixels. Maps above 4 megapixels are looked at in evenly spread pixels.

    Parameters
    ----------
    surface
        What :func:`reconstruct` or :func:`integrate` made.
    normal_map
        What it was made of.

    Returns
    -------
    (1250, 1800, 3) uint8
    """
    refuse_other_image(surface, normal_map)
    sheet = _Sheet(surface, normal_map)
    page = Page(WIDTH, HEIGHT)
    _write_header(page, sheet.figures())
    draw_panels = (sheet.normals, sheet.wireframe, sheet.density, sheet.from_left, sheet.from_right, sheet.errors)
    for number, draw in enumerate(draw_panels):
        row, column = divmod(number, 3)
        draw(page, MARGIN + column * STEP[0], HEADER + row * STEP[1])
    return page.image


def _write_header(page: Page, figures: dict[str, str]) -> None:
    widths = [max(page.width(name, 17), page.width(value, 27)) for name, value in figures.items()]
    gap = (WIDTH - 2 * MARGIN - sum(widths)) / (len(widths) - 1)
    left = float(MARGIN)
    for (name, value), width in zip(figures.items(), widths, strict=True):
        page.write(name, left, 22, 17, PALE_INK)
        page.write(value, left, 46, 27)
        left += width + gap
    page.rule((MARGIN, 96), (WIDTH - MARGIN, 96), (205, 208, 214))


@dataclass(frozen=True, eq=False)
class _Sheet:
    """What the panels show; each draws itself with its top left corner at a place of the page."""

    surface: Surface
    normal_map: NormalMap

    @cached_property
    def frame(self) -> Frame:
        return Frame.around(self.normal_map.mask)

    @cached_property
    def size(self) -> tuple[int, int]:
        return self.frame.size_within(*BOX)

    @cached_property
    def samples(self) -> Samples:
        return self.frame.samples(MOST_SAMPLES)

    @cached_property
    def owners(self) -> NDArray[np.int32]:
        return self.samples.owners(self.surface)

    @cached_property
    def angles(self) -> NDArray[np.float32]:
        return angular_errors(self.surface, self.normal_map, self.samples, self.owners)

    @cached_property
    def edges(self) -> NDArray[np.intp]:
        return edges(self.surface)

    @cached_property
    def detail(self) -> Frame | None:
        """What the wireframe shows, if it does not show all."""
        if len(self.edges) <= MOST_EDGES:
            return None
        return detail_of(self.surface, self.frame, self.owners, BOX)

    def figures(self) -> dict[str, str]:
        """Names and values of the header."""
        (rows, columns), foreground = self.normal_map.shape, self.normal_map.foreground
        vertices, known = len(self.surface.vertices), np.isfinite(self.angles)
        mean = f"{self.angles[known].mean(dtype=np.float64):.2f}°" if known.any() else "unknown"
        return {
            "size": f"{columns} x {rows} px",
            "foreground": f"{_thousands(foreground)} px ({100 * foreground / (rows * columns):.0f} %)",
            "vertices": _thousands(vertices),
            "compression": f"{100 * (1 - vertices / foreground):.2f} %",
            "mean angular error": mean,
            "jumps": self._jumps(),
        }

    def _jumps(self) -> str:
        if self.surface.discontinuities is None:
            return "not looked for"
        ends, _ = cut_edges(self.surface)
        length = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).sum()
        return f"{_thousands(len(ends))} edges, {_thousands(round(length))} px" if len(ends) else "none"

    def normals(self, page: Page, left: int, top: int) -> None:
        picture = _put(page, self._colours(self.samples, self.size), "normal map", left, top)
        if self.detail is not None:
            page.outline(self.frame.places(self.detail.corners, self.size) + picture)
        page.write("red: right, green: up, blue: towards the viewer", left, top + TO_SCALE, 16, PALE_INK)

    def wireframe(self, page: Page, left: int, top: int) -> None:
        frame = self.detail or self.frame
        size = frame.size_within(*BOX)
        tint = np.array(TINT, np.float64)
        faint = tint + FAINT * (self._colours(frame.samples(MOST_SAMPLES), size) - tint)
        lines = _inside(frame.places(self.surface.screen, size)[self.edges], size)
        cuts = _inside(frame.places(cut_edges(self.surface)[0], size), size)
        width = 2 if len(lines) < size[0] * size[1] / 150 else 1
        image = with_edges(np.round(faint).astype(np.uint8), lines, cuts, width)
        part = "wireframe" if self.detail is None else f"wireframe, {frame.columns} x {frame.rows} px outlined at left"
        _put(page, image, part, left, top)
        text = f"{_thousands(len(self.edges))} edges"
        if len(cut_edges(self.surface)[0]):
            page.rule((left, top + TO_SCALE + 9), (left + 34, top + TO_SCALE + 9), CUT, 3)
            page.write(f"cut where depth jumps; {text} in all", left + 44, top + TO_SCALE, 16, PALE_INK)
        else:
            page.write(f"{text}, none cut", left, top + TO_SCALE, 16, PALE_INK)

    def density(self, page: Page, left: int, top: int) -> None:
        density = vertex_density(self.surface, self.frame, self.size, self.owners)
        low, high = density_range(density)
        with np.errstate(divide="ignore"):
            places = np.log(density / low) / np.log(high / low)
        _put(page, _over_tint(places, DENSITY), "density of vertices", left, top)
        ticks = logarithmic_ticks(low, high)
        page.scale(DENSITY, ticks, "vertices per 100 px", left, top + TO_SCALE, 380)

    def from_left(self, page: Page, left: int, top: int) -> None:
        _put(page, oblique(self.surface, BOX, -38, 24, TINT), "surface from the left", left, top)
        page.write(self._extent(), left, top + TO_SCALE, 16, PALE_INK)

    def from_right(self, page: Page, left: int, top: int) -> None:
        _put(page, oblique(self.surface, BOX, 38, 24, TINT), "surface from the right", left, top)
        page.write("smooth shading; backs are bluish", left, top + TO_SCALE, 16, PALE_INK)

    def errors(self, page: Page, left: int, top: int) -> None:
        angles = resized(self.angles, self.size)
        known = angles[np.isfinite(angles)]
        end = round_up(float(np.quantile(known, 0.99))) if len(known) else 1.0
        end = max(end, 0.01)
        _put(page, _over_tint(angles / end, HEAT), "angle between faces and pixel normals", left, top)
        page.scale(HEAT, linear_ticks(end), "degrees", left, top + TO_SCALE, 380)

    def _extent(self) -> str:
        depth = self.surface.camera.depth(self.surface.vertices)
        units = self.surface.units
        if self.surface.camera.is_central:
            # Normals alone leave the scale of what a pinhole sees open.
            return f"distance {depth.min():.4g} to {depth.max():.4g}" + (f" {units}" if units != "px" else "")
        return f"heights span {np.ptp(depth):.4g} {units}"

    def _colours(self, samples: Samples, size: tuple[int, int]) -> Image:
        """The normal map at so many columns and rows."""
        normals = samples.of(self.normal_map.normals)
        colours = normal_colours(normals)
        colours[~samples.of(self.normal_map.mask)] = TINT
        enlarged = size[0] >= 3 * colours.shape[1]
        method = Canvas.Resampling.NEAREST if enlarged else Canvas.Resampling.LANCZOS
        return np.asarray(Canvas.fromarray(colours).resize(size, method))


def _put(page: Page, image: Image, caption: str, left: int, top: int) -> tuple[int, int]:
    """A captioned picture in the middle of its tinted box; where its top left corner is."""
    rows, columns = image.shape[:2]
    box = np.full((BOX[1], BOX[0], 3), TINT, np.uint8)
    right, down = (BOX[0] - columns) // 2, (BOX[1] - rows) // 2
    box[down : down + rows, right : right + columns] = image
    page.write(caption, left, top, 22)
    page.put(box, left, top + TO_PICTURE)
    return left + right, top + TO_PICTURE + down


def _over_tint(places: NDArray[np.float64], colours: NDArray[np.float64]) -> Image:
    image = coloured(places, colours)
    image[np.isnan(places)] = TINT
    return image


def _inside(lines: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.float64]:
    """Those of the lines (K, 2, 2) that may be seen in a picture."""
    low, high = lines.min(axis=1, initial=np.inf), lines.max(axis=1, initial=-np.inf)
    return lines[(high >= 0).all(axis=1) & (low <= size).all(axis=1)]


def _thousands(count: int) -> str:
    """12 345 rather than 12345."""
    return f"{count:,}".replace(",", " ")
