"""Cloud-optimised GeoTIFF: one image of floats as a tiled TIFF with overviews, made row of tiles by row of tiles.

The layout is that of GDAL's COG driver: the directories of the image and of its overviews, finest first, then their
tiles, coarsest first. Whoever reads the beginning of the file knows where every tile is. The lengths of compressed
tiles are known only at the end, so tiles are kept in a temporary file until then.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import IO, BinaryIO, NamedTuple

import numpy as np

from normalmesh.array_types import Floating
from normalmesh.runtime.threads import in_parallel

#: Side of a tile in pixels.
SIDE = 512
#: Level of compression: higher ones take far longer and gain little.
LEVEL = 6
#: A file that is longer needs offsets of 64 bits.
MAX_CLASSIC = 2**32 - 2**25
#: Bytes that are copied at once.
CHUNK = 2**24

_ASCII, _SHORT, _LONG, _DOUBLE, _LONG8 = 2, 3, 4, 12, 16
_FORMATS = {1: "B", _ASCII: "B", _SHORT: "H", _LONG: "I", 5: "II", 11: "f", _DOUBLE: "d", _LONG8: "Q"}
_DEFLATE, _FLOATING_POINT, _FLOATS, _BLACK_IS_ZERO, _REDUCED = 8, 3, 3, 1, 1
_OFFSETS, _LENGTHS, _MISSING = 324, 325, 42113

Tags = Mapping[int, "Tag"]


class Tag(NamedTuple):
    """The value of a TIFF tag: its type, by the number that TIFF gives it, and its numbers, or bytes as text."""

    kind: int
    values: tuple[float, ...] | bytes

    def packed(self) -> bytes:
        """Return the bytes of the values."""
        if isinstance(self.values, bytes):
            return self.values
        return struct.pack(f"<{len(self.values)}{_FORMATS[self.kind]}", *self.values)


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
            level.places.append((self._tiles.tell(), len(content)))
            self._tiles.write(content)

    def write(self, file: BinaryIO, tags: Tags) -> None:
        """Write the complete file; ``tags`` are added to the directory of the image."""
        data = sum(length for level in self._levels for _, length in level.places)
        for big in (False, True):
            encode = _Encoding(big)
            starts, end = [], encode.header_size
            for level in self._levels:
                starts.append(end)
                end += len(encode.directory(self._tags(level, 0, encode, tags), end, 0))
            if end + data <= MAX_CLASSIC:
                break
        data_starts: list[int] = []
        for level in reversed(self._levels):
            data_starts.insert(0, end)
            end += sum(length for _, length in level.places)
        file.write(encode.header())
        for k, level in enumerate(self._levels):
            following = starts[k + 1] if k + 1 < len(starts) else 0
            file.write(encode.directory(self._tags(level, data_starts[k], encode, tags), starts[k], following))
        for level in reversed(self._levels):
            self._copy(level, file)

    def _copy(self, level: _Level, file: BinaryIO) -> None:
        """Copy the tiles of a level: from runs of tiles that lie one after the other."""
        run_start, run_length = level.places[0][0], 0
        for offset, length in [*level.places, (-1, 0)]:
            if offset != run_start + run_length:
                self._tiles.seek(run_start)
                _copy_bytes(self._tiles, file, run_length)
                run_start, run_length = offset, 0
            run_length += length

    def _tags(self, level: _Level, data_start: int, encode: _Encoding, more: Tags) -> dict[int, Tag]:
        """Return the directory of a level whose tiles begin at ``data_start``."""
        rows, columns = level.shape
        is_overview = level is not self._levels[0]
        lengths = tuple(length for _, length in level.places)
        offsets = (data_start + np.cumsum([0, *lengths[:-1]])).tolist()
        tags = {
            254: Tag(_LONG, (_REDUCED if is_overview else 0,)),
            256: Tag(_LONG, (columns,)),
            257: Tag(_LONG, (rows,)),
            258: Tag(_SHORT, (8 * self._dtype.itemsize,)),
            259: Tag(_SHORT, (_DEFLATE,)),
            262: Tag(_SHORT, (_BLACK_IS_ZERO,)),
            277: Tag(_SHORT, (1,)),
            284: Tag(_SHORT, (1,)),
            317: Tag(_SHORT, (_FLOATING_POINT,)),
            322: Tag(_SHORT, (SIDE,)),
            323: Tag(_SHORT, (SIDE,)),
            _OFFSETS: Tag(encode.offset_kind, tuple(offsets)),
            _LENGTHS: Tag(_LONG, lengths),
            339: Tag(_SHORT, (_FLOATS,)),
            _MISSING: Tag(_ASCII, b"nan\0"),
        }
        return tags if is_overview else {**tags, **more}


class _Level:
    """The image, or an overview of it: its tiles so far, and rows that wait until there is a row of tiles of them."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.rows_done = 0
        #: Offset and length of each tile in the temporary file.
        self.places: list[tuple[int, int]] = []
        self._waiting: list[Floating] = []

    def halved(self, rows: Floating) -> Floating:
        """Reduce rows (SIDE, columns) by half; return those of a whole row of tiles, or what there is so far."""
        self._waiting.append(half(rows))
        made = self._waiting[0] if len(self._waiting) == 1 else np.concatenate(self._waiting)
        if len(made) >= SIDE or self.rows_done >= self.shape[0]:
            self._waiting = []
        return made


class _Encoding:
    """The structures of a TIFF file with offsets of 32 bits, or of a BigTIFF file, with 64."""

    def __init__(self, big: bool) -> None:
        self._big = big
        self.header_size = 16 if big else 8
        self.offset_kind = _LONG8 if big else _LONG
        self._word, self._entries = ("Q", "Q") if big else ("I", "H")

    def header(self) -> bytes:
        if self._big:
            return struct.pack("<2sHHHQ", b"II", 43, 8, 0, self.header_size)
        return struct.pack("<2sHI", b"II", 42, self.header_size)

    def directory(self, tags: Tags, start: int, following: int) -> bytes:
        """Return a directory that begins at ``start``, with the values that do not fit into its entries behind it."""
        width = struct.calcsize(f"<{self._word}")
        head = struct.pack(f"<{self._entries}", len(tags))
        behind = start + len(head) + len(tags) * (4 + 2 * width) + width
        entries, values = [], b""
        for number in sorted(tags):
            tag, packed = tags[number], tags[number].packed()
            if len(packed) > width:
                place = struct.pack(f"<{self._word}", behind + len(values))
                values += packed + b"\0" * (-len(packed) % 8)
            else:
                place = packed.ljust(width, b"\0")
            entries.append(struct.pack(f"<HH{self._word}", number, tag.kind, len(tag.values)) + place)
        content = head + b"".join(entries) + struct.pack(f"<{self._word}", following) + values
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


def _copy_bytes(source: IO[bytes], target: BinaryIO, length: int) -> None:
    while length > 0:
        content = source.read(min(length, CHUNK))
        target.write(content)
        length -= len(content)
