"""Lines of jumps become polylines of a mesh, along which it can be cut."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decimation_checks import assert_valid
from meshes import bumpy_map, disc, point_mesh
from normalmesh import NormalMap, NormalMeshWarning, Orthographic, ScreenMesh, decimate, pixel_faces, reconstruct
from normalmesh.decimation.collapse import collapse
from normalmesh.decimation.decimation_options import DecimationOptions
from normalmesh.decimation.polylines import Segments, copies, find_edges, polish
from normalmesh.decimation.quadrics import Pixels
from normalmesh.decimation.rounds import RESERVE, decimate_levels
from normalmesh.decimation.start_mesh import KeptCorners
from normalmesh.decimation.stopping import StoppingRule
from normalmesh.evaluation.looks import measure_looks
from normalmesh.evaluation.metrics import mean_angle
from normalmesh.jumps.finding import find_jumps
from normalmesh.mesh._closed_mesh import BOUNDARY, LINE, LOCKED
from normalmesh.mesh.closed_mesh import ClosedMesh
from normalmesh.mesh.cut_mesh import CutMesh, boundary_vertices, edge_ends
from normalmesh.mesh.jumps import JumpLine, Jumps
from scenes import scene
from surfaces import flap
from thread_counts import on_one_and_on_several


def staircase(start, end):
    """Return the pixel corners (P, 2), one px apart, nearest to a segment."""
    start, end = np.array(start), np.array(end)
    path = [start]
    while (path[-1] != end).any():
        steps = [np.array(step) for step in ((1, 0), (-1, 0), (0, 1), (0, -1))]
        nearer = [step for step in steps if np.abs(path[-1] + step - end).sum() < np.abs(path[-1] - end).sum()]
        (du, dv), away = end - start, [path[-1] + step - start for step in nearer]
        off = [abs(du * v - dv * u) for u, v in away]
        path.append(path[-1] + nearer[int(np.argmin(off))])
    return np.array(path)


def line(start, end, height=50.0):
    return JumpLine(staircase(start, end), height, 3.0)


def collapsed(normal_map, lines, locked=None, vertices=200):
    """Return a mesh with this number of vertices after it is cut along lines, and the segments of the lines."""
    mesh = ClosedMesh.from_screen(ScreenMesh.from_mask(normal_map.mask), normal_map.shape)
    KeptCorners.of(locked, lines, normal_map).flag(mesh)
    segments = Segments.of(lines).pieces(mesh)
    return mesh, collapse(mesh, Pixels(normal_map), segments=segments, target=vertices).segments


def cut_vertices(mesh, segments):
    """Return the number of vertices of a mesh that is cut along segments."""
    pairs = find_edges(mesh, segments.places)
    return len(mesh.vertices) + copies(pairs, mesh.flags & BOUNDARY > 0)


def zigzag(points, height=50.0):
    """Return a line through points."""
    pieces = [staircase(start, end) for start, end in pairwise(points)]
    return JumpLine(np.concatenate([pieces[0], *(piece[1:] for piece in pieces[1:])]), height, 3.0)


def distances(points, segments):
    """Return the distance (K,) of points (K, 2) from the nearest segment (S, 2, 2)."""
    start, along = segments[:, 0], segments[:, 1] - segments[:, 0]
    share = ((points[:, None] - start) * along).sum(axis=2) / (along**2).sum(axis=1)
    nearest = start + np.clip(share, 0, 1)[..., None] * along
    return np.linalg.norm(points[:, None] - nearest, axis=2).min(axis=1)


def test_segments_are_the_unit_steps_of_lines():
    one = JumpLine(np.array([[2, 2], [3, 2], [4, 2]]), 1.0, 3.0)
    other = JumpLine(np.array([[4, 3], [4, 2], [3, 2]]), 1.0, 5.0)
    found = Segments.of((one, other))
    steps = {frozenset(map(tuple, pair)): line for pair, line in zip(found.places.tolist(), found.line, strict=True)}
    # The step of both belongs to the one that is worth more.
    assert steps == {
        frozenset({(2.0, 2.0), (3.0, 2.0)}): 0,
        frozenset({(3.0, 2.0), (4.0, 2.0)}): 1,
        frozenset({(4.0, 2.0), (4.0, 3.0)}): 1,
    }
    assert len(found.places) == 3


@given(st.integers(0, 999), st.floats(0.05, 1.0))
def test_copies_are_those_of_cutting(seed, share):
    mesh = point_mesh((30, 30), 25, seed % 7)
    inner = edge_ends(mesh, np.flatnonzero(mesh.opposite > np.arange(mesh.faces.size)))
    chosen = inner[np.random.default_rng(seed).random(len(inner)) < share]
    assert copies(chosen, boundary_vertices(mesh)) == len(CutMesh.along(mesh, chosen).origin) - len(mesh.vertices)


def test_edges_are_found_by_the_places_of_their_ends():
    mesh = point_mesh((30, 30), 25)
    closed = ClosedMesh.from_screen(mesh, (30, 30), np.ones(len(mesh.vertices), bool))
    ends = edge_ends(mesh, np.random.default_rng(0).permutation(mesh.faces.size)[:30])
    found = find_edges(closed, mesh.vertices[ends])
    assert np.array_equal(found, ends)
    assert np.array_equal(find_edges(closed, mesh.vertices[ends[:, ::-1]]), ends[:, ::-1])


@pytest.mark.parametrize("end", [(50, 10), (50, 25), (40, 50), (10, 50), (12, 50)])
def test_a_straight_line_becomes_few_edges(end):
    normal_map = bumpy_map((60, 60))
    given_line = line((10, 10), end)
    mesh, found = collapsed(normal_map, (given_line,))
    assert len(found.places) <= 12
    # Its ends may move a little, to where normals change.
    assert distances(given_line.path, found.places).max() < 2
    assert distances(found.places.reshape(-1, 2), np.array([[[10, 10], end]], float)).max() < 1.5
    assert mesh.to_screen().check().ok
    assert np.array_equal(mesh.vertices[find_edges(mesh, found.places)], found.places)
    on_line = mesh.flags == LOCKED | LINE
    assert set(map(tuple, mesh.vertices[on_line].tolist())) == set(map(tuple, found.places.reshape(-1, 2).tolist()))


@settings(max_examples=25)
@given(st.integers(0, 9999))
def test_polylines_stay_near_their_lines(seed):
    rng = np.random.default_rng(seed)
    normal_map = bumpy_map((60, 60), mask=disc(60, 29.0))
    corners = 12 + rng.integers(0, 36, (4, 2))
    lines = tuple(
        line(a, b) for a, b in ((corners[0], corners[1]), (corners[2], corners[3])) if np.abs(a - b).max() > 3
    )
    if not lines:
        return
    mesh, found = collapsed(normal_map, lines, vertices=300)
    assert cut_vertices(mesh, found) in (299, 300)
    for each in lines:
        assert distances(each.path, found.places).max() < 2
    paths = np.concatenate([np.stack([each.path[:-1], each.path[1:]], axis=1) for each in lines]).astype(float)
    assert distances(found.places.reshape(-1, 2), paths).max() < 1.5
    assert mesh.to_screen().check().ok


def test_lines_that_cost_least_to_bridge_are_dropped_first():
    normal_map = bumpy_map((90, 90))
    zigzags = [
        zigzag([(10 + 12 * j, 12 + 25 * k + 12 * (j % 2)) for j in range(6)], height)
        for k, height in enumerate((0.15, 100.0, 1.0))
    ]
    for vertices, left in ((1500, [0, 1, 2]), (30, [1, 2])):
        mesh, found = collapsed(normal_map, tuple(zigzags), vertices=vertices)
        assert sorted({found.lines[each][0].height for each in found.line}) == sorted(zigzags[k].height for k in left)
        assert cut_vertices(mesh, found) in (vertices - 1, vertices)
        for k, each in enumerate(zigzags):
            assert (np.median(distances(each.path, found.places)) < 3) == (k in left)
        # What is dropped is free again.
        locked = mesh.vertices[mesh.flags & LOCKED > 0]
        assert distances(locked, found.places).max() < 1e-9


def test_vertices_that_the_user_locks_stay():
    normal_map = bumpy_map((60, 60))
    path = line((10, 10), (50, 33))
    locked = path.path[[7, 20, 33]]
    mesh, found = collapsed(normal_map, (path,), locked)
    assert set(map(tuple, locked.astype(float).tolist())) <= set(map(tuple, mesh.vertices.tolist()))
    polish(mesh, found, normal_map)
    kept = mesh.vertices[(mesh.flags & LOCKED > 0) & (mesh.flags & LINE == 0)]
    assert sorted(map(tuple, kept.tolist())) == sorted(map(tuple, locked.astype(float).tolist()))
    # Nor does decimation move them, whether lines run through them or not.
    mesh = decimate(normal_map, vertices=200, locked=[*locked.tolist(), [5, 50]], jumps=Jumps((path,)))
    there = set(map(tuple, mesh.vertices.tolist()))
    assert {tuple(map(float, corner)) for corner in [*locked.tolist(), [5, 50]]} <= there


def test_lines_to_the_boundary_and_junctions():
    normal_map = bumpy_map((60, 60))
    lines = (line((0, 30), (30, 30)), line((30, 30), (52, 60)), line((30, 30), (45, 0)))
    mesh, found = collapsed(normal_map, lines)
    pairs = find_edges(mesh, found.places)
    degree = np.bincount(pairs.ravel(), minlength=len(mesh.vertices))
    assert np.count_nonzero(degree == 3) == 1
    assert np.abs(mesh.vertices[degree == 3] - 30).max() < 2
    on_boundary = mesh.flags & BOUNDARY > 0
    ends = {(0.0, 30.0), (52.0, 60.0), (45.0, 0.0)}
    assert set(map(tuple, mesh.vertices[(degree == 1) & on_boundary].tolist())) == ends
    cut = CutMesh.along(mesh.to_screen(), pairs)
    assert cut.mesh.check().components == 3
    assert len(cut.origin) == len(mesh.vertices) + copies(pairs, on_boundary)


def test_loops_stay_open():
    normal_map = bumpy_map((60, 60))
    loop = zigzag([(20, 20), (40, 20), (40, 40), (20, 40), (20, 20)])
    for vertices in (400, 30):
        mesh, found = collapsed(normal_map, (loop,), vertices=vertices)
        cut = CutMesh.along(mesh.to_screen(), find_edges(mesh, found.places))
        assert cut.mesh.check().components == 2
        assert distances(loop.path, found.places).max() < 4


def two_planes(across, size=60):
    """Return a map whose normals differ on the two sides of a straight line ``across(u, v) = 0``."""
    v, u = np.mgrid[:size, :size] + 0.5
    sign = np.sign(across(u, v))
    normals = np.stack([0.5 * sign, 0 * sign, np.ones_like(sign)], axis=-1)
    return NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True))


def test_polishing_moves_polylines_to_where_normals_change():
    normal_map = two_planes(lambda u, v: u - 20 - 0.35 * v)
    # The line is off by one pixel, between ends that are right.
    points = [(20, 0), (25, 12), (28, 24), (33, 36), (37, 48), (41, 60)]
    mesh = decimate(normal_map, vertices=60, jumps=Jumps((zigzag(points),)))
    assert_valid(mesh, normal_map)
    u, v = mesh.vertices[mesh.seams].reshape(-1, 2).T
    assert len(mesh.seams) >= 1
    off = np.abs(u - 20 - 0.35 * v)
    assert off.max() < 1
    assert off.mean() < 0.25


def spread_beside(mesh, pairs, normal_map):
    """Return the sum over pixels, in faces at vertices of edges, of squared differences from the mean normal."""
    screen = mesh.to_screen()
    owner = pixel_faces(screen, normal_map.shape)
    total = 0.0
    for f in np.flatnonzero(np.isin(screen.faces, pairs).any(axis=1)):
        normals = normal_map.normals[owner == f].astype(float)
        if len(normals):
            total += ((normals - normals.mean(axis=0)) ** 2).sum()
    return total


def test_polishing_lowers_the_spread_of_normals_and_keeps_the_mesh_valid():
    normal_map = two_planes(lambda u, v: (u - 10) ** 2 + (v - 5) ** 2 - 45.3**2)
    angle = np.linspace(0.05, 1.5, 12)
    points = np.rint(np.stack([10 + 44 * np.cos(angle), 5 + 44 * np.sin(angle)], axis=1)).astype(int)
    mesh, found = collapsed(normal_map, (zigzag(points),), vertices=100)
    pairs = find_edges(mesh, found.places)
    before, old = spread_beside(mesh, pairs, normal_map), mesh.vertices.copy()
    assert np.array_equal(polish(mesh, found, normal_map), pairs)
    assert spread_beside(mesh, pairs, normal_map) < before
    assert mesh.to_screen().check().ok
    moved = np.flatnonzero((mesh.vertices != old).any(axis=1))
    assert len(moved) > 0
    # Only inner vertices of the polyline move.
    degree = np.bincount(pairs.ravel(), minlength=len(old))
    assert (degree[moved] == 2).all()


@pytest.mark.parametrize("name", ["steps", "flaps", "hole"])
def test_decimated_meshes_are_valid_and_have_as_many_vertices_as_asked_for_after_cutting(name):
    normal_map = scene(name, 96).normal_map(Orthographic())
    jumps = find_jumps(normal_map, discontinuities=True)
    assert jumps.length > 50
    for vertices in (150, 400, 1500):
        mesh = decimate(normal_map, vertices=vertices, jumps=jumps)
        assert_valid(mesh, normal_map)
        assert mesh.report.target_met
        cut = CutMesh.along(mesh, mesh.seams)
        assert cut.mesh.check().ok
        # The last collapse along a line saves two.
        assert len(cut.origin) - (vertices - math.ceil(RESERVE * vertices)) in (-1, 0)
        corners = np.concatenate([each.path for each in jumps.lines])
        assert distances(mesh.vertices[mesh.seams].mean(axis=1), np.stack([corners, corners + 1e-9], axis=1)).max() < 4


@pytest.mark.parametrize("vertices", [100, 300, 700, 2000])
def test_surfaces_have_as_many_vertices_as_asked_for(vertices):
    for normal_map in (flap()[1], scene("flaps").normal_map(Orthographic())):
        surface = reconstruct(normal_map, vertices=vertices)
        assert len(surface.discontinuities.lines) > 0
        assert len(surface.vertices) == vertices
        assert surface.mesh.check().ok


@pytest.mark.parametrize("name", ["flaps", "hole", "cards", "steps"])
def test_cuts_of_fine_meshes_have_no_teeth(name):
    normal_map = scene(name).normal_map(Orthographic())
    looks = measure_looks(reconstruct(normal_map, compression=0.85), normal_map)
    assert looks.cut_length > 100
    assert looks.teeth < 12
    assert looks.turning < 3
    assert looks.bad_area < 0.25


def test_coarser_levels_keep_the_lines():
    normal_map = scene("flaps").normal_map(Orthographic())
    jumps = find_jumps(normal_map)
    corners = np.concatenate([each.path for each in jumps.lines])
    levels = [1200, 500, 200]
    rules = [StoppingRule(vertices=vertices) for vertices in levels]
    meshes = decimate_levels(normal_map, rules, DecimationOptions(), lines=jumps.lines)
    for vertices, mesh in zip(levels, meshes, strict=True):
        assert_valid(mesh, normal_map)
        left = len(CutMesh.along(mesh, mesh.seams).origin)
        assert left - (vertices - math.ceil(RESERVE * vertices)) in (-1, 0)
        places = mesh.vertices[mesh.seams]
        assert distances(places.mean(axis=1), np.stack([corners, corners + 1e-9], axis=1)).max() < 5
        assert np.linalg.norm(places[:, 0] - places[:, 1], axis=1).sum() > 0.5 * jumps.length


def test_a_threshold_counts_the_vertices_of_cuts():
    _, normal_map = flap()
    jumps = find_jumps(normal_map)
    mesh, closed = (decimate(normal_map, threshold=2.0, jumps=each) for each in (jumps, None))
    assert_valid(mesh, normal_map)
    assert len(mesh.seams) > 0
    assert mesh.report.target is None
    assert len(CutMesh.along(mesh, mesh.seams).origin) < 1.25 * len(closed.vertices)


def test_lines_that_are_dropped_are_closed_and_not_reported():
    normal_map = scene("flaps").normal_map(Orthographic())
    jumps = find_jumps(normal_map)
    low = tuple(JumpLine(each.path, 0.11, each.certainty) for each in jumps.lines)
    with pytest.warns(NormalMeshWarning, match="bridged"):
        surface = reconstruct(normal_map, vertices=16, jumps=Jumps(low, jumps.placement))
    assert surface.discontinuities.lines == ()
    assert surface.discontinuities.length == 0


@pytest.mark.parametrize("vertices", [30, 60, 120])
def test_few_vertices_fit_no_worse_with_lines_than_without(vertices):
    normal_map = scene("flaps").normal_map(Orthographic())
    torn, closed = (reconstruct(normal_map, vertices=vertices, discontinuities=each) for each in ("auto", False))
    assert mean_angle(torn, normal_map) < 1.05 * mean_angle(closed, normal_map)


def test_the_same_on_any_number_of_threads():
    normal_map = scene("flaps").normal_map(Orthographic())
    jumps = find_jumps(normal_map)
    alone, together = on_one_and_on_several(lambda: decimate(normal_map, vertices=500, jumps=jumps))
    assert np.array_equal(alone.vertices, together.vertices)
    assert np.array_equal(alone.faces, together.faces)
    assert np.array_equal(alone.seams, together.seams)


@pytest.mark.parametrize("vertices", [3, 5])
def test_meshes_too_coarse_for_any_line(vertices):
    _, normal_map = flap()
    jumps = find_jumps(normal_map)
    mesh = decimate(normal_map, vertices=vertices, jumps=jumps)
    assert mesh.report.dropped_lines == len(jumps.lines)
    assert len(mesh.seams) == 0
    assert mesh.check().ok
    with pytest.warns(NormalMeshWarning, match="1 piece of the lines along which depth jumps"):
        surface = reconstruct(normal_map, vertices=vertices)
    assert np.isfinite(surface.vertices).all()


def test_coarser_levels_drop_lines():
    _, normal_map = flap()
    levels = decimate_levels(
        normal_map,
        [StoppingRule(vertices=each) for each in (300, 3)],
        DecimationOptions(),
        lines=find_jumps(normal_map).lines,
    )
    assert [len(mesh.seams) > 0 for mesh in levels] == [True, False]
