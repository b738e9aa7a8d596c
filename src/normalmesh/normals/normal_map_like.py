"""What functions take for a normal map: a :class:`NormalMap`, or a file, an array or an image that is read as one."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

from numpy.typing import ArrayLike

from normalmesh.arguments import checked_path
from normalmesh.normals.normal_map import NormalMap

if TYPE_CHECKING:
    from PIL.Image import Image

    from normalmesh.maps.maps_on_disk import MapOnDisk

#: A normal map, one that stays on disk, the path of a file, an array (H, W, 3), or a Pillow image.
NormalMapLike: TypeAlias = "NormalMap | MapOnDisk | str | PathLike[str] | ArrayLike | Image"


def as_normal_map(given: NormalMapLike) -> NormalMap:
    """Return a normal map as it is, and read anything else by :func:`read_normal_map`, with its defaults."""
    if isinstance(given, NormalMap):
        return given
    array: Any = given
    if hasattr(array, "mask_window"):  # a map on disk
        rows, columns = array.shape
        return array.window(slice(0, rows), slice(0, columns))
    from normalmesh.maps.normal_maps import read_normal_map

    return read_normal_map(checked_path(given, "normal_map") if isinstance(given, str | PathLike) else array)
