"""Reading the georeference of a GeoTIFF, and the camera that follows from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from normalmesh.files.formats import unusable
from normalmesh.normals.georeference import GeoReference
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


def read_georeference(page: TiffPage) -> GeoReference | None:
    """Return the georeference of a page of a TIFF; None if it has none."""
    transform = _transform(page)
    if transform is None:
        return None
    directory = [int(value) for value in page.tags.valueof(DIRECTORY, default=())]
    keys = _short_keys(directory)
    a, b, c, d, e, f = transform
    if keys.get(RASTER_TYPE) == PIXEL_IS_POINT:
        c, f = c - (a + b) / 2, f - (d + e) / 2
    tags: dict[int, object] = {}
    if directory:
        tags[DIRECTORY] = tuple(_with_areas(directory))
    for tag in (DOUBLES, TEXTS):
        if (value := page.tags.valueof(tag)) is not None:
            tags[tag] = value
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
    numbers = (a, b, c, d, e, f)
    usable = all(map(math.isfinite, numbers)) and a * e - b * d != 0
    first, second, third, fourth, fifth, sixth = map(float, numbers)
    return (first, second, third, fourth, fifth, sixth) if usable else None


def _short_keys(directory: list[int]) -> dict[int, int]:
    """Return the keys whose value stands in the directory itself."""
    entries = zip(*(directory[4 + part :: 4] for part in range(4)), strict=False)
    return {key: value for key, location, _, value in entries if location == 0}


def _with_areas(directory: list[int]) -> list[int]:
    """Return the directory with pixels that are areas, as :attr:`GeoReference.transform` takes them."""
    changed = list(directory)
    for entry in range(4, len(directory) - 3, 4):
        if directory[entry] == RASTER_TYPE:
            changed[entry + 3] = PIXEL_IS_AREA
    return changed
