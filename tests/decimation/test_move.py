"""Vertex moves: best steps, and steps that are shortened."""

import numpy as np
import pytest

from meshes import assert_consistent, bumpy_map, coarse_mesh, disc, start_mesh
from normalmesh import pixel_faces
from normalmesh.decimation._move import MIN_STEP, best_steps
from normalmesh.decimation.move import move, smooth_rim
from normalmesh.decimation.quadrics import Pixels, vertex_quadrics
from normalmesh.mesh._closed_mesh import BOUNDARY, LOCKED
from normalmesh.mesh._outline import near_outline


def test_steps_lead_to_the_minimum_of_the_quadrics():
    """Supplement B: Ã δu = b̃, and eq. (16)."""
    mesh, pixels, records = coarse_mesh(bumpy_map(height=6.0), 80)
    mesh.flags[:10] |= LOCKED
    quadrics = vertex_quadrics(mesh, pixels, records)
    steps = np.full((len(quadrics), 2), np.nan)
    best_steps(0, len(steps), quadrics, mesh.flags, 0.5, steps)
    for q, flags, step in zip(quadrics, mesh.flags, steps, strict=True):
        expected = np.linalg.solve([[q[0], q[1]], [q[1], q[2]]], -q[3:5]) if flags == 0 else np.zeros(2)
        assert np.allclose(step, 0.5 * expected, rtol=1e-6, atol=1e-9)
    assert (mesh.flags == 0).sum() > 20


def test_a_quadric_without_a_minimum_gives_no_step():
    steps = np.ones((2, 2))
    best_steps(0, 2, np.array([[1.0, 1, 1, 2, 3, 4], [0, 0, 0, 1, 1, 0]]), np.zeros(2, np.uint8), 0.5, steps)
    assert not steps.any()


@pytest.mark.parametrize("mask", [None, disc(40, 18), np.random.default_rng(0).random((40, 40)) > 0.1])
@pytest.mark.parametrize("step", [0.5, 1000.0])
def test_no_step_turns_a_face_over(mask, step):
    """Steps of a thousand times the best are shortened or given up. Boundary vertices stay near the outline."""
    normal_map = bumpy_map((40, 40), mask=mask, height=8.0)
    mesh, pixels, records = coarse_mesh(normal_map, 100)
    before, faces = mesh.vertices.copy(), mesh.faces.copy()
    assert move(mesh, pixels, records, step) > 0
    assert np.array_equal(mesh.faces, faces)
    assert_consistent(mesh)
    assert mesh.to_screen().check().ok
    assert all(near_outline(*place, normal_map.mask) for place in mesh.vertices[mesh.flags & BOUNDARY != 0])
    assert np.array_equal(mesh.covered, pixel_faces(mesh.to_screen(), normal_map.shape) >= 0)
    moved = (mesh.vertices != before).any(axis=1)
    assert moved.any()
    assert (np.linalg.norm(mesh.vertices - before, axis=1)[moved] >= MIN_STEP / 2**6).all()


def test_exactly_the_faces_that_changed_are_marked():
    mesh, pixels, records = coarse_mesh(bumpy_map((40, 40), mask=disc(40, 18)), 150)
    mesh.flags[::3] |= LOCKED
    before = mesh.vertices.copy()
    moves = move(mesh, pixels, records, 0.5)
    moved = (mesh.vertices != before).any(axis=1)
    assert moves == moved.sum() > 0
    assert not moved[mesh.flags & LOCKED != 0].any()
    faces = mesh.faces[: mesh.real_faces]
    assert np.array_equal(records.changed[: mesh.real_faces], moved[faces].any(axis=1))
    assert not records.changed[: mesh.real_faces].all()


def test_moves_lower_the_sum_of_the_quadrics():
    mesh, pixels, records = coarse_mesh(bumpy_map((40, 40)), 100)
    inner = mesh.flags == 0
    costs = []
    for _ in range(3):
        costs.append(vertex_quadrics(mesh, pixels, records)[inner, 5].sum())
        move(mesh, pixels, records, 0.5)
        records.renew(mesh, pixels)
    assert costs[0] > costs[1] > costs[2]


def test_a_fine_rim_becomes_smooth():
    """The corners of the staircase of a disc come to lie on a circle, without faces at which it is flat."""
    mask = disc(60, 25)
    mask[25:35, :30] = False
    mesh, pixels, _ = coarse_mesh(bumpy_map((60, 60), mask=mask), 1500)
    faces = mesh.faces.copy()
    locked = np.flatnonzero(mesh.flags & BOUNDARY)[::9]
    mesh.flags[locked] |= LOCKED
    before = mesh.vertices.copy()
    smooth_rim(mesh, pixels)
    assert_consistent(mesh)
    assert not np.array_equal(mesh.faces, faces)
    assert np.array_equal(mesh.vertices[locked], before[locked])
    assert np.array_equal(mesh.vertices[mesh.flags == 0], before[mesh.flags == 0])
    assert np.array_equal(mesh.covered, pixel_faces(mesh.to_screen(), mask.shape) >= 0)
    free = mesh.flags == BOUNDARY
    moved = np.linalg.norm(mesh.vertices - before, axis=1)
    assert moved.max() < 1
    outer = free & (np.hypot(*(mesh.vertices - 30).T) > 20) & (np.abs(mesh.vertices[:, 1] - 30) > 8)
    radii = np.hypot(*(mesh.vertices[outer] - 30).T)
    assert radii.std() < 0.5 * np.hypot(*(before[outer] - 30).T).std()


def test_the_sides_of_a_square_stay():
    mask = np.zeros((30, 30), bool)
    mask[5:25, 5:25] = True
    mesh = start_mesh(bumpy_map((30, 30), mask=mask))
    before = mesh.vertices.copy()
    smooth_rim(mesh, Pixels(bumpy_map((30, 30), mask=mask)))
    assert np.array_equal(mesh.vertices, before)
