"""Windows of TIFF files: only the tiles or strips that a window needs are decoded."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.errors import NormalMeshWarning, path_text, shape_text
from normalmesh.files.formats import reading
from normalmesh.files.geotiff_reading import read_georeference
from normalmesh.files.images import TiffHeader, only_image, opened_tiff
from normalmesh.files.size_limits import refuse_beyond_memory
from normalmesh.files.windowed_arrays import MappedArray, WindowedArray, check_stored_size
from normalmesh.runtime.memory import bytes_text
from normalmesh.runtime.threads import in_parallel

if TYPE_CHECKING:
    from tifffile import TiffFrame, TiffPage, TiffPageSeries

#: Size in bytes from which on a single piece of a file is reported: each window decodes all pieces that it touches.
LARGE_PIECE = 1 << 28


class TiffWindows(WindowedArray):
    """The full resolution image of a TIFF, BigTIFF or COG, tiled or striped, as :func:`.images.read_image` reads it.

    Attributes
    ----------
    georeference : GeoReference or None
        Where the image lies on the ground.
    """

    def __init__(self, path: Path):
        self.path = path
        with reading(path, "TIFF"), opened_tiff(path) as file:
            series = only_image(path, file)
            self._header = TiffHeader.of(path, series)
            self.shape, self.maximum, self.colour = self._header.shape, self._header.maximum, self._header.colour
            self.dtype = series.dtype
            if 0 in self.shape:
                raise ValueError("no pixels")
            check_stored_size(path, self.shape, self.dtype.itemsize)
            self.georeference = read_georeference(series.keyframe)
            self._mapped: MappedArray | None = None
            self._pages: list[_Page] = []
            if series.dataoffset is not None:
                stored = np.dtype(file.byteorder + series.dtype.char)
                self._mapped = MappedArray(path, stored, series.shape, series.dataoffset)
                self.chunks = (1, self.size[1])
            else:
                self._open_pages(series)

    def _open_pages(self, series: TiffPageSeries) -> None:
        keyframe = series.keyframe
        self._pages = [_Page.of(page, keyframe) for page in series.pages if page is not None]
        first = self._pages[0]
        channels = 1 if len(self._pages) > 1 else keyframe.samplesperpixel
        if len(self._pages) * channels != self.shape[2] or any(page.shape != self.size for page in self._pages):
            raise ValueError(f"its pages do not make up an image of {shape_text(self.shape)}")
        for page in self._pages:
            page.check()
        self.chunks = (min(first.height, self.size[0]), min(first.width, self.size[1]))
        piece = first.height * first.width * keyframe.samplesperpixel * self.dtype.itemsize
        refuse_beyond_memory(self.path, piece)
        if piece >= LARGE_PIECE:
            warnings.warn(
                f"{path_text(self.path)}: is compressed in pieces of {self.chunks[0]}×{self.chunks[1]} pixels, "
                f"{bytes_text(piece)} each, and every window decodes whole ones; save it in tiles, such as of 512×512",
                NormalMeshWarning,
                stacklevel=5,
            )

    def read(self, rows: slice, columns: slice) -> NDArray[np.generic]:
        with reading(self.path, "TIFF"):
            return self._header.image(self._stored(rows, columns)).values

    def _stored(self, rows: slice, columns: slice) -> NDArray[np.generic]:
        """Return the values (h, w, channels) as they are stored."""
        if self._mapped is not None:
            planes_first = self._header.planes_first
            part = self._mapped.read((slice(None), rows, columns) if planes_first else (rows, columns))
            part = np.moveaxis(part, 0, -1) if planes_first else part
            return part if part.ndim == 3 else part[..., None]
        window = np.empty((rows.stop - rows.start, columns.stop - columns.start, self.shape[2]), self.dtype)
        for number, page in enumerate(self._pages):
            values = window if len(self._pages) == 1 else window[..., number : number + 1]
            page.read(self.path, rows, columns, values)
        return window

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path,)


@dataclass(frozen=True)
class _Page:
    """Where the tiles or strips of a page are, and how they are decoded.

    Attributes
    ----------
    decode
        tifffile's function: it returns values (1, h, w, samples), the position of the piece and its shape.
    tables
        Tables that the pieces of a JPEG share.
    offsets, counts
        Position and number of the bytes of each piece.
    height, width
        Rows and columns of a piece.
    shape
        Rows and columns of the page.
    planes
        Number of planes, one after another, each in pieces of its own.
    """

    decode: Any
    tables: bytes | None
    offsets: tuple[int, ...]
    counts: tuple[int, ...]
    height: int
    width: int
    shape: tuple[int, int]
    planes: int
    nodata: Any

    @classmethod
    def of(cls, page: TiffPage | TiffFrame, keyframe: TiffPage) -> _Page:
        tiled = keyframe.is_tiled
        return cls(
            keyframe.decode,
            page.jpegtables,
            tuple(page.dataoffsets),
            tuple(page.databytecounts),
            keyframe.tilelength if tiled else min(keyframe.rowsperstrip, keyframe.imagelength),
            keyframe.tilewidth if tiled else keyframe.imagewidth,
            (keyframe.imagelength, keyframe.imagewidth),
            keyframe.samplesperpixel if keyframe.planarconfig == 2 else 1,
            keyframe.nodata,
        )

    def check(self) -> None:
        """Raise :class:`ValueError` if there are not as many pieces as the page has."""
        if not (self.height > 0 and self.width > 0):
            raise ValueError(f"its pieces have {self.height}×{self.width} pixels")
        down, across = self._grid
        if min(len(self.offsets), len(self.counts)) < self.planes * down * across:
            raise ValueError(f"it has {len(self.offsets)} of {self.planes * down * across} pieces")

    @property
    def _grid(self) -> tuple[int, int]:
        """Number of pieces along columns and rows of pixels."""
        return -(-self.shape[0] // self.height), -(-self.shape[1] // self.width)

    def read(self, path: Path, rows: slice, columns: slice, values: NDArray[np.generic]) -> None:
        """Decode a window into ``values`` (h, w, channels)."""
        down, across = self._grid
        pieces = [
            (plane * down + i) * across + j
            for plane in range(self.planes)
            for i in range(rows.start // self.height, -(-rows.stop // self.height))
            for j in range(columns.start // self.width, -(-columns.stop // self.width))
        ]

        def decode_pieces(first: int, last: int) -> None:
            with path.open("rb") as file:
                for piece in pieces[first:last]:
                    file.seek(self.offsets[piece])
                    self._copy(piece, file.read(self.counts[piece]), rows, columns, values)

        in_parallel(decode_pieces, len(pieces), grain=1)

    def _copy(self, piece: int, data: bytes, rows: slice, columns: slice, values: NDArray[np.generic]) -> None:
        """Decode a piece, and copy what lies in the window."""
        if len(data) < self.counts[piece]:
            raise ValueError(f"it ends within piece {piece}")
        # No bytes: the piece was left out.
        decoded, (plane, _, top, left, _), shape = self.decode(data or None, piece, jpegtables=self.tables)
        first, last = max(rows.start, top), min(rows.stop, top + shape[1], self.shape[0])
        begin, end = max(columns.start, left), min(columns.stop, left + shape[2], self.shape[1])
        target = values[first - rows.start : last - rows.start, begin - columns.start : end - columns.start]
        if self.planes > 1:
            target = target[..., plane : plane + 1]
        if decoded is None:
            target[...] = self.nodata
        else:
            target[...] = decoded[0, first - top : last - top, begin - left : end - left]
