"""Check integration on the pixel grid: exact on planes, second order on curved surfaces, any mask."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import ndimage

import naive_pixels
from normalmesh import NormalMap, NormalMeshError, Orthographic, Perspective, integrate_pixels, read_normal_map
from normalmesh.integration._pixel_integration import multiply_grid
from normalmesh.integration.pixel_grid import EdgeWeights, over_rows, solve_grid
from thread_counts import on_one_and_on_several

CAMERAS = [Orthographic(0.7), Perspective(90.0, 80.0, 21.0, 14.0, skew=3.0)]


@settings(max_examples=20)
@given(arrays.arrays(np.bool_, (5, 6)), st.integers(0, 1), st.integers(0, 1000))
def test_against_dense_least_squares(mask, which, seed):
    mask[2, 3] = True
    camera = CAMERAS[which]
    towards_viewer = camera.towards_viewer * camera.rays(3.0, 2.5)
    turns = np.clip(np.random.default_rng(seed).normal(0, 0.3, (5, 6, 3)), -0.5, 0.5)
    normals = towards_viewer + turns * np.linalg.norm(towards_viewer)
    given_map = _map(normals, mask, camera)
    expected = naive_pixels.pixel_depths(given_map.normals, mask, camera)
    found = integrate_pixels(given_map, distance=2.0)
    assert np.array_equal(np.isfinite(found), mask)
    component, count = ndimage.label(mask)
    for c in range(1, count + 1):
        here = component == c
        if which == 0:
            np.testing.assert_allclose(found[here], expected[here[mask]], atol=1e-6)
            assert abs(found[here].mean()) < 1e-9
        else:
            assert found[here].mean() == pytest.approx(2.0)
            shape = np.exp(expected[here[mask]])
            np.testing.assert_allclose(found[here], 2.0 * shape / shape.mean(), rtol=1e-6)


@pytest.mark.parametrize("direction", [(0, 0, 1), (1, 0.2, 1), (-0.3, -2, 0.8), (0.5, 0.5, 0.3)])
def test_planes_orthographic(direction):
    camera = Orthographic(0.25)
    mask = _disc(60)
    plane = _map(np.broadcast_to(np.array(direction, float), (60, 60, 3)), mask, camera)
    n = plane.normals[30, 30].astype(float)
    i, j = np.indices(mask.shape)
    expected = -(n[0] * 0.25 * (j + 0.5) - n[1] * 0.25 * (i + 0.5)) / n[2]
    found = integrate_pixels(plane)[mask]
    error = found - (expected - expected[mask].mean())[mask]
    assert np.abs(error).max() <= 1e-9 * max(np.ptp(expected), 1)


@pytest.mark.parametrize("direction", [(0, 0, 1), (1, 0.2, 1), (-0.3, -1, 0.8)])
def test_planes_perspective(direction):
    camera = Perspective(70.0, 65.0, 28.0, 33.0, skew=1.0)
    mask = _disc(60)
    plane = _map(np.broadcast_to(np.array(direction, float), (60, 60, 3)), mask, camera)
    n = plane.normals[30, 30].astype(float)
    i, j = np.indices(mask.shape)
    # n and n · (distance r) are constant, so the distance is proportional to 1 / (n · r).
    expected = 1 / (camera.rays(j + 0.5, i + 0.5) @ n)
    expected *= 3.0 / expected[mask].mean()
    np.testing.assert_allclose(integrate_pixels(plane, distance=3.0)[mask], expected[mask], rtol=1e-9)


@pytest.mark.parametrize("perspective", [False, True])
def test_second_order_on_a_sphere(perspective):
    errors = [_cap_error(size, perspective) for size in (32, 64, 128)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders.min() > 1.8


def test_single_pixels_rows_and_components():
    assert integrate_pixels(_map(np.array([[[0.3, 0.0, 1.0]]]))).tolist() == [[0.0]]
    tilted = np.broadcast_to([-0.5, 0.0, 1.0], (1, 5, 3))
    np.testing.assert_allclose(integrate_pixels(_map(tilted)), [[-1.0, -0.5, 0.0, 0.5, 1.0]], atol=1e-7)
    column = np.broadcast_to([0.0, 0.5, 1.0], (4, 1, 3))
    np.testing.assert_allclose(integrate_pixels(_map(column)).ravel(), [-0.75, -0.25, 0.25, 0.75], atol=1e-7)
    checks = np.indices((9, 8)).sum(axis=0) % 2 == 0
    alone = integrate_pixels(_map(np.broadcast_to([0.2, 0.1, 1.0], (9, 8, 3)), checks))
    assert np.array_equal(alone[checks], np.zeros(checks.sum()))
    assert np.isnan(alone[~checks]).all()


@pytest.mark.parametrize("name", ["comb", "wide comb", "spiral", "20 % holes", "35 % holes", "40 % holes", "frame"])
def test_masks_full_of_cracks(name):
    """Every component is an exact paraboloid, also at the end of long paths."""
    mask = _cracked(name, 257)
    i, j = np.indices(mask.shape)
    u, v = (j + 0.5) / 257 - 0.5, (i + 0.5) / 257 - 0.4
    height = 257 * (u**2 - 0.7 * v**2 + 0.3 * u * v)
    normals = np.stack([-(2 * u + 0.3 * v), -1.4 * v + 0.3 * u, np.ones_like(u)], axis=-1)
    found = integrate_pixels(_map(normals, mask))
    component, _ = ndimage.label(mask)
    sizes = np.bincount(component.ravel())
    for c in np.argsort(-sizes[1:])[:5] + 1:
        here = component == c
        error = (found - height)[here]
        assert np.abs(error - error.mean()).max() < 1e-4


@pytest.mark.parametrize("contrast", [1.0, 150.0])
def test_uneven_weights(contrast):
    """Clamped to 85°, normals give weights between 1/131 and 1."""
    rng = np.random.default_rng(0)
    mask = rng.random((300, 310)) > 0.15
    right, down = (np.zeros(mask.shape, np.float32) for _ in range(2))
    drawn = contrast ** rng.random((2, *mask.shape))
    right[:, :-1] = (mask[:, 1:] & mask[:, :-1]) * drawn[0, :, 1:]
    down[:-1] = (mask[1:] & mask[:-1]) * drawn[1, 1:]
    b, product = np.empty(mask.shape), np.empty(mask.shape)
    edges = EdgeWeights(right, down, np.zeros((0, 0), np.float32))
    over_rows(multiply_grid, mask.shape, edges, rng.random(mask.shape), b)
    over_rows(multiply_grid, mask.shape, edges, solve_grid(mask, edges, b), product)
    assert np.linalg.norm(product - b) <= 1e-8 * np.linalg.norm(b)


def test_a_flat_component_is_as_exact_beside_a_steep_one():
    """The residual of 1e-8 is that of both together."""
    mask = np.ones((90, 300), bool)
    mask[:, :3] = False
    mask[:2, 0] = True
    right, down = (np.zeros(mask.shape, np.float32) for _ in range(2))
    right[:, :-1], down[:-1] = mask[:, 1:] & mask[:, :-1], mask[1:] & mask[:-1]
    edges = EdgeWeights(right, down, np.zeros((0, 0), np.float32))
    truth, b = np.random.default_rng(0).random(mask.shape), np.empty(mask.shape)
    truth[:, 0] *= 1e9
    over_rows(multiply_grid, mask.shape, edges, truth, b)
    error = (solve_grid(mask, edges, b, 1e-6) - truth)[:, 3:]
    assert np.ptp(error) < 1e-5


def test_each_component_is_solved():
    """A smooth component full of holes, which converges slowly, is solved as well beside a rough one as alone."""
    rng = np.random.default_rng(0)
    mask = np.zeros((129, 260), bool)
    mask[:, :129], mask[:, 131:] = _cracked("20 % holes", 129), True
    right, down = (np.zeros(mask.shape, np.float32) for _ in range(2))
    right[:, :-1], down[:-1] = mask[:, 1:] & mask[:, :-1], mask[1:] & mask[:-1]
    edges = EdgeWeights(right, down, np.zeros((0, 0), np.float32))
    height, b, product = np.add(*np.indices(mask.shape) / 130) ** 2, np.empty(mask.shape), np.empty(mask.shape)
    height[:, 131:] = 1e3 * rng.random((129, 129))
    over_rows(multiply_grid, mask.shape, edges, height, b)
    over_rows(multiply_grid, mask.shape, edges, solve_grid(mask, edges, b), product)
    for part in (np.s_[:, :130], np.s_[:, 130:]):
        assert np.linalg.norm((product - b)[part]) <= 1e-8 * np.linalg.norm(b[part])


def test_the_same_for_any_number_of_threads():
    mask = _cracked("20 % holes", 150)
    normals = np.random.default_rng(1).normal((0, 0, 1), 0.2, (150, 150, 3))
    given_map = _map(normals, mask, Perspective(200.0, 200.0, 75.0, 75.0))
    alone, together = on_one_and_on_several(lambda: integrate_pixels(given_map))
    assert np.array_equal(alone, together, equal_nan=True)


@pytest.mark.parametrize("distance", [0.0, -1.0, np.nan, np.inf])
def test_bad_distance(distance):
    with pytest.raises(NormalMeshError, match="distance must be a positive number"):
        integrate_pixels(_map(np.ones((2, 2, 3))), distance=distance)


@pytest.mark.parametrize(
    ("name", "bound"), [("sphere512", 0.01), ("relief_igea512", 0.05), ("relief_bunny512", 0.05), ("ridges512", 0.36)]
)
def test_ground_truth(cases, name, bound):
    given_map = read_normal_map(cases / name / "normals.png", mask=cases / name / "mask.png")
    depth = np.load(cases / name / "depth.npz")["depth"]
    error = (integrate_pixels(given_map) + depth)[given_map.mask]
    assert np.std(error) <= bound


def _map(normals, mask=None, camera=None):
    """Return a NormalMap of normals of any length, without the warning about their length."""
    normals = np.asarray(normals, float)
    normals = normals / np.linalg.norm(normals, axis=-1, keepdims=True)
    return NormalMap(normals, mask, camera or Orthographic())


def _disc(size):
    i, j = np.ogrid[:size, :size]
    return (i - size / 2 + 0.5) ** 2 + (j - size / 2 + 0.5) ** 2 < (0.47 * size) ** 2


def _cap_error(size, perspective):
    """Return the largest error on a spherical cap, as a share of its extent."""
    mask = _disc(size)
    i, j = np.indices(mask.shape)
    if perspective:
        camera = Perspective(2.0 * size, 2.0 * size, size / 2, size / 2)
        rays = camera.rays(j + 0.5, i + 0.5)
        centre = np.array([0.0, 0.0, -4.0])
        b, a = rays @ centre, np.sum(rays**2, axis=-1)
        root = b**2 - a * (centre @ centre - 2.25)
        truth = (b - np.sqrt(np.maximum(root, 0))) / a
        normals = truth[..., None] * rays - centre
    else:
        camera = Orthographic(1 / size)
        x, y = (j + 0.5) / size - 0.5, 0.5 - (i + 0.5) / size
        truth = np.sqrt(0.49 - x**2 - y**2, where=mask, out=np.ones(mask.shape))
        normals = np.stack([x, y, truth], axis=-1)
    found = integrate_pixels(_map(normals, mask, camera))[mask]
    truth = truth[mask]
    error = found / truth * truth.mean() / found.mean() - 1 if perspective else found - truth + truth.mean()
    return np.abs(error).max()


def _cracked(name, size):
    mask = np.ones((size, size), bool)
    if name == "comb":
        mask[:-1, 1::2] = False
    elif name == "wide comb":
        mask[:-3, 3::4] = False
    elif name == "spiral":
        mask[:] = False
        for k in range(0, size // 2 - 1, 2):
            mask[k, max(k - 2, 0) : size - k] = True
            mask[k : size - k, size - 1 - k] = True
            mask[size - 1 - k, k : size - k] = True
            mask[k + 2 : size - k, k] = True
    elif name == "frame":
        mask[1:-1, 1:-1] = False
        mask[size // 2, :-2] = True
    else:
        mask = np.random.default_rng(0).random((size, size)) > int(name[:2]) / 100
    return mask
