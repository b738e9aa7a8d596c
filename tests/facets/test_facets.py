"""Check the facet system against dense least squares."""

from dataclasses import replace

import numpy as np
import pytest

import naive_integration
from meshes import bumpy_map, point_mesh
from normalmesh import NormalMap, Orthographic, Perspective, ScreenMesh, pixel_faces
from normalmesh.facets.face_means import FaceMeans
from normalmesh.facets.facets import FacetSystem
from normalmesh.mesh.interpolation import barycentric_rows
from normalmesh.solvers.sparse_system import PreparedSystem
from surfaces import grid_mesh, waves

CAMERAS = [Orthographic(0.7), Perspective(30.0, 28.0, 12.0, 11.0, skew=1.0)]


def system_of(mesh, normal_map):
    return FacetSystem.of(FaceMeans.of(mesh, normal_map))


def two_parts(count=12):
    """Return two meshes side by side without a common vertex."""
    left = point_mesh((24, 12), count, seed=3)
    right = point_mesh((24, 12), count, seed=4)
    vertices = np.concatenate([left.vertices, right.vertices + np.array([13, 0])])
    return ScreenMesh(vertices, np.concatenate([left.faces, right.faces + np.int32(len(left.vertices))]))


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
@pytest.mark.parametrize("mesh", [point_mesh((24, 26), 30), two_parts()], ids=["one", "two"])
def test_against_dense_least_squares(camera, mesh):
    normal_map = bumpy_map(camera=camera)
    facets = system_of(mesh, normal_map)
    table = naive_integration.face_means(mesh, normal_map)
    offsets = PreparedSystem(facets.matrix()).solve(facets.right_side()).x
    perspective = isinstance(camera, Perspective)
    expected = naive_integration.facet_offsets(mesh, table, perspective)
    np.testing.assert_allclose(offsets, expected, atol=1e-7 * np.ptp(expected))
    np.testing.assert_allclose(
        facets.at_vertices(offsets),
        naive_integration.facets_at_vertices(mesh, table, offsets, perspective),
        atol=1e-10 * np.ptp(expected),
    )


def paraboloid(size):
    """Return the normal map of a saddle, of the same shape at any number of pixels a side, and its height at (u, v)."""
    v, u = (np.indices((size, size)) + 0.5) / size
    normals = np.stack([0.8 * u - 0.5 * v, 0.5 * u + 0.3 * v, np.ones_like(u)], axis=-1)
    normal_map = NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True))
    return normal_map, lambda u, v: -(0.4 * u * u - 0.5 * u * v - 0.15 * v * v) / size


def offsets_of(facets):
    return PreparedSystem(facets.matrix()).solve(facets.right_side()).x


def test_bulges_lead_to_the_means_of_faces():
    """On a paraboloid only the error of sampling is left, which falls with the size of pixels."""
    errors = []
    for size in (96, 384):
        normal_map, height = paraboloid(size)
        mesh = point_mesh((size, size), 20)
        facets = system_of(mesh, normal_map)
        offsets = offsets_of(facets)
        corners = mesh.vertices[mesh.faces]
        midpoints = (corners + np.roll(corners, 1, axis=1)) / 2
        # The midpoints of the edges integrate quadratic functions exactly.
        expected = height(*np.moveaxis(midpoints, 2, 0)).mean(axis=1)
        errors.append([np.std(found - expected) / size for found in (offsets, offsets + facets.means.bulges)])
    assert errors[0][1] < 0.3 * errors[0][0]
    assert errors[1][1] < 0.3 * errors[0][1]
    assert np.isclose(errors[1][0], errors[0][0], rtol=0.2)


@pytest.mark.parametrize("cells", [16, 24, 32])
def test_bulges_make_surfaces_more_accurate(cells):
    """Measured ratios of the errors of waves, whose curvature varies: 0.86, 0.85, 0.89."""
    normal_map, height = waves((128, 128))
    mesh = grid_mesh(cells, 128)
    facets = system_of(mesh, normal_map)
    offsets = offsets_of(facets)
    centres = np.argwhere(normal_map.mask)[:, ::-1] + 0.5
    rows = barycentric_rows(mesh, centres, pixel_faces(mesh, normal_map.shape).ravel())
    values = [facets.at_vertices(each) for each in (offsets, offsets - facets.means.bulges)]
    error, without = (np.std(rows @ each - height.ravel()) for each in values)
    assert error < 0.93 * without


def test_every_inner_edge_once():
    mesh = point_mesh((24, 26), 30)
    facets = system_of(mesh, bumpy_map())
    expected = {frozenset(edge[2:]) for edge in naive_integration.inner_edges(mesh.faces)}
    assert {frozenset(pair) for pair in facets.pairs.tolist()} == expected
    assert len(facets.pairs) == len(expected)


@pytest.mark.parametrize("mesh", [point_mesh((24, 26), 300), two_parts()], ids=["one", "two"])
def test_matrix_and_right_side_from_their_definition(mesh):
    facets = system_of(mesh, bumpy_map())
    count = len(mesh.faces)
    expected, right_side = np.zeros((count, count)), np.zeros(count)
    for (f, g), step, weight in zip(facets.pairs, facets.steps, facets.weights, strict=True):
        expected[[f, g], [f, g]] += weight
        expected[[f, g], [g, f]] -= weight
        right_side[[f, g]] += weight * step * np.array([-1, 1])
    matrix = facets.matrix()
    assert matrix.has_canonical_format
    np.testing.assert_allclose(matrix.toarray(), expected, rtol=1e-14)
    np.testing.assert_allclose(facets.right_side(), right_side, atol=1e-14 * np.abs(right_side).max())


def test_rows_of_some_faces_get_other_weights():
    mesh = point_mesh((24, 26), 300)
    facets = system_of(mesh, bumpy_map())
    rng = np.random.default_rng(0)
    changed = rng.random(len(facets.pairs)) < 0.2
    other = replace(facets, weights=np.where(changed, rng.random(len(changed)), facets.weights))
    matrix, right_side = facets.matrix(), facets.right_side()
    facets.reweigh(np.unique(facets.pairs[changed]).astype(np.int64), other.weights, matrix, right_side)
    assert np.array_equal(matrix.indices, other.matrix().indices)
    assert np.array_equal(matrix.data, other.matrix().data)
    assert np.array_equal(right_side, other.right_side())

    facets.reweigh(np.array([5, 3]), facets.weights, matrix, right_side)
    mixed = other.matrix().toarray()
    mixed[[3, 5]] = facets.matrix().toarray()[[3, 5]]
    assert np.array_equal(matrix.toarray(), mixed)


def test_prior_rows_are_the_surface_that_comes_out():
    """The rows interpolate the vertices, which are means of several planes, not the plane of one face."""
    mesh = point_mesh((24, 26), 30)
    facets = system_of(mesh, bumpy_map())
    offsets = np.random.default_rng(0).normal(size=len(mesh.faces))
    shares, faces = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]]), np.array([7, 3], np.int32)
    screen = np.einsum("kc,kcd->kd", shares, mesh.vertices[mesh.faces[faces]])
    rows, known = facets.prior_rows(screen, faces)
    expected = (shares * facets.at_vertices(offsets)[mesh.faces[faces]]).sum(axis=1)
    np.testing.assert_allclose(rows @ offsets + known, expected)


def test_a_face_alone():
    mesh = ScreenMesh(np.array([[2.0, 2], [2, 9], [9, 2]]), np.array([[0, 1, 2]], np.int32))
    facets = system_of(mesh, bumpy_map())
    assert facets.matrix().toarray().tolist() == [[0.0]]
    assert facets.right_side().tolist() == [0.0]
    gradient = facets.means.gradients[0]
    found = np.diff(facets.at_vertices(np.zeros(1)))
    np.testing.assert_allclose(found, [7 * gradient[1], 7 * (gradient @ [1, -1])])
