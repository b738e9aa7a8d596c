"""Check pixel integration with depth discontinuities: jumps are kept, and smooth surfaces are not changed."""

from contextlib import nullcontext

import numpy as np
import pytest
from scipy import ndimage

import naive_pixels
from normalmesh import NormalMap, NormalMeshWarning, Orthographic, Perspective, integrate_pixels, read_normal_map
from normalmesh.integration import pixel_jumps
from normalmesh.integration._pixel_jumps import PixelValues, cauchy_weights
from normalmesh.integration.pixel_grid import EdgeWeights, aggregate_pixels, over_rows
from normalmesh.integration.pixel_jumps import one_sided_weights
from normalmesh.solvers._multigrid import STRONG
from surfaces import noisy
from thread_counts import on_one_and_on_several

CAMERAS = [Orthographic(0.7), Perspective(900.0, 800.0, 41.0, 34.0, skew=3.0)]


@pytest.mark.parametrize("camera", CAMERAS, ids=["orthographic", "perspective"])
def test_a_jump_bends_less(camera):
    unknown, given_map = flap(camera)
    assert error(given_map, unknown, True) < 0.3 * error(given_map, unknown, False)


@pytest.mark.parametrize("camera", CAMERAS, ids=["orthographic", "perspective"])
def test_a_smooth_surface_stays(camera):
    unknown, given_map = bowl(camera)
    assert error(given_map, unknown, True) < 1.02 * error(given_map, unknown, False)


def test_noise_does_not_tear():
    """Noise of 3° causes no jumps."""
    unknown, given_map = bowl(Orthographic())
    rough = noisy(given_map, 3.0)
    assert error(rough, unknown, True) < 1.1 * error(rough, unknown, False)
    unknown, given_map = flap(Orthographic())
    rough = noisy(given_map, 3.0)
    assert error(rough, unknown, True) < 0.4 * error(rough, unknown, False)


def test_weights_against_their_formulas():
    rng = np.random.default_rng(0)
    mask = rng.random((7, 8)) > 0.2
    mask[3, 3:5] = True
    upright, z = rng.uniform(0.1, 1, mask.shape), rng.normal(0, 1, mask.shape)
    half_steps = rng.normal(0, 0.3, (*mask.shape, 4))
    z[3, 4] = 50.0  # far from all its neighbours: its weight still goes to the nearest of them
    pixels = PixelValues(mask, upright, z, half_steps)
    edges = EdgeWeights(np.zeros(mask.shape, np.float32), np.zeros(mask.shape, np.float32))
    one_sided_weights(pixels, 5.0, 1e-6, edges)
    assert_weights(*edges, naive_pixels.one_sided_weights(mask, upright, z, 5.0, 1e-6))
    over_rows(cauchy_weights, mask.shape, pixels, 0.05, edges)
    assert_weights(*edges, naive_pixels.cauchy_weights(mask, upright, z, half_steps, 0.05))


def test_aggregates_are_joined_by_strong_edges():
    rng = np.random.default_rng(0)
    for rows, columns in rng.integers(1, 9, (40, 2)):
        mask = rng.random((rows, columns)) < 0.85
        right, down = np.zeros(mask.shape, np.float32), np.zeros(mask.shape, np.float32)
        right[:, :-1] = (mask[:, 1:] & mask[:, :-1]) * 100 ** -rng.random((rows, columns - 1))
        down[:-1] = (mask[1:] & mask[:-1]) * 100 ** -rng.random((rows - 1, columns))
        aggregate, cells = aggregate_pixels(mask, EdgeWeights(right, down))
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
        with pytest.warns(NormalMeshWarning) if isinstance(camera, Perspective) else nullcontext():
            given_map = NormalMap(normals, mask, camera)
        found = integrate_pixels(given_map, discontinuities=True)
        assert np.array_equal(np.isfinite(found), mask)


def test_the_same_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(pixel_jumps, "SHARPNESS", pixel_jumps.SHARPNESS[-3:])
    monkeypatch.setattr(pixel_jumps, "SETTLINGS", 3)
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


def assert_weights(right, down, expected):
    np.testing.assert_allclose(right, expected[0], rtol=1e-5)
    np.testing.assert_allclose(down, expected[1], rtol=1e-5)
