"""Reading image files as arrays, exactly as stored; channels in the order red, green, blue."""

from __future__ import annotations

import logging
import struct
import threading
import warnings
from collections.abc import Iterator
from mmap import mmap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from normalmesh.files.formats import mapped, reading, unusable
from normalmesh.files.size_limits import check_image_size
from normalmesh.files.windowed_arrays import ArrayInMemory

if TYPE_CHECKING:
    import PIL.Image

#: Formats that Pillow decodes here, as :func:`.formats.file_format` names them.
PILLOW_FORMATS = ("TGA", "BMP", "WebP")
#: Formats that :func:`read_image` decodes.
IMAGE_FORMATS = ("PNG", "JPEG", "TIFF", *PILLOW_FORMATS)
#: Their names, for messages.
IMAGES = "PNG, JPEG, TIFF, TGA, BMP or WebP"
#: Number of decoded channels for each colour type of PNG, and what these hold; palettes may have transparent colours.
PNG_COLOURS = {0: (1, "grey"), 2: (3, "RGB"), 3: (4, "palette"), 4: (2, "grey"), 6: (4, "RGB")}
#: Tag of the orientation, in EXIF data and TIFF files: 1 is upright, 2 to 8 are turned or mirrored.
ORIENTATION = 0x0112
#: Place of the image descriptor in the header of a TGA file; its lower four bits are the number of alpha bits.
TGA_DESCRIPTOR = 17

_opening = threading.Lock()

# Decoders log many lines about a damaged file besides our error. They appear only if logging is configured.
for _decoder in ("imagecodecs", "tifffile"):
    logging.getLogger(_decoder).addHandler(logging.NullHandler())


def read_image(path: Path, file_format: str) -> ArrayInMemory:
    """Decode a file of one of :data:`IMAGE_FORMATS`."""
    from normalmesh.files.tiff_windows import read_tiff

    decoders = {"PNG": _read_png, "JPEG": _read_jpeg, "TIFF": read_tiff}
    with reading(path, file_format):
        return _read_pillow(path, file_format) if file_format in PILLOW_FORMATS else decoders[file_format](path)


def read_image_size(path: Path, file_format: str) -> tuple[int, int]:
    """Return rows and columns of a file of one of :data:`IMAGE_FORMATS`, from its header, after a check of its size."""
    from normalmesh.files.tiff_windows import read_tiff_size

    with reading(path, file_format):
        if file_format == "TIFF":
            return read_tiff_size(path)
        if file_format in PILLOW_FORMATS:
            with opened_image(path, (file_format.upper(),)) as file:
                _check_pillow(path, file)
                return file.height, file.width
        with mapped(path) as contents:
            if file_format == "PNG":
                return _png_header(path, contents)[0]
            _, shape, components, _ = _jpeg_frame(contents)
            check_image_size(path, *shape, components)
            return shape


def opened_image(path: Path, formats: tuple[str, ...]) -> PIL.Image.Image:
    """Open the image of a file in one of some formats, as Pillow names them: its header is read, its pixels are not.

    Pillow has one limit on pixels for the whole process, which is too low here. It is lifted as briefly as possible,
    and by one thread at a time, so that it is restored to its old value.
    """
    import PIL.Image

    with _opening:
        limit = PIL.Image.MAX_IMAGE_PIXELS
        PIL.Image.MAX_IMAGE_PIXELS = None
        try:
            return PIL.Image.open(path, formats=formats)
        finally:
            PIL.Image.MAX_IMAGE_PIXELS = limit


def _read_pillow(path: Path, name: str) -> ArrayInMemory:
    """Decode a file in a Pillow format; palettes become colours."""
    with opened_image(path, (name.upper(),)) as file:
        _check_pillow(path, file)
        is_grey = file.mode in ("1", "L", "LA")
        mode = ("L" if is_grey else "RGB") + "A" * (file.mode == "LA" if is_grey else file.has_transparency_data)
        with path.open("rb") as stored:
            head = stored.read(TGA_DESCRIPTOR + 1)
        if name == "TGA" and head[TGA_DESCRIPTOR] & 15 == 0:  # the fourth channel is void
            mode = mode.removesuffix("A")
        refuse_turned(path, int(file.getexif().get(ORIENTATION, 1)))
        colour = "grey" if is_grey else "palette" if file.mode in ("P", "PA") else "RGB"
        return ArrayInMemory(path, np.array(file.convert(mode)), 255, colour)


def _check_pillow(path: Path, file: PIL.Image.Image) -> None:
    check_image_size(path, file.height, file.width, 8)  # bytes per pixel, as stored and as decoded
    if (count := getattr(file, "n_frames", 1)) > 1:
        raise unusable(path, f"holds an animation of {count} images; save the one to be read as a file of its own")


def _read_png(path: Path) -> ArrayInMemory:
    import imagecodecs

    with mapped(path) as contents:
        _, colour = _png_header(path, contents)
        refuse_turned(path, _orientation(_png_exif(contents)))
        values = imagecodecs.png_decode(contents)
    return ArrayInMemory(path, values, int(np.iinfo(values.dtype).max), colour)


def _png_header(path: Path, contents: mmap) -> tuple[tuple[int, int], str]:
    """Return rows and columns, and what the colour channels hold, after a check of the size."""
    # The fixed header: 8 bytes signature, 8 of the first chunk, width, height, bit depth, colour type.
    columns, rows, bits, colour_type = struct.unpack_from(">IIBB", contents, 16)
    channels, colour = PNG_COLOURS[colour_type]
    check_image_size(path, rows, columns, channels * (2 if bits == 16 else 1))
    return (rows, columns), colour


def png_chunks(contents: mmap) -> Iterator[tuple[bytes, int, int]]:
    """Yield name, position and size of the content of each chunk of a PNG."""
    position = 8
    while position + 12 <= len(contents):
        size, name = struct.unpack_from(">I4s", contents, position)
        yield name, position + 8, size
        position += 12 + size


def _png_exif(contents: mmap) -> bytes:
    found = (contents[first : first + size] for name, first, size in png_chunks(contents) if name == b"eXIf")
    return next(found, b"")


def _read_jpeg(path: Path) -> ArrayInMemory:
    import imagecodecs

    with mapped(path) as contents:
        refuse_turned(path, _orientation(_jpeg_exif(contents)))
        precision, (rows, columns), components, scan = _jpeg_frame(contents)
        check_image_size(path, rows, columns, components)
        # The decoder fills the missing part of a truncated file with grey, without an error.
        if contents.find(b"\xff\xd9", scan) < 0:
            raise unusable(path, "cannot be read as JPEG; it is incomplete (no end of image)")
        values = imagecodecs.jpeg8_decode(contents)
    colour = {1: "grey", 3: "RGB", 4: "CMYK"}.get(components, f"{components}-component")
    return ArrayInMemory(path, values, 2**precision - 1, colour)


def _jpeg_frame(contents: mmap) -> tuple[int, tuple[int, int], int, int]:
    """Return bits per sample, rows, columns, number of components, and the start of the first scan."""
    precision = rows = columns = components = 0
    for marker, position, _ in _jpeg_segments(contents):
        if marker == 0xDA:
            return precision, (rows, columns), components, position
        # Start of frame: C0 … CF except the tables C4, C8 and CC.
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            precision, rows, columns, components = struct.unpack_from(">BHHB", contents, position + 4)
    raise ValueError("no image data")


def _jpeg_exif(contents: mmap) -> bytes:
    for marker, position, end in _jpeg_segments(contents):
        if marker == 0xE1 and contents[position + 4 : position + 10] == b"Exif\0\0":
            return contents[position + 10 : end]
    return b""


def _jpeg_segments(contents: mmap) -> Iterator[tuple[int, int, int]]:
    """Yield marker, start and end of the segments up to the first scan, which is the last one."""
    position, marker = 2, 0
    while position + 10 <= len(contents) and marker != 0xDA:
        marker = contents[position + 1]
        if contents[position] != 0xFF:
            raise ValueError(f"no marker at byte {position}")
        if marker == 0xFF:  # a fill byte
            position += 1
            continue
        end = position + 2 + max(int.from_bytes(contents[position + 2 : position + 4], "big"), 2)
        yield marker, position, end
        position = end


def read_exif(path: Path, file_format: str) -> PIL.Image.Exif:
    """Return the EXIF data of a PNG or JPEG, empty if it has none."""
    with mapped(path) as contents:
        return _exif(_png_exif(contents) if file_format == "PNG" else _jpeg_exif(contents))


def _exif(data: bytes) -> PIL.Image.Exif:
    from PIL.Image import Exif

    exif = Exif()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of damaged data
        exif.load(data)
    return exif


def _orientation(data: bytes) -> int:
    """Return the orientation in EXIF data; 1 if there is none, or the data are damaged."""
    try:
        return int(_exif(data).get(ORIENTATION, 1)) if data else 1
    except Exception:  # whatever damaged data make the decoder raise
        return 1


def refuse_turned(path: Path, orientation: int) -> None:
    """Refuse an image that viewers turn: vectors, masks and cameras may be meant for either of the two pictures."""
    if 2 <= orientation <= 8:
        raise unusable(
            path,
            f"is to be shown turned or mirrored (orientation {orientation} in its metadata), so that its axes are "
            "not known; save it as it is shown, or remove the orientation",
        )
