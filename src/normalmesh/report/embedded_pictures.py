"""Pictures as ``data:`` URLs, embedded in a page."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import numpy as np

from normalmesh.normals.normal_map import NormalMap
from normalmesh.output.mesh_writing import check_same_image
from normalmesh.output.textures import colour_image
from normalmesh.pictures.panels import normal_colours

if TYPE_CHECKING:
    from PIL.Image import Image

    from normalmesh.output.textures import Texture

#: Longest side of an embedded picture, in pixels.
MAX_SIDE = 1600
#: Largest PNG, in bytes; larger pictures are embedded with lossy compression.
MAX_PNG_BYTES = 1_000_000


def normals_address(normal_map: NormalMap, side: int = MAX_SIDE) -> str:
    """Return the URL of the normal map as a colour image of sides up to ``side``, transparent outside the mask."""
    from PIL import Image

    # Large maps are subsampled first: averaging would double the memory.
    step = max(max(normal_map.shape) // (2 * side), 1)
    colours, mask = normal_colours(normal_map.normals[::step, ::step]), normal_map.mask[::step, ::step]
    return _address(Image.fromarray(np.dstack([colours, (255 * mask).astype(np.uint8)])), side)


def photo_address(texture: Texture, shape: tuple[int, int]) -> str:
    """Return the URL of a photo with the same view as a normal map of the given shape."""
    image = colour_image(texture)
    check_same_image(image, shape)
    return _address(image.convert("RGB"))


def _address(image: Image, side: int = MAX_SIDE) -> str:
    image.thumbnail((side, side))
    content, kind = _encoded(image, "PNG"), "png"
    if len(content) > MAX_PNG_BYTES:
        if image.mode == "RGBA":
            content, kind = _encoded(image, "WEBP", quality=92), "webp"
        else:
            content, kind = _encoded(image, "JPEG", quality=92, subsampling=0), "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def _encoded(image: Image, name: str, **options: object) -> bytes:
    content = io.BytesIO()
    image.save(content, name, **options)
    return content.getvalue()
