"""Depths of a surface as a cloud-optimised GeoTIFF, made row of tiles by row of tiles, without the image in memory.

The layout is that of GDAL's COG driver: the directories of the image and of its overviews, finest first, then their
tiles, coarsest first. Whoever reads the beginning of the file knows where every tile is. The lengths of compressed
tiles are known only at the end, so tiles are kept in a temporary file until then.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Floating
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.files.atomic import file_written_aside
from normalmesh.files.georeference import GeoReference
from normalmesh.files.precision import rounding, surface_tolerance
from normalmesh.mesh.depth_bands import depth_bands
from normalmesh.mesh.surface import Surface
from normalmesh.runtime.threads import in_parallel

#: Side of a tile in pixels.
SIDE = 512
#: Level of compression: higher ones take far longer and gain little.
LEVEL = 6
#: A file that is longer needs offsets of 64 bits.
MAX_CLASSIC = 2**32 - 2**25

#: Values of the tags of a directory, by their numbers: 254 that it is an overview, 256 columns, 257 rows, 258 bits,
#: 259 deflated, 262 black is zero, 277 samples, 284 planes, 317 predicted as floats, 322 and 323 sides of tiles,
#: 324 offsets and 325 lengths of tiles, 339 floats, 42113 text for missing values.
Tags = Mapping[int, NDArray[Any]]
#: Numbers that TIFF gives to types of values.
_KINDS = {np.dtype(name): kind for name, kind in (("S1", 2), ("<u2", 3), ("<u4", 4), ("<f8", 12), ("<u8", 16))}
_PIXEL_SCALE, _TIE_POINT, _TRANSFORMATION = 33550, 33922, 34264
#: Types of the tags in which GeoTIFF stores a coordinate reference system.
_CRS_TYPES = {34735: "<u2", 34736: "<f8", 34737: "S1"}
#: The type of offsets in TIFF and in BigTIFF, and the header of the file.
_HEADERS = {"<u4": struct.pack("<2sHI", b"II", 42, 8), "<u8": struct.pack("<2sHHHQ", b"II", 43, 8, 0, 16)}


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


def _geo_tags(georeference: GeoReference) -> dict[int, NDArray[Any]]:
    """Return the tags that say where the image lies."""
    a, b, c, d, e, f = map(float, georeference.transform)
    if b == d == 0 and a > 0 > e:
        tags = {_PIXEL_SCALE: np.array([a, -e, 0]), _TIE_POINT: np.array([0, 0, 0, c, f, 0])}
    else:
        tags = {_TRANSFORMATION: np.array([a, b, 0, c, d, e, 0, f, 0, 0, 0, 0, 0, 0, 0, 1.0])}
    return tags | {number: _crs_tag(number, value) for number, value in georeference.crs_tags.items()}


def _crs_tag(number: int, value: object) -> NDArray[Any]:
    if number not in _CRS_TYPES:
        known = ", ".join(map(str, _CRS_TYPES))
        raise NormalMeshError(f"crs_tags may have the tags {known}, not {repr_for_error(number)}")
    if isinstance(value, str | bytes):
        text = value.encode("ascii", "replace") if isinstance(value, str) else value
        return np.frombuffer(text.rstrip(b"\0") + b"\0", "S1")
    return np.atleast_1d(np.asarray(value)).ravel().astype(_CRS_TYPES[number])


class CloudOptimisedTiff:
    """An image (rows, columns) of float32 or float64, NaN where there is none, that is given from top to bottom."""

    def __init__(self, shape: tuple[int, int], dtype: type[np.floating], tiles: IO[bytes]) -> None:
        """Begin an image; ``tiles`` is an empty temporary file, open for writing and reading."""
        self._tiles = tiles
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._levels = [_Level(shape)]
        while max(self._levels[-1].shape) > SIDE:
            rows, columns = self._levels[-1].shape
            self._levels.append(_Level((-(-rows // 2), -(-columns // 2))))

    def add_rows(self, rows: Floating) -> None:
        """Add the next :data:`SIDE` rows (SIDE, columns), or the last ones, to the image and to its overviews."""
        for level in self._levels:
            self._add_tiles(level, rows)
            level.rows_done += len(rows)
            rows = level.halved(rows)
            if len(rows) < SIDE and level.rows_done < level.shape[0]:
                return

    def _add_tiles(self, level: _Level, rows: Floating) -> None:
        """Compress one row of tiles, and keep them."""
        import imagecodecs

        across = -(-level.shape[1] // SIDE)
        contents: list[bytes] = [b""] * across

        def work(first: int, last: int) -> None:
            for k in range(first, last):
                tile = np.full((SIDE, SIDE), np.nan, self._dtype)
                part = rows[:, k * SIDE : (k + 1) * SIDE]
                tile[: part.shape[0], : part.shape[1]] = part
                predicted = imagecodecs.floatpred_encode(tile).tobytes()
                contents[k] = bytes(imagecodecs.deflate_encode(predicted, level=LEVEL))

        in_parallel(work, across, grain=1)
        for content in contents:
            level.offsets.append(self._tiles.tell())
            level.lengths.append(len(content))
            self._tiles.write(content)

    def write(self, file: BinaryIO, tags: Tags) -> None:
        """Write the complete file; ``tags`` are added to the directory of the image."""
        levels, sizes = self._levels, [sum(level.lengths) for level in self._levels]
        for word, header in _HEADERS.items():
            starts = [len(header)]
            for level in levels:
                starts.append(starts[-1] + len(_directory(self._tags(level, 0, word, tags), 0, 0, word)))
            if starts[-1] + sum(sizes) <= MAX_CLASSIC:
                break
        file.write(header)
        for k, level in enumerate(levels):
            data_start = starts[-1] + sum(sizes[k + 1 :])
            following = starts[k + 1] if k + 1 < len(levels) else 0
            file.write(_directory(self._tags(level, data_start, word, tags), starts[k], following, word))
        for level in reversed(levels):
            for offset, length in zip(level.offsets, level.lengths, strict=True):
                self._tiles.seek(offset)
                file.write(self._tiles.read(length))

    def _tags(self, level: _Level, data_start: int, word: str, more: Tags) -> Tags:
        """Return the directory of a level whose tiles begin at ``data_start``."""
        is_overview = level is not self._levels[0]
        longs = {254: is_overview, 256: level.shape[1], 257: level.shape[0]}
        shorts = {258: 8 * self._dtype.itemsize, 259: 8, 262: 1, 277: 1, 284: 1, 317: 3, 322: SIDE, 323: SIDE, 339: 3}
        return {
            **{number: np.array([value], "<u4") for number, value in longs.items()},
            **{number: np.array([value], "<u2") for number, value in shorts.items()},
            324: (data_start + np.cumsum([0, *level.lengths[:-1]])).astype(word),
            325: np.array(level.lengths, "<u4"),
            42113: np.frombuffer(b"nan\0", "S1"),
            **({} if is_overview else more),
        }


class _Level:
    """The image, or an overview of it: its tiles so far, and rows that wait until there is a row of tiles of them."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.rows_done = 0
        #: Of each tile in the temporary file.
        self.offsets: list[int] = []
        self.lengths: list[int] = []
        self._waiting: list[Floating] = []

    def halved(self, rows: Floating) -> Floating:
        """Reduce rows (SIDE, columns) by half; return those of a whole row of tiles, or what there is so far."""
        self._waiting.append(half(rows))
        made = self._waiting[0] if len(self._waiting) == 1 else np.concatenate(self._waiting)
        if len(made) >= SIDE or self.rows_done >= self.shape[0]:
            self._waiting = []
        return made


def _directory(tags: Tags, start: int, following: int, word: str) -> bytes:
    """Return a directory that begins at ``start``, with the values that do not fit into its entries behind it."""
    width = np.dtype(word).itemsize
    content = len(tags).to_bytes(2 if width == 4 else 8, "little")
    behind, values = start + len(content) + len(tags) * (4 + 2 * width) + width, b""
    for number, array in sorted(tags.items()):
        place = array.tobytes()
        if len(place) > width:
            packed, place = place, (behind + len(values)).to_bytes(width, "little")
            values += packed + b"\0" * (-len(packed) % 8)
        head = struct.pack("<HH", number, _KINDS[array.dtype]) + len(array).to_bytes(width, "little")
        content += head + place.ljust(width, b"\0")
    content += following.to_bytes(width, "little") + values
    return content + b"\0" * (-len(content) % 8)


def half(image: Floating) -> Floating:
    """Reduce an image (H, W) by half, to means of those of 2 × 2 pixels that are no NaN."""
    rows, columns = image.shape
    padded = np.full((rows + rows % 2, columns + columns % 2), np.nan, image.dtype)
    padded[:rows, :columns] = image
    total = np.zeros((len(padded) // 2, padded.shape[1] // 2), np.float64)
    count = np.zeros(total.shape, np.uint8)
    for quarter in (padded[i::2, j::2] for i in range(2) for j in range(2)):
        known = ~np.isnan(quarter)
        total += np.where(known, quarter, 0)
        count += known
    return np.where(count > 0, total / np.maximum(count, 1), np.nan).astype(image.dtype)
