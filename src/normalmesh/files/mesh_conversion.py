"""From one mesh format to another: PLY, OBJ, GLB and STL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from normalmesh.files.atomic import write_atomically
from normalmesh.files.encoding import checked_suffix
from normalmesh.files.formats import reading
from normalmesh.files.mesh_files import Files, obj_files
from normalmesh.files.names import plain_stem
from normalmesh.files.triangles import KIND, read_parts

if TYPE_CHECKING:
    from trimesh import Trimesh

#: Suffixes of meshes that can be written.
MESH_SUFFIXES = (".ply", ".obj", ".glb", ".stl")

#: Nothing is merged or sorted.
AS_STORED: dict[str, Any] = {"process": False, "maintain_order": True, "fix_texture": False}


def convert_mesh(source: Path, target: Path) -> Trimesh:
    """Write the mesh of a file in the format of the target's suffix; returns the mesh.

    Vertices keep their number and order, except to and from STL, which has none. The parts of a scene become one
    mesh. Textures, their coordinates, and colours are kept where both formats have them; colours of vertices come
    without texture coordinates.
    """
    suffix = checked_suffix(target, MESH_SUFFIXES, "meshes")
    mesh = read_mesh(source)
    # Colours and texture coordinates that do not fit the vertices show only now.
    with reading(source, KIND):
        files = _ENCODERS[suffix](mesh, target)
    write_atomically(files)
    return mesh


def read_mesh(path: Path) -> Trimesh:
    """The mesh of a PLY, OBJ, STL or GLB file, its parts in their places."""
    import trimesh

    parts = read_parts(path, **AS_STORED)
    with reading(path, KIND):
        mesh: Any = parts[0] if len(parts) == 1 else trimesh.util.concatenate(parts)
        colours = mesh.vertex_attributes.pop("color", None)
        if colours is not None:  # of a PLY: they say more than its coordinates into a texture that it lacks
            mesh.visual = trimesh.visual.ColorVisuals(mesh, vertex_colors=colours)
        if path.suffix.lower() == ".stl":
            mesh.merge_vertices()
    return mesh


def _ply(mesh: Trimesh, path: Path) -> Files:
    from trimesh.exchange.ply import export_ply

    return {path: export_ply(mesh, vertex_normal=False)}


def _stl(mesh: Trimesh, path: Path) -> Files:
    from trimesh.exchange.stl import export_stl

    return {path: export_stl(mesh)}


def _glb(mesh: Trimesh, path: Path) -> Files:
    from trimesh.exchange.gltf import export_glb
    from trimesh.scene import Scene

    return {path: export_glb(Scene(mesh))}


def _obj(mesh: Trimesh, path: Path) -> Files:
    material = getattr(mesh.visual, "material", None)
    if material is not None:
        material.name = f"{plain_stem(path)}_texture"  # its file is called so, and must not be another mesh's
    return obj_files(mesh, path)


_ENCODERS: dict[str, Callable[..., Files]] = {".ply": _ply, ".obj": _obj, ".glb": _glb, ".stl": _stl}
