"""Closed meshes: the corner table after collapses, flips and splits, and the outline without staircase."""

import numpy as np
import pytest

from meshes import assert_consistent, bumpy_map, disc, point_mesh, start_mesh
from normalmesh import ScreenMesh
from normalmesh.mesh._closed_mesh import (
    BOUNDARY,
    LOCKED,
    are_neighbours,
    boundary_neighbours,
    collapse_edge,
    flip_edge,
    split_edge,
    vertex_at,
)
from normalmesh.mesh._topology import next_corner, previous_corner
from normalmesh.mesh._validity import link_is_simple
from normalmesh.mesh.closed_mesh import MAX_SMOOTHING, ClosedMesh

MASKS = {
    "rectangle": np.ones((6, 7), bool),
    "ring": disc(14, 6.5) & ~disc(14, 2.5),
    "fragments": np.random.default_rng(3).random((8, 9)) > 0.4,
}


def closed(mask, locked=None):
    return ClosedMesh.from_screen(ScreenMesh.from_mask(mask), mask.shape, locked)


@pytest.mark.parametrize("name", MASKS)
def test_the_ghost_closes_the_boundary(name):
    mesh = closed(MASKS[name])
    assert_consistent(mesh)
    assert (mesh.opposite >= 0).all()
    ghosts = mesh.faces[mesh.real_faces :]
    assert (ghosts[:, 2] == mesh.ghost).all()
    assert (mesh.faces[: mesh.real_faces] != mesh.ghost).all()
    on_boundary = np.zeros(mesh.ghost, bool)
    on_boundary[ghosts[:, :2]] = True
    assert np.array_equal(mesh.flags & BOUNDARY != 0, on_boundary)
    assert np.array_equal(mesh.outline.point_of >= 0, on_boundary)
    assert np.array_equal(mesh.covered, MASKS[name])
    for vertex in np.flatnonzero(on_boundary):
        before, after = boundary_neighbours(vertex, mesh.arrays)
        point = mesh.outline.point_of[vertex]
        assert np.array_equal(mesh.outline.points[point], mesh.vertices[vertex])
        assert mesh.outline.next_point[point] == mesh.outline.point_of[after]
        assert mesh.outline.next_point[mesh.outline.point_of[before]] == point


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("seed", range(3))
def test_collapses_and_flips_keep_the_corner_table(name, seed):
    rng = np.random.default_rng(seed)
    mesh = closed(MASKS[name])
    mark, collapses, flips = np.zeros(mesh.ghost + 1, np.int32), 0, 0
    arrays = mesh.arrays
    for token in range(1, 150):
        corner = rng.integers(3 * mesh.real_faces)
        if mesh.faces[corner // 3, 0] < 0:
            continue
        a, b = vertex_at(next_corner(corner), mesh.faces), vertex_at(previous_corner(corner), mesh.faces)
        apex, far = vertex_at(corner, mesh.faces), vertex_at(mesh.opposite[corner], mesh.faces)
        if token % 2 and link_is_simple(a, b, arrays, mark, token):
            collapse_edge(corner, arrays)
            assert mesh.corner_of[b] == -1
            collapses += 1
        elif far != mesh.ghost and not are_neighbours(apex, far, arrays):
            flip_edge(corner, arrays)
            assert are_neighbours(apex, far, arrays)
            assert not are_neighbours(a, b, arrays)
            flips += 1
        else:
            continue
        assert_consistent(mesh)
    assert collapses > 3
    assert flips > 3


@pytest.mark.parametrize("name", MASKS)
def test_splits_keep_the_corner_table(name):
    rng = np.random.default_rng(0)
    mesh = closed(MASKS[name])
    vertices, real, total = mesh.ghost, mesh.real_faces, len(mesh.faces)
    vertex, face, ghost_face = mesh.reserve_for_splits(20)
    assert_consistent(mesh)
    assert (vertex, face) == (vertices, real)
    inner = outer = 0
    for corner in rng.integers(3 * real, size=15):
        a, b = vertex_at(next_corner(corner), mesh.faces), vertex_at(previous_corner(corner), mesh.faces)
        on_boundary = mesh.opposite[corner] // 3 >= mesh.real_faces
        mesh.vertices[vertex] = (mesh.vertices[a] + mesh.vertices[b]) / 2
        far = ghost_face if on_boundary else face + 1
        split_edge(corner, vertex, face, far, mesh.arrays)
        assert_consistent(mesh)
        assert not are_neighbours(a, b, mesh.arrays)
        face, ghost_face = (face + 1, ghost_face + 1) if on_boundary else (face + 2, ghost_face)
        inner, outer, vertex = inner + (not on_boundary), outer + on_boundary, vertex + 1
    assert min(inner, outer) > 0
    mesh.compact()
    assert len(mesh.vertices) == vertices + 15
    assert (mesh.real_faces, len(mesh.faces)) == (real + 2 * inner + outer, total + 2 * inner + 2 * outer)
    assert (mesh.faces[mesh.real_faces :, 2] == mesh.ghost).all()
    assert mesh.to_screen().areas.min() > 0
    assert np.isclose(mesh.to_screen().areas.sum(), MASKS[name].sum())


def test_copies_are_independent():
    mesh = closed(MASKS["ring"])
    other = mesh.copy()
    flip_edge(30, other.arrays)
    other.vertices[:] = 0
    other.covered[:] = False
    assert_consistent(mesh)
    assert mesh.vertices.any()
    assert np.array_equal(mesh.covered, MASKS["ring"])


def test_compact():
    mesh = closed(MASKS["ring"], np.arange(len(ScreenMesh.from_mask(MASKS["ring"]).vertices)) % 5 == 0)
    arrays = mesh.arrays
    mark = np.zeros(mesh.ghost + 1, np.int32)
    for token, corner in enumerate(range(0, 3 * mesh.real_faces, 7), start=1):
        if mesh.faces[corner // 3, 0] >= 0:
            a, b = vertex_at(next_corner(corner), mesh.faces), vertex_at(previous_corner(corner), mesh.faces)
            if link_is_simple(a, b, arrays, mark, token):
                collapse_edge(corner, arrays)
    alive = mesh.corner_of[:-1] >= 0
    assert not alive.all()
    vertices, flags, outline_of = mesh.vertices[alive], mesh.flags[alive], mesh.outline.point_of[alive]
    faces = mesh.faces[: mesh.real_faces]
    corners = mesh.vertices[faces[faces[:, 0] >= 0]]
    ghosts = np.count_nonzero(mesh.faces[mesh.real_faces :, 0] >= 0)
    mesh.compact()
    assert_consistent(mesh)
    assert np.array_equal(mesh.vertices, vertices)
    assert np.array_equal(mesh.flags, flags)
    assert np.array_equal(mesh.outline.point_of, outline_of)
    assert np.array_equal(mesh.vertices[mesh.faces[: mesh.real_faces]], corners)
    assert len(mesh.faces) == mesh.real_faces + ghosts
    assert (mesh.faces[mesh.real_faces :, 2] == mesh.ghost).all()
    assert (mesh.flags & LOCKED).any()


def test_any_mesh_can_be_closed():
    mesh = point_mesh((20, 30), 25)
    again = ClosedMesh.from_screen(mesh, (20, 30)).to_screen()
    assert np.array_equal(again.vertices, mesh.vertices)
    assert np.array_equal(again.faces, mesh.faces)


def test_the_corner_table_of_the_real_faces_is_handed_on():
    closed_mesh = closed(np.pad(np.ones((5, 7), bool), 1))
    handed_on = closed_mesh.to_screen()
    assert np.array_equal(handed_on.find_opposite(), ScreenMesh(handed_on.vertices, handed_on.faces).opposite)


def test_straight_sides_and_corners_are_not_smoothed():
    outline = closed(np.ones((9, 12), bool)).outline
    assert np.array_equal(outline.smooth, outline.points)


def test_a_staircase_becomes_a_line():
    outline = closed(np.tril(np.ones((30, 30), bool))).outline
    steps = outline.points[:, 0] - outline.points[:, 1]
    middle = (np.abs(outline.points[:, 0] - 15) < 10) & (np.abs(steps) <= 1)
    assert middle.sum() > 30
    offsets = outline.smooth[middle] @ [1, -1]
    assert np.allclose(offsets, 0.5, atol=0.03)


def test_fragments_do_not_shrink():
    mask = np.zeros((9, 9), bool)
    mask[1, 1] = mask[1, 4:6] = mask[5, 1:8] = True
    outline = start_mesh(bumpy_map((9, 9), mask=mask)).outline
    assert np.hypot(*(outline.smooth - outline.points).T).max() <= MAX_SMOOTHING + 1e-12
    assert not np.array_equal(outline.smooth, outline.points)
