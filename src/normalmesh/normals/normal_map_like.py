"""What functions take for a normal map: a :class:`NormalMap`, or a file, an array or an image that is read as one."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

from numpy.typing import ArrayLike

from normalmesh.arguments import checked_path
from normalmesh.normals.normal_map import NormalMap

if TYPE_CHECKING:
    from PIL.Image import Image

#: A normal map, the path of a file, an array (H, W, 3), or a Pillow image.
NormalMapLike: TypeAlias = "NormalMap | str | PathLike[str] | ArrayLike | Image"


def as_normal_map(given: NormalMapLike) -> NormalMap:
    """Return a normal map as it is, and read anything else by :func:`read_normal_map`, with its defaults."""
    if isinstance(given, NormalMap):
        return given
    from normalmesh.maps.normal_maps import read_normal_map

    return read_normal_map(checked_path(given, "normal_map") if isinstance(given, str | PathLike) else given)
