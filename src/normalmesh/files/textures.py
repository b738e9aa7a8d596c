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

#: Allowed formats, as Pillow names them. It supports others, some of which run external programs.
FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF")
#: Key of the JPEG file in the information of an image: it is small, and should not be compressed twice.
JPEG = "normalmesh jpeg"
#: EXIF tag of the orientation of the camera.
ORIENTATION = 0x0112

_opening = threading.Lock()


def colour_image(texture: Texture) -> Image:
    """Return an RGB or RGBA image from an array or a file, or raise :class:`NormalMeshError`."""
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

    file_format(path)  # raises if there is no file, or nothing in it
    with reading(path, "a texture (PNG, JPEG, TIFF, WebP, BMP or GIF)"), _opened(path) as file:
        if file.mode.startswith(("I", "F")):
            raise unusable(path, "cannot be a texture: it must have 8 bits per channel")
        check_image_size(path, file.height, file.width, 8)  # bytes per pixel, as stored and as RGBA
        as_stored = file.format == "JPEG" and file.mode == "RGB" and file.getexif().get(ORIENTATION, 1) == 1
        # Apply the orientation of the camera, as viewers do.
        image = PIL.ImageOps.exif_transpose(file).convert("RGBA" if file.has_transparency_data else "RGB")
        image.info[JPEG] = path.read_bytes() if as_stored else None
        return image


def _opened(path: Path) -> Image:
    """Open the image of a file: its header is read, its pixels are not.

    Pillow has one limit on pixels for the whole process, which is too low here. It is lifted as briefly as possible,
    and by one thread at a time, so that it is restored to its old value.
    """
    import PIL.Image

    with _opening:
        limit = PIL.Image.MAX_IMAGE_PIXELS
        PIL.Image.MAX_IMAGE_PIXELS = None
        try:
            return PIL.Image.open(path, formats=FORMATS)
        finally:
            PIL.Image.MAX_IMAGE_PIXELS = limit
