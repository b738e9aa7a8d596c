"""Georeferences: where the pixels of an image lie on a map of the ground, and the camera that follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from normalmesh.files.formats import unusable
from normalmesh.normals.orthographic import Orthographic

if TYPE_CHECKING:
    from tifffile import TiffPage

#: TIFF tags of GeoTIFF.
PIXEL_SCALE, TIEPOINT, TRANSFORMATION = 33550, 33922, 34264
DIRECTORY, DOUBLES, TEXTS = 34735, 34736, 34737
#: Keys of the directory.
MODEL_TYPE, RASTER_TYPE, LINEAR_UNITS = 1024, 1025, 3076
#: Values of keys: longitudes and latitudes; pixels whose centre is what the transform places.
GEOGRAPHIC, PIXEL_IS_AREA, PIXEL_IS_POINT = 2, 1, 2
#: EPSG codes of units of length.
UNITS = {9001: "m", 9002: "ft", 9003: "US ft", 9036: "km", 9093: "mi", 1025: "mm", 1033: "cm"}
#: Relative difference up to which the sides of pixels are equal, and their angle is right.
SQUARE = 1e-6


@dataclass(frozen=True)
class GeoReference:
    """The transform and the coordinate reference system of a GeoTIFF, as they can be written to another one.

    Attributes
    ----------
    transform
        (a, b, c, d, e, f): the corner (column, row) of a pixel, the top left one of the first pixel being (0, 0), lies
        at x = a·column + b·row + c and y = d·column + e·row + f. Not changed by PixelIsPoint.
    crs_tags
        The TIFF tags GeoKeyDirectory (34735), GeoDoubleParams (34736) and GeoAsciiParams (34737) as stored, those that
        exist, with the raster type PixelIsArea.
    units
        Name of the unit of x and y, such as ``"m"`` or ``"°"``; None if the file does not say it.
    """

    transform: tuple[float, float, float, float, float, float]
    crs_tags: dict[int, object] = field(default_factory=dict)
    units: str | None = None

    @property
    def pixel_size(self) -> float | None:
        """Side of a pixel in the unit of x and y; None if pixels are not square."""
        a, b, _, d, e, _ = self.transform
        along_columns, along_rows = math.hypot(a, d), math.hypot(b, e)
        largest = max(along_columns, along_rows)
        if abs(along_columns - along_rows) > SQUARE * largest or abs(a * b + d * e) > SQUARE * largest**2:
            return None
        return math.sqrt(along_columns * along_rows)


def read_georeference(page: TiffPage) -> GeoReference | None:
    """Return the georeference of a page of a TIFF; None if it has none."""
    transform = _transform(page)
    if transform is None:
        return None
    directory = [int(value) for value in page.tags.valueof(DIRECTORY, default=())]
    entries = [directory[first : first + 4] for first in range(4, len(directory) - 3, 4)]
    # Keys whose value stands in the directory itself.
    keys = {key: value for key, location, _, value in entries if location == 0}
    a, b, c, d, e, f = transform
    if keys.get(RASTER_TYPE) == PIXEL_IS_POINT:
        c, f = c - (a + b) / 2, f - (d + e) / 2
    tags: dict[int, object] = {tag: page.tags.valueof(tag) for tag in (DOUBLES, TEXTS) if tag in page.tags}
    if directory:
        areas = [[*entry[:3], PIXEL_IS_AREA] if entry[0] == RASTER_TYPE else entry for entry in entries]
        tags[DIRECTORY] = tuple(chain(directory[:4], *areas))
    units = "°" if keys.get(MODEL_TYPE) == GEOGRAPHIC else UNITS.get(keys.get(LINEAR_UNITS, 0))
    return GeoReference((a, b, c, d, e, f), tags, units)


def camera_of(path: Path, georeference: GeoReference) -> Orthographic:
    """Return the camera that looks down on the ground, or raise an error that says what to give instead."""
    advice = "give camera=Orthographic(pixel_size) with the side of a pixel on the ground"
    if georeference.units == "°":
        raise unusable(path, f"its pixels are measured in degrees, whose length on the ground varies; {advice}")
    if (size := georeference.pixel_size) is None:
        a, b, _, d, e, _ = georeference.transform
        sides = f"{math.hypot(a, d):g} × {math.hypot(b, e):g}"
        raise unusable(path, f"its pixels, {sides} on the ground, are not square; resample it, or {advice}")
    return Orthographic(size)


def _transform(page: TiffPage) -> tuple[float, float, float, float, float, float] | None:
    """Return the transform of the tags; None if there is none, or if it is not finite."""
    matrix: Sequence[float] = page.tags.valueof(TRANSFORMATION, default=())
    scale: Sequence[float] = page.tags.valueof(PIXEL_SCALE, default=())
    point: Sequence[float] = page.tags.valueof(TIEPOINT, default=())
    if len(matrix) == 16:
        a, b, _, c, d, e, _, f = matrix[:8]
    # Several tie points are control points of a warped image.
    elif len(scale) >= 2 and len(point) == 6:
        column, row, _, x, y, _ = point
        a, b, d, e = scale[0], 0.0, 0.0, -scale[1]
        c, f = x - a * column, y - e * row
    else:
        return None
    a, b, c, d, e, f = map(float, (a, b, c, d, e, f))
    return (a, b, c, d, e, f) if all(map(math.isfinite, (a, b, c, d, e, f))) and a * e - b * d != 0 else None
