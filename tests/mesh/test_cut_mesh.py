"""Cutting a mesh along edges."""

import numpy as np

from meshes import point_mesh
from normalmesh import ScreenMesh
from normalmesh.mesh.cut_mesh import CLEAR, CUT, CutMesh, following, preceding, without_isolated_cuts
from surfaces import grid_mesh


def inner_corners(mesh):
    return np.flatnonzero(mesh.opposite > np.arange(len(mesh.opposite)))


def ends(mesh, corners):
    vertex = mesh.faces.ravel()
    return np.stack([vertex[following(corners)], vertex[preceding(corners)]], axis=1)


def naive_fans(mesh, corners, cut):
    """Return sets of corners of the same vertex whose faces an uncut edge joins there."""
    groups = {corner: {corner} for corner in range(mesh.faces.size)}
    vertex = mesh.faces.ravel()
    for corner in corners[~cut]:
        one, two = corner // 3, mesh.opposite[corner] // 3
        for v in ends(mesh, np.array([corner]))[0]:
            a, b = (3 * f + int(np.flatnonzero(mesh.faces[f] == v)[0]) for f in (one, two))
            both = groups[a] | groups[b]
            groups.update(dict.fromkeys(both, both))
    assert all(len({vertex[c] for c in group}) == 1 for group in groups.values())
    return {frozenset(group) for group in groups.values()}


def test_against_loops():
    mesh = point_mesh((30, 30), 60)
    corners = inner_corners(mesh)
    strain = np.random.default_rng(0).uniform(0, 1.2 * CUT, len(corners))
    strain[::3] = CUT
    found = CutMesh.of(mesh, corners, strain)
    numbers = found.faces.ravel()
    fans = {frozenset(np.flatnonzero(numbers == number)) for number in np.unique(numbers)}
    assert fans == naive_fans(mesh, corners, strain >= CUT)
    assert len(fans) > len(mesh.vertices)
    assert np.array_equal(found.origin[found.faces], mesh.faces)
    assert np.array_equal(found.origin[: len(mesh.vertices)], np.arange(len(mesh.vertices)))
    opened = found.screen()
    assert opened.check().ok, str(opened.check())
    assert np.array_equal(opened.vertices[opened.faces], mesh.vertices[mesh.faces])


def test_nothing_to_cut_changes_nothing():
    mesh = point_mesh((30, 30), 60)
    corners = inner_corners(mesh)
    for found in (CutMesh.whole(mesh), CutMesh.of(mesh, corners, np.zeros(len(corners)))):
        assert np.array_equal(found.faces, mesh.faces)
        assert np.array_equal(found.screen().vertices, mesh.vertices)


def test_a_cut_across_leaves_two_parts():
    mesh = grid_mesh(6, 60)
    corners = inner_corners(mesh)
    across = (mesh.vertices[ends(mesh, corners)][:, :, 0] == 30).all(axis=1)
    found = CutMesh.of(mesh, corners, np.where(across, 1.0, 0.0)).screen()
    assert found.check().components == 2
    assert len(found.vertices) == len(mesh.vertices) + 7


def test_unused_vertices_stay():
    mesh = grid_mesh(4, 40)
    loose = ScreenMesh(np.concatenate([mesh.vertices, [[5.0, 5.0]]]), mesh.faces)
    corners = inner_corners(loose)
    found = CutMesh.of(loose, corners, np.ones(len(corners)))
    assert np.array_equal(found.screen().vertices[len(loose.vertices) - 1], [5, 5])
    assert len(np.unique(found.faces)) == mesh.faces.size


def test_isolated_cuts_are_removed():
    """A line that is clear somewhere stays; one that is nowhere clear, and a single inner edge, are removed."""
    mesh = grid_mesh(12, 120)
    corners = inner_corners(mesh)
    places = mesh.vertices[ends(mesh, corners)]

    def column(u, low, high):
        inside = (places[:, :, 0] == u) & (places[:, :, 1] >= low) & (places[:, :, 1] <= high)
        return inside.all(axis=1)

    strain = np.zeros(len(corners))
    strain[column(30, 20, 60)] = CUT
    strain[column(30, 20, 30)] = CLEAR
    strain[column(60, 20, 60)] = 0.9 * CLEAR
    strain[column(90, 50, 60)] = 5.0
    strain[column(90, 0, 10)] = 5.0
    healed = without_isolated_cuts(mesh, corners, strain) >= CUT
    assert np.array_equal(healed, column(30, 20, 60) | column(90, 0, 10))
    unhurt = healed | (strain < CUT)
    assert np.array_equal(without_isolated_cuts(mesh, corners, strain)[unhurt], strain[unhurt])
