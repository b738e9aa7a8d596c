"""Check pixel integration with depth discontinuities: jumps are kept, and smooth surfaces are not changed."""

import numpy as np
import pytest
from scipy import ndimage

import naive_pixels
from normalmesh import NormalMap, NormalMeshWarning, Orthographic, Perspective, integrate_pixels, read_normal_map
from normalmesh.integration._pixel_integration import multiply_grid
from normalmesh.integration.mesh_solver import HOLD
from normalmesh.integration.pixel_grid import (
    EdgeWeights,
    PixelPlanes,
    aggregate_pixels,
    no_edges,
    over_rows,
    solve_grid,
)
from normalmesh.integration.pixel_jumps import cut_across, with_jumps
from normalmesh.jumps.finding import find_jumps
from normalmesh.mesh.jumps import JumpLine, Jumps
from normalmesh.solvers._multigrid import STRONG
from surfaces import noisy
from thread_counts import on_one_and_on_several

CAMERAS = [Orthographic(0.7), Perspective(900.0, 800.0, 41.0, 34.0, skew=3.0)]


@pytest.mark.parametrize("camera", CAMERAS, ids=["orthographic", "perspective"])
def test_a_jump_bends_less(camera):
    unknown, given_map = flap(camera)
    assert error(given_map, unknown, True) < 0.5 * error(given_map, unknown, False)


@pytest.mark.parametrize("camera", CAMERAS, ids=["orthographic", "perspective"])
def test_a_smooth_surface_stays(camera):
    _, given_map = bowl(camera)
    plain = integrate_pixels(given_map)
    for choice in (True, "auto"):
        assert np.array_equal(integrate_pixels(given_map, discontinuities=choice), plain)


def test_noise_does_not_tear():
    """Noise of 3° causes no jumps."""
    unknown, given_map = bowl(Orthographic())
    rough = noisy(given_map, 3.0)
    assert error(rough, unknown, True) == error(rough, unknown, False)
    unknown, given_map = flap(Orthographic())
    rough = noisy(given_map, 3.0)
    assert error(rough, unknown, True) < 0.4 * error(rough, unknown, False)


def test_edges_across_a_line_are_cut():
    path = np.array([[5, 3], [6, 3], [6, 4], [6, 5], [5, 5]])
    edges = EdgeWeights(np.ones((6, 7), np.float32), np.ones((6, 7), np.float32), np.zeros((0, 0), np.float32))
    cut_across(JumpLine(path, 1.0, 1.0), 1, 2, edges)
    # The window begins in row 1 and column 2 of the map.
    assert np.argwhere(edges.down == 0).tolist() == [[2 - 1, 5 - 2], [4 - 1, 5 - 2]]
    assert np.argwhere(edges.right == 0).tolist() == [[3 - 1, 5 - 2], [4 - 1, 5 - 2]]


@pytest.mark.parametrize("camera", CAMERAS, ids=["orthographic", "perspective"])
def test_pixels_are_held_where_the_placement_is(camera):
    _, given_map = flap(camera)
    mask = np.ones(given_map.shape, bool)
    mask[:4] = mask[:, :3] = False
    given_map = NormalMap(given_map.normals, mask, camera)
    jumps = find_jumps(given_map, discontinuities=True)
    planes = PixelPlanes.of(given_map)
    edges = no_edges(planes.mask.shape)
    edges.right[:], edges.down[:] = 1, 1
    held, pull = with_jumps(jumps, planes, edges, given_map)
    assert np.count_nonzero(held.right == 0) + np.count_nonzero(held.down == 0) == jumps.length
    np.testing.assert_allclose(held.hold, HOLD * planes.mobility, rtol=1e-6)
    # Where the planes of the placement are, it would place each pixel.
    value = pull / held.hold
    placement = jumps.placement
    for f in np.random.default_rng(0).choice(len(placement.offsets), 60, replace=False):
        u, v = placement.centroids[f]
        row, column = int(v), int(u)
        step = np.array([column + 0.5, row + 0.5]) - placement.centroids[f]
        linear = placement.gradients[f] @ step
        rise = -np.log1p(-linear) if isinstance(camera, Perspective) else linear
        corners = placement.mesh.vertices[placement.mesh.faces[f]]
        if placement.areas[f] > 2 and _is_inside((column + 0.5, row + 0.5), corners):
            assert value[row - 4, column - 3] == pytest.approx(placement.offsets[f] + rise, abs=1e-5)
    nothing, zero = with_jumps(Jumps(), planes, edges, given_map)
    assert nothing is edges
    assert not zero.any()


def test_held_pixels_are_solved():
    rng = np.random.default_rng(0)
    mask = rng.random((60, 70)) > 0.15
    right, down = (np.zeros(mask.shape, np.float32) for _ in range(2))
    right[:, :-1], down[:-1] = mask[:, 1:] & mask[:, :-1], mask[1:] & mask[:-1]
    edges = EdgeWeights(right, down, (mask * rng.random(mask.shape) * 0.03).astype(np.float32))
    truth, b = np.where(mask, rng.random(mask.shape), 0.0), np.empty(mask.shape)
    over_rows(multiply_grid, mask.shape, edges, truth, b)
    np.testing.assert_allclose(solve_grid(mask, edges, b)[mask], truth[mask], atol=1e-4)


def test_jumps_that_are_known_are_taken():
    unknown, given_map = flap(CAMERAS[0])
    jumps = find_jumps(given_map, discontinuities=True)
    assert len(jumps.lines) > 0
    found = integrate_pixels(given_map, jumps=jumps)
    assert np.array_equal(found, integrate_pixels(given_map, discontinuities=True))
    corners = np.concatenate([line.path for line in jumps.lines])
    assert np.mean(corners[:, 0] == 48) > 0.8
    jump = found[10, 47] - found[10, 48]
    assert jump == pytest.approx(unknown[10, 47] - unknown[10, 48], rel=0.3)


def test_aggregates_are_joined_by_strong_edges():
    rng = np.random.default_rng(0)
    for rows, columns in rng.integers(1, 9, (40, 2)):
        mask = rng.random((rows, columns)) < 0.85
        right, down = np.zeros(mask.shape, np.float32), np.zeros(mask.shape, np.float32)
        right[:, :-1] = (mask[:, 1:] & mask[:, :-1]) * 100 ** -rng.random((rows, columns - 1))
        down[:-1] = (mask[1:] & mask[:-1]) * 100 ** -rng.random((rows - 1, columns))
        aggregate, cells = aggregate_pixels(mask, EdgeWeights(right, down, np.zeros((0, 0), np.float32)))
        parts = naive_pixels.strong_parts(mask, right, down, STRONG)
        assert len(parts) == len(cells)
        assert {frozenset(map(tuple, np.argwhere(aggregate == k))) for k in range(len(cells))} == parts


def test_components_thin_masks_and_single_pixels():
    unknown, given_map = flap(CAMERAS[0])
    mask = np.zeros(unknown.shape, bool)
    mask[:64, :77] = True  # with the tear in it
    mask[70, 3:60] = True
    mask[41:64, 78] = True
    mask[66, 10] = True
    mask[66:68, 12:14] = np.eye(2, dtype=bool)
    given_map = NormalMap(given_map.normals, mask, given_map.camera)
    found, plain = (integrate_pixels(given_map, discontinuities=choice) for choice in (True, False))
    assert np.array_equal(np.isfinite(found), mask)
    component, count = ndimage.label(mask)
    assert count == 6
    for c in range(1, count + 1):
        here = component == c
        assert abs(found[here].mean()) < 1e-9
        torn = c == component[10, 10]
        assert np.std((found - unknown)[here]) < (0.5 * np.std((plain - unknown)[here]) if torn else 1e-6)
    alone = integrate_pixels(NormalMap(np.array([[[0.0, 0.6, 0.8]]])), discontinuities=True)
    assert alone.tolist() == [[0.0]]


def test_random_normals_converge():
    rng = np.random.default_rng(0)
    normals = rng.normal((0, 0, 0.3), 1, (80, 90, 3))
    normals[..., 2] = np.abs(normals[..., 2])
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    mask = rng.random((80, 90)) > 0.2
    for camera in CAMERAS:
        with pytest.warns(NormalMeshWarning, match="clamped to 85°"):
            given_map = NormalMap(normals, mask, camera)
        found = integrate_pixels(given_map, discontinuities=True)
        assert np.array_equal(np.isfinite(found), mask)


def test_the_same_for_any_number_of_threads():
    _, given_map = flap(CAMERAS[1])
    alone, together = on_one_and_on_several(lambda: integrate_pixels(given_map, discontinuities=True))
    assert np.array_equal(alone, together)


def test_ground_truth(cases):
    """Bilateral normal integration (Cao et al. 2022) reaches a mean absolute error of 0.26 mm."""
    folder = cases / "diligent_reading"
    given_map = read_normal_map(folder / "normals.png", mask=folder / "mask.png", camera=folder / "K.txt")
    truth = np.load(folder / "depth.npz")["depth"].astype(float)
    found = integrate_pixels(given_map, discontinuities=True)
    inside = given_map.mask & np.isfinite(truth)
    ratio = np.median(truth[inside] / found[inside])
    assert np.abs(ratio * found - truth)[inside].mean() < 0.2


def flap(camera, shape=(72, 80)):
    """Return unknown and normal map of a sheet that is torn from above; left of the tear it rises to the right."""
    v, u = np.mgrid[: shape[0], : shape[1]] + 0.5
    along = np.clip(1 - v / (0.8 * shape[0]), 0, None)
    fade, fade_slope = along**2, -2 * along / (0.8 * shape[0])
    on = (u > 0.2 * shape[1]) & (u < 0.6 * shape[1])
    ramp = np.where(on, u - 0.2 * shape[1], 0)
    return _scene(0.5 * ramp * fade, np.where(on, 0.5 * fade, 0), 0.5 * ramp * fade_slope, camera)


def bowl(camera, shape=(72, 80)):
    v, u = np.mgrid[: shape[0], : shape[1]] + 0.5
    p, q = (u - 30) / 50, (v - 40) / 60
    return _scene(25 * p**2 + 30 * q**2 + 10 * np.sin(3 * p), p + 0.6 * np.cos(3 * p), q, camera)


def _scene(height, slope_u, slope_v, camera):
    """Return unknown and normal map of the camera from height and slopes in pixels."""
    unknown, slope_u, slope_v = (camera.pixel_length * values for values in (height, slope_u, slope_v))
    v, u = np.mgrid[: height.shape[0], : height.shape[1]] + 0.5
    rays = camera.rays(u, v)
    along_u, along_v = (
        tau + slope[..., None] * rays for tau, slope in zip(camera.tangents, (slope_u, slope_v), strict=True)
    )
    normals = np.cross(along_u, along_v)
    normals *= camera.towards_viewer * np.sign((normals * rays).sum(axis=-1, keepdims=True))
    return unknown, NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True), None, camera)


def error(given_map, unknown, discontinuities):
    """Return the deviation from the unknown, in pixels."""
    found = integrate_pixels(given_map, discontinuities=discontinuities)
    if isinstance(given_map.camera, Perspective):
        found = np.log(found)
    return np.std(found - unknown) / given_map.camera.pixel_length


def _is_inside(point, corners):
    """Return whether a point is clearly inside a triangle (3, 2)."""
    a, b, c = corners
    s, t = np.linalg.solve(np.stack([b - a, c - a], axis=1), point - a)
    return min(s, t, 1 - s - t) > 0.05
