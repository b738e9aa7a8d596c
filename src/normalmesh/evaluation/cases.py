"""Case: a normal map with its ground truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from normalmesh.array_types import Float, Float32
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.normals.normal_map import NormalMap


@dataclass(frozen=True, eq=False)
class Case:
    """A normal map with its ground truth, as far as it is known.

    Parameters
    ----------
    name
        Name in tables, such as ``"bear, view 3"``.
    normal_map
        The input of a reconstruction.
    depth
        True depth (H, W) at the pixel centres, as :meth:`Surface.depth_map` defines it: height towards the viewer
        (orthographic) or distance along the optical axis (perspective); NaN where it is unknown.
    normals
        True unit normals (H, W, 3), zero where unknown; default: those of the normal map.
    units
        Unit of the depth.
    group
        Cases of the same group are averaged in tables, such as the views of an object; default: the name.
    """

    name: str
    normal_map: NormalMap
    depth: Float | None = None
    normals: Float32 = None  # type: ignore[assignment]  # always an array after __post_init__
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
