"""Surfaces as meshes of other libraries (trimesh, Open3D, PyVista, meshio), and meshes of theirs as arrays.

All meshes have copies of the arrays: a library may change its mesh, and the surface stays as it is.
"""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from normalmesh.arguments import checked_image_shape, checked_path
from normalmesh.array_types import Bool, Float, Int32
from normalmesh.errors import NormalMeshError, repr_for_error
from normalmesh.mesh.screen_mesh import MAX_POSITION, ScreenMesh
from normalmesh.mesh.surface import Surface
from normalmesh.mesh.surface_arrays import copied_faces, copied_positions
from normalmesh.normals.camera import Camera, checked_camera
from normalmesh.normals.orthographic import Orthographic

if TYPE_CHECKING:
    from meshio import Mesh
    from open3d.geometry import TriangleMesh
    from pyvista import PolyData
    from trimesh import Trimesh

    #: A mesh of one of these libraries, vertices and faces, or a file.
    MeshLike: TypeAlias = Trimesh | TriangleMesh | PolyData | Mesh | tuple[ArrayLike, ArrayLike] | str | PathLike[str]

EXPECTED = "a mesh of trimesh, Open3D, PyVista or meshio, (vertices, faces), or the path of a mesh file"
#: Vertices at the border of an image may stand out by this much, in px: the solve moves them.
BEYOND = 0.01
#: Places on the screen that differ by this many roundings to single precision are the same.
ROUNDINGS = 8


def trimesh_of(surface: Surface) -> Trimesh:
    """Return the surface as a trimesh mesh, with normals and texture coordinates."""
    from trimesh import Trimesh
    from trimesh.visual import TextureVisuals

    mesh = Trimesh(
        surface.vertices.copy(),
        surface.all_faces.copy(),
        vertex_normals=surface.vertex_normals,
        visual=TextureVisuals(uv=surface.texture_coordinates),
        process=False,
        validate=False,
    )
    mesh.units = surface.units
    return mesh


def open3d_of(surface: Surface) -> TriangleMesh:
    """Return the surface as an Open3D mesh, with normals and texture coordinates, which it keeps by face."""
    open3d = _library("open3d", "Open3D", "open3d")
    vectors = open3d.utility
    faces = surface.all_faces
    mesh = open3d.geometry.TriangleMesh(vectors.Vector3dVector(surface.vertices), vectors.Vector3iVector(faces))
    mesh.vertex_normals = vectors.Vector3dVector(surface.vertex_normals)
    mesh.triangle_uvs = vectors.Vector2dVector(surface.texture_coordinates[faces.ravel()])
    return mesh


def pyvista_of(surface: Surface) -> PolyData:
    """Return the surface as a PyVista mesh, with normals and texture coordinates."""
    pyvista = _library("pyvista", "PyVista", "view3d")
    mesh = pyvista.PolyData.from_regular_faces(surface.vertices.copy(), surface.all_faces.copy())
    mesh.point_data["Normals"] = surface.vertex_normals
    mesh.point_data.active_normals_name = "Normals"
    mesh.active_texture_coordinates = surface.texture_coordinates
    return mesh


def meshio_of(surface: Surface) -> Mesh:
    """Return the surface as a meshio mesh, with normals."""
    meshio = _library("meshio", "meshio", "meshio")
    return meshio.Mesh(
        surface.vertices.copy(),
        [("triangle", surface.all_faces.copy())],
        point_data={"Normals": surface.vertex_normals},
    )


def surface_of(
    mesh: MeshLike, camera: Camera | None = None, shape: tuple[int, int] | None = None, units: str | None = None
) -> Surface:
    """Return the surface of a mesh, as :meth:`Surface.from_mesh` does."""
    camera = Orthographic() if camera is None else checked_camera(camera)
    given, indices, known = _mesh_arrays(mesh)
    vertices = copied_positions(given, 3, "vertices of the mesh")
    faces = copied_faces(indices, len(vertices))
    screen = camera.screen(vertices)
    if not np.all(np.abs(screen) <= MAX_POSITION):
        raise NormalMeshError(
            f"mesh must be in front of the camera ({camera}), within {MAX_POSITION:g} px of its image: "
            "move it there, or give the camera that it was made with"
        )
    if shape is None:
        columns, rows = np.maximum(np.ceil(screen.max(axis=0) - BEYOND), 1).astype(int).tolist()
        shape = checked_image_shape((rows, columns))
    if ScreenMesh(screen, faces).areas.sum() < 0:
        faces = faces[:, ::-1]
    is_wall = _edge_on(screen, faces, camera)
    walls = _on_faces(vertices, faces[~is_wall], faces[is_wall])
    kept = np.ones(len(vertices), np.bool_)
    kept[faces[is_wall]] = False
    kept[faces[~is_wall]] = kept[walls] = True
    number = np.cumsum(kept, dtype=np.int32) - 1
    return Surface(
        vertices[kept],
        number[faces[~is_wall]],
        screen[kept],
        camera,
        shape,
        units or known or "px",
        walls=number[walls],
    )


def _edge_on(screen: Float, faces: Int32, camera: Camera) -> Bool:
    """Return which faces (M,) are walls: two of their corners are at the same place on the screen, as files keep it."""
    close = 0.0
    if camera.gauge == "scale":
        close = ROUNDINGS * float(np.finfo(np.float32).eps * np.abs(screen).max())
    corners = screen[faces]
    edge_on: Bool = (np.abs(corners - np.roll(corners, 1, axis=1)).max(axis=2) <= close).any(axis=1)
    return edge_on & (not edge_on.all())


def _on_faces(vertices: Float, faces: Int32, walls: Int32) -> Int32:
    """Return walls (W, 3) with the vertices of faces (M, 3) in place of their own copies."""
    used, corners = np.unique(faces), np.unique(walls)
    beside = np.concatenate([used[np.isin(vertices[used, 0], vertices[corners, 0])], np.setdiff1d(corners, used)])
    # Vertices of faces come first.
    _, first, same = np.unique(vertices[beside], axis=0, return_index=True, return_inverse=True)
    original = np.arange(len(vertices), dtype=np.int32)
    alone = np.isin(beside, used, invert=True)
    original[beside[alone]] = beside[first[same.ravel()[alone]]]
    return original[walls]


def _mesh_arrays(mesh: Any) -> tuple[NDArray[Any], NDArray[Any], str | None]:
    """Return vertices (N, 3), faces (M, 3) and the unit, where one is known, of a mesh of any library, or of a file."""
    if isinstance(mesh, str | PathLike):
        from normalmesh.output.mesh_reading import read_mesh

        mesh = read_mesh(checked_path(mesh, "mesh"))
    if isinstance(mesh, tuple | list) and len(mesh) == 2:
        vertices, faces = mesh
        return vertices, faces, None
    if hasattr(mesh, "vertices") and hasattr(mesh, "faces"):  # trimesh
        return mesh.vertices, mesh.faces, getattr(mesh, "units", None)
    if hasattr(mesh, "to_legacy"):  # a mesh of Open3D's tensors
        mesh = mesh.to_legacy()
    if hasattr(mesh, "vertices") and hasattr(mesh, "triangles"):  # Open3D
        return np.asarray(mesh.vertices), np.asarray(mesh.triangles), None
    if hasattr(mesh, "points") and hasattr(type(mesh), "regular_faces"):  # PyVista
        triangles = mesh if mesh.is_all_triangles else mesh.triangulate()
        return triangles.points, triangles.regular_faces, None
    if hasattr(mesh, "points") and hasattr(mesh, "get_cells_type"):  # meshio
        return mesh.points, _meshio_triangles(mesh), None
    raise NormalMeshError(f"mesh must be {EXPECTED}, not {repr_for_error(mesh)}")


def _meshio_triangles(mesh: Mesh) -> NDArray[Any]:
    """Return the faces (M, 3) of a meshio mesh, or raise an error if it has others than triangles."""
    others = sorted({cells.type for cells in mesh.cells} - {"triangle", "line", "vertex"})
    if others:
        raise NormalMeshError(f"mesh must consist of triangles, but has {', '.join(others)}: triangulate it before")
    triangles: NDArray[Any] = mesh.get_cells_type("triangle")
    return triangles


def _library(name: str, title: str, extra: str) -> Any:
    """Import an optional library, or raise :class:`NormalMeshError`."""
    try:
        return import_module(name)
    except ImportError as error:
        raise NormalMeshError(
            f"{title} is not installed or cannot be loaded ({error}); pip install 'normalmesh[{extra}]'"
        ) from error
