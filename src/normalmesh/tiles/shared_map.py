"""SharedMap: a normal map in memory as the processes of a cluster read it, from the work folder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from normalmesh.normals.camera import Camera
from normalmesh.normals.component_maps import window_camera
from normalmesh.normals.normal_map import NormalMap
from normalmesh.tiles.array_file import ArrayFile
from normalmesh.tiles.work_folder import WorkFolder


@dataclass(frozen=True)
class SharedMap:
    """A normal map in a file, of which windows are read. It takes little to send to another process.

    Attributes
    ----------
    file
        Its normals and its mask.
    camera
    shape
        Rows and columns.
    foreground
        Number of pixels of the mask.
    """

    file: ArrayFile
    camera: Camera
    shape: tuple[int, int]
    foreground: int

    @classmethod
    def of(cls, normal_map: NormalMap, folder: WorkFolder) -> SharedMap:
        """Write a map into the work folder, unless it is there."""
        file = folder.save("map", "pixels", {"normals": normal_map.normals, "mask": normal_map.mask})
        return cls(file, normal_map.camera, normal_map.shape, normal_map.foreground)

    def window(self, rows: slice, columns: slice) -> NormalMap | None:
        """Return the map of a window, whose first pixel is (``rows.start``, ``columns.start``); None if it is empty."""
        mask = self.mask_window(rows, columns)
        if not mask.any():
            return None
        normals = np.array(self.file.load("normals", mapped=True)["normals"][rows, columns])
        return NormalMap.derived(normals, mask, window_camera(self.camera, columns.start, rows.start))

    def mask_window(self, rows: slice, columns: slice) -> NDArray[np.bool_]:
        """Return the mask (h, w) of a window."""
        return np.array(self.file.load("mask", mapped=True)["mask"][rows, columns])

    def read(self) -> NormalMap:
        """Return the whole map."""
        rows, columns = self.shape
        whole = self.window(slice(0, rows), slice(0, columns))
        assert whole is not None
        return whole
