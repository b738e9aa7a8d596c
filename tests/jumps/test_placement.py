"""Offsets at which the faces of one mesh lie in the planes of another one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshes import point_mesh
from normalmesh import Orthographic, Perspective, ScreenMesh, pixel_faces
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.jumps.placement import _medians, placed_offsets
from normalmesh.mesh.jumps import Placement
from normalmesh.solvers.sparse_system import PreparedSystem
from surfaces import grid_mesh, plane_map

CAMERAS = [Orthographic(0.7), Perspective(60.0, 58.0, 19.0, 21.0, skew=1.0)]
SHAPE = (40, 40)


def offsets_of(mesh, normal_map):
    """Return the face means and the offsets (M,) of a mesh, up to a constant."""
    system = FacetSystem.of(FaceMeans.of(mesh, normal_map))
    return system.means, PreparedSystem(system.matrix()).solve(system.right_side()).x


def placement_of(mesh, normal_map):
    means, offsets = offsets_of(mesh, normal_map)
    return Placement(means.mesh, means.centroids, means.gradients, means.areas, offsets)


@pytest.mark.parametrize("camera", CAMERAS, ids=["orthographic", "perspective"])
@pytest.mark.parametrize("fine", [300, 20], ids=["fine", "coarse"])
def test_planes_of_the_same_surface_give_back_its_offsets(camera, fine):
    """A fine placement has centroids in each face, a coarse one leaves most faces without any."""
    normal_map = plane_map((0.4, -0.3, 0.9), SHAPE, camera)
    means, expected = offsets_of(point_mesh(SHAPE, 60, seed=1), normal_map)
    found, areas = placed_offsets(placement_of(point_mesh(SHAPE, fine), normal_map), means, SHAPE)
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=1e-5 * np.ptp(expected))
    assert (areas > 0).all()
    if fine > 60:
        assert areas.sum() == pytest.approx(40 * 40, rel=0.05)


def test_faces_take_the_median_of_the_planes_in_them():
    normal_map = plane_map((0, 0, 1), SHAPE)
    placement = placement_of(ScreenMesh.from_mask(np.ones(SHAPE, bool)), normal_map)
    offsets = np.where(placement.centroids[:, 0] < 27, 3.0, 8.0)
    means = FaceMeans.of(grid_mesh(2, 40), normal_map)
    found, areas = placed_offsets(replace(placement, offsets=offsets), means, SHAPE)
    owner = pixel_faces(means.mesh, SHAPE)
    columns = np.indices(SHAPE)[1]
    expected = [np.median(np.where(columns[owner == f] < 27, 3.0, 8.0)) for f in range(len(found))]
    assert found.tolist() == expected
    assert {3.0, 8.0} == set(expected)
    assert areas.tolist() == [np.count_nonzero(owner == f) for f in range(len(found))]


def test_nothing_holds_faces_beside_the_placement():
    normal_map = plane_map((0.2, 0, 1), SHAPE)
    mesh = point_mesh(SHAPE, 200)
    left = mesh.vertices[mesh.faces].mean(axis=1)[:, 0] < 20
    means = FaceMeans.of(grid_mesh(8, 40), normal_map)
    half = ScreenMesh(mesh.vertices, mesh.faces[left])
    _, areas = placed_offsets(placement_of(half, normal_map), means, SHAPE)
    assert (areas[means.centroids[:, 0] < 16] > 0).all()
    assert (areas[means.centroids[:, 0] > 27] == 0).all()


@pytest.mark.parametrize("camera", CAMERAS, ids=["orthographic", "perspective"])
@pytest.mark.parametrize("fine", [300, 20], ids=["fine", "coarse"])
def test_faces_of_a_window_are_placed_as_in_the_whole_image(camera, fine):
    normal_map = plane_map((0.4, -0.3, 0.9), SHAPE, camera)
    placement = placement_of(point_mesh(SHAPE, fine), normal_map)
    mesh = point_mesh(SHAPE, 200, seed=1)
    offsets, areas = placed_offsets(placement, FaceMeans.of(mesh, normal_map), SHAPE)
    corners = mesh.vertices[mesh.faces]
    inside = ((corners >= [6, 11]) & (corners <= [29, 40])).all(axis=(1, 2))
    rows, columns = slice(11, 40), slice(6, 29)
    own = ScreenMesh(mesh.vertices - [columns.start, rows.start], mesh.faces[inside])
    means = FaceMeans.of(own, normal_map.window(rows, columns))
    part = placement.window(rows, columns)
    assert len(part.offsets) < len(placement.offsets)
    found, found_areas = placed_offsets(part, means, (29, 23))
    np.testing.assert_allclose(found, offsets[inside], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found_areas, areas[inside], rtol=1e-12)
    assert 0 < np.count_nonzero(inside) < len(inside)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-5, 5), st.integers(1, 6)), max_size=25))
def test_medians_have_half_of_the_weight_at_or_below_them(rows):
    group, values, weights = np.array(rows, float).reshape(-1, 3).T
    found = _medians(values, weights, group.astype(np.int64), 5)
    for g in range(5):
        here = sorted((value, weight) for of, value, weight in rows if of == g)
        expected, below = 0.0, 0
        for value, weight in here:
            expected, below = value, below + weight
            if 2 * below >= sum(each for _, each in here):
                break
        assert found[g] == expected
