"""Quadrics from pixels, against their naive twins."""

import numpy as np
import pytest

import naive
from meshes import two_faces
from normalmesh import NormalMap, Orthographic, Perspective, ScreenMesh, pixel_faces
from normalmesh.decimation._edge_collapse import Quadric, evaluate, merge_quadrics
from normalmesh.decimation.collapse import collapse
from normalmesh.decimation.quadrics import FaceRecords, Pixels, vertex_quadrics
from normalmesh.mesh._face_pixels import CAPACITY
from normalmesh.mesh.closed_mesh import ClosedMesh

CAMERAS = [Orthographic(), Orthographic(0.3), Perspective(30, 28, 9, 8, skew=0.5)]


def random_map(camera, seed=0, shape=(12, 14), holes=0.1):
    rng = np.random.default_rng(seed)
    normals = rng.normal(0, 0.25, (*shape, 3)) * [1, 1, 0] + [0, 0, 1]
    return NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True), rng.random(shape) > holes, camera)


def coarse_mesh(normal_map, vertices=40):
    """Return a closed mesh with faces of many, one and no pixel centres."""
    mesh = ClosedMesh.from_screen(ScreenMesh.from_mask(normal_map.mask), normal_map.shape)
    collapse(mesh, Pixels(normal_map), target=vertices)
    return mesh


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
@pytest.mark.parametrize("coarse", [False, True])
def test_face_records(camera, coarse):
    normal_map = random_map(camera)
    mesh = (
        coarse_mesh(normal_map)
        if coarse
        else ClosedMesh.from_screen(ScreenMesh.from_mask(normal_map.mask), normal_map.shape)
    )
    records = FaceRecords(mesh)
    records.renew(mesh, Pixels(normal_map))
    owner = np.where(normal_map.mask, pixel_faces(mesh.to_screen(), normal_map.shape), -1)
    empty = 0
    for f in range(mesh.real_faces):
        corners = mesh.vertices[mesh.faces[f]]
        pixels = np.argwhere(owner == f)
        if len(pixels) == 0:
            empty += 1
            pixels = [naive.nearest_pixel(normal_map.mask, corners.mean(axis=0))]
        expected = naive.face_record(corners, pixels, normal_map, 1e-5)
        assert np.allclose(records.table[f], expected, rtol=1e-9, atol=1e-9)
    assert empty > 0


@pytest.mark.parametrize("camera", [Orthographic(0.3), Perspective(3000, 2800, 35, 30)], ids=str)
@pytest.mark.parametrize("shape", [(60, 70), (3, 2500), (1500, 2)])
def test_faces_larger_than_a_list_of_pixels(camera, shape):
    normal_map = random_map(camera, shape=shape)
    mesh = ClosedMesh.from_screen(two_faces(shape), shape)
    records = FaceRecords(mesh)
    records.renew(mesh, Pixels(normal_map))
    owner = np.where(normal_map.mask, pixel_faces(mesh.to_screen(), shape), -1)
    assert np.bincount(owner[normal_map.mask]).min() > CAPACITY
    for f in range(mesh.real_faces):
        expected = naive.face_record(mesh.vertices[mesh.faces[f]], np.argwhere(owner == f), normal_map, 1e-5)
        np.testing.assert_allclose(records.table[f], expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
def test_vertex_quadrics(camera):
    normal_map = random_map(camera)
    mesh = coarse_mesh(normal_map)
    pixels = Pixels(normal_map)
    records = FaceRecords(mesh)
    records.renew(mesh, pixels)
    quadrics = vertex_quadrics(mesh, pixels, records)
    faces = mesh.faces[: mesh.real_faces]
    for vertex in range(len(mesh.vertices)):
        around = np.flatnonzero((faces == vertex).any(axis=1))
        expected = naive.vertex_quadric(
            mesh.vertices[vertex], mesh.vertices[faces[around]], records.table[around], normal_map.camera
        )
        assert np.allclose(quadrics[vertex], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
def test_start_meshes_need_no_records(camera):
    normal_map = random_map(camera)
    mesh = ClosedMesh.from_screen(ScreenMesh.from_mask(normal_map.mask), normal_map.shape)
    pixels = Pixels(normal_map)
    records = FaceRecords(mesh)
    records.renew(mesh, pixels)
    np.testing.assert_array_equal(vertex_quadrics(mesh, pixels), vertex_quadrics(mesh, pixels, records))


def test_a_plane_has_no_cost_but_that_of_the_regularisation():
    normals = np.broadcast_to(np.array([0.3, -0.2, 0.9]) / np.sqrt(0.94), (8, 8, 3))
    normal_map = NormalMap(normals)
    mesh = ClosedMesh.from_screen(ScreenMesh.from_mask(normal_map.mask), normal_map.shape)
    quadrics = vertex_quadrics(mesh, Pixels(normal_map, 1e-12))
    assert np.abs(quadrics).max() < 1e-10


def test_costs_are_in_pixels_for_both_cameras():
    """A far camera with a long lens sees what an orthographic one sees."""
    rng = np.random.default_rng(1)
    normals = rng.normal(0, 0.3, (10, 10, 3)) * [1, 1, 0] + [0, 0, 1]
    near = NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True))
    far = NormalMap(near.normals, camera=Perspective(1e7, 1e7, 5, 5))
    large = NormalMap(near.normals, camera=Orthographic(25.4))
    meshes = [ClosedMesh.from_screen(ScreenMesh.from_mask(m.mask), m.shape) for m in (near, far, large)]
    quadrics = [vertex_quadrics(mesh, Pixels(m)) for mesh, m in zip(meshes, (near, far, large), strict=True)]
    assert np.allclose(quadrics[0], quadrics[1], rtol=1e-4, atol=1e-6)
    assert np.allclose(quadrics[0], quadrics[2], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("far", [(8000, 0), (0, 8000)])
def test_far_from_the_origin_no_digits_are_lost(far):
    """The same patch at the origin and 8000 pixels away has the same quadrics."""
    patch = random_map(Orthographic(), holes=0)
    widths = ((far[0], 0), (far[1], 0))
    moved = NormalMap(np.pad(patch.normals, (*widths, (0, 0))), np.pad(patch.mask, widths))
    here, there = (
        vertex_quadrics(ClosedMesh.from_screen(ScreenMesh.from_mask(m.mask), m.shape), Pixels(m))
        for m in (patch, moved)
    )
    assert np.allclose(here, there, rtol=1e-9, atol=1e-13)


def test_merging_conserves_the_sum():
    rng = np.random.default_rng(2)
    vertices = rng.normal(size=(2, 2))
    quadrics = rng.normal(size=(2, 6))
    places = rng.normal(size=(5, 2))
    before = [sum(evaluate(Quadric(*quadrics[k]), *(place - vertices[k])) for k in range(2)) for place in places]
    merge_quadrics(0, 1, 0.3, -0.7, vertices, quadrics)
    after = [evaluate(Quadric(*quadrics[0]), *(place - [0.3, -0.7])) for place in places]
    assert np.allclose(before, after)
