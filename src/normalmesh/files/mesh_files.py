"""Writing surfaces: PLY, OBJ, GLB and STL."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from normalmesh.arguments import checked_instance, checked_path
from normalmesh.errors import NormalMeshError, NormalMeshWarning, shape_text
from normalmesh.files.atomic import check_targets, write_atomically
from normalmesh.files.glb import GlbFile
from normalmesh.files.names import plain_stem
from normalmesh.files.textures import JPEG, Texture, colour_image
from normalmesh.mesh import _surface
from normalmesh.normals.normal_map import NormalMap
from normalmesh.runtime.threads import in_parallel

if TYPE_CHECKING:
    from PIL.Image import Image
    from trimesh import Trimesh

    from normalmesh.mesh.surface import Surface

#: Longest side of a texture in a GLB; graphics cards and browsers refuse larger ones.
LONGEST_TEXTURE = 8192

#: Texels by which the normal texture reaches over the outline, so that coarser mip levels do not mix in background.
MARGIN = 8

#: The normal (0, 0, 1) in a normal texture.
FLAT = (128, 128, 255)

#: Grey and roughness of a surface without texture: matt, so that shape shows.
GREY = 0.8
ROUGHNESS = 0.8

Files: TypeAlias = dict[str | PathLike[str], bytes | memoryview]


def write_surface(
    surface: Surface, path: str | PathLike[str], texture: Texture | None = None, normals: NormalMap | None = None
) -> None:
    """Write a surface in the format of the path's suffix; see :meth:`Surface.save`."""
    path = checked_path(path)
    suffix = path.suffix.lower()
    if normals is not None:
        checked_instance(normals, NormalMap, "normals")
    if suffix not in _ENCODERS:
        raise NormalMeshError(f"cannot write {path}: the suffix must be one of {', '.join(_ENCODERS)}")
    if normals is not None and suffix != ".glb":
        warnings.warn(f"normals are left out of {path.name}: only GLB embeds them", NormalMeshWarning, stacklevel=3)
    inputs = [texture] if isinstance(texture, str | PathLike) else []
    check_targets([path, *companions(path, texture is not None)], inputs)
    image = None if texture is None else colour_image(texture)
    if image is not None:
        check_same_image(image, surface.shape)
    write_atomically(_ENCODERS[suffix](surface, path, image, normals))


def check_texture(texture: Texture, shape: tuple[int, int]) -> None:
    """Raise a :class:`NormalMeshError` if this cannot be the texture of a map of the given shape."""
    check_same_image(colour_image(texture), shape)


def _ply(surface: Surface, path: Path, image: Image | None, normals: NormalMap | None) -> Files:
    """Texture coordinates are the vertex properties s and t: the names that Blender knows, and MeshLab too."""
    from trimesh.exchange.ply import export_ply

    colours = None if image is None else _colours_at_vertices(surface, np.asarray(image))
    mesh = _trimesh(surface, vertex_colors=colours)
    coordinates = surface.texture_coordinates.astype(np.float32)
    mesh.vertex_attributes.update(s=coordinates[:, 0], t=coordinates[:, 1])
    return {path: export_ply(mesh, vertex_normal=False)}


def _stl(surface: Surface, path: Path, image: Image | None, normals: NormalMap | None) -> Files:
    from trimesh.exchange.stl import export_stl

    if image is not None:
        warnings.warn(f"the texture is left out of {path.name}: STL has no colours", NormalMeshWarning, stacklevel=4)
    return {path: export_stl(_trimesh(surface))}


def _obj(surface: Surface, path: Path, image: Image | None, normals: NormalMap | None) -> Files:
    from trimesh.visual import TextureVisuals
    from trimesh.visual.material import SimpleMaterial

    grey = [round(255 * (GREY if image is None else 1.0))] * 3
    material = SimpleMaterial(
        image=image, diffuse=grey, ambient=grey, specular=[0, 0, 0], glossiness=0.0, name=f"{plain_stem(path)}_texture"
    )
    return obj_files(_trimesh(surface, visual=TextureVisuals(uv=surface.texture_coordinates, material=material)), path)


def companions(path: Path, textured: bool) -> list[Path]:
    """The files that are written beside a mesh."""
    if path.suffix.lower() != ".obj":
        return []
    stem = plain_stem(path)
    return [path.with_name(f"{stem}.mtl"), *([path.with_name(f"{stem}_texture.png")] if textured else [])]


def obj_files(mesh: Trimesh, path: Path) -> Files:
    """An OBJ file, after the material and the texture that it refers to."""
    from trimesh.exchange.obj import export_obj

    # Decimals, not significant digits: a small surface needs more of them.
    extent = np.abs(mesh.vertices[np.isfinite(mesh.vertices)]).max(initial=0.0)
    decimals = min(max(9 - math.floor(math.log10(extent or 1.0)), 8), 60)
    text, companions = export_obj(
        mesh,
        include_normals=False,
        return_texture=True,
        mtl_name=f"{plain_stem(path)}.mtl",
        digits=decimals,
        header="normalmesh",
    )
    files: Files = {path.with_name(name): content for name, content in companions.items()}
    return {**files, path: text.encode()}


def _glb(surface: Surface, path: Path, image: Image | None, normals: NormalMap | None) -> Files:
    file = GlbFile()
    # Texture coordinates of glTF count from the top.
    from_top = np.column_stack([surface.texture_coordinates[:, 0], 1 - surface.texture_coordinates[:, 1]])
    vertex_arrays = {"POSITION": surface.vertices, "NORMAL": surface.vertex_normals, "TEXCOORD_0": from_top}
    matt: dict[str, Any] = {"metallicFactor": 0.0, "roughnessFactor": ROUGHNESS}
    material: dict[str, Any] = {"pbrMetallicRoughness": matt, "doubleSided": True}
    if image is None:
        matt["baseColorFactor"] = [GREY, GREY, GREY, 1.0]
    else:
        reduced = _reduced(image)
        matt["baseColorTexture"] = file.texture(np.asarray(reduced), image.info.get(JPEG) if reduced is image else None)
    if normals is not None:
        frames = _tangent_frames(surface)
        handedness = np.ones((len(surface.vertices), 1))
        vertex_arrays["TANGENT"] = np.hstack([frames[0], handedness])
        material["normalTexture"] = file.texture(_normal_texture(surface, normals, frames))
    attributes = {name: file.attribute(values) for name, values in vertex_arrays.items()}
    return {
        path: file.contents(plain_stem(path), attributes, file.faces(surface.faces), material, {"units": surface.units})
    }


_ENCODERS: dict[str, Callable[[Surface, Path, Image | None, NormalMap | None], Files]] = {
    ".ply": _ply,
    ".obj": _obj,
    ".glb": _glb,
    ".stl": _stl,
}


def _trimesh(surface: Surface, **options: Any) -> Trimesh:
    """The surface for trimesh's exporters, which must neither merge nor reorder anything."""
    from trimesh import Trimesh

    mesh = Trimesh(surface.vertices, surface.faces, process=False, validate=False, **options)
    mesh.units = surface.units
    return mesh


Frames: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]


def _tangent_frames(surface: Surface) -> Frames:
    """Tangents, bitangents and normals, (N, 3) each, at the vertices: right, up and out as the image shows them.

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


def _normal_texture(surface: Surface, normals: NormalMap, frames: Frames) -> NDArray[np.uint8]:
    """(H', W', 3) uint8: the map's normals in the surface's tangent frames, +x right, +y up, +z out.

    Viewers (three.js, Khronos' sample viewer) interpolate T, B and N over a face, normalise each and shade with
    ``x T + y B + z N``. The texel holds the x, y, z for which this is the map's normal.
    """
    rows, columns = surface.shape
    if abs(normals.shape[0] * columns - normals.shape[1] * rows) > max(rows, columns):
        raise NormalMeshError(
            f"normals are {shape_text(normals.shape)} but the surface is of an image of {shape_text(surface.shape)}: "
            "they must show the same image"
        )
    screen, owners = surface.owners(_reduced_shape(normals.shape))
    depth = np.ones(len(screen))
    if surface.camera.is_central:
        depth = np.ascontiguousarray(surface.camera.depth(surface.vertices))
    texture = np.empty((*owners.shape, 3), np.uint8)
    texture[:] = FLAT
    covered = np.zeros(owners.shape, np.bool_)
    looking = (owners, screen, surface.faces, depth, *frames, normals.normals)
    in_parallel(_surface.bake_normals, len(owners), *looking, texture, covered, grain=64)
    for _ in range(MARGIN):
        grown = np.empty_like(covered)
        in_parallel(_surface.dilate, len(covered), texture, covered, grown, grain=256)
        covered = grown
    return texture


def _reduced_shape(shape: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns scaled so that neither is above :data:`LONGEST_TEXTURE`."""
    scale = min(1.0, LONGEST_TEXTURE / max(shape))
    return max(round(shape[0] * scale), 1), max(round(shape[1] * scale), 1)


def _reduced(image: Image) -> Image:
    from PIL.Image import Resampling

    rows, columns = _reduced_shape((image.height, image.width))
    return image if (columns, rows) == image.size else image.resize((columns, rows), Resampling.BOX)


def check_same_image(image: Image, shape: tuple[int, int]) -> None:
    """An error where the sides of a texture do not relate as those of the map, to a pixel of the coarser one."""
    rows, columns = shape
    scale = columns / image.width
    if abs(image.height * scale - rows) > max(scale, 1.0):
        raise NormalMeshError(
            f"the texture is {image.width} × {image.height} pixels but the normal map {columns} × {rows}: "
            "crop or scale it to the same aspect ratio"
        )


def _colours_at_vertices(surface: Surface, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """(N, 3 or 4): the image's colours at the vertices, bilinear between pixel centres."""
    size = np.array([image.shape[1], image.shape[0]])
    position = surface.screen * (size / [surface.shape[1], surface.shape[0]]) - 0.5
    position = np.clip(position, 0, size - 1)
    low = np.minimum(position.astype(np.int64), np.maximum(size - 2, 0))
    high = np.minimum(low + 1, size - 1)
    right, down = (position - low).T[..., None]
    upper = (1 - right) * image[low[:, 1], low[:, 0]] + right * image[low[:, 1], high[:, 0]]
    lower = (1 - right) * image[high[:, 1], low[:, 0]] + right * image[high[:, 1], high[:, 0]]
    return np.round((1 - down) * upper + down * lower).astype(np.uint8)
