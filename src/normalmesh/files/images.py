"""PNG, JPEG and TIFF into arrays exactly as stored: every bit kept, channels in the order red, green, blue."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from normalmesh.errors import shape_text
from normalmesh.files.formats import mapped, reading, unusable

#: Formats that :func:`read_image` decodes.
IMAGE_FORMATS = ("PNG", "JPEG", "TIFF")

# Decoders log many lines about a damaged file beside our one; whoever sets up logging still gets them.
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
    """

    values: NDArray[np.generic]
    maximum: int | None
    colour: str

    @property
    def alpha(self) -> NDArray[np.generic] | None:
        """(H, W) opacity in the unit of the values, if there is any."""
        return self.values[..., -1] if self.values.shape[2] in (2, 4) else None


def read_image(path: Path, file_format: str) -> Image:
    """Decode a file of one of :data:`IMAGE_FORMATS`."""
    decode = {"PNG": _read_png, "JPEG": _read_jpeg, "TIFF": _read_tiff}[file_format]
    with reading(path, file_format):
        image = decode(path)
        if image.values.size == 0:
            raise ValueError("no pixels")
        return image


def _read_png(path: Path) -> Image:
    import imagecodecs

    with mapped(path) as contents:
        # The fixed header: 8 bytes signature, 8 of the first chunk, width, height, bit depth, colour type.
        colour_type = contents[25]
        values = imagecodecs.png_decode(contents)
    colour = {0: "grey", 2: "RGB", 3: "palette", 4: "grey", 6: "RGB"}[colour_type]
    return Image(_with_channel_axis(values), int(np.iinfo(values.dtype).max), colour)


def _read_jpeg(path: Path) -> Image:
    import imagecodecs

    with mapped(path) as contents:
        precision, components, scan = _jpeg_frame(contents)
        # The decoder fills what is missing of a truncated file with grey, without a word.
        if contents.find(b"\xff\xd9", scan) < 0:
            raise unusable(path, "cannot be read as JPEG; it is incomplete (no end of image)")
        values = imagecodecs.jpeg8_decode(contents)
    colour = {1: "grey", 3: "RGB", 4: "CMYK"}.get(components, f"{components}-component")
    return Image(_with_channel_axis(values), 2**precision - 1, colour)


def _jpeg_frame(contents: mmap) -> tuple[int, int, int]:
    """Bits per sample, number of components, and where the first scan begins."""
    precision = components = 0
    position = 2
    while position + 10 <= len(contents):
        marker = contents[position + 1]
        if contents[position] != 0xFF:
            raise ValueError(f"no marker at byte {position}")
        if marker == 0xFF:  # a fill byte
            position += 1
            continue
        if marker == 0xDA:
            return precision, components, position
        # Start of frame: C0 … CF except the tables C4, C8 and CC.
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            precision, components = contents[position + 4], contents[position + 9]
        position += 2 + int.from_bytes(contents[position + 2 : position + 4], "big")
    raise ValueError("no image data")


def _read_tiff(path: Path) -> Image:
    import tifffile

    with tifffile.TiffFile(path) as file:
        series, page = file.series[0], file.pages.first
        photometric = getattr(page.photometric, "name", str(page.photometric))
        is_jpeg, bits = page.compression in (6, 7), page.bitspersample
        # tifffile labels bilevel data "zero is white" and yet stores True as one.
        inverted = photometric == "MINISWHITE" and not (bits == 1 and page.software == "tifffile.py")
        values, axes = series.asarray(), series.axes
    if axes == "SYX":
        values = np.moveaxis(values, 0, -1)
    values = _with_channel_axis(values)
    if values.ndim != 3 or values.shape[2] > 4:
        raise unusable(
            path,
            f"holds an array of {shape_text(values.shape)}; expected one image of rows × columns × 3 or 4 channels",
        )
    maximum = _tiff_maximum(values.dtype, bits)
    if inverted and maximum is not None:
        values = maximum - values
    return Image(values, maximum, _tiff_colour(photometric, values.shape[2], is_jpeg))


def _tiff_maximum(dtype: np.dtype[np.generic], bits: int) -> int | None:
    """The largest value; a TIFF may hold 10 or 12 bits, which arrive in 16."""
    if dtype.kind in "ub":
        return int(2**bits - 1)
    return int(2 ** (bits - 1) - 1) if dtype.kind == "i" else None


def _tiff_colour(photometric: str, channels: int, is_jpeg: bool) -> str:
    """What the colour channels hold. Three channels of plain data are what scientific tools write for RGB."""
    if photometric in ("MINISBLACK", "MINISWHITE"):
        return "RGB" if channels >= 3 else "grey"
    if photometric == "YCBCR" and is_jpeg:  # converted to RGB by the decoder
        return "RGB"
    return {"PALETTE": "palette", "SEPARATED": "CMYK"}.get(photometric, photometric)


def _with_channel_axis(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """(H, W) → (H, W, 1); anything else as it is."""
    return values[..., None] if values.ndim == 2 else values
