"""Test meshes that are joined across their sides."""

import numpy as np
import pytest

from normalmesh import NormalMeshError, Orthographic, ScreenMesh, Surface
from normalmesh.mesh.repeats import Repeats


def twins_by_place(vertices, repeats):
    """Return sets of vertices at the same place of a map that repeats."""
    rows, columns = repeats.shape
    groups = {}
    for number, (u, v) in enumerate(vertices):
        place = (u % columns if repeats.x else u, v % rows if repeats.y else v)
        groups.setdefault(place, set()).add(number)
    return set(map(frozenset, groups.values()))


@pytest.mark.parametrize(("tileable", "open_edges"), [(True, 0), ("x", 12), ("y", 10)])
def test_full_map(tileable, open_edges):
    repeats = Repeats.of(tileable, (5, 6))
    joined = repeats.wrap(ScreenMesh.from_mask(np.ones((5, 6))))
    assert np.count_nonzero(joined.opposite < 0) == open_edges
    inner = np.flatnonzero(joined.opposite >= 0)
    assert (joined.opposite[joined.opposite[inner]] == inner).all()
    first = joined.first_twins
    groups = {frozenset(np.flatnonzero(first == number).tolist()) for number in np.unique(first)}
    assert groups == twins_by_place(joined.vertices, repeats)
    assert (first <= np.arange(len(first))).all()


def test_components_go_on_beyond_the_sides():
    mask = np.ones((4, 6))
    mask[:, 2:4] = 0
    mesh = ScreenMesh.from_mask(mask)
    assert mesh.components.max() == 1
    assert Repeats.of("x", mask.shape).wrap(mesh).components.max() == 0
    # Only the foreground on both of two sides is joined.
    mask[:2, 0] = 0
    joined = Repeats.of("x", mask.shape).wrap(ScreenMesh.from_mask(mask))
    assert len(joined.twins) == 4
    ends = Repeats.of("x", mask.shape).side_ends(lambda *area: mask[area] > 0)
    assert ends.tolist() == [[0, 2], [0, 4], [6, 2], [6, 4]]


def test_vertex_normals_are_those_of_all_copies():
    """Those at the sides of a tile are those inside of 3 × 3 copies."""
    random = np.random.default_rng(0)
    heights = random.normal(size=(4, 5))

    def surface(copies, repeats):
        mesh = ScreenMesh.from_mask(np.ones((4 * copies, 5 * copies)))
        u, v = mesh.vertices.astype(int).T
        shape = (4 * copies, 5 * copies)
        return Surface.from_unknown(mesh, heights[v % 4, u % 5], Orthographic(), shape, repeats=repeats)

    tile, copies = surface(1, Repeats.of(True, (4, 5))), surface(3, None)
    inside = ((copies.screen >= [5, 4]) & (copies.screen <= [10, 8])).all(axis=1)
    np.testing.assert_allclose(tile.vertex_normals, copies.vertex_normals[inside], atol=1e-12)


@pytest.mark.parametrize("tileable", ["z", 1, None, "yx"])
def test_directions_are_checked(tileable):
    with pytest.raises(NormalMeshError, match="tileable must be one of x, y, xy"):
        Repeats.of(tileable, (4, 4))
    assert Repeats.of(False, (4, 4)) is None
