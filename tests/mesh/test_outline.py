"""The outline: distances, coverage of pixels, quadrics, and the fit of boundary edges."""

from itertools import pairwise

import numpy as np
import pytest

import naive
from meshes import bumpy_map, coarse_mesh, disc
from normalmesh import pixel_faces
from normalmesh.decimation._move import take_steps
from normalmesh.decimation.quadrics import vertex_quadrics
from normalmesh.mesh import _outline
from normalmesh.mesh._closed_mesh import BOUNDARY, boundary_neighbours

MASKS = [np.ones((5, 6), bool), disc(11, 4.6), np.random.default_rng(1).random((9, 12)) > 0.3]


@pytest.mark.parametrize("mask", MASKS)
def test_near_outline(mask):
    rng = np.random.default_rng(0)
    mask = bumpy_map(mask.shape, mask=mask).mask
    segments = naive.outline_segments(mask)
    for place in rng.uniform(-2, np.array(mask.shape[::-1]) + 2, (300, 2)):
        distance = min(naive.distance_to_segment(place, *segment) for segment in segments)
        assert _outline.near_outline(*place, mask) == (distance <= 1)


@pytest.mark.parametrize("corners", [4, 5])
def test_change_outline(corners):
    """Against winding numbers: pixels may become covered that are not, and once only."""
    rng = np.random.default_rng(corners)
    shape = (12, 14)
    answers = []
    for trial in range(300):
        # Larger and smaller than the image, and on pixel corners and centres.
        polygon = rng.uniform(-3, 16, (corners, 2)) if trial % 3 else rng.integers(0, 24, (corners, 2)) / 2
        covered = rng.random(shape) < rng.choice([0.0, 0.02, 0.5])
        # A centre on an edge belongs to its right or lower side, as if the polygon lay a little farther left and up.
        windings = naive.winding_numbers(polygon - [1e-7, 1e-9], shape)
        allowed = not (windings > 1).any() and not (covered & (windings > 0)).any()
        before = covered.copy()
        points = tuple(map(tuple, polygon[[0, 1, 2, 3, -1]]))
        assert _outline.change_outline(points, covered, False) == allowed
        assert np.array_equal(covered, before), "only asked"
        assert _outline.change_outline(points, covered, True) == allowed
        expected = np.where(windings == 0, before, windings > 0) if allowed else before
        assert np.array_equal(covered, expected)
        answers.append(allowed)
    assert 50 < sum(answers) < 250


@pytest.mark.parametrize("mask", [disc(), np.random.default_rng(0).random((40, 40)) > 0.05], ids=["disc", "holes"])
def test_coverage_is_known_after_collapses(mask):
    normal_map = bumpy_map(mask.shape, mask=mask)
    mesh, _, _ = coarse_mesh(normal_map, 80)
    assert np.array_equal(mesh.covered, pixel_faces(mesh.to_screen(), normal_map.shape) >= 0)


def pieces(mesh, vertex):
    """Return the points of the outline for which the two boundary edges of a vertex stand, in order."""
    before, after = boundary_neighbours(vertex, mesh.arrays)
    points = [mesh.outline.point_of[before]]
    while points[-1] != mesh.outline.point_of[after]:
        points.append(mesh.outline.next_point[points[-1]])
    assert mesh.outline.point_of[vertex] in points[1:-1]
    return np.array(points)


def test_outline_quadrics():
    """The squared distances from lines through the pieces of the outline, weighted by length."""
    mesh, pixels, records = coarse_mesh(bumpy_map((60, 60), mask=disc() & ~disc(60, 8)), 70)
    plain = vertex_quadrics(mesh, pixels, records)
    added = vertex_quadrics(mesh, pixels, records, outline_weight=0.7) - plain
    assert not added[mesh.outline.point_of < 0].any()
    step = np.array([0.4, -0.3])
    for vertex in np.flatnonzero(mesh.outline.point_of >= 0):
        points = mesh.outline.smooth[pieces(mesh, vertex)]
        place = mesh.vertices[vertex] + step
        expected = 0.0
        for start, end in pairwise(points):
            area = np.linalg.det([end - start, place - start])
            expected += 0.7 * area**2 / np.linalg.norm(end - start)
        assert np.isclose(naive.quadric_value(added[vertex], step), expected, rtol=1e-9)


def test_each_boundary_vertex_keeps_its_place_in_the_outline():
    """Going around a loop of the mesh goes around the loop of the outline once."""
    mesh, _, _ = coarse_mesh(bumpy_map((60, 60), mask=disc() & ~disc(60, 8)), 50)
    on_boundary = np.flatnonzero(mesh.flags & BOUNDARY)
    steps = sum(len(pieces(mesh, vertex)) - 1 for vertex in on_boundary)
    assert steps == 2 * len(mesh.outline.points), "each piece of the outline belongs to two vertices"


def test_the_fit_brings_edges_to_an_arc():
    normal_map = bumpy_map((60, 60), mask=disc())
    mesh, _, _ = coarse_mesh(normal_map, 40)
    before = outline_error(mesh)
    boundary = mesh.flags & BOUNDARY != 0
    for _ in range(5):
        steps = np.zeros((len(mesh.vertices), 2))
        _outline.outline_steps(0, len(steps), mesh.arrays, mesh.outline, 0.5, steps)
        assert not steps[~boundary].any()
        changed = np.zeros(len(mesh.faces), bool)
        take_steps(steps, mesh.arrays, normal_map.mask, mesh.covered, changed)
    assert outline_error(mesh) < 0.7 * before


@pytest.mark.parametrize("vertices", [40, 1500])
def test_steps_of_boundary_vertices_are_least_squares_fits(vertices):
    """A step brings the lines through the two edges of a vertex closest to the middles of the outline's pieces.

    The shorter the edges, the more also the vertex to its own point.
    """
    mesh, _, _ = coarse_mesh(bumpy_map((60, 60), mask=disc()), vertices)
    steps = np.zeros((len(mesh.vertices), 2))
    _outline.outline_steps(0, len(steps), mesh.arrays, mesh.outline, 1.0, steps)
    for vertex in np.flatnonzero(mesh.flags == BOUNDARY):
        rows, distances, squared = [], [], 0.0
        place, own = mesh.vertices[vertex], mesh.outline.point_of[vertex]
        points = pieces(mesh, vertex)
        turn = int(np.flatnonzero(points == own)[0])
        for part, end in ((points[: turn + 1], points[0]), (points[turn:], points[-1])):
            fixed = mesh.vertices[mesh.outline.point_of == end][0]
            squared += ((place - fixed) ** 2).sum()
            along = (place - fixed) / np.linalg.norm(place - fixed)
            normal = np.array([-along[1], along[0]])
            for start, stop in pairwise(mesh.outline.smooth[part]):
                middle, weight = (start + stop) / 2, np.sqrt(np.linalg.norm(stop - start))
                share = np.clip((middle - fixed) @ along / np.linalg.norm(place - fixed), 0, 1)
                rows.append(weight * share * normal)
                distances.append(weight * normal @ (middle - fixed))
        inertia = np.sqrt(_outline.INERTIA * np.square(rows).sum())
        pull = np.sqrt(mesh.outline.pull / max(squared, 1))
        system = np.concatenate([rows, inertia * np.eye(2), pull * np.eye(2)])
        ends = [*distances, 0, 0, *pull * (mesh.outline.smooth[own] - place)]
        expected = np.linalg.lstsq(system, ends, rcond=None)[0]
        assert np.allclose(steps[vertex], expected, atol=1e-9)


def outline_error(mesh):
    """Return the root mean square distance of the smooth outline to the boundary edges."""
    sides = mesh.vertices[mesh.faces[mesh.real_faces :, :2]]
    distances = [min(naive.distance_to_segment(point, *side) for side in sides) for point in mesh.outline.smooth]
    return np.sqrt(np.mean(np.square(distances)))


def test_deviation_of_the_outline_from_an_edge():
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 9, (7, 2))
    next_point = np.array([1, 2, 3, 4, 5, 6, 0], np.int32)
    for start, end, passed in ((0, 0, [0]), (1, 4, [1, 2, 3, 4]), (5, 1, [5, 6, 0, 1])):
        a, b = rng.uniform(0, 9, (2, 2))
        farthest = max(naive.distance_to_segment(points[k], a, b) for k in passed)
        assert np.isclose(_outline.deviation_squared(start, end, *a, *b, next_point, points), farthest**2)
    assert _outline.deviation_squared(2, 2, *points[2], *points[2], next_point, points) == 0
