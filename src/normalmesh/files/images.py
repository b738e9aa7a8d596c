"""Reading image files as arrays, exactly as stored; channels in the order red, green, blue."""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from normalmesh.errors import shape_text
from normalmesh.files.formats import mapped, reading, unusable
from normalmesh.files.pillow_images import ORIENTATION, PILLOW_FORMATS, read_pillow_size, read_with_pillow
from normalmesh.files.size_limits import check_image_size

if TYPE_CHECKING:
    from tifffile import TiffFile, TiffPageSeries

#: Formats that :func:`read_image` decodes.
IMAGE_FORMATS = ("PNG", "JPEG", "TIFF", *PILLOW_FORMATS)
#: Their names, for messages.
IMAGES = "PNG, JPEG, TIFF, TGA, BMP or WebP"
#: Maximum number of pages of a TIFF.
MAX_PAGES = 10_000
#: TIFF tag with the number that stands for a missing value, as text.
NODATA = 42113
#: Number of decoded channels for each colour type of PNG; palettes may have transparent colours.
PNG_CHANNELS = {0: 1, 2: 3, 3: 4, 4: 2, 6: 4}

# Decoders log many lines about a damaged file besides our error. They appear only if logging is configured.
for _decoder in ("imagecodecs", "tifffile"):
    logging.getLogger(_decoder).addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Image:
    """An image file as it was stored.

    Attributes
    ----------
    values
        (H, W, C) integers or floats; with an even C the last channel is alpha.
    maximum
        The largest value that the bit depth can hold; None for floats.
    colour
        ``"RGB"``, ``"grey"``, ``"palette"``, ``"CMYK"`` or another name for what the colour channels hold.
    nodata
        The integer that the file declares to stand for a missing value; missing floats are NaN already.
    """

    values: NDArray[np.generic]
    maximum: int | None
    colour: str
    nodata: int | None = None

    @property
    def alpha(self) -> NDArray[np.generic] | None:
        """(H, W) opacity in the unit of the values, if there is any."""
        return self.values[..., -1] if self.values.shape[2] in (2, 4) else None


def read_image(path: Path, file_format: str) -> Image:
    """Decode a file of one of :data:`IMAGE_FORMATS`."""
    decoders = {"PNG": _read_png, "JPEG": _read_jpeg, "TIFF": _read_tiff}
    with reading(path, file_format):
        image = _read_other(path, file_format) if file_format in PILLOW_FORMATS else decoders[file_format](path)
        if image.values.size == 0:
            raise ValueError("no pixels")
        return image


def read_image_size(path: Path, file_format: str) -> tuple[int, int]:
    """Return rows and columns of a file of one of :data:`IMAGE_FORMATS`, from its header, after a check of its size."""
    with reading(path, file_format):
        if file_format == "TIFF":
            with opened_tiff(path) as file:
                series = only_image(path, file)
                (rows, columns, channels), _ = _tiff_layout(path, series)
                check_image_size(path, rows, columns, channels * series.dtype.itemsize)
                return rows, columns
        if file_format in PILLOW_FORMATS:
            return read_pillow_size(path, file_format)
        with mapped(path) as contents:
            if file_format == "PNG":
                return _png_header(path, contents)[0]
            _, shape, components, _ = _jpeg_frame(contents)
            check_image_size(path, *shape, components)
            return shape


def _read_other(path: Path, name: str) -> Image:
    values, colour, orientation = read_with_pillow(path, name)
    _refuse_turned(path, orientation)
    return Image(values, 255, colour)


def _read_png(path: Path) -> Image:
    import imagecodecs

    with mapped(path) as contents:
        _, colour = _png_header(path, contents)
        _refuse_turned(path, _exif_orientation(png_exif(contents)))
        values = imagecodecs.png_decode(contents)
    return Image(_with_channel_axis(values), int(np.iinfo(values.dtype).max), colour)


def _png_header(path: Path, contents: mmap) -> tuple[tuple[int, int], str]:
    """Return rows and columns, and what the colour channels hold, after a check of the size."""
    # The fixed header: 8 bytes signature, 8 of the first chunk, width, height, bit depth, colour type.
    columns, rows, bits, colour_type = struct.unpack_from(">IIBB", contents, 16)
    check_image_size(path, rows, columns, PNG_CHANNELS[colour_type] * (2 if bits == 16 else 1))
    return (rows, columns), {0: "grey", 2: "RGB", 3: "palette", 4: "grey", 6: "RGB"}[colour_type]


def png_exif(contents: mmap) -> bytes:
    """Return the EXIF data of a PNG, empty if it has none."""
    position = 8
    while position + 12 <= len(contents):
        length, name = struct.unpack_from(">I4s", contents, position)
        if name == b"eXIf":
            return contents[position + 8 : position + 8 + length]
        position += 12 + length
    return b""


def _read_jpeg(path: Path) -> Image:
    import imagecodecs

    with mapped(path) as contents:
        _refuse_turned(path, _exif_orientation(jpeg_exif(contents)))
        precision, (rows, columns), components, scan = _jpeg_frame(contents)
        check_image_size(path, rows, columns, components)
        # The decoder fills the missing part of a truncated file with grey, without an error.
        if contents.find(b"\xff\xd9", scan) < 0:
            raise unusable(path, "cannot be read as JPEG; it is incomplete (no end of image)")
        values = imagecodecs.jpeg8_decode(contents)
    colour = {1: "grey", 3: "RGB", 4: "CMYK"}.get(components, f"{components}-component")
    return Image(_with_channel_axis(values), 2**precision - 1, colour)


def _jpeg_frame(contents: mmap) -> tuple[int, tuple[int, int], int, int]:
    """Return bits per sample, rows, columns, number of components, and the start of the first scan."""
    precision = rows = columns = components = 0
    for marker, position in _jpeg_segments(contents):
        if marker == 0xDA:
            return precision, (rows, columns), components, position
        # Start of frame: C0 … CF except the tables C4, C8 and CC.
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            precision, rows, columns, components = struct.unpack_from(">BHHB", contents, position + 4)
    raise ValueError("no image data")


def jpeg_exif(contents: mmap) -> bytes:
    """Return the EXIF data of a JPEG, empty if it has none."""
    for marker, position in _jpeg_segments(contents):
        if marker == 0xE1 and contents[position + 4 : position + 10] == b"Exif\0\0":
            return contents[position + 10 : position + 2 + _segment_size(contents, position)]
    return b""


def _jpeg_segments(contents: mmap) -> Iterator[tuple[int, int]]:
    """Yield marker and position of the segments up to the first scan, which is the last one."""
    position, marker = 2, 0
    while position + 10 <= len(contents) and marker != 0xDA:
        marker = contents[position + 1]
        if contents[position] != 0xFF:
            raise ValueError(f"no marker at byte {position}")
        if marker == 0xFF:  # a fill byte
            position += 1
            continue
        yield marker, position
        position += 2 + _segment_size(contents, position)


def _segment_size(contents: mmap, position: int) -> int:
    return max(int.from_bytes(contents[position + 2 : position + 4], "big"), 2)


def _exif_orientation(exif: bytes) -> int:
    """Return the orientation in the first directory of EXIF data; 1 if there is none, or the data are damaged."""
    order = "<" if exif[:2] == b"II" else ">"
    try:
        (directory,) = struct.unpack_from(f"{order}I", exif, 4)
        (entries,) = struct.unpack_from(f"{order}H", exif, directory)
        for entry in range(entries):
            tag, _, _, value = struct.unpack_from(f"{order}HHIH", exif, directory + 2 + 12 * entry)
            if tag == ORIENTATION:
                return int(value)
    except struct.error:
        pass
    return 1


def _refuse_turned(path: Path, orientation: int) -> None:
    """Refuse an image that viewers turn: vectors, masks and cameras may be meant for either of the two pictures."""
    if 2 <= orientation <= 8:
        raise unusable(
            path,
            f"is to be shown turned or mirrored (orientation {orientation} in its metadata), so that its axes are "
            "not known; save it as it is shown, or remove the orientation",
        )


@dataclass(frozen=True)
class TiffHeader:
    """What a TIFF says about its only image.

    Attributes
    ----------
    shape
        Rows, columns and channels.
    planes_first
        Whether channels are the first axis of the stored array.
    maximum, colour
        As in :class:`Image`.
    inverted
        Whether zero is white.
    nodata
        The text of the number that stands for a missing value, if there is one.
    """

    shape: tuple[int, int, int]
    planes_first: bool
    maximum: int | None
    colour: str
    inverted: bool
    nodata: str | None

    @classmethod
    def of(cls, path: Path, series: TiffPageSeries) -> TiffHeader:
        """Read the header of a series, or raise :class:`NormalMeshError` if it is no upright image of some channels."""
        page = series.keyframe
        _refuse_turned(path, page.tags.valueof(ORIENTATION, default=1))
        photometric = getattr(page.photometric, "name", str(page.photometric))
        bits = page.bitspersample
        shape, planes_first = _tiff_layout(path, series)
        return cls(
            shape,
            planes_first,
            _tiff_maximum(series.dtype, bits),
            _tiff_colour(photometric, shape[2], is_jpeg=page.compression in (6, 7)),
            # tifffile labels bilevel data "zero is white" and yet stores True as one.
            inverted=photometric == "MINISWHITE" and not (bits == 1 and page.software == "tifffile.py"),
            nodata=page.tags.valueof(NODATA),
        )

    def image(self, values: NDArray[np.generic]) -> Image:
        """Return the image of stored values (h, w, C), of all of it or of a window."""
        values, missing = _without_nodata(values, self.nodata)
        if self.inverted and self.maximum is not None:
            values, missing = self.maximum - values, None if missing is None else self.maximum - missing
        return Image(values, self.maximum, self.colour, missing)


def _read_tiff(path: Path) -> Image:
    with opened_tiff(path) as file:
        series = only_image(path, file)
        header = TiffHeader.of(path, series)
        check_image_size(path, *header.shape[:2], header.shape[2] * series.dtype.itemsize)
        values = series.asarray()
    values = np.moveaxis(values, 0, -1) if header.planes_first else _with_channel_axis(values)
    if values.shape != header.shape or values.size == 0:
        raise ValueError(f"its pixels are {shape_text(values.shape)}, not {shape_text(header.shape)}")
    return header.image(values)


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


def _without_nodata(values: NDArray[np.generic], text: str | None) -> tuple[NDArray[np.generic], int | None]:
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


def _tiff_maximum(dtype: np.dtype[np.generic], bits: int) -> int | None:
    """Return the largest possible value; a TIFF may hold 10 or 12 bits, which are decoded to 16."""
    if dtype.kind in "ub":
        return int(2**bits - 1)
    return int(2 ** (bits - 1) - 1) if dtype.kind == "i" else None


def _tiff_colour(photometric: str, channels: int, is_jpeg: bool) -> str:
    """Return what the colour channels hold. Scientific tools write RGB as three channels of plain data."""
    if photometric in ("MINISBLACK", "MINISWHITE"):
        return "RGB" if channels >= 3 else "grey"
    if photometric == "YCBCR" and is_jpeg:  # converted to RGB by the decoder
        return "RGB"
    return {"PALETTE": "palette", "SEPARATED": "CMYK"}.get(photometric, photometric)


def _with_channel_axis(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return (H, W) as (H, W, 1), and other shapes unchanged."""
    return values[..., None] if values.ndim == 2 else values
