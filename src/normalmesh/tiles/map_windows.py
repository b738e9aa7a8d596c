"""What hands out the windows of a map, and what does the work on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from normalmesh.normals.camera import Camera
from normalmesh.normals.normal_map import NormalMap
from normalmesh.tiles.tile_grid import Rectangle

#: What a task returns: arrays by name.
Arrays = dict[str, NDArray[Any]]


class WindowedMap(Protocol):
    """A normal map that hands out windows; see :class:`.NormalMap`."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    @property
    def camera(self) -> Camera:
        """Camera of the whole image."""
        ...

    def window(self, rows: slice, columns: slice) -> NormalMap | None:
        """Return a window with its own camera, None without foreground."""
        ...

    def mask_window(self, rows: slice, columns: slice) -> NDArray[np.bool_]:
        """Return the mask of a window."""
        ...


class Run(Protocol):
    """Does tasks, each a function of some arguments; results are kept by the name of their stage and their key."""

    def __call__(
        self, stage: str, function: Callable[..., Arrays], arguments: Mapping[str, tuple[Any, ...]]
    ) -> Mapping[str, Arrays]:
        """Call a function with all arguments; return the results by the same keys."""
        ...


def tiles_of(window: Rectangle, side: int) -> dict[str, Rectangle]:
    """Return the tiles of a window, of a side in px and smaller at the end, row by row, by their keys."""
    return {
        f"{i}_{j}": Rectangle(top, left, top + side, left + side).within(window)
        for i, top in enumerate(range(window.top, window.bottom, side))
        for j, left in enumerate(range(window.left, window.right, side))
    }
