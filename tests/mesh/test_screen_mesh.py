"""The start mesh and its topology."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import ndimage

import naive
from normalmesh import NormalMeshError, ScreenMesh

masks = arrays.arrays(np.bool_, st.tuples(st.integers(1, 9), st.integers(1, 9))).filter(np.any)


@given(masks)
def test_every_pixel_is_covered_by_a_valid_mesh(mask):
    mesh = ScreenMesh.from_mask(mask)
    assert mesh.vertices.dtype == np.float64
    assert mesh.faces.dtype == np.int32
    assert mesh.check().ok, str(mesh.check())
    assert np.allclose(mesh.areas, 0.5)
    pixels = np.floor(mesh.vertices[mesh.faces].mean(axis=1)).astype(int)
    covered = np.zeros(mask.shape, int)
    np.add.at(covered, (pixels[:, 1], pixels[:, 0]), 1)
    assert np.array_equal(covered, 2 * mask)


@given(masks)
def test_components_and_holes_are_those_of_the_mask(mask):
    check = ScreenMesh.from_mask(mask).check()
    _, components = ndimage.label(mask)
    _, background = ndimage.label(~np.pad(mask, 1), structure=np.ones((3, 3)))
    assert check.components == components
    assert check.holes.sum() == background - 1
    assert np.array_equal(check.euler_characteristics, 1 - check.holes)


def test_diagonal_touch_is_split():
    mesh = ScreenMesh.from_mask(np.eye(2, dtype=bool))
    assert len(mesh.vertices) == 8
    assert mesh.check().components == 2
    assert np.array_equal(mesh.components, [0, 0, 0, 0, 1, 1, 1, 1])
    ring = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 0]], bool)
    check = ScreenMesh.from_mask(ring).check()
    assert check.ok
    assert list(check.holes) == [0], "the hole opens to the outside through the diagonal gap"


def test_one_pixel():
    mesh = ScreenMesh.from_mask(np.ones((1, 1)))
    assert np.array_equal(mesh.vertices, [[0, 0], [1, 0], [0, 1], [1, 1]])
    assert str(mesh.check()) == "valid mesh: 1 component, 0 holes"


meshes = st.integers(3, 7).flatmap(
    lambda count: st.tuples(
        arrays.arrays(np.float64, (count, 2), elements=st.integers(0, 3).map(float)),
        st.lists(
            st.permutations(range(count)).map(lambda order: order[:3]), min_size=1, max_size=8, unique_by=frozenset
        ),
    )
)


@given(meshes)
def test_checks_find_what_the_naive_twin_finds(mesh):
    vertices, faces = mesh
    check = ScreenMesh(vertices, np.array(faces)).check()
    expected = naive.mesh_faults(vertices, faces)
    found = (
        check.inverted_faces,
        check.degenerate_faces,
        check.non_manifold_edges,
        check.misoriented_edges,
        check.non_manifold_vertices,
    )
    assert found == expected
    assert check.unused_vertices == len(vertices) - len(np.unique(faces))


@given(masks)
def test_corner_table_joins_the_two_sides_of_an_edge(mask):
    mesh = ScreenMesh.from_mask(mask)
    corners = np.arange(3 * len(mesh.faces))
    vertex_of = mesh.faces.ravel()
    start = vertex_of[corners - corners % 3 + (corners + 1) % 3]
    end = vertex_of[corners - corners % 3 + (corners + 2) % 3]
    inner = mesh.opposite >= 0
    assert np.array_equal(start[inner], end[mesh.opposite[inner]])
    assert np.array_equal(end[inner], start[mesh.opposite[inner]])
    edges = {frozenset(edge) for edge in zip(start.tolist(), end.tolist(), strict=True)}
    assert len(edges) == inner.sum() / 2 + (~inner).sum()


def test_high_valence():
    """A wheel whose hub has more edges than the insertion sort of the corner table takes."""
    angles = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    vertices = np.vstack([[0, 0], np.column_stack([np.cos(angles), -np.sin(angles)])])
    rim = np.arange(200)
    check = ScreenMesh(vertices, np.column_stack([np.zeros(200, int), 1 + rim, 1 + (rim + 1) % 200])).check()
    assert check.ok
    assert list(check.boundary_loops) == [1]


def test_problems_are_reported():
    square = np.array([[0, 0], [0, 1], [1, 1], [1, 0], [5, 5]], float)
    check = ScreenMesh(square, np.array([[0, 2, 1], [0, 2, 3]])).check()
    assert not check.ok
    assert str(check).startswith("invalid mesh: 1 inverted face, 1 edge with two faces of opposite orientation")


@pytest.mark.parametrize(
    ("vertices", "faces", "message"),
    [
        (np.zeros((3, 3)), np.zeros((1, 3), int), r"vertices must have the shape \(N, 2\), not 3×3"),
        (np.zeros((3, 2)), np.zeros((1, 4), int), r"faces must have the shape \(M, 3\), not 1×4"),
        (np.zeros((3, 2)), np.zeros((1, 3)), "faces must be integers"),
        (np.zeros((3, 2)), np.array([[0, 1, 3]]), "faces name vertices 0 to 3, but there are 3 vertices"),
        (np.full((3, 2), np.nan), np.array([[0, 1, 2]]), "finite"),
    ],
)
def test_wrong_arrays_are_refused(vertices, faces, message):
    with pytest.raises(NormalMeshError, match=message):
        ScreenMesh(vertices, faces)


@pytest.mark.parametrize("mask", [np.zeros((3, 3)), np.ones(3), np.ones((0, 4))])
def test_useless_masks_are_refused(mask):
    with pytest.raises(NormalMeshError, match="mask"):
        ScreenMesh.from_mask(mask)


def test_arrays_are_read_only():
    mesh = ScreenMesh.from_mask(np.ones((2, 2)))
    with pytest.raises(ValueError, match="read-only"):
        mesh.vertices[0] = 1
