"""Check that splits add exactly as many vertices as asked for, and leave the surface as it is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshes import assert_consistent, bumpy_map, disc, point_mesh
from normalmesh import Orthographic, Perspective, decimate
from normalmesh.integration.splitting import split_worst
from normalmesh.mesh.closed_mesh import ClosedMesh

CAMERAS = [Orthographic(0.7), Perspective(90.0, 95.0, 24.0, 23.0, skew=1.0)]


def space_area(mesh, unknown, camera):
    """Return the area of the surface in space."""
    points = camera.points(mesh.vertices, unknown)[mesh.faces]
    return np.linalg.norm(np.cross(points[:, 1] - points[:, 0], points[:, 2] - points[:, 0]), axis=1).sum() / 2


@given(st.integers(0, 10_000), st.integers(0, 150), st.sampled_from(CAMERAS))
def test_splits_add_as_many_vertices_as_asked_for(seed, count, camera):
    normal_map = bumpy_map((48, 48), seed, mask=disc(48, 22), camera=camera)
    mesh = decimate(normal_map, vertices=60)
    rng = np.random.default_rng(seed)
    locked = rng.random(len(mesh.vertices)) < 0.2
    unknown = rng.normal(0, 0.1, len(mesh.vertices))
    closed = ClosedMesh.from_screen(mesh, normal_map.shape, locked)
    boundary = np.count_nonzero(closed.flags & 1)
    values = split_worst(closed, unknown, normal_map, count)[0]
    assert len(values) == len(closed.vertices) == len(mesh.vertices) + count
    assert_consistent(closed)
    after = closed.to_screen()
    assert after.check().ok, str(after.check())
    # Old vertices keep their place, number and value; new ones lie on edges in space, none at the boundary.
    assert np.array_equal(after.vertices[: len(unknown)], mesh.vertices)
    assert np.array_equal(values[: len(unknown)], unknown)
    assert np.count_nonzero(closed.flags & 1) == boundary
    assert space_area(after, values, camera) == pytest.approx(space_area(mesh, unknown, camera), rel=1e-9)


def test_edges_between_locked_vertices_are_not_split():
    normal_map = bumpy_map((48, 48))
    mesh = point_mesh((48, 48), 30)
    closed = ClosedMesh.from_screen(mesh, (48, 48), np.ones(len(mesh.vertices), bool))
    unknown = split_worst(closed, np.zeros(len(mesh.vertices)), normal_map, 5)[0]
    assert len(unknown) == len(mesh.vertices)
    assert np.array_equal(closed.to_screen().faces, mesh.faces)


def test_the_worst_face_is_split_first():
    """Only the faces around one vertex do not fit."""
    normal_map = bumpy_map((48, 48), height=0.0)
    mesh = point_mesh((48, 48), 60)
    unknown = np.zeros(len(mesh.vertices))
    wrong = int(np.argmin(np.linalg.norm(mesh.vertices - 24, axis=1)))
    unknown[wrong] = 5.0
    closed = ClosedMesh.from_screen(mesh, (48, 48))
    split_worst(closed, unknown, normal_map, 1)
    changed = (closed.to_screen().faces[: len(mesh.faces)] != mesh.faces).any(axis=1)
    assert (mesh.faces[changed] == wrong).any()


def test_too_many_splits_end():
    """A mesh of one vertex for each pixel has no edge left to split."""
    normal_map = bumpy_map((6, 6))
    mesh = point_mesh((6, 6), 40)
    closed = ClosedMesh.from_screen(mesh, (6, 6))
    unknown = split_worst(closed, np.zeros(len(mesh.vertices)), normal_map, 1000)[0]
    assert len(unknown) == len(closed.vertices) < 100
