"""Test surfaces as meshes of other libraries, and their meshes as surfaces."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

from normalmesh import NormalMeshError, Orthographic, Perspective, Surface
from normalmesh.mesh.screen_mesh import ScreenMesh

LIBRARIES = {"trimesh": "to_trimesh", "open3d": "to_open3d", "pyvista": "to_pyvista", "meshio": "to_meshio"}
CAMERAS = [Orthographic(0.5), Perspective(40, 44, 10.5, 8, skew=2)]


def library(name):
    # Open3D needs system libraries that may be missing: then it is an ImportError, but not of a missing module.
    return pytest.importorskip(name, exc_type=ImportError)


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def made(camera=CAMERAS[0]):
    """Return a surface of 3 × 4 vertices that is neither flat nor symmetric."""
    v, u = np.mgrid[1:9:3j, 2:14:4j]
    screen = np.stack([u.ravel(), v.ravel()], axis=1)
    a = np.array([i * 4 + j for i in range(2) for j in range(3)])
    faces = np.concatenate([np.stack([a, a + 4, a + 5], axis=1), np.stack([a, a + 5, a + 1], axis=1)])
    unknown = np.sin(0.3 * screen[:, 0]) + 0.1 * screen[:, 1]
    return Surface.from_unknown(ScreenMesh(screen, faces.astype(np.int32)), unknown, camera, (10, 16), "mm")


@pytest.mark.parametrize("camera", CAMERAS)
@pytest.mark.parametrize("name", LIBRARIES)
def test_there_and_back(name, camera):
    library(name)
    surface = made(camera)
    mesh = getattr(surface, LIBRARIES[name])()
    again = Surface.from_mesh(mesh, camera, surface.shape)
    np.testing.assert_array_equal(again.vertices, surface.vertices)
    np.testing.assert_array_equal(again.faces, surface.faces)
    np.testing.assert_allclose(again.screen, surface.screen, atol=1e-12)
    np.testing.assert_allclose(again.depth_map(), surface.depth_map())
    assert again.units == ("mm" if name == "trimesh" else "px")


def test_normals_and_texture_coordinates_are_those_of_the_surface():
    open3d, pyvista = library("open3d"), library("pyvista")
    library("meshio")
    surface = made()
    normals, places = surface.vertex_normals, surface.texture_coordinates
    ours = surface.to_trimesh()
    np.testing.assert_allclose(ours.vertex_normals, normals)
    np.testing.assert_array_equal(ours.visual.uv, places)
    mesh = surface.to_open3d()
    assert isinstance(mesh, open3d.geometry.TriangleMesh)
    np.testing.assert_array_equal(np.asarray(mesh.vertex_normals), normals)
    np.testing.assert_array_equal(np.asarray(mesh.triangle_uvs), places[surface.faces].reshape(-1, 2))
    data = surface.to_pyvista()
    assert isinstance(data, pyvista.PolyData)
    np.testing.assert_array_equal(data.point_normals, normals)
    np.testing.assert_array_equal(data.active_texture_coordinates, places)
    np.testing.assert_array_equal(surface.to_meshio().point_data["Normals"], normals)


@pytest.mark.parametrize("name", ["trimesh", "pyvista", "meshio"])
def test_meshes_are_copies(name):
    library(name)
    surface, before = made(), made().vertices
    mesh = getattr(surface, LIBRARIES[name])()
    (mesh.vertices if name == "trimesh" else mesh.points)[:] = 7
    np.testing.assert_array_equal(surface.vertices, before)


def test_arrays_go_into_other_libraries():
    surface = made()
    trimesh = library("trimesh")
    assert len(trimesh.Trimesh(surface.vertices, surface.faces, process=False).faces) == 12
    vectors = library("open3d").utility
    assert len(vectors.Vector3dVector(surface.vertices)) == 12
    assert len(vectors.Vector3iVector(surface.faces)) == 12
    assert library("pyvista").PolyData.from_regular_faces(surface.vertices, surface.faces).n_cells == 12


@pytest.mark.parametrize(
    "name", ["vertices", "faces", "screen", "components", "face_normals", "vertex_normals", "texture_coordinates"]
)
def test_arrays_are_tensors(name):
    array = getattr(made(), name)
    tensor = library("torch").from_numpy(array)
    tensor += 1  # memory is shared, without a copy
    assert array.flat[0] == tensor.ravel()[0]


def test_vertices_may_stand_out_of_the_image_a_little():
    corners = np.array([[0.0, 0, 0], [14.001, 0, 0], [0, -9.001, 0]])
    assert Surface.from_mesh((corners, [[0, 2, 1]])).shape == (9, 14)
    assert Surface.from_mesh((1.1 * corners, [[0, 2, 1]])).shape == (10, 16)


def test_other_kinds_of_meshes(tmp_path):
    open3d = library("open3d")
    surface = made()
    surface.save(tmp_path / "surface.obj")
    tensors = open3d.t.geometry.TriangleMesh.from_legacy(surface.to_open3d())
    backs = (surface.vertices, surface.faces[:, ::-1])
    for mesh in (tmp_path / "surface.obj", tensors, backs):
        again = Surface.from_mesh(mesh, surface.camera)
        np.testing.assert_allclose(again.vertices, surface.vertices, rtol=1e-6)
        np.testing.assert_allclose(again.face_normals.mean(axis=0), surface.face_normals.mean(axis=0), atol=1e-6)
        assert again.shape == (9, 14)  # of the smallest image


@pytest.mark.parametrize(
    ("mesh", "camera", "message"),
    [
        (3, None, "mesh must be a mesh of trimesh, Open3D, PyVista or meshio"),
        ("missing.ply", None, "missing.ply: there is no such file"),
        (([[0, 0]], [[0, 0, 0]]), None, r"vertices of the mesh must have the shape \(N, 3\), not 1×2"),
        (([[0, 0, 0]], [[0, 0, 1]]), None, "faces name vertices 0 to 1, but there are 1"),
        (([[0, 0, 1]], [[0, 0, 0]]), CAMERAS[1], "mesh must be in front of the camera"),
        (([[1, -1, 0]], [[0, 0, 0]]), "orthographic", "camera must be"),
    ],
)
def test_meshes_that_are_refused(mesh, camera, message):
    with pytest.raises(NormalMeshError, match=message):
        Surface.from_mesh(mesh, camera)


def test_faces_that_are_no_triangles_are_refused():
    meshio, pyvista = library("meshio"), library("pyvista")
    points = np.array([[1.0, -1, 0], [2, -1, 0], [2, -2, 0], [1, -2, 0]])
    with pytest.raises(NormalMeshError, match="triangles, but has quad: triangulate it"):
        Surface.from_mesh(meshio.Mesh(points, [("quad", [[0, 1, 2, 3]]), ("triangle", [[0, 1, 2]])]))
    with pytest.raises(NormalMeshError, match="must be a mesh of trimesh, Open3D, PyVista"):
        Surface.from_mesh(pyvista.ImageData(dimensions=(4, 4, 1)))


@pytest.mark.parametrize(("name", "extra"), [("open3d", "open3d"), ("pyvista", "view3d"), ("meshio", "meshio")])
def test_the_error_names_the_extra(monkeypatch, name, extra):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NormalMeshError, match=rf"pip install 'normalmesh\[{extra}\]'"):
        getattr(made(), LIBRARIES[name])()
