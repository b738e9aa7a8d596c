"""Reading triangle meshes from files, with checks of what they hold, and 3D Tiles of this program as one mesh."""

from __future__ import annotations

import heapq
import io
import json
import math
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from normalmesh.array_types import Bool, Float, Int32
from normalmesh.errors import NormalMeshError, count_text, path_text, shape_text
from normalmesh.files.clashes import note_input
from normalmesh.files.formats import file_format, reading, unusable
from normalmesh.files.height_png import warn_of_strength
from normalmesh.files.size_limits import refuse_beyond_memory
from normalmesh.output.glb import read_description
from normalmesh.output.mesh_formats import MESH_FORMATS, MESH_SUFFIXES
from normalmesh.output.tileset import TILESET, is_tileset_folder

if TYPE_CHECKING:
    from trimesh import Trimesh
    from trimesh.resolvers import Resolver

KIND = "a triangle mesh (PLY, OBJ, STL, GLB, glTF, OFF or 3MF)"
#: Bytes that a vertex or a face takes at least until a mesh is ready.
BYTES = 100
#: Options with which trimesh neither merges nor sorts anything.
AS_STORED: dict[str, Any] = {"process": False, "maintain_order": True, "fix_texture": False}


def read_mesh(path: Path) -> Trimesh:
    """Return the mesh of a file, with its parts in their places."""
    import trimesh

    parts = read_parts(path, **AS_STORED)
    with reading(path, KIND):
        mesh: Trimesh = parts[0] if len(parts) == 1 else cast("Trimesh", trimesh.util.concatenate(parts))
        colours = mesh.vertex_attributes.pop("color", None)
        if colours is not None:  # of a PLY file, which may have coordinates into a texture, but never the texture
            mesh.visual = trimesh.visual.ColorVisuals(mesh, vertex_colors=colours)
        if not MESH_FORMATS[path.suffix.lower()].shares_vertices:
            mesh.merge_vertices(digits_vertex=_decimals(mesh))
    return mesh


def _decimals(mesh: Trimesh) -> int:
    """Return to how many decimals positions are compared: 8, more for a small mesh, or as many as 64 bits hold."""
    extent, largest = float(np.ptp(mesh.vertices, axis=0).max()), float(np.abs(mesh.vertices).max())
    wanted = 8 - math.floor(math.log10(min(extent, 1.0) or 1.0))
    return min(wanted, math.floor(math.log10(2**62 / (largest or 1.0))))


def read_parts(path: Path, include_cache: bool = False, **options: Any) -> list[Trimesh]:
    """Return the meshes of a file, each in its place; ``options`` are those of trimesh.

    GLB files of this program are read in the coordinates of their surface, not in those of their scene.
    ``include_cache`` keeps the normals of the file, which are in the cache of a mesh.
    """
    import trimesh

    file_format(path)  # raises if there is no file, or nothing in it
    suffix = path.suffix.lower()
    if suffix not in MESH_SUFFIXES:
        raise unusable(path, f"a mesh must be one of {', '.join(MESH_SUFFIXES)}")
    with reading(path, KIND):
        content, mesh_format = path.read_bytes(), MESH_FORMATS[suffix]
        mesh_format.check_content(content)
        content, kind = mesh_format.as_surface(content), mesh_format.parsed_as or suffix[1:]
        # The name of the file stays unknown to trimesh, which would pass it on to what it writes.
        scene = trimesh.load_scene(io.BytesIO(content), file_type=kind, resolver=_neighbours(path), **options)
        placed = [scene.graph[node] for node in scene.graph.nodes_geometry]
        meshes = [(scene.geometry[name], placement) for placement, name in placed]
        meshes = [(mesh, place) for mesh, place in meshes if isinstance(mesh, trimesh.Trimesh) and len(mesh.faces)]
        # One mesh may be in thousands of places.
        refuse_beyond_memory(path, BYTES * sum(len(mesh.vertices) + len(mesh.faces) for mesh, _ in meshes))
        for mesh, _ in meshes:
            used_vertices(path_text(path), mesh.vertices, mesh.faces)
        parts = [_placed(mesh.copy(include_cache=include_cache), place) for mesh, place in meshes]
    for mesh, _ in meshes:
        warn_of_strength(path, mesh.metadata.get("strength", 1))
    if not parts:
        raise unusable(path, "holds no triangles; a mesh is needed, not points or lines")
    return parts


def _placed(part: Trimesh, place: Float) -> Trimesh:
    """Transform a mesh by a matrix (4, 4), with its normals if the file has any."""
    if np.array_equal(place, np.eye(4)):
        return part
    if not np.array_equal(place[:, :3], np.eye(4)[:, :3]):
        return part.apply_transform(place)
    # trimesh ignores translations below 1e-8, which is much for a small mesh.
    normals = part.vertex_normals if "vertex_normals" in part._cache else None
    part.vertices = part.vertices + place[:3, 3]
    part.vertex_normals = normals  # type: ignore[method-assign]
    return part


def used_vertices(name: str, vertices: Float, faces: NDArray[np.generic]) -> Bool:
    """Return which vertices (N,) are in some face, or raise :class:`NormalMeshError` unless these are triangles."""
    if vertices.ndim != 2 or vertices.shape[1] != 3:
        raise NormalMeshError(f"{name}: vertices must have the shape (N, 3), not {shape_text(vertices.shape)}")
    if faces.size == 0:
        raise NormalMeshError(f"{name}: there are no faces to look at")
    if faces.ndim != 2 or faces.shape[1] != 3 or faces.dtype.kind not in "iu":
        raise NormalMeshError(
            f"{name}: faces must be whole numbers of the shape (M, 3), not {faces.dtype} {shape_text(faces.shape)}"
        )
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise NormalMeshError(
            f"{name}: faces name vertices {faces.min()} to {faces.max()}, but there are {len(vertices)} vertices"
        )
    used = np.zeros(len(vertices), np.bool_)
    used[faces] = True
    lost = int(np.count_nonzero(~np.isfinite(vertices[used]).all(axis=1)))
    if lost:
        raise NormalMeshError(f"{name}: {count_text(lost, 'vertex is', 'vertices are')} not finite")
    return used


def _neighbours(path: Path) -> Resolver:
    """Return what finds the materials and textures that a mesh names: only ordinary files in its folder or below."""
    from trimesh.resolvers import FilePathResolver

    root = path.resolve().parent

    class Neighbours(FilePathResolver):
        def get(self, name: str) -> bytes:
            file = (root / name.strip()).resolve()
            if not file.is_relative_to(root) or not file.is_file():
                raise FileNotFoundError(name)
            note_input(file)
            return file.read_bytes()

    neighbours = Neighbours(str(root))
    neighbours.file_name = "mesh"  # what the mesh is called
    return neighbours


def read_tileset(folder: Path, max_faces: float) -> tuple[Float, Int32, bool]:
    """Return vertices (N, 3) and faces (M, 3) of a folder of 3D Tiles, and whether they are all that it has.

    Tiles with the largest errors are replaced by those below them, as long as there are at most ``max_faces`` faces.
    Coordinates are those of the surface. Vertices on the borders between tiles are in each of them.
    """
    if not is_tileset_folder(folder):
        raise unusable(folder, f"is no folder of 3D Tiles that normalmesh wrote: it has no such {TILESET}")
    note_input(folder / TILESET)
    with reading(folder, "3D Tiles"):
        root = json.loads((folder / TILESET).read_bytes())["root"]
        tiles, complete = _refined(folder, root, max_faces)
        parts = [part for tile in tiles for part in read_parts(_content(folder, tile), process=False)]
        starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
        vertices = np.concatenate([part.vertices for part in parts])
        faces = np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=False)])
    # The glTF of a tile has y up, 3D Tiles have z up.
    return np.stack([vertices[:, 0], -vertices[:, 2], vertices[:, 1]], axis=1), faces.astype(np.int32), complete


def _refined(folder: Path, root: dict[str, Any], max_faces: float) -> tuple[list[dict[str, Any]], bool]:
    """Return the tiles to show instead of the root, and whether none of them has children."""
    number = count()
    total = _face_count(folder, root)
    waiting, done = [(-float(root["geometricError"]), next(number), root)], []
    while waiting:
        tile = heapq.heappop(waiting)[2]
        children = tile.get("children", [])
        change = sum(_face_count(folder, child) for child in children) - _face_count(folder, tile)
        if not children or total + change > max_faces:
            done.append(tile)
            continue
        total += change
        for child in children:
            heapq.heappush(waiting, (-float(child["geometricError"]), next(number), child))
    return done, not any(tile.get("children") for tile in done)


def _content(folder: Path, tile: dict[str, Any]) -> Path:
    """Return the file of a tile, which must be in the folder."""
    path = Path(folder, str(tile["content"]["uri"])).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ValueError(f"the tile {path.name} lies outside the folder")
    return path


def _face_count(folder: Path, tile: dict[str, Any]) -> int:
    """Return the number of faces of a tile, from the description in its file."""
    with _content(folder, tile).open("rb") as file:
        tree = json.loads(read_description(file))
    return int(tree["accessors"][tree["meshes"][0]["primitives"][0]["indices"]]["count"]) // 3
