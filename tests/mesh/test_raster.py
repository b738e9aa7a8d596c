"""Every pixel centre has exactly one owner, whatever the vertex positions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.spatial import Delaunay

import naive
from normalmesh import NormalMeshError, ScreenMesh, pixel_faces
from normalmesh.mesh._predicates import orientation
from normalmesh.mesh._raster import edge, first_column, first_row
from normalmesh.mesh.raster import covered_pixels
from thread_counts import on_one_and_on_several

coordinates = st.one_of(
    st.floats(-1, 7).map(lambda x: x if abs(x) > 1e-100 else 0.0),
    st.integers(-2, 14).map(lambda k: k / 2),
    st.tuples(st.integers(-2, 14), st.sampled_from([-1e-15, 1e-15, 1e-16])).map(lambda t: t[0] / 2 + t[1]),
)


@given(arrays.arrays(np.float64, (3, 2), elements=coordinates))
def test_orientation_is_exact(points):
    assert orientation(*points.ravel()) == naive.orientation(*points)


@pytest.mark.parametrize("scale", [1.0, 1 / 3, 1e-8])
def test_orientation_near_a_line(scale):
    """Points a rounding error away from a line, where plain arithmetic gets signs wrong."""
    signs = set()
    for k in range(-8, 9):
        for m in range(-8, 9):
            points = np.array([[0.5 + k * 2**-53, 0.5 + m * 2**-53], [12.0, 12.0], [24.0, 24.0]]) * scale
            signs.add(orientation(*points.ravel()))
            assert orientation(*points.ravel()) == naive.orientation(*points)
    assert signs >= {-1, 1}


@given(arrays.arrays(np.float64, (3, 2), elements=coordinates))
def test_one_triangle_against_the_naive_twin(points):
    faces = np.array([[0, 1, 2]])
    assert np.array_equal(pixel_faces(ScreenMesh(points, faces), (6, 6)), naive.pixel_faces(points, faces, (6, 6)))


@given(arrays.arrays(np.float64, (7, 2), elements=st.integers(0, 24).map(lambda k: k / 4), unique=False))
def test_triangulations_against_the_naive_twin(points):
    points = np.unique(np.vstack([points, [[0, 0], [6, 0], [0, 6], [6, 6]]]), axis=0)
    mesh = _delaunay(points)
    owner = pixel_faces(mesh, (6, 6))
    assert np.array_equal(owner, naive.pixel_faces(mesh.vertices, mesh.faces, (6, 6)))
    assert (owner >= 0).all()


#: Steps of float64 by which ends of edges are off; most are none.
nudges = st.sampled_from([0, 0, 0, 1, -1, 3, -2])


@st.composite
def edges_through_centres(draw):
    """Edges, long and short, that pass through a pixel centre or just beside it, anywhere on a large map."""
    column, row = draw(st.sampled_from([0, 1, 4000, 29_990])), draw(st.sampled_from([0, 3, 29_990]))
    du, dv = draw(st.integers(-40_000, 40_000)), draw(st.integers(1, 40_000))
    share = draw(st.sampled_from([1.0, 1e-3, 1 / 3, 1e-6]))
    ends = []
    for turn in (-1, draw(st.sampled_from([1, 0.25, 1 / 7]))):
        u, v = column + 0.5 + turn * share * du, row + 0.5 + turn * share * dv
        ends.append((u + draw(nudges) * math.ulp(u), v + draw(nudges) * math.ulp(v)))
    return (*ends, row)


@given(edges_through_centres())
def test_columns_against_fractions(drawn):
    top, bottom, row = drawn
    rows = columns = 30_000
    for height in {first_row(top[1], rows), row, first_row(bottom[1], rows) - 1}:
        if first_row(top[1], rows) <= height < first_row(bottom[1], rows):
            (u, v), (end_u, end_v) = ([Fraction(x) for x in point] for point in (top, bottom))
            crossing = u + (height + Fraction(1, 2) - v) * (end_u - u) / (end_v - v)
            expected = min(max(math.ceil(crossing - Fraction(1, 2)), 0), columns)
            assert first_column(edge(top, bottom), height, columns) == expected


far_coordinates = st.tuples(st.integers(-1, 13), nudges).map(lambda t: (t[0] / 2, t[1] * math.ulp(30_000)))


@given(st.lists(st.tuples(far_coordinates, coordinates), min_size=3, max_size=3), st.booleans())
def test_far_triangles_against_the_naive_twin(corners, transposed):
    """Triangles with corners on and beside pixel centres, many of them slivers, 30 000 pixels from the origin."""
    points = np.array([[29_990 + half + nudge, other] for (half, nudge), other in corners])
    expected = np.full((6, 6), -1)
    if transposed:
        points = points[:, ::-1].copy()
    for i, j in np.ndindex(6, 6):
        u, v = (j + 0.5, i + 29_990.5) if transposed else (j + 29_990.5, i + 0.5)
        expected[i, j] = 0 if naive.owns(*points, u, v) else -1
    owner = pixel_faces(ScreenMesh(points, np.array([[0, 1, 2]])), (29_996, 6) if transposed else (6, 29_996))
    assert np.array_equal(owner[-6:, -6:], expected)


def test_a_fan_of_slivers_owns_every_centre_once():
    """Faces around a corner to all half-pixel points of the far sides: many edges run through pixel centres."""
    size = 40
    far = [(size, k / 2) for k in range(2 * size + 1)] + [(k / 2, size) for k in range(2 * size - 1, -1, -1)]
    points = np.array([(0, 0), *far], float)
    faces = np.array([(0, k + 1, k) for k in range(1, len(far))])
    alone = [pixel_faces(ScreenMesh(points, face[None]), (size, size)) == 0 for face in faces]
    assert np.array_equal(np.sum(alone, axis=0), np.ones((size, size)))
    mesh = ScreenMesh(points, faces)
    sample = pixel_faces(mesh, (size, size))[:6, :6]
    assert np.array_equal(sample, naive.pixel_faces(mesh.vertices, mesh.faces, (6, 6)))


def test_large_random_mesh_has_no_cracks():
    rng = np.random.default_rng(1)
    size = 300
    points = np.vstack([rng.uniform(0, size, (20000, 2)), [[0, 0], [size, 0], [0, size], [size, size]]])
    mesh = _delaunay(points)
    owner = pixel_faces(mesh, (size, size))
    assert (owner >= 0).all()
    i, j = np.indices(owner.shape)
    for k in range(3):
        a, b = mesh.vertices[mesh.faces[owner, k]], mesh.vertices[mesh.faces[owner, (k + 1) % 3]]
        side = (a[..., 1] - i - 0.5) * (b[..., 0] - j - 0.5) - (a[..., 0] - j - 0.5) * (b[..., 1] - i - 0.5)
        assert side.min() > -1e-9


def test_start_mesh():
    mask = np.random.default_rng(2).random((20, 30)) > 0.3
    owner = pixel_faces(ScreenMesh.from_mask(mask), mask.shape)
    assert np.array_equal(owner >= 0, mask)
    assert np.array_equal(owner[mask], 2 * np.arange(mask.sum()) + 1)


def test_faces_beyond_the_image():
    mesh = ScreenMesh(np.array([[-1e6, -1e6], [-1e6, 1e6], [1e6, 1e6], [1e6, -1e6]]), np.array([[0, 1, 2], [0, 2, 3]]))
    owner = pixel_faces(mesh, (3, 4))
    assert np.array_equal(owner, np.arange(4) >= np.arange(3)[:, None])


def test_inverted_faces_own_nothing():
    mesh = ScreenMesh(np.array([[0.0, 0], [0, 4], [4, 4]]), np.array([[0, 2, 1]]))
    assert (pixel_faces(mesh, (4, 4)) == -1).all()


def test_any_number_of_threads():
    mesh = ScreenMesh.from_mask(np.ones((50, 50)))
    assert np.array_equal(*on_one_and_on_several(lambda: pixel_faces(mesh, (50, 50))))


@pytest.mark.parametrize("shape", [(0, 3), (3,), (3, -1)])
def test_shapes_are_checked(shape):
    with pytest.raises(NormalMeshError, match="rows and columns"):
        pixel_faces(ScreenMesh.from_mask(np.ones((1, 1))), shape)


def _delaunay(points):
    """Return a triangulation without the degenerate slivers along its hull."""
    faces = Delaunay(points).simplices
    signs = np.array([naive.orientation(*points[face]) for face in faces])
    faces[signs < 0] = faces[signs < 0][:, ::-1]
    return ScreenMesh(points, faces[signs != 0])


def test_covered_pixels_are_those_with_a_face():
    mask = np.random.default_rng(3).random((40, 50)) > 0.4
    mesh = ScreenMesh.from_mask(mask)
    alone, shared = on_one_and_on_several(lambda: covered_pixels(mesh, mask.shape))
    assert np.array_equal(alone, mask)
    assert np.array_equal(shared, mask)
