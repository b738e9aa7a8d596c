"""Writing the depth of a surface at the pixel centres as a cloud-optimised GeoTIFF, without the image in memory."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryFile
from typing import Protocol

import numpy as np

from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.files.atomic import file_written_aside
from normalmesh.files.precision import rounding, surface_tolerance
from normalmesh.mesh.depth_bands import depth_bands
from normalmesh.mesh.surface import Surface
from normalmesh.output.cog import SIDE, CloudOptimisedTiff, Tag

_ASCII, _SHORT, _DOUBLE = 2, 3, 12
_PIXEL_SCALE, _TIE_POINT, _TRANSFORMATION = 33550, 33922, 34264
#: Types of the tags in which GeoTIFF stores a coordinate reference system.
_KINDS = {34735: _SHORT, 34736: _DOUBLE, 34737: _ASCII}


class GeoReference(Protocol):
    """Where on a map an image lies.

    Attributes
    ----------
    transform
        Six numbers a … f with x = a·column + b·row + c, y = d·column + e·row + f; (0, 0) is the image's top left.
    crs_tags
        The tags of GeoTIFF that name the coordinate reference system, by their numbers: 34735, 34736 and 34737.
    """

    @property
    def transform(self) -> tuple[float, ...]: ...
    @property
    def crs_tags(self) -> dict[int, object]: ...


def write_depth_tiff(surface: Surface, path: Path, georeference: GeoReference | None = None) -> None:
    """Write :meth:`Surface.depth_map` as a tiled TIFF with overviews, NaN where there is no surface.

    Numbers are float32, or float64 where float32 would round the surface by more than a thousandth of a pixel. A file
    above 4 GB is a BigTIFF file.
    """
    tags = {} if georeference is None else _geo_tags(georeference)
    depth = surface.camera.depth(surface.vertices)
    dtype = np.float32 if rounding(depth) <= surface_tolerance(surface) else np.float64
    with file_written_aside(path) as file, TemporaryFile(dir=Path(file.name).parent) as tiles:
        image = CloudOptimisedTiff(surface.shape, dtype, tiles)
        for band in depth_bands(surface, SIDE):
            image.add_rows(band.astype(dtype))
        image.write(file, tags)


def _geo_tags(georeference: GeoReference) -> dict[int, Tag]:
    """Return the tags that say where the image lies."""
    a, b, c, d, e, f = map(float, georeference.transform)
    if b == d == 0 and a > 0 > e:
        tags = {_PIXEL_SCALE: Tag(_DOUBLE, (a, -e, 0.0)), _TIE_POINT: Tag(_DOUBLE, (0.0, 0.0, 0.0, c, f, 0.0))}
    else:
        matrix = (a, b, 0.0, c, d, e, 0.0, f, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        tags = {_TRANSFORMATION: Tag(_DOUBLE, matrix)}
    return tags | {number: _crs_tag(number, value) for number, value in georeference.crs_tags.items()}


def _crs_tag(number: int, value: object) -> Tag:
    if number not in _KINDS:
        raise NormalMeshError(f"crs_tags may have the tags {', '.join(map(str, _KINDS))}, not {repr_for_error(number)}")
    if isinstance(value, str | bytes):
        text = value.encode("ascii", "replace") if isinstance(value, str) else value
        return Tag(_ASCII, text.rstrip(b"\0") + b"\0")
    numbers = np.atleast_1d(np.asarray(value)).ravel().tolist()
    return Tag(_KINDS[number], tuple(numbers))
