"""Decimation in pieces: masks that seams cut badly, rules that tiles can hardly meet, and an honest report."""

import warnings

import numpy as np
import pytest
from scipy import ndimage

import normalmesh as nm
from normalmesh.mesh.coverage import Coverage
from surfaces import centres, plane_map, waves

TILE = 256
SLOPES = 0.3, -0.2


def tiled(normal_map, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nm.NormalMeshWarning)
        return nm.reconstruct_tiled(normal_map, tiles=TILE, workers=0, **options)


def plane(mask):
    return plane_map((-SLOPES[0], SLOPES[1], 1.0), mask.shape, mask=mask)


def assert_plane_on_each_component(surface, mask):
    """Check that heights differ from those of the plane by a constant on each component, up to rounding."""
    u, v = surface.screen.T
    off = surface.vertices[:, 2] - SLOPES[0] * u - SLOPES[1] * v
    spans = ndimage.maximum(off, surface.components, range(surface.components.max() + 1))
    spans -= ndimage.minimum(off, surface.components, range(surface.components.max() + 1))
    assert spans.max() < 1e-4
    assert surface.components.max() + 1 == ndimage.label(mask)[1]


def seam_masks():
    """Masks of 300 px or so whose parts lie on seams, at their crossing, or at one side of them."""
    v, u = np.indices((300, 300))
    corners = (u < 256) == (v < 256)
    on_seam = np.zeros((300, 300), bool)
    on_seam[0, 0] = on_seam[255:257, 20:240] = on_seam[20:200, 255:257] = on_seam[255:257, 255:257] = True
    on_seam[299, 299] = True
    one_pixel = (u < 256) | (v < 256)
    one_pixel[280, 280] = True
    comb = (v % 20 < 2) | (u < 3)
    dust = np.random.default_rng(0).random((80, 300)) < 0.3
    inside = np.zeros((300, 700), bool)
    inside[30:290, 400:690] = True
    return {
        "corners": corners,
        "on seam": on_seam,
        "one pixel": one_pixel,
        "comb": comb,
        "dust": dust,
        "rectangle inside": inside,
        "last tile of one px": np.ones((257, 257), bool),
        "one row": np.ones((1, 600), bool),
    }


@pytest.mark.parametrize("name", seam_masks())
def test_planes_are_exact_whatever_seams_cut(name):
    mask = seam_masks()[name]
    surface = tiled(plane(mask), compression=0.98)
    assert surface.mesh.check().ok
    assert_plane_on_each_component(surface, mask)
    assert surface.coverage == Coverage.of(surface.mesh, mask)


def test_thin_parts_are_as_good_as_in_memory():
    mask = seam_masks()["comb"]
    normal_map, height = waves((300, 300), mask=mask)
    both = [tiled(normal_map, compression=0.98), nm.reconstruct(normal_map, compression=0.98)]
    errors = []
    for surface in both:
        off = (surface.depth_map() - height)[mask & np.isfinite(surface.depth_map())]
        errors.append(off.std())
    assert len(both[0].vertices) <= 1.01 * len(both[1].vertices)
    assert errors[0] < 2 * errors[1]


@pytest.mark.parametrize("vertices", [3, 20, 3000])
def test_the_report_tells_whether_the_target_was_met(vertices):
    normal_map = waves((300, 300))[0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        surface = nm.reconstruct_tiled(normal_map, tiles=TILE, workers=0, vertices=vertices)
    report, count = surface.decimation, len(surface.vertices)
    assert surface.mesh.check().ok
    assert report.target == vertices
    assert report.target_met == (count == vertices) == (not report.reason)
    assert count <= 1.005 * vertices + 40
    assert report.collapses > 1000
    assert report.moves > 0
    assert report.largest_cost > 0
    assert report.seconds.keys().isdisjoint(surface.integration.seconds)
    assert all(name.startswith("decimate-") for name in report.seconds)
    warned = any(f"{vertices} vertices were asked for" in str(each.message) for each in caught)
    assert warned == (abs(count - vertices) > 0.02 * vertices + 10)


def test_jumps_along_a_seam_and_through_a_crossing():
    u, v = centres((300, 300))
    height = np.where(u > 256, 40.0, 0.0) + np.where(v > 256, 25.0, 0.0)
    normals = np.broadcast_to([0.0, 0.0, 1.0], (300, 300, 3)).copy()
    lines = [[[256, 0], [256, 300]], [[0, 256], [300, 256]]]
    places = [(u, v) for u in (60, 280) for v in (60, 280)]
    prior = [(u, v, height[v, u]) for u, v in places]
    surface = tiled(nm.NormalMap(normals), compression=0.99, jumps=lines, prior=prior)
    assert surface.mesh.check().ok
    depth = surface.depth_map()
    assert surface.components.max() + 1 == 4
    for u, v in places:
        assert depth[v, u] == pytest.approx(height[v, u], abs=1e-3)


def test_tiles_do_not_join_across_gaps_that_may_be_filled():
    mask = np.random.default_rng(4).random((280, 80)) < 0.7
    surface = tiled(waves(mask.shape, mask=mask)[0], compression=0.98, decimation={"keep_thin": False})
    assert surface.mesh.check().ok
    assert surface.components.max() + 1 == ndimage.label(mask)[1]
    assert surface.coverage == Coverage.of(surface.mesh, mask)


def test_a_threshold_means_the_same_in_one_tile_as_in_memory():
    normal_map = waves((300, 300))[0]
    whole = nm.reconstruct(normal_map, threshold=10.0)
    one_tile = nm.reconstruct_tiled(normal_map, threshold=10.0, tiles=384, workers=0)
    assert len(one_tile.vertices) == pytest.approx(len(whole.vertices), rel=0.01)


@pytest.mark.parametrize("threshold", [0.5, 8.0])
def test_a_threshold_leaves_as_many_vertices_in_collar(threshold):
    normal_map = waves((600, 600))[0]
    whole, pieces = nm.reconstruct(normal_map, threshold=threshold), tiled(normal_map, threshold=threshold)
    assert len(pieces.vertices) == pytest.approx(len(whole.vertices), rel=0.1)
    assert nm.evaluate(pieces, normal_map).mae < 1.03 * nm.evaluate(whole, normal_map).mae


def test_a_cross_of_one_pixel_has_the_vertices_asked_for():
    v, u = np.indices((600, 600))
    normals = np.dstack([-0.3 * np.cos(u / 40), -0.2 * np.sin(v / 30), np.ones((600, 600))])
    mask = (u == 300) | (v == 300)
    normal_map = nm.NormalMap(normals / np.linalg.norm(normals, axis=2, keepdims=True), mask)
    whole, pieces = (make(normal_map, compression=0.98) for make in (nm.reconstruct, tiled))
    assert len(pieces.vertices) == len(whole.vertices) == 24
    assert pieces.decimation.target_met
