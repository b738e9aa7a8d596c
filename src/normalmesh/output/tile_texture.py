"""The part of a texture that a tile of a tileset shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normalmesh.array_types import Float, UInt8
from normalmesh.files.precision import PIXEL_SHARE, surface_tolerance

if TYPE_CHECKING:
    from PIL.Image import Image

    from normalmesh.mesh.surface import Surface


#: Largest side of the texture of a tile, with and without tiles below it that show more.
COARSE_SIDE, FINE_SIDE = 1024, 8192
#: Quality of JPEG files: nothing can be seen of the compression.
QUALITY = 92


class TileTexture:
    """A texture from which tiles take their parts."""

    def __init__(self, image: Image, surface: Surface) -> None:
        self._image = image
        pixel = surface_tolerance(surface) / PIXEL_SHARE
        self._texel = pixel * max(surface.shape[1] / image.width, surface.shape[0] / image.height)

    def crop(self, coordinates: Float, is_coarse: bool) -> tuple[tuple[UInt8, bytes | None], Float, float]:
        """Return the part of the image that a tile needs, its texture coordinates, and the size of lost details.

        Parameters
        ----------
        coordinates
            (N, 2) in the whole image, from (0, 0) at the top left to (1, 1) at the bottom right.
        is_coarse
            Whether tiles below show more.

        Returns
        -------
        tuple
            The part (H, W, 3 or 4) with its JPEG file, if it has no alpha; coordinates (N, 2) in the part; the side of
            its texels in the unit of the surface, 0 if they are those of the image.
        """
        import imagecodecs

        size = np.array(self._image.size)
        low = np.clip(np.floor(coordinates.min(axis=0) * size).astype(int) - 1, 0, size - 1)
        high = np.clip(np.ceil(coordinates.max(axis=0) * size).astype(int) + 1, low + 1, size)
        part = self._image.crop((*low.tolist(), *high.tolist()))
        scale = max(part.size) / (COARSE_SIDE if is_coarse else FINE_SIDE)
        if scale > 1:
            part = part.resize([max(round(side / scale), 1) for side in part.size], _box_filter())
        pixels = np.ascontiguousarray(part)
        jpeg = bytes(imagecodecs.jpeg8_encode(pixels, level=QUALITY)) if pixels.shape[2] == 3 else None
        return (pixels, jpeg), (coordinates * size - low) / (high - low), self._texel * scale if scale > 1 else 0.0


def _box_filter() -> Any:
    from PIL.Image import Resampling

    return Resampling.BOX
