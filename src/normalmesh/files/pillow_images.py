"""Images that Pillow decodes: TGA, BMP and WebP, and textures of more formats."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from normalmesh.array_types import UInt8
from normalmesh.files.formats import unusable
from normalmesh.files.size_limits import check_image_size

if TYPE_CHECKING:
    import PIL.Image

#: Formats that :func:`read_with_pillow` decodes, as :func:`.formats.file_format` names them.
PILLOW_FORMATS = ("TGA", "BMP", "WebP")
#: Tag of the orientation, in EXIF data and TIFF files: 1 is upright, 2 to 8 are turned or mirrored.
ORIENTATION = 0x0112
#: Place of the image descriptor in the header of a TGA file; its lower four bits are the number of alpha bits.
TGA_DESCRIPTOR = 17

_opening = threading.Lock()


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


def read_with_pillow(path: Path, name: str) -> tuple[UInt8, str, int]:
    """Return pixels (H, W, C), what the colour channels hold, and the orientation of a file in a Pillow format.

    With an even number of channels, the last one is alpha. Palettes are decoded to colours.
    """
    with opened_image(path, (name.upper(),)) as file:
        _check(path, file)
        mode, colour = _mode(file)
        if name == "TGA" and _tga_alpha_bits(path) == 0:
            mode = mode.removesuffix("A")
        orientation = int(file.getexif().get(ORIENTATION, 1))
        values = np.array(file.convert(mode))
    return values[..., None] if values.ndim == 2 else values, colour, orientation


def read_pillow_size(path: Path, name: str) -> tuple[int, int]:
    """Return rows and columns of a file in a Pillow format, from its header, after a check of its size."""
    with opened_image(path, (name.upper(),)) as file:
        _check(path, file)
        return file.height, file.width


def _check(path: Path, file: PIL.Image.Image) -> None:
    check_image_size(path, file.height, file.width, 8)  # bytes per pixel, as stored and as decoded
    if (count := getattr(file, "n_frames", 1)) > 1:
        raise unusable(path, f"holds an animation of {count} images; save the one to be read as a file of its own")


def _mode(file: PIL.Image.Image) -> tuple[str, str]:
    """Return the mode, in Pillow's terms, to convert an image to, and what its colour channels hold."""
    if file.mode in ("1", "L", "LA"):
        return ("LA" if file.mode == "LA" else "L"), "grey"
    transparent = file.has_transparency_data
    return ("RGBA" if transparent else "RGB"), "palette" if file.mode in ("P", "PA") else "RGB"


def _tga_alpha_bits(path: Path) -> int:
    """Return the number of alpha bits that the header of a TGA file states; without any, the fourth channel is void."""
    with path.open("rb") as file:
        return file.read(TGA_DESCRIPTOR + 1)[TGA_DESCRIPTOR] & 15
