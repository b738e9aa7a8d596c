"""Georeferences: where the pixels of an image lie on a map of the ground."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

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
