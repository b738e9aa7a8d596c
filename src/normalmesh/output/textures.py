"""Textures: colours for a surface, from an array or an image file."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from normalmesh.arguments import checked_array, checked_path
from normalmesh.array_types import UInt8
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.files.formats import file_format, reading, unusable
from normalmesh.files.pillow_images import ORIENTATION, opened_image
from normalmesh.files.size_limits import check_image_size
from normalmesh.photometric.rti import read_rti
from normalmesh.photometric.rti_model import RTI_FORMATS

if TYPE_CHECKING:
    from PIL.Image import Image

#: Colours of the image: uint8 (H', W', 3 or 4), or a file.
Texture: TypeAlias = "UInt8 | str | PathLike[str]"

#: Allowed formats, as Pillow names them. It supports others, some of which run external programs.
FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "TGA", "GIF")
#: Key of the JPEG file in the information of an image: it is small, and should not be compressed twice.
JPEG = "normalmesh jpeg"


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
    import PIL.Image
    import PIL.ImageOps

    if file_format(path) in RTI_FORMATS:  # raises if there is no file, or nothing in it
        return PIL.Image.fromarray(read_rti(path).texture())
    with reading(path, "a texture (PNG, JPEG, TIFF, WebP, BMP, TGA or GIF)"), opened_image(path, FORMATS) as file:
        if file.mode.startswith(("I", "F")):
            raise unusable(path, "cannot be a texture: it must have 8 bits per channel")
        check_image_size(path, file.height, file.width, 8)  # bytes per pixel, as stored and as RGBA
        as_stored = file.format == "JPEG" and file.mode == "RGB" and file.getexif().get(ORIENTATION, 1) == 1
        # Apply the orientation of the camera, as viewers do.
        image = PIL.ImageOps.exif_transpose(file).convert("RGBA" if file.has_transparency_data else "RGB")
        image.info[JPEG] = path.read_bytes() if as_stored else None
        return image
