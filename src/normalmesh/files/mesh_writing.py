"""Writing surfaces to mesh files, in any of :data:`normalmesh.files.mesh_formats.MESH_FORMATS`."""

from __future__ import annotations

import warnings
from os import PathLike
from typing import TYPE_CHECKING

from normalmesh.arguments import checked_instance, checked_path
from normalmesh.errors import NormalMeshError, NormalMeshWarning, path_text
from normalmesh.files.atomic import check_targets, write_atomically
from normalmesh.files.mesh_formats import formats_with, written_format
from normalmesh.files.textures import Texture, colour_image
from normalmesh.normals.normal_map import NormalMap

if TYPE_CHECKING:
    from PIL.Image import Image

    from normalmesh.mesh.surface import Surface


def write_surface(
    surface: Surface, path: str | PathLike[str], texture: Texture | None = None, normals: NormalMap | None = None
) -> None:
    """Write a surface in the format of the path's suffix; see :meth:`Surface.save`."""
    path = checked_path(path)
    if normals is not None:
        checked_instance(normals, NormalMap, "normals")
    mesh_format = written_format(path)
    if normals is not None and not mesh_format.holds_normals:
        _warn_left_out("normals are", path.name, f"only {formats_with('holds_normals')} embeds them")
    inputs = [texture] if isinstance(texture, str | PathLike) else []
    check_targets([path, *mesh_format.companions(path, texture is not None)], inputs)
    image = None if texture is None else colour_image(texture)
    if image is not None:
        check_same_image(image, surface.shape)
        if not mesh_format.holds_colours:
            _warn_left_out("the texture is", path.name, f"{mesh_format.name} has no colours")
    write_atomically(mesh_format.encode_surface(surface, path, image, normals))


def _warn_left_out(what: str, name: str, reason: str) -> None:
    # The caller of Surface.save, which calls write_surface.
    warnings.warn(f"{what} left out of {path_text(name)}: {reason}", NormalMeshWarning, stacklevel=4)


def check_texture(texture: Texture, shape: tuple[int, int]) -> None:
    """Raise :class:`NormalMeshError` if this cannot be the texture of a map of the given shape."""
    check_same_image(colour_image(texture), shape)


def check_same_image(image: Image, shape: tuple[int, int]) -> None:
    """Raise :class:`NormalMeshError` unless a texture has the aspect ratio of the map, up to one pixel."""
    rows, columns = shape
    scale = columns / image.width
    if abs(image.height * scale - rows) > max(scale, 1.0):
        raise NormalMeshError(
            f"the texture is {image.width} × {image.height} pixels but the normal map {columns} × {rows}: "
            "crop or scale it to the same aspect ratio"
        )
