"""Case: a normal map, and what is known of the surface behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.normals.normal_map import NormalMap


@dataclass(frozen=True, eq=False)
class Case:
    """A normal map, and what is known of the surface behind it.

    Parameters
    ----------
    name
        What tables call it, such as ``"bear, view 3"``.
    normal_map
        The input of a reconstruction.
    depth
        (H, W) true depth at the pixel centres, counted as :meth:`Surface.depth_map` does: height towards the viewer
        (orthographic) or distance along the optical axis (perspective); NaN where it is unknown.
    normals
        (H, W, 3) true unit normals, zero where unknown; default: those of the normal map, which then is the truth.
    units
        Unit of the depth.
    group
        What a table averages over, such as the object of several views; default: the name.
    """

    name: str
    normal_map: NormalMap
    depth: NDArray[np.float64] | None = None
    normals: NDArray[np.float32] = None  # type: ignore[assignment]  # an array always, once made
    units: str = "px"
    group: str = ""

    def __post_init__(self) -> None:
        shape = self.normal_map.shape
        if self.depth is not None and np.shape(self.depth) != shape:
            raise NormalMeshError(
                f"{self.name}: depth is {shape_text(np.shape(self.depth))} but normals are {shape_text(shape)}"
            )
        if self.normals is None:
            object.__setattr__(self, "normals", self.normal_map.normals)
        elif np.shape(self.normals) != (*shape, 3):
            raise NormalMeshError(
                f"{self.name}: true normals are {shape_text(np.shape(self.normals))}, not {shape_text((*shape, 3))}"
            )
        if not self.group:
            object.__setattr__(self, "group", self.name)
