"""Pictures as addresses that hold their contents: ``data:image/…``."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import numpy as np

from normalmesh.files.mesh_writing import check_same_image
from normalmesh.files.textures import colour_image
from normalmesh.normals.normal_map import NormalMap
from normalmesh.pictures.panels import normal_colours

if TYPE_CHECKING:
    from PIL.Image import Image

    from normalmesh.files.textures import Texture

#: Longest side, in pixels, of a picture in a page.
LONGEST = 1600
#: Up to so many bytes a PNG, which is exact, is preferred to a JPEG.
EXACT = 1_000_000


def normals_address(normal_map: NormalMap) -> str:
    """The normal map in its usual colours, transparent outside the mask."""
    from PIL import Image

    # Every n-th pixel of a large map: means of colours would need as much memory again.
    step = max(max(normal_map.shape) // (2 * LONGEST), 1)
    colours, mask = normal_colours(normal_map.normals[::step, ::step]), normal_map.mask[::step, ::step]
    return _address(Image.fromarray(np.dstack([colours, (255 * mask).astype(np.uint8)])))


def photo_address(texture: Texture, shape: tuple[int, int]) -> str:
    """A photo of a map's view, opaque."""
    image = colour_image(texture)
    check_same_image(image, shape)
    return _address(image.convert("RGB"))


def _address(image: Image) -> str:
    image.thumbnail((LONGEST, LONGEST))
    content, kind = _encoded(image, "PNG"), "png"
    if len(content) > EXACT:
        if image.mode == "RGBA":
            content, kind = _encoded(image, "WEBP", quality=92), "webp"
        else:
            content, kind = _encoded(image, "JPEG", quality=92, subsampling=0), "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def _encoded(image: Image, name: str, **options: object) -> bytes:
    content = io.BytesIO()
    image.save(content, name, **options)
    return content.getvalue()
