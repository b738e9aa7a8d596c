"""Edge collapse: cost and position of an edge, refused collapses, and the order of collapses."""

import numpy as np
import pytest

import naive
from meshes import bumpy_map, disc, start_mesh, triangles
from normalmesh import NormalMap
from normalmesh.decimation import _collapse, _edge_collapse
from normalmesh.decimation import collapse as collapsing
from normalmesh.decimation._edge_collapse import CostArrays
from normalmesh.decimation.collapse import collapse
from normalmesh.decimation.quadrics import Pixels, vertex_quadrics
from normalmesh.mesh._closed_mesh import BOUNDARY, LOCKED, MeshArrays
from normalmesh.mesh._validity import keeps_faces_upright, link_is_simple
from thread_counts import on_one_and_on_several

MASK = NormalMap(np.broadcast_to([0.0, 0.0, 1.0], (9, 9, 3))).mask


def random_edge(seed):
    """Return two positions away from the outline, and random positive quadrics there."""
    rng = np.random.default_rng(seed)
    quadrics = np.empty((2, 6))
    for quadric in quadrics:
        root = rng.normal(size=(2, 2))
        b = rng.normal(size=2)
        A = root @ root.T + 0.05 * np.eye(2)
        quadric[:] = [A[0, 0], A[0, 1], A[1, 1], *b, b @ np.linalg.solve(A, b) + rng.random()]
    return rng.uniform(3, 6, (2, 2)), quadrics


def best_position(vertices, quadrics, flags=(0, 0), on_boundary=False, in_plane=False):
    none = np.empty(0, np.int32)
    mesh = MeshArrays(vertices, none, none, none, np.array(flags, np.uint8), 2, 0)
    costs = CostArrays(quadrics, MASK, in_plane, np.empty((0, 4, 2), np.int32))
    cost, u, v = _edge_collapse.best_position(0, 1, on_boundary, mesh, costs)
    return cost, np.array([u, v])


@pytest.mark.parametrize("seed", range(8))
def test_the_best_point_of_the_segment(seed):
    vertices, quadrics = random_edge(seed)
    a, b = vertices
    cost, place = best_position(vertices, quadrics)
    samples = [naive.collapse_cost(*quadrics, a, b, a + t * (b - a)) for t in np.linspace(0, 1, 2001)]
    assert cost <= min(samples) + 1e-12
    assert np.isclose(cost, min(samples), rtol=1e-5)
    expected, there = naive.best_on_segment(*quadrics, a, b)
    assert np.isclose(cost, expected, rtol=1e-9)
    assert np.allclose(place, there, atol=1e-9)


def test_the_best_point_of_the_plane():
    """If it is farther from the edge's middle than the edge is long, the best point of the segment is taken."""
    kept = 0
    for seed in range(30):
        vertices, quadrics = random_edge(seed)
        a, b = vertices
        A = [np.array([[q[0], q[1]], [q[1], q[2]]]) for q in quadrics]
        best = np.linalg.solve(A[0] + A[1], A[0] @ a + A[1] @ b - quadrics[0, 3:5] - quadrics[1, 3:5])
        near = np.linalg.norm(best - (a + b) / 2) <= np.linalg.norm(b - a)
        cost, place = best_position(vertices, quadrics, in_plane=True)
        assert np.allclose(place, best if near else naive.best_on_segment(*quadrics, a, b)[1], atol=1e-9)
        assert np.isclose(cost, naive.collapse_cost(*quadrics, a, b, place), rtol=1e-9)
        kept += near
    assert 0 < kept < 30


@pytest.mark.parametrize(
    ("flags", "on_boundary", "goes_to"),
    [
        ((0, BOUNDARY), False, 1),
        ((BOUNDARY, 0), False, 0),
        ((0, LOCKED), False, 1),
        ((LOCKED | BOUNDARY, 0), False, 0),
        ((BOUNDARY, LOCKED | BOUNDARY), True, 1),
        ((BOUNDARY, BOUNDARY), False, None),
        ((BOUNDARY, LOCKED), False, None),
        ((LOCKED, LOCKED), False, None),
        ((LOCKED | BOUNDARY, LOCKED), False, None),
        ((LOCKED | BOUNDARY, LOCKED | BOUNDARY), True, None),
    ],
)
def test_duties(flags, on_boundary, goes_to):
    """Vertices move onto those of the outline and onto locked ones; two that must both stay do not collapse."""
    vertices, quadrics = random_edge(0)
    cost, place = best_position(vertices, quadrics, flags, on_boundary)
    if goes_to is None:
        assert cost == np.inf
    else:
        assert np.array_equal(place, vertices[goes_to])
        assert np.isclose(cost, naive.collapse_cost(*quadrics, *vertices, place))


@pytest.mark.parametrize(
    ("ends", "pull", "expected"),
    [
        (((2, 0), (6, 0)), (4.5, 0.5), (4.5, 0.5)),
        (((2, 0), (6, 0)), (4.5, 3.0), (4.5, 0.0)),
        (((0, 4), (9, 4)), (5.5, 4.0), (9.0, 4.0)),
    ],
    ids=["plane", "segment", "end"],
)
def test_boundary_vertices_stay_at_the_outline(ends, pull, expected):
    """The best point of the plane if the outline is near, else that of the segment, else the better end."""
    vertices, quadrics = np.array(ends, float), np.zeros((2, 6))
    for k in range(2):
        off = vertices[k] - pull
        quadrics[k] = [1, 0, 1, *off, off @ off]
    _, place = best_position(vertices, quadrics, (BOUNDARY, BOUNDARY), on_boundary=True)
    assert np.allclose(place, expected)


def can_collapse(mesh, a, b):
    return link_is_simple(a, b, mesh.arrays, np.zeros(mesh.ghost, np.int32), 1)


def test_a_lone_triangle_stays():
    mesh = triangles([(0, 0), (4, 0), (0, 4)], [(0, 1, 2)])
    assert not any(can_collapse(mesh, a, b) for a, b in ((0, 1), (1, 2), (2, 0)))


def test_a_square_becomes_a_triangle_along_its_outline():
    mesh = triangles([(0, 0), (4, 0), (4, 4), (0, 4)], [(0, 1, 2), (0, 2, 3)])
    assert can_collapse(mesh, 0, 1)
    assert can_collapse(mesh, 3, 2)
    assert not can_collapse(mesh, 0, 2), "would pinch the mesh to nothing"


def test_a_hole_of_three_vertices_stays():
    inner, outer = [(3, 3), (5, 3), (4, 5)], [(0, 0), (8, 0), (4, 8)]
    ring = [(0, 1, 3), (1, 3, 4), (1, 2, 4), (2, 4, 5), (2, 0, 5), (0, 5, 3)]
    mesh = triangles(inner + outer, ring)
    assert not any(can_collapse(mesh, a, b) for a, b in ((0, 1), (1, 2), (2, 0)))
    assert not can_collapse(mesh, 0, 3), "would join the hole to the outside"


def test_a_waist_is_not_pinched():
    """Two boundary vertices on both sides of a strip."""
    mesh = triangles([(0, 0), (3, 0), (6, 0), (0, 4), (3, 4), (6, 4)], [(0, 1, 3), (1, 4, 3), (1, 2, 4), (2, 5, 4)])
    assert not can_collapse(mesh, 1, 4)
    assert can_collapse(mesh, 0, 1)


def test_no_face_is_turned_over():
    """In a fan around (4, 4) the vertex may move to positions that see all its neighbours."""
    rng = np.random.default_rng(0)
    ring = np.array([(0, 0), (8, 1), (5, 4.5), (8, 8), (1, 7)])
    mesh = triangles([*ring, (4, 4)], [(k, (k + 1) % 5, 5) for k in range(5)])
    answers = []
    for place in rng.uniform(0, 8, (300, 2)):
        double_areas = [
            (b[0] - place[0]) * (c[1] - place[1]) - (b[1] - place[1]) * (c[0] - place[0])
            for b, c in zip(ring, np.roll(ring, -1, axis=0), strict=True)
        ]
        if 0 < min(double_areas) < 0.2:
            continue
        allowed = keeps_faces_upright(5, -1, *place, mesh.arrays)
        assert allowed == (min(double_areas) > 0)
        answers.append(allowed)
    assert 20 < sum(answers) < len(answers) - 20


@pytest.mark.parametrize("seed", range(4))
def test_cheapest_first(seed):
    """The same vertices are left as by a search over all edges before each collapse."""
    normal_map = bumpy_map((9, 10), seed, height=6.0)
    first = start_mesh(normal_map)
    locked = (first.flags & BOUNDARY).astype(bool)
    pixels = Pixels(normal_map)
    quadrics = vertex_quadrics(first, pixels)
    for target in (95, 75, 55):
        mesh = start_mesh(normal_map, locked)
        done = collapse(mesh, pixels, target=target)
        places, costs = naive.greedy_collapse(first.vertices, first.faces[: first.real_faces], quadrics, locked, target)
        assert len(places) == len(mesh.vertices) == target
        assert np.allclose(in_order(mesh.vertices), in_order(places), atol=1e-9)
        assert np.isclose(done.largest_cost, max(costs), rtol=1e-9)


def in_order(places):
    return places[np.lexsort(np.round(places, 6).T)]


def collapse_watched(monkeypatch, normal_map, target):
    """Collapse a start mesh; return it with the quadrics and positions before and after."""
    mesh, seen = start_mesh(normal_map), {}
    in_order = collapsing.Collapser.collapse_in_order

    def watched_quadrics(*given):
        quadrics = vertex_quadrics(*given)
        seen["before"] = quadrics.copy(), mesh.vertices.copy()
        return quadrics

    def watched_order(self, *given):
        in_order(self, *given)
        alive = mesh.corner_of[:-1] >= 0
        seen["after"] = self.quadrics[alive], mesh.vertices[alive]

    with monkeypatch.context() as patch:
        patch.setattr(collapsing, "vertex_quadrics", watched_quadrics)
        patch.setattr(collapsing.Collapser, "collapse_in_order", watched_order)
        collapse(mesh, Pixels(normal_map), target=target)
    return mesh, seen["before"], seen["after"]


def test_the_sum_of_all_quadrics_is_conserved(monkeypatch):
    _, before, after = collapse_watched(monkeypatch, bumpy_map(mask=disc(26, 12)[:24]), 60)
    for place in np.random.default_rng(0).uniform(0, 24, (5, 2)):
        sums = [
            sum(naive.quadric_value(q, place - at) for q, at in zip(quadrics, vertices, strict=True))
            for quadrics, vertices in (before, after)
        ]
        assert np.isclose(*sums, rtol=1e-9)


def test_each_vertex_is_in_the_tile_of_its_position(monkeypatch):
    """Vertices beyond the last tiles are in the nearest one, collapsed vertices in none."""
    monkeypatch.setattr(collapsing, "CHUNK", 50)
    mesh = start_mesh(bumpy_map((20, 30)))
    mesh.corner_of[::7] = -1
    for tiles in on_one_and_on_several(lambda: collapsing.tiles_of(mesh, (2.0, 1.0), 8.0, 3, 2)):
        for vertex, (u, v) in enumerate(mesh.vertices):
            column, row = np.clip([(u - 2) // 8, (v - 1) // 8], 0, [2, 1])
            assert tiles.tile_of[vertex] == (-1 if vertex % 7 == 0 else 3 * row + column)
        for tile in range(6):
            members = tiles.members[tiles.starts[tile] : tiles.starts[tile + 1]]
            assert np.array_equal(members, np.flatnonzero(tiles.tile_of == tile))


def test_tiles_cost_hardly_more_than_one_queue(monkeypatch):
    normal_map = bumpy_map((100, 100))
    costs = []
    for tile in (2**31, 1000):
        monkeypatch.setattr(collapsing, "TILE", tile)
        mesh, _, (quadrics, _) = collapse_watched(monkeypatch, normal_map, 330)
        assert len(mesh.vertices) == 330
        costs.append(quadrics[:, 5].sum())
    assert costs[0] != costs[1], "there were no tiles"
    assert np.isclose(*costs, rtol=0.02)


def test_stamps_that_run_out_are_renumbered(monkeypatch):
    normal_map = bumpy_map((100, 100))
    monkeypatch.setattr(collapsing, "TILE", 1000)
    meshes = []
    for last in (2**31 - 1, 12_000):
        monkeypatch.setattr(collapsing, "MAX_STAMP", last)
        meshes.append(start_mesh(normal_map))
        collapse(meshes[-1], Pixels(normal_map), target=330)
    assert np.array_equal(meshes[0].vertices, meshes[1].vertices)
    assert np.array_equal(meshes[0].faces, meshes[1].faces)


@pytest.mark.parametrize("kind", ["holes", "plane"])
def test_tiles_come_to_an_end(monkeypatch, kind):
    """One queue takes over if nearly all edges are refused, and if nearly all cost nothing."""
    levels = []
    lower_bounds = _collapse.lower_bounds
    monkeypatch.setattr(_collapse, "lower_bounds", lambda *given: levels.append(1) or lower_bounds(*given))
    monkeypatch.setattr(collapsing, "TILE", 100)
    if kind == "holes":
        normal_map = bumpy_map((50, 50), mask=np.random.default_rng(0).random((50, 50)) > 0.1)
    else:
        normal_map = NormalMap(np.broadcast_to(np.array([0.3, -0.2, 0.9]) / np.sqrt(0.94), (50, 50, 3)))
    mesh = start_mesh(normal_map)
    if kind == "plane":
        free = np.zeros((len(mesh.vertices), 6))
        monkeypatch.setattr(collapsing, "vertex_quadrics", lambda *given: free)
    collapse(mesh, Pixels(normal_map), target=10)
    assert 0 < len(levels) < 40


def test_limits():
    normal_map = bumpy_map()
    counts = []
    for limit in (1e-4, 1e-2, 1.0):
        mesh = start_mesh(normal_map)
        before = len(mesh.vertices)
        done = collapse(mesh, Pixels(normal_map), limit=limit)
        assert done.largest_cost < limit
        assert done.collapses == before - len(mesh.vertices)
        counts.append(len(mesh.vertices))
    assert counts[0] > counts[1] > counts[2]
