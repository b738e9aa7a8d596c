"""Windows: a map without its noise, from which tasks take the pixels that they need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from normalmesh.normals.camera import Camera
from normalmesh.normals.normal_map import NormalMap
from normalmesh.tiles.tile_grid import Rectangle


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of a map whose noise is known.

    Attributes
    ----------
    source
        A :class:`NormalMap`, or a map on disk.
    """

    source: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the image."""
        rows, columns = self.source.shape
        return rows, columns

    @property
    def camera(self) -> Camera:
        """The camera of the image."""
        camera: Camera = self.source.camera
        return camera

    @property
    def image(self) -> Rectangle:
        """All pixels."""
        return Rectangle(0, 0, *self.shape)

    def window(self, area: Rectangle) -> NormalMap | None:
        """Return the pixels of a rectangle, without noise, with the camera of the window; None without foreground."""
        found: NormalMap | None = self.source.window(area.rows, area.columns)
        return found

    def filled(self, area: Rectangle) -> NormalMap:
        """Return the pixels of a rectangle in which there is foreground."""
        normal_map = self.window(area)
        assert normal_map is not None
        return normal_map

    def mask(self, area: Rectangle) -> NDArray[np.bool_]:
        """Return the foreground (H, W) of a rectangle."""
        mask: NDArray[np.bool_] = self.source.mask_window(area.rows, area.columns)
        return mask


def around(points: NDArray[np.float64]) -> Rectangle:
    """Return the pixels around points (K, 2) as u, v, with a margin of two."""
    (left, top), (right, bottom) = np.floor(points.min(axis=0)) - 2, np.ceil(points.max(axis=0)) + 2
    return Rectangle(int(top), int(left), int(bottom), int(right))
