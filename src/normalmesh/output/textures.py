"""Textures: colours for a surface, from an array or an image file; and the normals of a map in its tangent frames."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from normalmesh.arguments import checked_array, checked_path
from normalmesh.array_types import Float32, UInt8
from normalmesh.errors import NormalMeshError, shape_text
from normalmesh.files.formats import file_format, reading, unusable
from normalmesh.files.images import ORIENTATION, opened_image
from normalmesh.files.size_limits import check_image_size
from normalmesh.mesh import _surface
from normalmesh.photometric.rti import read_rti
from normalmesh.photometric.rti_model import RTI_FORMATS
from normalmesh.runtime.threads import in_parallel

if TYPE_CHECKING:
    from PIL.Image import Image

    from normalmesh.mesh.surface import Surface
    from normalmesh.normals.normal_map import NormalMap

#: Colours of the image: uint8 (H', W', 3 or 4), or a file.
Texture: TypeAlias = "UInt8 | str | PathLike[str]"

#: Allowed formats, as Pillow names them. It supports others, some of which run external programs.
FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "TGA", "GIF")
#: Key of the JPEG file in the information of an image: it is small, and should not be compressed twice.
JPEG = "normalmesh jpeg"
#: Longest side of a texture in a GLB file; graphics cards and browsers refuse longer ones.
MAX_TEXTURE_SIDE = 8192
#: Texels by which the texture reaches over the outline, so that coarser mip levels do not mix in background.
MARGIN = 8
#: The normal (0, 0, 1) in a normal texture.
FLAT = (128, 128, 255)

#: Tangents, bitangents and normals, (N, 3) each, at the vertices.
Frames: TypeAlias = tuple[Float32, Float32, Float32]


def colour_image(texture: Texture, shape: tuple[int, int] | None = None) -> Image:
    """Return an RGB or RGBA image from an array or a file.

    Raise :class:`NormalMeshError` unless it has the aspect ratio of a map of the given shape, up to one pixel.
    """
    image = _image(texture)
    if shape is not None:
        rows, columns = shape
        scale = columns / image.width
        if abs(image.height * scale - rows) > max(scale, 1.0):
            raise NormalMeshError(
                f"the texture is {image.width} × {image.height} pixels but the normal map {columns} × {rows}: "
                "crop or scale it to the same aspect ratio"
            )
    return image


def _image(texture: Texture) -> Image:
    import PIL.Image

    if isinstance(texture, str | PathLike):
        return _read(checked_path(texture, "texture"))
    array = checked_array(texture, "texture", "an image", kinds=None)
    if array.ndim != 3 or array.shape[2] not in (3, 4) or array.size == 0 or array.dtype != np.uint8:
        raise NormalMeshError(
            f"texture must be uint8 of the shape (rows, columns, 3 or 4), not {array.dtype} {shape_text(array.shape)}"
        )
    return PIL.Image.fromarray(np.ascontiguousarray(array))


def _read(path: Path) -> Image:
    import PIL.Image
    import PIL.ImageOps

    if file_format(path) in RTI_FORMATS:  # raises if there is no file, or nothing in it
        return PIL.Image.fromarray(read_rti(path).texture())
    with reading(path, "a texture (PNG, JPEG, TIFF, WebP, BMP, TGA or GIF)"), opened_image(path, FORMATS) as file:
        if file.mode.startswith(("I", "F")):
            raise unusable(path, "cannot be a texture: it must have 8 bits per channel")
        check_image_size(path, file.height, file.width, 8)  # bytes per pixel, as stored and as RGBA
        as_stored = file.format == "JPEG" and file.mode == "RGB" and file.getexif().get(ORIENTATION, 1) == 1
        # Apply the orientation of the camera, as viewers do.
        image = PIL.ImageOps.exif_transpose(file).convert("RGBA" if file.has_transparency_data else "RGB")
        image.info[JPEG] = path.read_bytes() if as_stored else None
        return image


def tangent_frames(surface: Surface) -> Frames:
    """Return tangents, bitangents and normals, (N, 3) each, at the vertices: right, up and out as the image shows them.

    The tangent is the direction of J(n)'s first column, n × (τ_u × r): along u on the surface, orthogonal to the
    normal. The bitangent is N × T, glTF's handedness +1.
    """
    camera, normals = surface.camera, surface.vertex_normals
    along_u, _ = camera.tangents
    to_viewer = camera.towards_viewer * camera.rays(surface.screen[:, 0], surface.screen[:, 1])
    tangents = np.cross(normals, np.cross(along_u, to_viewer))
    # Exactly grazing above or below: every direction on the surface is seen end-on, but τ_u lies in it.
    tangents[~tangents.any(axis=1)] = along_u
    tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
    bitangents = np.cross(normals, tangents)
    return tangents.astype(np.float32), bitangents.astype(np.float32), normals.astype(np.float32)


def normal_texture(surface: Surface, normals: NormalMap, frames: Frames) -> UInt8:
    """Return the map's normals in the surface's tangent frames as (H', W', 3) uint8, +x right, +y up, +z out.

    Viewers (three.js, Khronos' sample viewer) interpolate T, B and N over a face, normalise each and shade with
    ``x T + y B + z N``. The texel holds the x, y, z for which this is the map's normal.
    """
    rows, columns = surface.shape
    if abs(normals.shape[0] * columns - normals.shape[1] * rows) > max(rows, columns):
        raise NormalMeshError(
            f"normals are {shape_text(normals.shape)} but the surface is of an image of {shape_text(surface.shape)}: "
            "they must show the same image"
        )
    mesh, owners = surface.owners(reduced_shape(normals.shape))
    depth = np.ascontiguousarray(surface.camera.depth_per_unknown(surface.camera.depth(surface.vertices)))
    texture = np.empty((*owners.shape, 3), np.uint8)
    texture[:] = FLAT
    covered = np.zeros(owners.shape, np.bool_)
    textured = _surface.TexturedMesh(mesh.vertices, mesh.faces, depth, *frames)
    in_parallel(_surface.bake_normals, len(owners), owners, textured, normals.normals, texture, covered, grain=64)
    for _ in range(MARGIN):
        grown = np.empty_like(covered)
        in_parallel(_surface.dilate, len(covered), texture, covered, grown, grain=256)
        covered = grown
    return texture


def reduced_shape(shape: tuple[int, int]) -> tuple[int, int]:
    """Return rows and columns scaled so that neither is above :data:`MAX_TEXTURE_SIDE`."""
    scale = min(1.0, MAX_TEXTURE_SIDE / max(shape))
    return max(round(shape[0] * scale), 1), max(round(shape[1] * scale), 1)
