"""Check that tidying removes bad faces, and keeps meshes valid, outlines, locked vertices and pixels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

import naive_integration
from meshes import assert_consistent, bumpy_map, disc, point_mesh
from normalmesh import NormalMap, Orthographic, Perspective, ScreenMesh, decimate, pixel_faces, reconstruct
from normalmesh.integration.tidying import judged, tidy
from normalmesh.mesh.closed_mesh import ClosedMesh
from surfaces import plane_map, waves
from thread_counts import on_one_and_on_several

CAMERAS = [Orthographic(0.7), Perspective(60.0, 58.0, 12.0, 11.0, skew=1.0)]


def closed(mesh, shape, locked=None):
    return ClosedMesh.from_screen(mesh, shape, locked)


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
def test_costs_and_bad_areas_against_loops(camera):
    mask = np.random.default_rng(0).random((24, 26)) > 0.2
    normal_map = bumpy_map(mask=mask, camera=camera, height=1.0)
    mesh = point_mesh(normal_map.shape, 150)
    # Depths as rough as the angles of the kernel are exact: up to right angles.
    unknown = np.random.default_rng(1).normal(0, 0.5 if not camera.is_central else 0.01, len(mesh.vertices))
    state = judged(closed(mesh, normal_map.shape), unknown, normal_map)
    expected = [naive_integration.cost_and_bad_area(mesh, f, unknown, normal_map) for f in range(len(mesh.faces))]
    costs, bad = np.array(expected).T
    assert 20 < np.count_nonzero(bad) < 0.8 * len(bad)
    np.testing.assert_allclose(state.bad, bad, rtol=1e-6)
    np.testing.assert_allclose(state.costs, costs, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize(("tilt", "bad"), [(25, True), (40, True), (55, False)])
def test_a_face_across_a_crease_is_not_bad_if_its_pixels_scatter_as_far(tilt, bad):
    """Two planes meet in a crease, each at ``tilt`` degrees to its mean; the faces stand at 50° to it, along it."""
    slope = np.tan(np.radians(tilt))
    normals = np.zeros((20, 20, 3))
    normals[:, :10], normals[:, 10:] = (-slope, 0, 1), (slope, 0, 1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    normal_map = NormalMap(normals, None, Orthographic())
    vertices = np.array([[0, 0], [20, 0], [10, 20]], float)
    mesh = closed(ScreenMesh(vertices, np.array([[0, 2, 1]], np.int32)), (20, 20))
    unknown = np.tan(np.radians(50)) * vertices[:, 1]
    assert (judged(mesh, unknown, normal_map).bad > 0) == bad


def test_a_spike_is_removed():
    """All faces of one vertex, whose depth is wrong, are bad on a plane."""
    normal_map = plane_map((0.3, -0.2, 1), (40, 40))
    mesh = point_mesh((40, 40), 80)
    unknown = -0.3 * mesh.vertices[:, 0] - 0.2 * mesh.vertices[:, 1]
    spike = int(np.argmin(np.linalg.norm(mesh.vertices - 20, axis=1)))
    unknown[spike] += 40
    tidied = tidy(closed(mesh, (40, 40)), unknown, normal_map)
    assert tidied.collapses > 0
    assert spike not in tidied.kept
    again = judged(tidied.mesh, tidied.unknown, normal_map)
    assert again.bad.max() == 0
    assert np.array_equal(tidied.costs, again.costs)


def test_a_sound_mesh_is_left_alone():
    normal_map, height = waves((48, 48))
    mesh = decimate(normal_map, vertices=150)
    rows, columns = np.clip(mesh.vertices.astype(int), 0, 47).T[::-1]
    before = closed(mesh, (48, 48))
    unknown = height[rows, columns]
    tidied = tidy(before, unknown, normal_map)
    assert tidied.changes == 0
    assert tidied.mesh is before
    assert np.array_equal(tidied.mesh.faces[: len(mesh.faces)], mesh.faces)
    assert np.array_equal(tidied.unknown, unknown)


def test_correlated_noise_makes_no_needles():
    """No face stands more than 30° off the normals of a smooth belly, but for their noise of 6°.

    The belly is nowhere steeper than 51°. Noise that is blurred over pixels is no gradient: thin faces, of few pixels,
    which weigh little, would take up the rest.
    """
    x, y = (np.indices((128, 128)) + 0.5 - 64)[::-1] / np.array([[[80.0]], [[-80.0]]])
    clean = np.stack([x, y, np.sqrt(np.maximum(1 - x**2 - y**2, 0.1))], axis=-1)
    off = 0
    for seed in range(5):
        noise = ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=clean.shape), (2, 2, 0))
        normals = clean + np.radians(6) * noise / noise.std()
        normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
        surface = reconstruct(NormalMap(normals, disc(128, 62)), vertices=450, discontinuities=False)
        a, b, c = (surface.vertices[surface.faces[:, k]] for k in range(3))
        columns, rows = surface.screen[surface.faces].mean(axis=1).astype(int).T
        across = np.cross(b - a, c - a)
        lengths = np.linalg.norm(across, axis=1) * np.linalg.norm(clean[rows, columns], axis=1)
        off += np.count_nonzero((across * clean[rows, columns]).sum(axis=1) < np.cos(np.radians(36)) * lengths)
    assert off == 0


def rough_case(seed, count=150, lock=0.1):
    """Return a mesh of a disc with rough depths and some locked vertices, its depths, and its normal map."""
    normal_map = bumpy_map((48, 48), seed, mask=disc(48, 22))
    mesh = decimate(normal_map, vertices=count)
    rng = np.random.default_rng(seed)
    locked = rng.random(len(mesh.vertices)) < lock
    return mesh, locked, rng.normal(0, 1.5, len(mesh.vertices)), normal_map


@given(st.integers(0, 10_000))
def test_tidying_keeps_what_it_must(seed):
    mesh, locked, unknown, normal_map = rough_case(seed)
    start = closed(mesh, normal_map.shape, locked)
    before, boundary = judged(start, unknown, normal_map), start.flags & 1 > 0
    cost, bad = before.costs.sum(), before.bad.sum()
    tidied = tidy(start, unknown, normal_map)
    assert tidied.flips > 0
    assert_consistent(tidied.mesh)
    after = tidied.mesh.to_screen()
    assert after.check().ok, str(after.check())
    assert len(after.check().boundary_loops) == len(mesh.check().boundary_loops)
    now = judged(tidied.mesh, tidied.unknown, normal_map)
    assert now.costs.sum() < cost
    assert now.bad.sum() < bad
    # Vertices keep their values, and those that are locked or at the boundary their places.
    assert np.array_equal(tidied.unknown, unknown[tidied.kept])
    assert np.isin(np.flatnonzero(locked), tidied.kept).all()
    fixed = (locked | boundary)[tidied.kept]
    assert np.array_equal(after.vertices[fixed], mesh.vertices[tidied.kept][fixed])
    assert np.isin(np.flatnonzero(boundary), tidied.kept).all()
    # Every foreground pixel keeps a face.
    covered = pixel_faces(mesh, normal_map.shape) >= 0
    assert not (normal_map.mask & covered & (pixel_faces(after, normal_map.shape) < 0)).any()


def test_threads_and_repetition_make_no_difference_to_tidying():
    mesh, locked, unknown, normal_map = rough_case(3)
    alone, together = on_one_and_on_several(lambda: tidy(closed(mesh, normal_map.shape, locked), unknown, normal_map))
    assert alone.collapses > 0
    assert np.array_equal(alone.mesh.faces, together.mesh.faces)
    assert np.array_equal(alone.kept, together.kept)
