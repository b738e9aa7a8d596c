"""Check means over the pixels of faces against a loop over pixels."""

import numpy as np
import pytest

import naive_integration
from meshes import bumpy_map, disc, point_mesh, two_faces
from normalmesh import NormalMap, Orthographic, Perspective, ScreenMesh, pixel_faces
from normalmesh.facets._face_means import COUNT, INVERSE
from normalmesh.facets.face_means import FaceMeans
from normalmesh.mesh._face_pixels import CAPACITY
from surfaces import plane_map

CAMERAS = [Orthographic(0.7), Perspective(30.0, 28.0, 12.0, 11.0, skew=1.0)]


def means_of(mesh, normal_map, samples=1):
    return FaceMeans.of(mesh, normal_map, samples)


def columns_of(means):
    """Return the columns that ``naive_integration.face_means`` computes."""
    tight, sides = means.tight_parameters
    table = means.table
    return np.column_stack(
        [table[:, COUNT], means.mean_normals, means.gradients, table[:, INVERSE], tight, sides, means.bulges]
    )


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
@pytest.mark.parametrize(("seed", "samples"), [(0, 1), (1, 1), (2, 2)])
def test_against_loops(camera, seed, samples):
    mask = np.random.default_rng(seed).random((24, 26)) > 0.3
    normal_map = bumpy_map(seed=seed, camera=camera, mask=mask, height=2.0)
    mesh = point_mesh(normal_map.shape, 150, seed)
    means = means_of(mesh, normal_map, samples)
    expected = naive_integration.face_means(mesh, normal_map, samples)
    np.testing.assert_allclose(columns_of(means), expected, rtol=1e-12, atol=1e-13)
    owned = np.bincount(pixel_faces(mesh, mask.shape)[mask], minlength=len(mesh.faces))
    assert (owned == 0).any(), "no face was empty"
    np.testing.assert_allclose(means.mobilities, 1 / expected[:, 6])
    np.testing.assert_allclose(np.linalg.norm(means.normals, axis=1), 1)
    np.testing.assert_allclose(means.areas, mesh.areas)
    np.testing.assert_allclose(means.centroids, mesh.vertices[mesh.faces].mean(axis=1))
    rays = camera.rays(*means.centroids.T)
    across = np.abs((means.normals * rays).sum(axis=1)) / np.linalg.norm(rays, axis=1)
    np.testing.assert_allclose(means.cosines, across, rtol=1e-9)


@pytest.mark.parametrize("camera", [Orthographic(0.3), Perspective(9000, 8000, 35, 30)], ids=str)
@pytest.mark.parametrize("shape", [(60, 70), (3, 2500), (1500, 2)])
def test_faces_larger_than_a_list_of_pixels(camera, shape):
    mask = np.random.default_rng(0).random(shape) > 0.1
    normal_map = bumpy_map(shape, camera=camera, mask=mask, height=0.5)
    mesh = two_faces(shape)
    table = columns_of(means_of(mesh, normal_map))
    assert table[:, 0].min() > CAPACITY
    np.testing.assert_allclose(table, naive_integration.face_means(mesh, normal_map), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
def test_faces_far_from_the_foreground_hardly_count(camera):
    mask = np.zeros((24, 26), bool)
    mask[2:6, 2:6] = True
    normal_map = bumpy_map(mask=mask, camera=camera)
    far = ScreenMesh(np.array([[20.0, 12], [20, 20], [25, 12]]), np.array([[0, 1, 2]], np.int32))
    near = ScreenMesh(np.array([[2.0, 2], [2, 6], [6, 2]]), np.array([[0, 1, 2]], np.int32))
    alone = means_of(far, normal_map)
    assert np.isfinite(alone.table).all()
    assert np.array_equal(alone.gradients, [[0, 0]])
    assert alone.cosines[0] == 1
    assert alone.mobilities[0] < 1e-5 * means_of(near, normal_map).mobilities[0]
    assert alone.normals[0] @ (camera.towards_viewer * camera.rays(65 / 3, 44 / 3)) > 0


def test_large_faces_take_pixel_centres():
    normal_map = bumpy_map((40, 40))
    mesh = point_mesh((40, 40), 8)
    large = mesh.areas >= 64
    assert large.any()
    assert not large.all()
    one, two = (columns_of(means_of(mesh, normal_map, samples)) for samples in (1, 2))
    assert np.array_equal(one[large], two[large])
    np.testing.assert_allclose(two, naive_integration.face_means(mesh, normal_map, 2), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("samples", [1, 2])
def test_slivers_between_rows_of_samples_own_nothing(samples):
    """Long faces that are lower than the distance of two rows of samples often own no sample."""
    normal_map = bumpy_map((24, 40), height=2.0)
    v = np.linspace(3.0, 20.0, 137)
    corners = np.stack([[np.full_like(v, u), v + up] for u, up in ((14.3, 0.0), (4.1, 0.1), (33.2, 0.3))])
    mesh = ScreenMesh(np.moveaxis(corners, 2, 0).reshape(-1, 2), np.arange(3 * len(v), dtype=np.int32).reshape(-1, 3))
    assert (mesh.areas > 0).all()
    # The faces overlap, so that each is compared on its own.
    alone = [ScreenMesh(mesh.vertices[face], np.array([[0, 1, 2]], np.int32)) for face in mesh.faces]
    expected = np.concatenate([naive_integration.face_means(each, normal_map, samples) for each in alone])
    assert (expected[:, 0] == 1).any()
    np.testing.assert_allclose(columns_of(means_of(mesh, normal_map, samples)), expected, rtol=1e-12, atol=1e-13)


def test_gradients_point_uphill():
    """The surface rises to the right and towards the top of the screen."""
    normals = np.broadcast_to(np.array([-0.5, -0.25, 1.0]) / np.linalg.norm([-0.5, -0.25, 1.0]), (4, 4, 3))
    means = means_of(ScreenMesh.from_mask(np.ones((4, 4))), NormalMap(normals.copy(), None, Orthographic(2.0)))
    np.testing.assert_allclose(means.gradients, np.tile([1.0, -0.5], (32, 1)), rtol=1e-6)


def test_disc_of_a_decimated_outline_has_no_empty_mean():
    normal_map = bumpy_map((60, 60), mask=disc())
    mesh = point_mesh((60, 60), 30)
    assert np.isfinite(means_of(mesh, normal_map).table).all()


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
def test_planes_do_not_bulge(camera):
    mask = np.random.default_rng(0).random((24, 26)) > 0.3
    means = means_of(point_mesh(mask.shape, 30), plane_map((0.2, 0.3, 1), mask.shape, camera, mask), 2)
    assert np.abs(means.gradients).min() > 1e-3
    assert np.abs(means.bulges).max() < 1e-12


def test_faces_of_one_pixel_do_not_bulge():
    means = means_of(point_mesh((24, 26), 600), bumpy_map(height=2.0))
    single = means.table[:, COUNT] == 1
    assert single.any()
    assert np.abs(means.bulges[single]).max() < 1e-13


def test_planes_alone_are_the_same():
    mask = np.zeros((24, 26), bool)
    mask[2:6, 2:6] = True
    normal_map = bumpy_map(mask=mask)
    mesh = point_mesh(normal_map.shape, 40)
    means, planes = means_of(mesh, normal_map), FaceMeans.of(mesh, normal_map, planes_only=True)
    for name in ("areas", "centroids", "gradients", "bulges", "mobilities"):
        assert np.array_equal(getattr(planes, name), getattr(means, name))
    assert planes.table.nbytes < means.table.nbytes / 2
