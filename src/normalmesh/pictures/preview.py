"""Preview: a normal map, its mesh and its surface on one sheet, with the same layout for maps of any size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from PIL import Image as Canvas

from normalmesh.array_types import Float, Float32, Int32, UInt8
from normalmesh.mesh.relief import measured_surface
from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map import NormalMap
from normalmesh.pictures.frame import Frame, Samples
from normalmesh.pictures.oblique import oblique
from normalmesh.pictures.panels import CUT, DENSITY, HEAT, coloured, cut_edges, edges, normal_colours, with_edges
from normalmesh.pictures.sheet import PALE_INK, Sheet, linear_ticks, logarithmic_ticks, round_up
from normalmesh.pictures.surface_fields import angular_errors, check_same_shape, density_range, resized, vertex_density
from normalmesh.pictures.wireframe_detail import detail_frame

#: Size of the sheet, its margin, the height of its header, and the size of a picture in each of 3 × 2 panels; pixels.
WIDTH, HEIGHT, MARGIN, HEADER = 1800, 1250, 30, 120
BOX = (560, 450)
#: Largest number of sampled pixels, and of edges in a legible wireframe; of larger meshes, a detail is drawn.
MAX_SAMPLES, MAX_EDGES = 4e6, 40_000
#: Columns and rows from one panel to the next; rows from the top of a panel to its picture and to its scale.
STEP = (590, 562)
TO_PICTURE, TO_SCALE = 34, 492
#: Background colour of the pictures, and opacity of the normal map under the wireframe.
TINT, OPACITY = (244, 245, 248), 0.45


def preview(surface: Surface, normal_map: NormalMap) -> UInt8:
    """Draw one picture of a reconstruction: six captioned panels under a line of figures.

    The panels are the normal map, the wireframe (a detail if there are too many edges), the vertex density, the surface
    from two sides, and the angle between faces and pixel normals. Maps above 4 megapixels are sampled on a grid.

    Parameters
    ----------
    surface
        The result of :func:`reconstruct` or :func:`integrate`.
    normal_map
        The normal map that it was reconstructed from.

    Returns
    -------
    (1250, 1800, 3) uint8
    """
    check_same_shape(surface, normal_map)
    panels = _Panels(surface, normal_map)
    sheet = Sheet(WIDTH, HEIGHT)
    _write_header(sheet, panels.figures())
    draw_panels = (panels.normals, panels.wireframe, panels.density, panels.from_left, panels.from_right, panels.errors)
    for number, draw in enumerate(draw_panels):
        row, column = divmod(number, 3)
        draw(sheet, MARGIN + column * STEP[0], HEADER + row * STEP[1])
    return sheet.image


def _write_header(sheet: Sheet, figures: dict[str, str]) -> None:
    widths = [max(sheet.width(name, 17), sheet.width(value, 27)) for name, value in figures.items()]
    gap = (WIDTH - 2 * MARGIN - sum(widths)) / (len(widths) - 1)
    left = float(MARGIN)
    for (name, value), width in zip(figures.items(), widths, strict=True):
        sheet.write(name, left, 22, 17, PALE_INK)
        sheet.write(value, left, 46, 27)
        left += width + gap
    sheet.rule((MARGIN, 96), (WIDTH - MARGIN, 96), (205, 208, 214))


@dataclass(frozen=True, eq=False)
class _Panels:
    """The panels; each method draws one with its top left corner at the given position of the sheet."""

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
        return self.frame.samples(MAX_SAMPLES)

    @cached_property
    def owners(self) -> Int32:
        return self.samples.owners(self.surface)

    @cached_property
    def angles(self) -> Float32:
        return angular_errors(measured_surface(self.surface), self.normal_map, self.samples, self.owners)

    @cached_property
    def edges(self) -> Int32:
        return edges(self.surface)

    @cached_property
    def detail(self) -> Frame | None:
        """The part that the wireframe shows, or None if it shows everything."""
        if len(self.edges) <= MAX_EDGES:
            return None
        return detail_frame(self.surface, self.frame, self.owners, BOX)

    def figures(self) -> dict[str, str]:
        """Return names and values of the header."""
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
            return "not searched for"
        ends, _ = cut_edges(self.surface)
        length = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).sum()
        lines = len(self.surface.discontinuities.lines)
        return (
            f"{_thousands(lines)} {'line' if lines == 1 else 'lines'}, {_thousands(round(length))} px"
            if len(ends)
            else "none"
        )

    def normals(self, sheet: Sheet, left: int, top: int) -> None:
        picture = _put(sheet, self._colours(self.samples, self.size), "normal map", left, top)
        if self.detail is not None:
            sheet.outline(self.frame.places(self.detail.corners, self.size) + picture)
        sheet.write("red: right, green: up, blue: towards the viewer", left, top + TO_SCALE, 16, PALE_INK)

    def wireframe(self, sheet: Sheet, left: int, top: int) -> None:
        frame = self.detail or self.frame
        size = frame.size_within(*BOX)
        tint = np.array(TINT, np.float64)
        faint = tint + OPACITY * (self._colours(frame.samples(MAX_SAMPLES), size) - tint)
        lines = _inside(frame.places(self.surface.screen, size)[self.edges], size)
        cuts = _inside(frame.places(cut_edges(self.surface)[0], size), size)
        width = 2 if len(lines) < size[0] * size[1] / 150 else 1
        image = with_edges(np.round(faint).astype(np.uint8), lines, cuts, width)
        part = "wireframe" if self.detail is None else f"wireframe, {frame.columns} x {frame.rows} px outlined at left"
        _put(sheet, image, part, left, top)
        text = f"{_thousands(len(self.edges))} edges"
        if len(cut_edges(self.surface)[0]):
            sheet.rule((left, top + TO_SCALE + 9), (left + 34, top + TO_SCALE + 9), CUT, 3)
            sheet.write(f"cut at a depth jump; {text} in total", left + 44, top + TO_SCALE, 16, PALE_INK)
        else:
            sheet.write(f"{text}, none cut", left, top + TO_SCALE, 16, PALE_INK)

    def density(self, sheet: Sheet, left: int, top: int) -> None:
        density = vertex_density(self.surface, self.frame, self.size, self.owners)
        low, high = density_range(density)
        with np.errstate(divide="ignore"):
            places = np.log(density / low) / np.log(high / low)
        _put(sheet, _over_tint(places, DENSITY), "vertex density", left, top)
        ticks = logarithmic_ticks(low, high)
        sheet.scale(DENSITY, ticks, "vertices per 100 px", left, top + TO_SCALE, 380)

    def from_left(self, sheet: Sheet, left: int, top: int) -> None:
        _put(sheet, oblique(self.surface, BOX, -38, 24, TINT), "surface from the left", left, top)
        sheet.write(self._extent(), left, top + TO_SCALE, 16, PALE_INK)

    def from_right(self, sheet: Sheet, left: int, top: int) -> None:
        _put(sheet, oblique(self.surface, BOX, 38, 24, TINT), "surface from the right", left, top)
        sheet.write("smooth shading; back faces are bluish", left, top + TO_SCALE, 16, PALE_INK)

    def errors(self, sheet: Sheet, left: int, top: int) -> None:
        angles = resized(self.angles, self.size)
        known = angles[np.isfinite(angles)]
        end = round_up(float(np.quantile(known, 0.99))) if len(known) else 1.0
        end = max(end, 0.01)
        _put(sheet, _over_tint(angles / end, HEAT), "angle between faces and pixel normals", left, top)
        sheet.scale(HEAT, linear_ticks(end), "degrees", left, top + TO_SCALE, 380)

    def _extent(self) -> str:
        depth = self.surface.camera.depth(self.surface.vertices)
        units = self.surface.units
        if self.surface.camera.gauge == "scale":
            return f"distance {depth.min():.4g} to {depth.max():.4g}" + (f" {units}" if units != "px" else "")
        return f"height range {np.ptp(depth):.4g} {units}"

    def _colours(self, samples: Samples, size: tuple[int, int]) -> UInt8:
        """Return the colours of the normal map at size (columns, rows)."""
        normals = samples.of(self.normal_map.normals)
        colours = normal_colours(normals)
        colours[~samples.of(self.normal_map.mask)] = TINT
        enlarged = size[0] >= 3 * colours.shape[1]
        method = Canvas.Resampling.NEAREST if enlarged else Canvas.Resampling.LANCZOS
        return np.asarray(Canvas.fromarray(colours).resize(size, method))


def _put(sheet: Sheet, image: UInt8, caption: str, left: int, top: int) -> tuple[int, int]:
    """Draw a captioned picture in the middle of its box, and return the position of its top left corner."""
    rows, columns = image.shape[:2]
    box = np.full((BOX[1], BOX[0], 3), TINT, np.uint8)
    right, down = (BOX[0] - columns) // 2, (BOX[1] - rows) // 2
    box[down : down + rows, right : right + columns] = image
    sheet.write(caption, left, top, 22)
    sheet.put(box, left, top + TO_PICTURE)
    return left + right, top + TO_PICTURE + down


def _over_tint(places: Float, colours: Float) -> UInt8:
    image = coloured(places, colours)
    image[np.isnan(places)] = TINT
    return image


def _inside(lines: Float, size: tuple[int, int]) -> Float:
    """Return the lines (K, 2, 2) whose bounding boxes overlap a picture."""
    low, high = lines.min(axis=1, initial=np.inf), lines.max(axis=1, initial=-np.inf)
    inside: Float = lines[(high >= 0).all(axis=1) & (low <= size).all(axis=1)]
    return inside


def _thousands(count: int) -> str:
    """Format a number with spaces between groups of three digits: 12 345."""
    return f"{count:,}".replace(",", " ")
