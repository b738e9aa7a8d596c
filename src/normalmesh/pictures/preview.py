"""Preview: a normal map, its mesh and its surface on one sheet, with the same layout for maps of any size."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from PIL import Image as Canvas

from normalmesh.array_types import Float, Int32, UInt8
from normalmesh.mesh.relief import measured_surface
from normalmesh.mesh.surface import Surface
from normalmesh.normals.normal_map import NormalMap
from normalmesh.pictures.frame import (
    Frame,
    Samples,
    angular_errors,
    check_same_shape,
    density_range,
    resized,
    vertex_density,
)
from normalmesh.pictures.oblique import oblique
from normalmesh.pictures.panels import CUT, DENSITY, HEAT, coloured, cut_edges, edges, normal_colours, with_edges
from normalmesh.pictures.sheet import PALE_INK, Sheet, linear_ticks, logarithmic_ticks, round_up

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
#: Approximate number of vertices of a detail, and cells along each of its sides whose densities are compared.
VERTICES, CELLS = 4000, 4


def preview(surface: Surface, normal_map: NormalMap) -> UInt8:
    """Draw one picture (1250, 1800, 3) of a reconstruction: six captioned panels under a line of figures.

    The panels are the normal map, the wireframe (a detail if there are too many edges), the vertex density, the surface
    from two sides, and the angle between faces and pixel normals. Maps above 4 megapixels are sampled on a grid.
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


class _Panels:
    """The panels; each method draws one with its top left corner at the given position of the sheet."""

    def __init__(self, surface: Surface, normal_map: NormalMap) -> None:
        self.surface, self.normal_map = surface, normal_map
        self.frame = Frame.around(normal_map.mask)
        self.size = self.frame.size_within(*BOX)
        self.samples = self.frame.samples(MAX_SAMPLES)
        self.owners = self.samples.owners(surface)
        self.angles = angular_errors(measured_surface(surface), normal_map, self.samples, self.owners)
        self.edges, self.cuts = edges(surface), cut_edges(surface)[0]
        # The part that the wireframe shows, or None if it shows everything.
        self.detail = detail_frame(surface, self.frame, self.owners, BOX) if len(self.edges) > MAX_EDGES else None

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
        if not len(self.cuts):
            return "none"
        length = np.linalg.norm(self.cuts[:, 0] - self.cuts[:, 1], axis=1).sum()
        lines = len(self.surface.discontinuities.lines)
        return f"{_thousands(lines)} {'line' if lines == 1 else 'lines'}, {_thousands(round(length))} px"

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
        cuts = _inside(frame.places(self.cuts, size), size)
        width = 2 if len(lines) < size[0] * size[1] / 150 else 1
        image = with_edges(np.round(faint).astype(np.uint8), lines, cuts, width)
        part = "wireframe" if self.detail is None else f"wireframe, {frame.columns} x {frame.rows} px outlined at left"
        _put(sheet, image, part, left, top)
        text = f"{_thousands(len(self.edges))} edges"
        if len(self.cuts):
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
        depth, units = self.surface.camera.depth(self.surface.vertices), self.surface.units
        if self.surface.camera.gauge == "scale":
            extent = f"distance {depth.min():.4g} to {depth.max():.4g}" + (f" {units}" if units != "px" else "")
        else:
            extent = f"height range {np.ptp(depth):.4g} {units}"
        sheet.write(extent, left, top + TO_SCALE, 16, PALE_INK)

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

    def _colours(self, samples: Samples, size: tuple[int, int]) -> UInt8:
        """Return the colours of the normal map at size (columns, rows)."""
        normals = samples.of(self.normal_map.normals)
        colours = normal_colours(normals)
        colours[~samples.of(self.normal_map.mask)] = TINT
        enlarged = size[0] >= 3 * colours.shape[1]
        method = Canvas.Resampling.NEAREST if enlarged else Canvas.Resampling.LANCZOS
        return np.asarray(Canvas.fromarray(colours).resize(size, method))


def detail_frame(surface: Surface, frame: Frame, owners: Int32, box: tuple[int, int]) -> Frame:
    """Return the part of a frame where the vertex density varies most, with the ratio of a box (width, height).

    ``owners`` (H, W) are the faces at the samples of the frame, −1 outside.
    """
    covered = max((owners >= 0).mean(), 1e-6) * frame.columns * frame.rows
    height = np.sqrt(covered * VERTICES / len(surface.vertices) * box[1] / box[0])
    rows = int(np.clip(height, 1, frame.rows))
    columns = int(np.clip(height * box[0] / box[1], 1, frame.columns))
    # There is at least one window, even if the frame is narrower than the box.
    along = max(frame.columns * CELLS // columns, CELLS), max(frame.rows * CELLS // rows, CELLS)
    u, v = np.clip(np.floor(frame.places(surface.screen, along)).astype(np.int64), 0, np.subtract(along, 1)).T
    counts = np.bincount(v * along[0] + u, minlength=along[0] * along[1]).reshape(along[1], along[0])
    windows = sliding_window_view(counts, (CELLS, CELLS)).astype(np.float64)
    on_surface = sliding_window_view(resized((owners >= 0).astype(np.float32), along), (CELLS, CELLS)).mean(axis=(2, 3))
    score = np.where(on_surface >= 0.98 * on_surface.max(), windows.std(axis=(2, 3)), -1.0)
    i, j = np.unravel_index(int(score.argmax()), score.shape)
    left = min(int(j * frame.columns / along[0]), frame.columns - columns)
    top = min(int(i * frame.rows / along[1]), frame.rows - rows)
    return Frame(frame.left + left, frame.top + top, columns, rows)


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
