"""Component maps: each connected component of a normal map as a map of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from normalmesh.array_types import Float, Integer
from normalmesh.normals.camera import Camera, CentralCamera
from normalmesh.normals.normal_map import NormalMap

#: Windows begin at multiples of this number of pixels: grids of cells of such a side lie in them as in the whole image.
ALIGNED = 8


@dataclass(frozen=True, eq=False)
class ComponentMap:
    """One 4-connected component of a normal map, in a window around it."""

    number: int  # from 0 on, in the order of :attr:`.NormalMap.component_labels`
    normal_map: NormalMap  # its pixels only; if there is no other component, the map itself
    top: int  # row and
    left: int  # column of the window

    @property
    def window(self) -> tuple[slice, slice]:
        """Rows and columns of the window in the image."""
        rows, columns = self.normal_map.shape
        return slice(self.top, self.top + rows), slice(self.left, self.left + columns)


@dataclass(frozen=True, eq=False)
class _WindowCamera(CentralCamera):
    """A central camera whose image is a window of another one."""

    window_frame: Float = field(repr=False)

    @property
    def frame(self) -> Float:
        return self.window_frame

    def shifted(self, u: float, v: float) -> _WindowCamera:
        return _WindowCamera(self.shifted_frame(u, v))

    def describe(self) -> str:
        return "a window of a perspective image"


def component_maps(normal_map: NormalMap, min_area: int = 1) -> Iterator[ComponentMap]:
    """Yield the components of a map that have at least ``min_area`` pixels, from top to bottom."""
    labels, count = normal_map.component_labels
    if count == 1:
        if normal_map.foreground >= min_area:
            yield ComponentMap(0, normal_map, 0, 0)
        return
    yield from labelled_maps(normal_map, labels, range(count), min_area)


def labelled_maps(
    normal_map: NormalMap, labels: Integer, numbers: Sequence[int], min_area: int = 1
) -> Iterator[ComponentMap]:
    """Yield the parts of a map with the labels (H, W) 1, 2, …, which are components with these numbers."""
    from scipy import ndimage

    for label, place in enumerate(ndimage.find_objects(labels), start=1):
        if place is None:
            continue
        rows, columns = place
        top, left = rows.start - rows.start % ALIGNED, columns.start - columns.start % ALIGNED
        window = slice(top, rows.stop), slice(left, columns.stop)
        mask = labels[window] == label
        if np.count_nonzero(mask) >= min_area:
            camera = window_camera(normal_map.camera, left, top)
            own = NormalMap.derived(normal_map.normals[window], mask, camera)
            yield ComponentMap(int(numbers[label - 1]), own, top, left)


def window_camera(camera: Camera, left: int, top: int) -> Camera:
    """Return the camera of a window; parallel rays are the same everywhere."""
    return _WindowCamera(camera.shifted_frame(left, top)) if camera.is_central else camera
