"""Component maps: each connected component of a normal map as a map of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from normalmesh.normals.camera import Camera, CentralCamera
from normalmesh.normals.normal_map import NormalMap


@dataclass(frozen=True, eq=False)
class ComponentMap:
    """One 4-connected component of a normal map, in the smallest window around it.

    Attributes
    ----------
    normal_map : NormalMap
    top, left
        Row and column of the window.
    """

    normal_map: NormalMap
    top: int
    left: int


@dataclass(frozen=True, eq=False)
class _WindowCamera(CentralCamera):
    """A central camera whose image is a window of another one."""

    window_frame: NDArray[np.float64] = field(repr=False)

    @property
    def frame(self) -> NDArray[np.float64]:
        return self.window_frame

    def describe(self) -> str:
        return "a window of a perspective image"


def component_maps(normal_map: NormalMap, min_area: int) -> Iterator[ComponentMap]:
    """Yield the components of a map that have at least ``min_area`` pixels, from top to bottom."""
    from scipy import ndimage

    labels, _ = ndimage.label(normal_map.mask, output=np.int32)
    for label, window in enumerate(ndimage.find_objects(labels), start=1):
        mask = labels[window] == label
        if np.count_nonzero(mask) >= min_area:
            top, left = window[0].start, window[1].start
            camera = _camera_of(normal_map.camera, left, top)
            yield ComponentMap(NormalMap.derived(normal_map.normals[window], mask, camera), top, left)


def _camera_of(camera: Camera, left: int, top: int) -> Camera:
    """Return the camera of a window; parallel rays are the same everywhere."""
    return _WindowCamera(camera.shifted_frame(left, top)) if camera.is_central else camera
