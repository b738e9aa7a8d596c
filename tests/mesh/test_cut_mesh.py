"""Cutting a mesh along edges."""

import numpy as np

from meshes import point_mesh
from normalmesh import ScreenMesh
from normalmesh.mesh.cut_mesh import CutMesh, boundary_vertices, edge_ends, slits
from surfaces import grid_mesh


def inner_corners(mesh):
    return np.flatnonzero(mesh.opposite > np.arange(len(mesh.opposite)))


def naive_fans(mesh, corners, cut):
    """Return sets of corners of the same vertex whose faces an uncut edge joins there."""
    groups = {corner: {corner} for corner in range(mesh.faces.size)}
    vertex = mesh.faces.ravel()
    for corner in corners[~cut]:
        one, two = corner // 3, mesh.opposite[corner] // 3
        for v in edge_ends(mesh, np.array([corner]))[0]:
            a, b = (3 * f + int(np.flatnonzero(mesh.faces[f] == v)[0]) for f in (one, two))
            both = groups[a] | groups[b]
            groups.update(dict.fromkeys(both, both))
    assert all(len({vertex[c] for c in group}) == 1 for group in groups.values())
    return {frozenset(group) for group in groups.values()}


def two_squares():
    """Return two separate squares of 4 × 4 cells."""
    one = grid_mesh(4, 40)
    vertices = np.concatenate([one.vertices, one.vertices + np.array([50, 0])])
    return ScreenMesh(vertices, np.concatenate([one.faces, one.faces + np.int32(len(one.vertices))]))


def along_column(mesh, u, low=-np.inf, high=np.inf):
    """Return the ends (S, 2) of the inner edges on the line of this u, between two values of v."""
    ends = edge_ends(mesh, inner_corners(mesh))
    places = mesh.vertices[ends]
    return ends[((places[..., 0] == u) & (places[..., 1] >= low) & (places[..., 1] <= high)).all(axis=1)]


def test_against_loops():
    mesh = point_mesh((30, 30), 60)
    corners = inner_corners(mesh)
    cut = np.random.default_rng(0).random(len(corners)) < 0.4
    seams = edge_ends(mesh, corners[cut])
    seams[::2] = seams[::2, ::-1]  # in any direction
    found = CutMesh.along(mesh, seams)
    numbers = found.mesh.faces.ravel()
    fans = {frozenset(np.flatnonzero(numbers == number)) for number in np.unique(numbers)}
    assert fans == naive_fans(mesh, corners, cut)
    assert len(fans) > len(mesh.vertices)
    assert np.array_equal(found.origin[found.mesh.faces], mesh.faces)
    assert np.array_equal(found.origin[: len(mesh.vertices)], np.arange(len(mesh.vertices)))
    assert found.mesh.check().ok, str(found.mesh.check())
    assert np.array_equal(found.mesh.vertices[found.mesh.faces], mesh.vertices[mesh.faces])


def test_nothing_to_cut_changes_nothing():
    mesh = point_mesh((30, 30), 60)
    found = CutMesh.along(mesh, np.zeros((0, 2), np.int32))
    assert found.mesh is mesh
    assert np.array_equal(found.origin, np.arange(len(mesh.vertices)))
    # Cuts along the boundary separate nothing.
    outer = edge_ends(mesh, np.flatnonzero(mesh.opposite < 0))
    assert np.array_equal(CutMesh.along(mesh, outer).mesh.faces, mesh.faces)


def test_a_cut_across_leaves_two_parts_of_one_component():
    mesh = two_squares()
    found = CutMesh.along(mesh, along_column(mesh, 20))
    assert found.mesh.check().components == 3
    assert len(found.mesh.vertices) == len(mesh.vertices) + 5
    # Components are those before cutting.
    assert np.array_equal(found.component, (found.mesh.vertices[:, 0] > 45).astype(np.int32))
    assert np.array_equal(found.mesh.vertices, mesh.vertices[found.origin])


def test_a_slit_inside_opens_between_its_ends():
    mesh = grid_mesh(6, 60)
    found = CutMesh.along(mesh, along_column(mesh, 30, 10, 40))
    # The ends of a slit stay single, and an edge alone opens nothing.
    assert sorted(found.mesh.vertices[len(mesh.vertices) :].tolist()) == [[30.0, 20.0], [30.0, 30.0]]
    assert len(CutMesh.along(mesh, along_column(mesh, 30, 10, 20)).origin) == len(mesh.vertices)


def test_unused_vertices_stay():
    mesh = grid_mesh(4, 40)
    loose = ScreenMesh(np.concatenate([mesh.vertices, [[5.0, 5.0]]]), mesh.faces)
    found = CutMesh.along(loose, edge_ends(loose, inner_corners(loose)))
    assert np.array_equal(found.mesh.vertices[len(loose.vertices) - 1], [5, 5])
    assert len(np.unique(found.mesh.faces)) == mesh.faces.size


def naive_slits(mesh):
    """Return the pairs of boundary corners whose edges have the same ends, by comparing all of them."""
    outer = np.flatnonzero(mesh.opposite < 0)
    ends = {int(corner): mesh.vertices[edge_ends(mesh, np.array([corner]))[0]] for corner in outer}
    return {frozenset((a, b)) for a in ends for b in ends if a != b and np.array_equal(ends[a], ends[b][::-1])}


def test_slits_are_pairs_of_edges_with_the_same_ends():
    mesh = point_mesh((30, 30), 60)
    corners = inner_corners(mesh)
    cut = np.random.default_rng(1).random(len(corners)) < 0.4
    opened = CutMesh.along(mesh, edge_ends(mesh, corners[cut])).mesh
    one, other = slits(opened)
    pairs = {frozenset((int(a), int(b))) for a, b in zip(one, other, strict=True)}
    assert pairs == naive_slits(opened)
    assert len(pairs) == len(one) > 10
    # Cut edges whose ends both stay single are not open.
    assert len(one) <= np.count_nonzero(cut)
    assert all(len(side) == 0 for side in slits(mesh))


def test_boundary_vertices():
    mesh = grid_mesh(4, 40)
    on_rim = ((mesh.vertices == 0) | (mesh.vertices == 40)).any(axis=1)
    assert np.array_equal(boundary_vertices(mesh), on_rim)
    opened = CutMesh.along(mesh, along_column(mesh, 20, 0, 30)).mesh
    on_slit = (opened.vertices[:, 0] == 20) & (opened.vertices[:, 1] <= 30)
    rim = ((opened.vertices == 0) | (opened.vertices == 40)).any(axis=1)
    assert np.array_equal(boundary_vertices(opened), rim | on_slit)
