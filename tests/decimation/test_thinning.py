"""Test the thinning of parts of a surface: what stays, that meshes stay valid, and its errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import normalmesh as nm
from decimation_checks import masks
from normalmesh import ScreenMesh
from normalmesh.decimation.thinning import KEPT, Part
from tilesets import wavy_surface


def nothing(vertices):
    return np.zeros(len(vertices), bool)


def screen_mesh(surface, part):
    """Return the part as a mesh on the screen without the vertices that it does not use."""
    vertices, faces = np.unique(part.faces, return_inverse=True)
    return ScreenMesh(surface.screen[vertices], faces.reshape(-1, 3))


@given(masks, st.integers(0, 3))
def test_thinned_meshes_are_valid(mask, seed):
    surface = wavy_surface(mask, seed=seed)
    part = Part.of_faces(surface, surface.faces, surface.walls, nothing).thinned(surface, nothing)
    check, before = screen_mesh(surface, part).check(), surface.mesh.check()
    assert check.ok, str(check)
    assert sorted(check.boundary_loops) == sorted(before.boundary_loops)
    assert np.array_equal(np.unique(part.faces), part.vertices)
    assert len(part.quadrics) == len(part.vertices)


@given(masks, st.integers(0, 3))
def test_shared_vertices_stay_with_their_edges(mask, seed):
    surface = wavy_surface(mask, seed=seed)
    left = surface.screen[surface.faces, 0].mean(axis=1) < np.median(surface.screen[:, 0])
    parts = [surface.faces[left], surface.faces[~left]]
    shared = np.intersect1d(*parts)
    edges = []
    for faces in parts:
        if len(faces) == 0:
            return

        def is_shared(vertices):
            return np.isin(vertices, shared)

        part = Part.of_faces(surface, faces, surface.walls, is_shared).thinned(surface, is_shared)
        assert np.isin(np.intersect1d(shared, faces), part.faces).all()
        ends = np.sort(np.concatenate([part.faces[:, [k, (k + 1) % 3]] for k in range(3)]), axis=1)
        found, count = np.unique(ends, axis=0, return_counts=True)
        assert count.max() <= 2
        border = found[(count == 1) & np.isin(found, shared).all(axis=1)]
        edges.append(set(map(tuple, border)))
    # An edge of the outline may join two shared vertices, too.
    cut = edges[0] & edges[1]
    sides = [
        set(map(tuple, np.sort(np.concatenate([f[:, [k, (k + 1) % 3]] for k in range(3)]), axis=1))) for f in parts
    ]
    # A hole between the parts may close in both.
    assert sides[0] & sides[1] <= cut


def test_a_quarter_stays():
    surface = wavy_surface(np.ones((40, 40), bool))
    part = Part.of_faces(surface, surface.faces, surface.walls, nothing)
    for _ in range(3):
        coarse = part.thinned(surface, nothing)
        assert len(coarse.vertices) == pytest.approx(KEPT * len(part.vertices), abs=1)
        assert coarse.error > part.error
        part = coarse


def test_a_plane_costs_nothing_and_stays_even():
    surface = wavy_surface(np.ones((40, 40), bool))
    flat = nm.Surface(surface.vertices * [1, 1, 0], surface.faces, surface.screen, surface.camera, surface.shape)
    part = Part.of_faces(flat, flat.faces, flat.walls, nothing).thinned(flat, nothing)
    mesh = screen_mesh(flat, part)
    corners = mesh.vertices[mesh.faces]
    longest = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max(axis=1)
    assert np.median(mesh.areas / longest**2) > 0.15
    inside = np.abs(corners[:, :, 0].mean(axis=1) - 80) < 60
    assert np.quantile(longest[inside], 0.99) < 40


def test_joined_parts_are_the_whole():
    surface = wavy_surface(np.ones((12, 12), bool))
    half = len(surface.faces) // 2
    whole = Part.of_faces(surface, surface.faces, surface.walls, nothing)
    shared = np.intersect1d(surface.faces[:half], surface.faces[half:])
    parts = [
        Part.of_faces(surface, faces, surface.walls, lambda vertices: np.isin(vertices, shared))
        for faces in (surface.faces[:half], surface.faces[half:])
    ]
    joined = Part.joined(parts)
    assert np.array_equal(joined.vertices, whole.vertices)
    inner = ~np.isin(joined.vertices, shared)
    np.testing.assert_allclose(joined.quadrics[inner], whole.quadrics[inner], atol=1e-9)
