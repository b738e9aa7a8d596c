"""Check isotropic remeshing: validity on any map, lengths and counts, kernels, and its limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_isotropic
from decimation_checks import assert_valid, bumpy, masks
from meshes import assert_consistent, bumpy_map, coarse_mesh, disc
from normalmesh import (
    NormalMap,
    NormalMeshError,
    NormalMeshWarning,
    Orthographic,
    Perspective,
    ScreenMesh,
    decimate,
    integrate,
    pixel_faces,
    remesh_isotropic,
)
from normalmesh.decimation.quadrics import Pixels
from normalmesh.evaluation.isotropic import _edge_lengths
from normalmesh.evaluation.isotropic.edge_lengths import EdgeLengths, curvature, expected_vertices
from normalmesh.evaluation.isotropic.isotropic import collapse, split
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.mesh.closed_mesh import ClosedMesh
from surfaces import angle_error, plane_map, sphere, waves
from thread_counts import on_one_and_on_several


def stretches(mesh, normal_map, error):
    """Return the ratios (E,) of length to target length of all edges."""
    closed = ClosedMesh.from_screen(mesh, normal_map.shape)
    lengths = EdgeLengths(Pixels(normal_map), curvature(normal_map), error)
    lengths.sample(closed)
    corners = [c for c in range(3 * closed.real_faces) if c < closed.opposite[c]]
    return np.sqrt([_edge_lengths.stretch_of(corner, closed.arrays, lengths.arrays) for corner in corners])


# Properties on any map.


@pytest.mark.filterwarnings("ignore:.* almost at right angles")  # of maps of a few pixels, seen at a wide angle
@settings(max_examples=25)
@given(masks, st.integers(0, 3), st.sampled_from([0.02, 0.3, 5.0]), st.booleans())
def test_any_mask(mask, seed, error, pinhole):
    normal_map = bumpy(mask, seed, Perspective(60, 60, 7, 7) if pinhole else None)
    assert_valid(remesh_isotropic(normal_map, error=error, rounds=4), normal_map)


@pytest.mark.filterwarnings("ignore::normalmesh.NormalMeshWarning")
@settings(max_examples=10)
@given(masks, st.integers(0, 2**32 - 1))
def test_any_normals(mask, seed):
    """Normals are noise without any smoothness, steep and grazing."""
    normals = np.random.default_rng(seed).normal(size=(*mask.shape, 3))
    normals[..., 2] = np.abs(normals[..., 2]) + 1e-3
    normal_map = NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True), mask)
    assert_valid(remesh_isotropic(normal_map, error=1.0, rounds=4), normal_map)


@pytest.mark.parametrize(
    "mask",
    [
        np.ones((1, 1), bool),
        np.ones((1, 300), bool),
        np.eye(40, dtype=bool),
        np.indices((30, 30)).sum(axis=0) % 2 == 0,
        np.random.default_rng(0).random((60, 60)) > 0.1,
        np.random.default_rng(0).random((60, 60)) > 0.6,
    ],
    ids=["pixel", "row", "diagonal", "checkerboard", "holes", "dust"],
)
def test_hard_masks(mask):
    normal_map = bumpy(mask)
    assert_valid(remesh_isotropic(normal_map, error=2.0), normal_map)
    assert_valid(remesh_isotropic(normal_map, vertices=3), normal_map)


@pytest.mark.parametrize("camera", [Orthographic(0.1), Perspective(90, 90, 40, 40)], ids=str)
def test_larger_maps_of_both_cameras(camera):
    mask = disc(80, 38) & ~disc(80, 8)
    normal_map = bumpy_map((80, 80), mask=mask, camera=camera)
    mesh = remesh_isotropic(normal_map, vertices=250)
    assert_valid(mesh, normal_map)
    lost = (pixel_faces(mesh, mask.shape) >= 0) != mask
    assert np.count_nonzero(lost) < 0.02 * normal_map.foreground
    surface = integrate(mesh, normal_map, refine=1)
    assert surface.decimation is mesh.report


def test_a_rectangle_keeps_its_area_and_corners():
    mesh = remesh_isotropic(bumpy(np.ones((40, 50), bool)), error=3.0)
    assert np.isclose(mesh.areas.sum(), 2000)
    assert {(0, 0), (50, 0), (0, 40), (50, 40)} <= {tuple(vertex) for vertex in mesh.vertices}


def test_any_number_of_threads():
    normal_map = Medallion(90).normal_map
    alone, together = on_one_and_on_several(lambda: remesh_isotropic(normal_map, vertices=400))
    assert np.array_equal(alone.vertices, together.vertices)
    assert np.array_equal(alone.faces, together.faces)


# Lengths.


@pytest.mark.parametrize(
    ("bend", "error", "length"),
    [
        (0.01, 0.5, np.sqrt(6 * 0.5 / 0.01 - 3 * 0.25)),
        (0.1, 10.0, np.sqrt(3) * 10),
        (0.1, 40.0, np.sqrt(3 * 40 / 0.1)),
        (0.0, 0.5, 100.0),
        (1e-6, 0.5, 100.0),
        (0.8, 0.05, 1.0),
        (1e3, 1e-3, 1.0),
    ],
    ids=["formula", "at the radius", "beyond the radius", "plane", "nearly a plane", "sharp", "sharper than a pixel"],
)
def test_target_lengths(bend, error, length):
    assert np.isclose(np.sqrt(_edge_lengths.target_squared(bend, error)), length)


def test_target_lengths_grow_with_the_error_and_fall_with_curvature():
    bends, errors = np.geomspace(1e-5, 10, 60), np.geomspace(1e-3, 1e3, 60)
    table = np.array([[_edge_lengths.target_squared(bend, error) for error in errors] for bend in bends])
    assert (np.diff(table, axis=1) >= -1e-9).all()
    assert (np.diff(table, axis=0) <= 1e-9).all()
    twin = [[naive_isotropic.target_length(bend, error) for error in errors] for bend in bends]
    assert np.allclose(np.sqrt(table), twin)


@pytest.mark.parametrize(("radius", "error"), [(0.8, 0.2), (0.75, 0.5)])
def test_edges_have_their_target_lengths(radius, error):
    normal_map, _ = sphere(160, radius=radius, mask=disc(160, 76))
    mesh = remesh_isotropic(normal_map, error=error)
    found = stretches(mesh, normal_map, error)
    assert np.mean((found > 4 / 5 - 0.02) & (found < 4 / 3 + 0.02)) > 0.9
    assert abs(np.median(found) - 1) < 0.1
    cap = 2 * np.pi * (radius * 160) ** 2 * (1 - np.sqrt(1 - (76 / (radius * 160)) ** 2))
    equilateral = 2 / np.sqrt(3) * cap / _edge_lengths.target_squared(1 / (radius * 160), error)
    assert 0.9 < len(mesh.vertices) / equilateral < 1.4


def test_triangles_are_equilateral_on_the_surface_not_on_the_screen():
    normal_map, _ = waves((120, 120), steepness=3.0)
    mesh = remesh_isotropic(normal_map, error=1.0)
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    centre = (a + b + c) / 3
    column, row = np.clip(centre.astype(int), 0, 119).T
    J = normal_map.camera.jacobian(normal_map.normals[row, column], *centre.T)
    sides = [np.linalg.norm(np.einsum("nij,nj->ni", J, end - start), axis=1) for start, end in ((a, b), (b, c), (c, a))]
    on_surface = np.max(sides, axis=0) / np.min(sides, axis=0)
    sides = [np.linalg.norm(end - start, axis=1) for start, end in ((a, b), (b, c), (c, a))]
    on_screen = np.max(sides, axis=0) / np.min(sides, axis=0)
    assert np.median(on_surface) < 1.5 < np.median(on_screen)


# The search for a number of vertices.


@pytest.mark.parametrize("camera", [Orthographic(), Perspective(150, 150, 60, 60)], ids=str)
@pytest.mark.parametrize("target", [150, 600])
def test_vertex_targets(camera, target):
    normal_map = bumpy_map((120, 120), camera=camera)
    mesh = remesh_isotropic(normal_map, vertices=target)
    assert abs(len(mesh.vertices) / target - 1) <= 0.02
    assert mesh.report.target == target
    assert mesh.report.target_met == (abs(len(mesh.vertices) / target - 1) <= 0.01)
    again = remesh_isotropic(normal_map, error=mesh.report.error)
    assert np.array_equal(again.vertices, mesh.vertices), "a search leads to the mesh of its error"


def test_fewer_vertices_for_larger_errors():
    normal_map = Medallion(120).normal_map
    counts = [len(remesh_isotropic(normal_map, error=error).vertices) for error in (0.1, 0.4, 1.6, 6.4)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 5 * counts[-1]


def test_targets_out_of_reach():
    normal_map = bumpy_map((30, 30))
    with pytest.warns(NormalMeshWarning, match="the isotropic mesh has 961 vertices instead of 1000000: the outline"):
        assert len(remesh_isotropic(normal_map, vertices=10**6).vertices) == 31 * 31
    with pytest.warns(NormalMeshWarning, match="instead of 500"):
        plane = remesh_isotropic(plane_map((1, 0, 1), (50, 50)), vertices=500)
    assert not plane.report.target_met, "a plane has no more vertices than triangles of 100 px need"
    few = remesh_isotropic(normal_map, vertices=3)
    assert not few.report.target_met
    assert len(few.vertices) < 20


def test_report_and_progress():
    reported, searched = [], []
    normal_map = Medallion(80).normal_map
    mesh = remesh_isotropic(normal_map, error=1.0, progress=reported.append)
    report = mesh.report
    assert report.error == 1.0
    assert report.target is None
    assert report.target_met
    assert report.meshes == 1
    assert len(report.rounds) == 10
    assert report.rounds[-1].vertices == len(mesh.vertices)
    assert min(report.splits, report.collapses, report.flips, report.moves) > 0
    assert set(report.seconds) == {"start", "split", "collapse", "flip", "move"}
    remesh_isotropic(normal_map, vertices=200, progress=searched.append)
    for calls in (reported, searched):
        assert [step.share for step in calls] == sorted(step.share for step in calls)
        assert (calls[-1].share, calls[-1].stage) == (1.0, "done")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one of error and vertices, not none"),
        ({"error": 1.0, "vertices": 9}, "exactly one of error and vertices, not both"),
        ({"error": 0}, "error must be a positive number, not 0"),
        ({"error": float("nan")}, "error must be a positive number"),
        ({"error": "small"}, "error must be a positive number"),
        ({"vertices": 2}, "vertices must be a whole number from 3 to 2147483647, not 2"),
        ({"vertices": 10.5}, "vertices must be a whole number"),
        ({"error": 1.0, "rounds": 0}, "rounds must be a whole number from 1 to 10000"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(NormalMeshError, match=message):
        remesh_isotropic(bumpy(np.ones((6, 6), bool)), **options)


# Kernels.


@pytest.mark.parametrize("camera", [Orthographic(0.5), Perspective(30, 33, 12, 12, 0.4)], ids=str)
def test_samples_and_stretches(camera):
    normal_map = bumpy_map((24, 26), camera=camera)
    mesh, _, _ = coarse_mesh(normal_map, 25)
    bends = curvature(normal_map)
    lengths = EdgeLengths(Pixels(normal_map), bends, 0.3)
    twin = [[naive_isotropic.target_length(bend, 0.3) ** -2 for bend in row] for row in bends]
    assert np.allclose(lengths.density, twin, rtol=1e-5)
    lengths.sample(mesh)
    screen = mesh.to_screen()
    owner = pixel_faces(screen, normal_map.shape)
    samples = lengths.samples[: mesh.real_faces].astype(float)
    for f in np.unique(owner[owner >= 0]):
        twin = naive_isotropic.face_sample(screen.vertices, screen.faces[f], owner, f, normal_map, lengths.density)
        assert np.allclose(samples[f], twin, rtol=1e-4, atol=1e-6)
    assert (lengths.samples[mesh.real_faces :] == 0).all()
    twins = naive_isotropic.stretches(screen, samples, camera)
    for corner in range(3 * mesh.real_faces):
        edge = tuple(sorted(np.delete(mesh.faces[corner // 3], corner % 3).tolist()))
        found = _edge_lengths.stretch_of(corner, mesh.arrays, lengths.arrays)
        assert np.isclose(found, twins[edge], rtol=1e-4)
    expected = expected_vertices(Pixels(normal_map), bends, 0.3)
    assert np.isclose(expected, naive_isotropic.expected_vertices(normal_map, bends, 0.3), rtol=1e-5)


@pytest.mark.parametrize("mask", [np.ones((20, 22), bool), disc(24, 11) & ~disc(24, 4)], ids=["rectangle", "ring"])
def test_splits_and_collapses(mask):
    """Both are exhaustive, and leave consistent tables."""
    normal_map = bumpy_map(mask.shape, mask=mask)
    mesh, _, _ = coarse_mesh(normal_map, 12)
    before = len(mesh.vertices)
    area = mesh.to_screen().areas.sum()
    lengths = EdgeLengths(Pixels(normal_map), curvature(normal_map), 0.2)
    splits = split(mesh, lengths)
    assert_consistent(mesh)
    assert len(mesh.vertices) == before + splits > before
    assert np.isclose(mesh.to_screen().areas.sum(), area)
    assert (mesh.faces[mesh.real_faces :, 2] == mesh.ghost).all()
    assert np.array_equal(mesh.covered, pixel_faces(mesh.to_screen(), mask.shape) >= 0)
    assert split(mesh, EdgeLengths(Pixels(normal_map), curvature(normal_map), 50.0)) == 0
    collapses = collapse(mesh, EdgeLengths(Pixels(normal_map), curvature(normal_map), 50.0))
    assert_consistent(mesh)
    assert len(mesh.vertices) == before + splits - collapses
    assert np.array_equal(mesh.covered, pixel_faces(mesh.to_screen(), mask.shape) >= 0)
    assert collapses > 0
    assert collapse(mesh, EdgeLengths(Pixels(normal_map), curvature(normal_map), 50.0)) == 0


def test_collapses_keep_the_outline():
    """Without moves, every point of the outline without its staircase lies within a pixel of the boundary."""
    mask = disc(60, 27.3) & ~disc(60, 9.1)
    normal_map = plane_map((0, 0, 1), mask.shape, mask=mask)
    mesh = ClosedMesh.from_screen(ScreenMesh.from_mask(mask), mask.shape)
    collapse(mesh, EdgeLengths(Pixels(normal_map), curvature(normal_map), 1.0))
    sides = [mesh.vertices[face[:2]] for face in mesh.faces[mesh.real_faces :]]
    assert len(sides) < 30
    distances = [min(naive.distance_to_segment(point, *side) for side in sides) for point in mesh.outline.smooth]
    assert max(distances) <= 1 + 1e-9


# Comparison with decimation.


def test_decimation_keeps_features_better():
    """As the paper claims, normals are less accurate than with feature-aligned edges at equal vertex counts."""
    u, v = np.meshgrid(np.arange(128) + 0.5, np.arange(128) + 0.5)
    slope_u = 0.7 * np.tanh(4 * np.sin(0.11 * u + 0.07 * v))
    slope_v = 0.5 * np.tanh(4 * np.sin(0.05 * u - 0.13 * v + 1))
    normals = np.stack([-slope_u * 0.11 - slope_v * 0.05, slope_u * 0.07 - slope_v * 0.13, 0.1 * np.ones_like(u)], -1)
    normal_map = NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True))
    isotropic = remesh_isotropic(normal_map, vertices=600)
    aligned = decimate(normal_map, vertices=len(isotropic.vertices))
    errors = [
        angle_error(integrate(mesh, normal_map, refine=0, discontinuities=False), normal_map)
        for mesh in (isotropic, aligned)
    ]
    assert errors[0] > 1.1 * errors[1]
