"""Textures: colours for a surface, from an array or an image file."""

from __future__ import annotations

import threading
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from normalmesh.arguments import checked_array, checked_path
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.files.formats import file_format, reading, unusable
from normalmesh.files.size_limits import check_image_size

if TYPE_CHECKING:
    from PIL.Image import Image

#: Colours of the image: uint8 (H', W', 3 or 4), or a file.
Texture: TypeAlias = "NDArray[np.uint8] | str | PathLike[str]"

#: Formats of files, as Pillow names them; it knows more, some of which run other programs.
FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF")
#: Under which name a texture keeps the JPEG file that it came from: small, and not to be compressed twice.
JPEG = "normalmesh jpeg"
#: The EXIF tag for how a camera was held.
ORIENTATION = 0x0112

_opening = threading.Lock()


def colour_image(texture: Texture) -> Image:
    """An RGB or RGBA image from an array or a file, or an error."""
    import PIL.Image

    if isinstance(texture, str | PathLike):
        return _read(checked_path(texture, "texture"))
    array = checked_array(texture, "texture", "an image", kinds=None)
    if array.ndim != 3 or array.shape[2] not in (3, 4) or array.size == 0 or array.dtype != np.uint8:
        raise NormalMeshError(
            f"texture must be uint8 of the shape (rows, columns, 3 or 4), not {array.dtype} {shape_text(array.shape)}"
        )
    return PIL.Image.fromarray(np.ascontiguousarray(array))


def _read(path: Path) -> Image:
    import PIL.ImageOps

    file_format(path)  # there is a file, and something in it
    with reading(path, "a texture (PNG, JPEG, TIFF, WebP, BMP or GIF)"), _opened(path) as file:
        if file.mode.startswith(("I", "F")):
            raise unusable(path, "cannot be a texture: it must have 8 bits per channel")
        check_image_size(path, file.height, file.width, 8)  # as stored, and as RGBA
        as_stored = file.format == "JPEG" and file.mode == "RGB" and file.getexif().get(ORIENTATION, 1) == 1
        # The right way up, as viewers show it: cameras write down how they were held.
        image = PIL.ImageOps.exif_transpose(file).convert("RGBA" if file.has_transparency_data else "RGB")
        image.info[JPEG] = path.read_bytes() if as_stored else None
        return image


def _opened(path: Path) -> Image:
    """The image of a file, with its header read and its pixels not yet.

    Pillow's limit on pixels, which is too low here, is one for the whole process: others must not see it lifted for
    longer than that takes, and two threads must not put back what the other has set.
    """
    import PIL.Image

    with _opening:
        limit = PIL.Image.MAX_IMAGE_PIXELS
        PIL.Image.MAX_IMAGE_PIXELS = None
        try:
            return PIL.Image.open(path, formats=FORMATS)
        finally:
            PIL.Image.MAX_IMAGE_PIXELS = limit
