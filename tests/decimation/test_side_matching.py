"""Test that opposite sides of a decimated mesh match exactly, whatever the mask."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from normalmesh import DecimatedMesh, decimate
from normalmesh.decimation.side_matching import with_matching_sides
from normalmesh.mesh.cut_mesh import edge_ends
from normalmesh.mesh.origin import Decimation
from normalmesh.mesh.repeats import Repeats
from periodic_maps import map_of_slopes, waves


def joined_length(mesh):
    """Return the length of the sides (px) at which a mesh is joined."""
    outer = np.flatnonzero((mesh.opposite < 0) & (mesh.repeats.wrap(mesh).opposite >= 0))
    ends = mesh.vertices[edge_ends(mesh, outer)]
    return np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1).sum() / 2


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.floats(0.0, 0.6), st.sampled_from([4, 60, 300]), st.sampled_from([True, "x", "y"]))
def test_random_masks(seed, background, vertices, tileable):
    random = np.random.default_rng(seed)
    shape = tuple(random.integers(12, 40, 2))
    blobs = ndimage.gaussian_filter(random.normal(size=shape), 2.5, mode="wrap")
    mask = blobs >= np.quantile(blobs, background)
    _, right, down = waves(shape, seed)
    mesh = decimate(map_of_slopes(right, down, mask), vertices=vertices, tileable=tileable)
    assert mesh.check().ok
    columns = np.count_nonzero(mask[0] & mask[-1]) if tileable in (True, "y") else 0
    rows = np.count_nonzero(mask[:, 0] & mask[:, -1]) if tileable in (True, "x") else 0
    # Outlines may bridge gaps in the foreground of a pixel or two on both sides, or lose a stretch of a pixel or two.
    assert joined_length(mesh) >= rows + columns - 4
    assert mesh.locked[mesh.repeats.wrap(mesh).twins].all()


@pytest.mark.parametrize("vertices", [4, 30, 200, 900])
def test_vertices_asked_for(vertices):
    _, right, down = waves((60, 70), creased=True)
    mesh = decimate(map_of_slopes(right, down), vertices=vertices, tileable=True)
    assert vertices - 2 * vertices**0.5 <= len(mesh.vertices) <= vertices + 0.5 * vertices**0.5
    assert np.count_nonzero(mesh.repeats.wrap(mesh).opposite < 0) == 0


def test_face_that_would_be_flat():
    """A face between a side and a vertex just beyond it goes."""
    vertices = np.array([[0, 0], [0, 4], [4, 4], [4, 0], [-0.01, 2]])
    faces = np.array([[0, 1, 2], [0, 2, 3], [0, 4, 1]], np.int32)
    report = Decimation((), None, True, {}, {}, 0)
    mesh = DecimatedMesh(vertices, faces, np.arange(5) < 4, report)
    matched = with_matching_sides(mesh, Repeats.of(True, (4, 4)), lambda *area: np.ones((4, 4), bool)[area])
    assert matched.check().ok
    assert np.array_equal(matched.vertices, vertices[:4])
    assert joined_length(matched) == 8
