"""The formats of mesh files: one table of what each can hold and how it is encoded.

A new format is one new entry of :data:`MESH_FORMATS`, with functions for what it can do. Reading is done by trimesh
(:mod:`normalmesh.output.mesh_reading`), so a format that is only read needs no function at all.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from normalmesh.array_types import Float, UInt8
from normalmesh.errors import NormalMeshError, path_text
from normalmesh.files.atomic import Files
from normalmesh.files.precision import centre, rounding, surface_tolerance, warn_of_rounding
from normalmesh.mesh.relief import normals_of_relief
from normalmesh.output.glb import (
    GENERATOR,
    GREY,
    GlbFile,
    Placement,
    Scale,
    matt_material,
    read_description,
    surface_extras,
    without_placement,
)
from normalmesh.output.textures import JPEG, normal_texture, reduced_shape, tangent_frames
from normalmesh.output.three_mf import THREE_MF, off_of_3mf
from normalmesh.output.tileset import TILESET

if TYPE_CHECKING:
    from PIL.Image import Image
    from trimesh import Trimesh

    from normalmesh.mesh.solid import Solid
    from normalmesh.mesh.surface import Surface
    from normalmesh.normals.normal_map import NormalMap

#: Bytes of the numbers of PLY.
PLY_BYTES = {"char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "float": 4, "double": 8}


def _cannot_encode(*_: object) -> Files:
    raise NotImplementedError("this format can only be read")


@dataclass(frozen=True)
class MeshFormat:
    """A format of mesh files. All can be read."""

    #: As people call it.
    name: str
    #: From a surface, its path, the image of a texture, the map of a normal texture, and how a GLB file scales and
    #: centres the surface, to the contents of all files.
    encode_surface: Callable[[Surface, Path, Image | None, NormalMap | None, Scale, bool], Files] = _cannot_encode
    #: From a mesh of trimesh, its path and the largest rounding that keeps its shape to the contents of all files.
    encode_mesh: Callable[[Trimesh, Path, float], Files] = _cannot_encode
    #: Whether a file can hold a texture, or colours of vertices; and a normal texture.
    holds_colours: bool = True
    holds_normals: bool = False
    #: Whether faces name vertices; if not, vertices at the same place are merged when a file is read.
    shares_vertices: bool = True
    #: From a path and whether there is a texture to the paths of the files that are written beside it.
    companions: Callable[[Path, bool], list[Path]] = lambda path, textured: []
    #: Raises ValueError if the bytes of a file are not worth being parsed.
    check_content: Callable[[bytes], None] = lambda content: None
    #: From the bytes of a file to those in which positions are in the unit and the place of the surface; and the type
    #: of these bytes, if it is not that of the suffix.
    as_surface: Callable[[bytes], bytes] = bytes
    parsed_as: str = ""


def written_format(path: Path) -> MeshFormat:
    """Return the format of a file to be written, by its suffix or name, or raise :class:`NormalMeshError`."""
    if path.name == TILESET:
        return TILES_3D
    if path.suffix.lower() not in WRITTEN_SUFFIXES:
        raise NormalMeshError(
            f"cannot write {path_text(path)}: the suffix must be one of {', '.join(WRITTEN_SUFFIXES)}"
            + ("" if path.suffix else f"; the name of a folder of 3D Tiles must end with {os.sep}")
        )
    return MESH_FORMATS[path.suffix.lower()]


def companions_of(path: Path, textured: bool) -> list[Path]:
    """Return the paths of the files that are written beside a file; none if it is not a mesh."""
    mesh_format = MESH_FORMATS.get(path.suffix.lower())
    return [] if mesh_format is None else mesh_format.companions(path, textured)


def formats_with(property_name: str) -> str:
    """Return the names of the formats that have a property of :class:`MeshFormat`."""
    return ", ".join(each.name for each in MESH_FORMATS.values() if getattr(each, property_name))


def _ply_of_surface(surface: Surface, path: Path, image: Image | None, *_: object) -> Files:
    """Encode PLY. Texture coordinates are the vertex properties s and t: names that Blender and MeshLab know."""
    colours = None if image is None else _colours_at_vertices(surface, np.asarray(image))
    mesh = exact_trimesh(surface, vertex_colors=colours, vertex_normals=surface.vertex_normals)
    coordinates = surface.texture_coordinates.astype(np.float32)
    mesh.vertex_attributes.update(s=coordinates[:, 0], t=coordinates[:, 1])
    files = _ply(mesh, path, surface_tolerance(surface), normals=True)
    if surface.strength != 1:
        comment = b"comment relief multiplied by %r\nelement vertex" % surface.strength
        files[path] = bytes(files[path]).replace(b"element vertex", comment, 1)
    return files


def _ply(mesh: Trimesh, path: Path, tolerance: float, normals: bool = False) -> Files:
    """Encode PLY, with coordinates in double precision if single precision rounds them by more than the tolerance."""
    from trimesh.exchange.ply import export_ply

    content = export_ply(mesh, vertex_normal=normals)
    return {path: content if rounding(mesh.vertices) <= tolerance else _with_doubles(content, mesh)}


def _with_doubles(content: bytes, mesh: Trimesh) -> bytes:
    """Return a binary PLY file with double coordinates in place of the floats with which each vertex begins."""
    head, end, body = content.partition(b"end_header\n")
    lines = head.decode().partition("element vertex")[2].partition("element face")[0].splitlines()[1:]
    size = 0
    for _, kind, *rest in map(str.split, lines):
        name, length = rest[-1], PLY_BYTES[rest[-2] if kind == "list" else kind]
        size += 1 + length * np.shape(mesh.vertex_attributes[name])[1] if kind == "list" else length
    count = len(mesh.vertices)
    others = np.frombuffer(body, np.uint8, count * size).reshape(count, size)[:, 12:]
    doubles = np.ascontiguousarray(mesh.vertices, "<f8").view(np.uint8)
    for axis in (b"x", b"y", b"z"):
        head = head.replace(b"property float " + axis + b"\n", b"property double " + axis + b"\n", 1)
    return b"".join([head, end, np.hstack([doubles, others]).tobytes(), body[count * size :]])


def _colours_at_vertices(surface: Surface, image: UInt8) -> UInt8:
    """Return the image's colours (N, 3 or 4) at the vertices, bilinear between pixel centres."""
    from scipy.ndimage import map_coordinates

    size = np.array([image.shape[1], image.shape[0]])
    places = surface.screen[:, ::-1] * (size / surface.shape[::-1])[::-1] - 0.5  # row and column
    channels = (image[..., k] for k in range(image.shape[2]))
    colours = [map_coordinates(each, places.T, np.float64, order=1, mode="nearest") for each in channels]
    return np.round(np.stack(colours, axis=1)).astype(np.uint8)


def _stl(mesh: Trimesh, path: Path, tolerance: float) -> Files:
    from trimesh.exchange.stl import export_stl

    if (error := rounding(mesh.vertices)) > tolerance:
        warn_of_rounding(path, "positions", error, "write PLY, GLB or OBJ, or move the surface to the origin")
    return {path: export_stl(mesh)}


def _obj_of_surface(surface: Surface, path: Path, image: Image | None, *_: object) -> Files:
    from trimesh.visual import TextureVisuals
    from trimesh.visual.material import SimpleMaterial

    grey = [round(255 * (GREY if image is None else 1.0))] * 3
    material = SimpleMaterial(image=image, diffuse=grey, ambient=grey, specular=[0, 0, 0], glossiness=0.0)
    visual = TextureVisuals(uv=surface.texture_coordinates, material=material)
    mesh = exact_trimesh(surface, visual=visual, vertex_normals=surface.vertex_normals)
    files = _obj(mesh, path, surface_tolerance(surface), normals=True)
    if surface.strength != 1:
        files[path] = b"# relief multiplied by %r\n" % surface.strength + files[path]
    return files


def _obj(mesh: Trimesh, path: Path, tolerance: float, normals: bool = False) -> Files:
    """Encode OBJ, after the material and the texture that it refers to."""
    from trimesh.exchange.obj import export_obj

    material = getattr(mesh.visual, "material", None)
    if material is not None:
        # The file of the texture is named after the material, and must not be that of another mesh.
        material.name = f"{plain_stem(path)}_texture"
    # Decimals, not significant digits: a small surface needs more of them.
    extent = np.abs(mesh.vertices[np.isfinite(mesh.vertices)]).max(initial=0.0)
    decimals = max(9 - math.floor(math.log10(extent or 1.0)), 8)
    decimals = min(max(decimals, 1 - math.floor(math.log10(tolerance or 1.0))), 60)
    text, beside = export_obj(
        mesh,
        include_normals=normals,
        return_texture=True,
        mtl_name=f"{plain_stem(path)}.mtl",
        digits=decimals,
        header="normalmesh",
    )
    files: Files = {path.with_name(name): content for name, content in beside.items()}
    return {**files, path: text.encode()}


def _obj_companions(path: Path, textured: bool) -> list[Path]:
    stem = plain_stem(path)
    return [path.with_name(f"{stem}.mtl"), *([path.with_name(f"{stem}_texture.png")] if textured else [])]


def _glb_of_surface(
    surface: Surface, path: Path, image: Image | None, normals: NormalMap | None, scale: Scale, centred: bool
) -> Files:
    file = GlbFile()
    # Texture coordinates of glTF count from the top.
    from_top = np.column_stack([surface.texture_coordinates[:, 0], 1 - surface.texture_coordinates[:, 1]])
    origin, positions = _centred(surface.vertices, surface_tolerance(surface), path)
    vertex_arrays = {"POSITION": positions, "NORMAL": surface.vertex_normals, "TEXCOORD_0": from_top}
    texture = None
    if image is not None:
        reduced = _reduced(image)
        texture = file.texture(np.asarray(reduced), image.info.get(JPEG) if reduced is image else None)
    material = matt_material(texture)
    if normals is not None:
        frames = tangent_frames(surface)
        handedness = np.ones((len(surface.vertices), 1))
        vertex_arrays["TANGENT"] = np.hstack([frames[0], handedness])
        shown = normals_of_relief(surface, normals)
        material["normalTexture"] = file.texture(normal_texture(surface, shown, frames))
    attributes = {name: file.attribute(values) for name, values in vertex_arrays.items()}
    faces, extras = file.faces(surface.faces), surface_extras(surface)
    placement = Placement.of(surface.vertices, surface.units, scale, centred)
    return {path: file.contents(plain_stem(path), attributes, faces, material, extras, placement.node(origin))}


def _glb(mesh: Trimesh, path: Path, tolerance: float) -> Files:
    from trimesh.exchange.gltf import export_glb
    from trimesh.scene import Scene

    origin, mesh.vertices = _centred(mesh.vertices, tolerance, path)
    # A mesh whose unit is known is one of this program, and stands in the scene like its surface.
    units = mesh.metadata.get("units")
    placed = Placement.of(mesh.vertices, units).node(origin) if isinstance(units, str) else None

    def place(tree: dict[str, Any]) -> None:
        for node in tree["nodes"]:
            if "mesh" in node and placed is not None:
                tree["asset"]["generator"] = GENERATOR
                node.update(placed)
            elif "mesh" in node and origin is not None:
                node["translation"] = origin.tolist()

    return {path: export_glb(Scene(mesh), tree_postprocessor=place)}


def _centred(vertices: Float, tolerance: float, path: Path) -> tuple[Float | None, Float]:
    """Return the translation (3,) of a node and positions relative to it; None if single precision keeps positions."""
    if rounding(vertices) <= tolerance:
        return None, vertices
    origin = centre(vertices)
    positions = vertices - origin
    if (error := rounding(positions)) > tolerance:
        warn_of_rounding(path, "positions", error, "write PLY or OBJ")
    return origin, positions


def _check_gltf(description: bytes, file_size: int | None = None) -> None:
    """Refuse arrays of glTF without contents, which are all zeros, if they are longer than the file."""
    limit = len(description) if file_size is None else file_size
    for accessor in json.loads(description).get("accessors", []):
        if "bufferView" not in accessor and accessor["count"] > limit:
            raise ValueError(f"it claims {accessor['count']} values that it does not hold")


def exact_trimesh(shape: Surface | Solid, **options: Any) -> Trimesh:
    """Return a surface or a solid for the exporters of trimesh, which must neither merge nor reorder anything."""
    from trimesh import Trimesh

    mesh = Trimesh(shape.vertices, shape.faces, process=False, validate=False, **options)
    mesh.units = shape.units
    return mesh


def _reduced(image: Image) -> Image:
    from PIL.Image import Resampling

    rows, columns = reduced_shape((image.height, image.width))
    return image if (columns, rows) == image.size else image.resize((columns, rows), Resampling.BOX)


#: All formats, by their suffix in lower case.
MESH_FORMATS = {
    ".ply": MeshFormat("PLY", _ply_of_surface, _ply),
    ".obj": MeshFormat("OBJ", _obj_of_surface, _obj, companions=_obj_companions),
    ".glb": MeshFormat(
        "GLB",
        _glb_of_surface,
        _glb,
        holds_normals=True,
        check_content=lambda content: _check_gltf(read_description(io.BytesIO(content)), len(content)),
        as_surface=without_placement,
    ),
    ".stl": MeshFormat(
        "STL",
        lambda surface, path, *_: _stl(exact_trimesh(surface), path, surface_tolerance(surface)),
        _stl,
        holds_colours=False,
        shares_vertices=False,
    ),
    ".gltf": MeshFormat("glTF", check_content=_check_gltf),
    ".off": MeshFormat("OFF"),
    THREE_MF: MeshFormat("3MF", holds_colours=False, as_surface=off_of_3mf, parsed_as="off"),
}

#: A folder of many files, which :mod:`normalmesh.output.tileset` writes.
TILES_3D = MeshFormat("3D Tiles")

#: Suffixes of the files that can be read, and of those that can be written.
MESH_SUFFIXES = tuple(MESH_FORMATS)
WRITTEN_SUFFIXES = tuple(suffix for suffix, each in MESH_FORMATS.items() if each.encode_mesh is not _cannot_encode)


def plain_stem(path: Path) -> str:
    """Return the stem of a file name, with characters that a line of an OBJ file cannot hold escaped as ``%XX``.

    A name may contain line breaks, and bytes that are not valid text. Different files keep different names.
    """
    return "".join(
        letter if letter.isprintable() and letter not in '%#"\\' else f"%{ord(letter):02X}" for letter in path.stem
    )
