"""TIFF files, read whole or in windows: only the tiles or strips that a window needs are decoded."""

from __future__ import annotations

import struct
from mmap import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.errors import path_text, shape_text, warn_caller
from normalmesh.files.formats import mapped, reading, unusable
from normalmesh.files.georeference import read_georeference
from normalmesh.files.images import ORIENTATION, refuse_turned
from normalmesh.files.size_limits import check_file_length, check_image_size, check_pixel_limit, refuse_beyond_memory
from normalmesh.files.windowed_arrays import ArrayInMemory, MappedArray, WindowedArray, with_channel_axis
from normalmesh.normals.windows import whole_window
from normalmesh.runtime.memory import bytes_text
from normalmesh.runtime.threads import in_parallel

if TYPE_CHECKING:
    from tifffile import TiffFile, TiffFrame, TiffPage, TiffPageSeries

#: Size in bytes from which on a single piece of a file is reported: each window decodes all pieces that it touches.
LARGE_PIECE = 1 << 28
#: Maximum number of pages.
MAX_PAGES = 10_000
#: What colour channels hold, by the names of tifffile.
COLOURS = {"MINISBLACK": "grey", "MINISWHITE": "grey", "PALETTE": "palette", "SEPARATED": "CMYK"}
#: Tag with the number that stands for a missing value, as text.
NODATA = 42113


def read_tiff(path: Path) -> ArrayInMemory:
    """Read the only image of a file whole."""
    read_tiff_size(path)  # before anything that takes memory
    array = TiffWindows(path)
    values, nodata = array.values_and_nodata(*whole_window(array.size))
    return ArrayInMemory(path, values, array.maximum, array.colour, nodata=nodata)


def read_tiff_size(path: Path) -> tuple[int, int]:
    """Return rows and columns from the header, after a check of the size."""
    with opened_tiff(path) as file:
        series = only_image(path, file)
        (rows, columns, channels), _ = _tiff_layout(path, series)
        check_image_size(path, rows, columns, channels * series.dtype.itemsize)
        return rows, columns


class TiffWindows(WindowedArray):
    """The full resolution image of a TIFF, BigTIFF or COG, tiled or striped.

    ``georeference``: where the image lies on the ground; None if the file does not say it.
    """

    def __init__(self, path: Path):
        self.path = path
        with reading(path, "TIFF"), opened_tiff(path) as file:
            series = only_image(path, file)
            page, self.dtype = series.keyframe, series.dtype
            refuse_turned(path, page.tags.valueof(ORIENTATION, default=1))
            photometric = getattr(page.photometric, "name", str(page.photometric))
            self.shape, self._planes_first = _tiff_layout(path, series)
            # A file may hold 10 or 12 bits, which are decoded to 16.
            bits = page.bitspersample - (self.dtype.kind == "i")
            self.maximum = int(2**bits - 1) if self.dtype.kind in "ubi" else None
            self.colour = COLOURS.get(photometric, photometric)
            # Scientific tools write RGB as three channels of plain data; decoders of JPEG convert to RGB.
            is_plain = self.colour == "grey" and self.shape[2] >= 3
            if is_plain or (photometric == "YCBCR" and page.compression in (6, 7)):
                self.colour = "RGB"
            # tifffile labels bilevel data "zero is white" and yet stores True as one.
            self._zero_is_white = photometric == "MINISWHITE" and not (bits == 1 and page.software == "tifffile.py")
            self._nodata = page.tags.valueof(NODATA)  # the text of a number
            if 0 in self.shape:
                raise ValueError("no pixels")
            check_pixel_limit(path, *self.size)
            check_file_length(path, *self.size, self.shape[2] * self.dtype.itemsize)
            self.georeference = read_georeference(page)
            self._mapped: MappedArray | None = None
            self._pages: list[_Page] = []
            self._piece = 0  # bytes of one that is compressed
            self.chunks = (1, self.size[1])
            if series.dataoffset is not None:
                stored = np.dtype(file.byteorder + series.dtype.char)
                self._mapped = MappedArray(path, stored, series.shape, series.dataoffset)
            else:
                self._open_pages(series)

    def _open_pages(self, series: TiffPageSeries) -> None:
        keyframe = series.keyframe
        self._pages = [_Page(page, keyframe) for page in series.pages if page is not None]
        first = self._pages[0]
        channels = 1 if len(self._pages) > 1 else keyframe.samplesperpixel
        if len(self._pages) * channels != self.shape[2] or any(page.shape != self.size for page in self._pages):
            raise ValueError(f"its pages do not make up an image of {shape_text(self.shape)}")
        self.chunks = (min(first.height, self.size[0]), min(first.width, self.size[1]))
        self._piece = first.height * first.width * keyframe.samplesperpixel * self.dtype.itemsize

    def check_pieces(self) -> TiffWindows:
        """Raise or warn if windows of a few pixels take much memory; return the array."""
        refuse_beyond_memory(self.path, self._piece)
        if self._piece >= LARGE_PIECE:
            warn_caller(
                f"{path_text(self.path)}: is compressed in pieces of {self.chunks[0]}×{self.chunks[1]} pixels, "
                f"{bytes_text(self._piece)} each, and every window decodes whole ones; save it in tiles, such as of "
                "512×512"
            )
        return self

    def read(self, rows: slice, columns: slice) -> NDArray[Any]:
        return self.values_and_nodata(rows, columns)[0]

    def values_and_nodata(self, rows: slice, columns: slice) -> tuple[NDArray[Any], int | None]:
        """Return the values of a window, and the integer that stands for a missing one."""
        with reading(self.path, "TIFF"):
            values, missing = _without_nodata(self._stored(rows, columns), self._nodata)
        if self._zero_is_white and self.maximum is not None:
            values, missing = self.maximum - values, None if missing is None else self.maximum - missing
        return values, missing

    def _stored(self, rows: slice, columns: slice) -> NDArray[Any]:
        """Return the values (h, w, channels) as they are stored."""
        if self._mapped is not None:
            if self._planes_first:
                return np.moveaxis(self._mapped.read((slice(None), rows, columns)), 0, -1)
            return with_channel_axis(self._mapped.read((rows, columns)))
        window = np.empty((rows.stop - rows.start, columns.stop - columns.start, self.shape[2]), self.dtype)
        for number, page in enumerate(self._pages):
            page.read(self.path, rows, columns, window if len(self._pages) == 1 else window[..., number : number + 1])
        return window

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path,)


class _Page:
    """Where the tiles or strips of a page are, and how they are decoded."""

    def __init__(self, page: TiffPage | TiffFrame, keyframe: TiffPage):
        self._decode, self._tables, self._nodata = keyframe.decode, page.jpegtables, keyframe.nodata
        self._offsets, self._counts = tuple(page.dataoffsets), tuple(page.databytecounts)
        self.shape = keyframe.imagelength, keyframe.imagewidth
        tiled = keyframe.is_tiled
        # Rows and columns of a piece; planes follow one another, each in pieces of its own.
        self.height = keyframe.tilelength if tiled else min(keyframe.rowsperstrip, keyframe.imagelength)
        self.width = keyframe.tilewidth if tiled else keyframe.imagewidth
        self._planes = keyframe.samplesperpixel if keyframe.planarconfig == 2 else 1
        if not (self.height > 0 and self.width > 0):
            raise ValueError(f"its pieces have {self.height}×{self.width} pixels")
        self._down, self._across = -(-self.shape[0] // self.height), -(-self.shape[1] // self.width)
        pieces = self._planes * self._down * self._across
        if min(len(self._offsets), len(self._counts)) < pieces:
            raise ValueError(f"it has {len(self._offsets)} of {pieces} pieces")

    def read(self, path: Path, rows: slice, columns: slice, values: NDArray[Any]) -> None:
        """Decode a window into ``values`` (h, w, channels)."""
        pieces = [
            (plane * self._down + i) * self._across + j
            for plane in range(self._planes)
            for i in range(rows.start // self.height, -(-rows.stop // self.height))
            for j in range(columns.start // self.width, -(-columns.stop // self.width))
        ]

        def decode_pieces(first: int, last: int) -> None:
            with path.open("rb") as file:
                for piece in pieces[first:last]:
                    file.seek(self._offsets[piece])
                    self._copy(piece, file.read(self._counts[piece]), rows, columns, values)

        in_parallel(decode_pieces, len(pieces), grain=1)

    def _copy(self, piece: int, data: bytes, rows: slice, columns: slice, values: NDArray[Any]) -> None:
        """Decode a piece, and copy what lies in the window."""
        if len(data) < self._counts[piece]:
            raise ValueError(f"it ends within piece {piece}")
        # No bytes: the piece was left out.
        decoded, (plane, _, top, left, _), shape = self._decode(data or None, piece, jpegtables=self._tables)
        first, last = max(rows.start, top), min(rows.stop, top + shape[1], self.shape[0])
        begin, end = max(columns.start, left), min(columns.stop, left + shape[2], self.shape[1])
        target = values[first - rows.start : last - rows.start, begin - columns.start : end - columns.start]
        if self._planes > 1:
            target = target[..., plane : plane + 1]
        if decoded is None:
            target[...] = self._nodata
        else:
            target[...] = decoded[0, first - top : last - top, begin - left : end - left]


def only_image(path: Path, file: TiffFile) -> TiffPageSeries:
    """Return the only image of a TIFF besides its previews: the first page of a raw file may be one."""
    images = [series for series in file.series if not series.keyframe.is_reduced] or list(file.series)
    if len(images) > 1:
        raise unusable(
            path,
            f"holds {len(images)} images ({', '.join(shape_text(series.shape) for series in images)}); "
            "save the one to be read as a file of its own",
        )
    return images[0]


def _without_nodata(values: NDArray[Any], text: str | None) -> tuple[NDArray[Any], int | None]:
    """Return values with NaN for the missing floats, or the integer that stands for a missing value."""
    try:
        nodata = np.float64(str(text).strip("\0 "))
    except ValueError:
        return values, None
    if values.dtype.kind != "f":
        return values, int(nodata) if np.isfinite(nodata) else None
    # The text may have fewer digits than the number that is stored.
    return np.where(np.isclose(values, nodata, rtol=1e-6, atol=0), values.dtype.type(np.nan), values), None


def opened_tiff(path: Path) -> TiffFile:
    import tifffile

    with mapped(path) as contents:
        _refuse_endless_pages(contents)
    # Files of these kinds may name other files, which would be read, too.
    return tifffile.TiffFile(path, is_ome=False, is_mmstack=False, is_ndtiff=False)


def _tiff_layout(path: Path, series: TiffPageSeries) -> tuple[tuple[int, int, int], bool]:
    """Return rows, columns and channels, and whether channels come first."""
    planes_first = series.axes in ("SYX", "CYX")
    shape = (*series.shape[1:], series.shape[0]) if planes_first else (*series.shape, 1)[: max(series.ndim, 3)]
    if len(shape) != 3 or shape[2] > 4 or series.dtype.kind == "c":
        raise unusable(
            path,
            f"holds an array of {shape_text(shape)} {series.dtype}; "
            "expected one image of rows × columns × 3 or 4 channels",
        )
    rows, columns, channels = shape
    return (rows, columns, channels), planes_first


def _refuse_endless_pages(contents: mmap) -> None:
    """Refuse a TIFF with too many pages, or whose linked list of pages is a circle."""
    order, is_big = "<" if contents[:2] == b"II" else ">", 43 in contents[2:4]
    count, entry, place = ("Q", 20, "Q") if is_big else ("H", 12, "I")
    (position,) = struct.unpack_from(order + place, contents, 8 if is_big else 4)
    seen: set[int] = set()
    # A page that begins or ends beyond the file ends the chain for the decoder, too.
    while position and position + 8 <= len(contents):
        if position in seen or len(seen) > MAX_PAGES:
            raise ValueError("its pages have no end")
        seen.add(position)
        (entries,) = struct.unpack_from(order + count, contents, position)
        following = position + struct.calcsize(order + count) + entry * entries
        if following + struct.calcsize(order + place) > len(contents):
            return
        (position,) = struct.unpack_from(order + place, contents, following)
