"""Writing surfaces, solids and meshes in any of :data:`normalmesh.output.mesh_formats.MESH_FORMATS`, and depths."""

from __future__ import annotations

import os
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from normalmesh.arguments import checked_instance, checked_path
from normalmesh.errors import NormalMeshError, path_text, warn_caller
from normalmesh.files.atomic import check_target, check_targets, write_atomically
from normalmesh.files.clashes import InputFiles, reject_clashes
from normalmesh.files.encoding import DEPTH_SUFFIXES, TIFF_SUFFIXES, checked_suffix
from normalmesh.files.formats import reading
from normalmesh.files.height_png import depth_companions, depth_files, range_of_camera
from normalmesh.files.precision import mesh_tolerance
from normalmesh.mesh.walls import with_walls
from normalmesh.normals.normal_map import NormalMap
from normalmesh.output.depth_tiff import write_depth_tiff
from normalmesh.output.mesh_formats import (
    MESH_FORMATS,
    TILES_3D,
    WRITTEN_SUFFIXES,
    exact_trimesh,
    formats_with,
    written_format,
)
from normalmesh.output.mesh_reading import KIND, read_mesh
from normalmesh.output.textures import Texture, colour_image
from normalmesh.output.three_mf import THREE_MF, encode_3mf
from normalmesh.output.tileset import TILESET, check_tileset_target, write_tileset

if TYPE_CHECKING:
    from trimesh import Trimesh

    from normalmesh.files.georeference import GeoReference
    from normalmesh.mesh.solid import Solid
    from normalmesh.mesh.surface import Surface
    from normalmesh.output.glb import Scale

#: Suffixes of the files of solids.
SOLID_SUFFIXES = (THREE_MF, *WRITTEN_SUFFIXES)


def write_surface(
    surface: Surface,
    path: str | PathLike[str],
    texture: Texture | None = None,
    normals: NormalMap | None = None,
    scale: Scale = "auto",
    centred: bool = True,
) -> None:
    """Write a surface in the format of the path's suffix; see :meth:`Surface.save`."""
    path = surface_path(path)
    if path.suffix.lower() in DEPTH_SUFFIXES:
        raise NormalMeshError(f"cannot write {path_text(path)} as a mesh: to write heights, call surface.save_depth")
    if normals is not None:
        checked_instance(normals, NormalMap, "normals")
    mesh_format = written_format(path)
    if normals is not None and not mesh_format.holds_normals:
        _warn_left_out("normals are", path.name, f"only {formats_with('holds_normals')} embeds them")
    inputs = [texture] if isinstance(texture, str | PathLike) else []
    if mesh_format is TILES_3D:
        check_tileset_target(path.parent)
        reject_clashes([path], InputFiles(inputs))
    else:
        check_targets([path, *mesh_format.companions(path, texture is not None)], inputs)
    image = None if texture is None else colour_image(texture, surface.shape)
    if image is not None and not mesh_format.holds_colours:
        _warn_left_out("the texture is", path.name, f"{mesh_format.name} has no colours")
    if mesh_format is TILES_3D:
        write_tileset(surface, path.parent, image)
    else:
        write_atomically(mesh_format.encode_surface(with_walls(surface), path, image, normals, scale, centred))


def write_solid(solid: Solid, path: str | PathLike[str]) -> None:
    """Write a solid in the format of the path's suffix; see :meth:`Solid.save`."""
    path = checked_path(path)
    check_solid_suffix(path)
    mesh_format = MESH_FORMATS[path.suffix.lower()]
    check_targets([path, *mesh_format.companions(path, False)], [])
    if path.suffix.lower() == THREE_MF:
        write_atomically({path: encode_3mf(solid)})
    else:
        mesh = exact_trimesh(solid)
        write_atomically(mesh_format.encode_mesh(mesh, path, mesh_tolerance(mesh)))


def check_solid_suffix(path: Path) -> None:
    """Raise :class:`NormalMeshError` unless a solid can be written in the format of a path's suffix."""
    if path.suffix.lower() not in SOLID_SUFFIXES:
        raise NormalMeshError(
            f"cannot write a solid to {path_text(path)}: the suffix must be one of {', '.join(SOLID_SUFFIXES)}"
        )


def convert_mesh(source: Path, target: Path) -> Trimesh:
    """Write the mesh of a file in the format of the target's suffix, and return the mesh.

    Vertices keep their number and order, except to and from STL, which has none. The parts of a scene become one
    mesh. Textures, their coordinates, and colours are kept where both formats have them; colours of vertices come
    without texture coordinates.
    """
    mesh_format = written_format(target)
    mesh = read_mesh(source)
    # Colours and texture coordinates that do not fit the vertices show only now.
    with reading(source, KIND):
        files = mesh_format.encode_mesh(mesh, target, mesh_tolerance(mesh))
    write_atomically(files)
    return mesh


def surface_path(given: str | PathLike[str]) -> Path:
    """Return the path of the file that stands for a surface: for a folder, the description of its 3D Tiles.

    A folder is a name that ends with a separator, or a folder that exists and has no suffix.
    """
    path, text = checked_path(given), fspath(given)
    is_folder = text.endswith(("/", os.sep)) or (not path.suffix and path.is_dir())
    return path / TILESET if is_folder else path


def check_surface_target(path: Path) -> None:
    """Raise a :class:`NormalMeshError` if a surface cannot be written to a path of :func:`surface_path`."""
    if path.name == TILESET:
        check_tileset_target(path.parent)
    else:
        check_target(path)


def write_depth(surface: Surface, path: str | PathLike[str], georeference: GeoReference | None = None) -> None:
    """Write the depth map of a surface; see :meth:`Surface.save_depth`."""
    path = checked_path(path)
    suffix = checked_suffix(path, DEPTH_SUFFIXES, "depths")
    if suffix in TIFF_SUFFIXES:
        write_depth_tiff(surface, path, georeference)
        return
    if georeference is not None:
        _warn_left_out("the georeference is", path.name, "only TIFF holds it")
    check_targets([path, *depth_companions(path)], [])
    write_atomically(
        depth_files(path, surface.depth_map(), range_of_camera(surface.camera, surface.units, surface.strength))
    )


def _warn_left_out(what: str, name: str, reason: str) -> None:
    warn_caller(f"{what} left out of {path_text(name)}: {reason}")
