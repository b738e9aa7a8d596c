"""Noise: the estimate of its standard deviation, and the filter against it."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import naive_pixels
from meshes import bumpy_map, disc, point_mesh
from normalmesh import NormalMap, NormalMeshError, Orthographic, Perspective, integrate
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.normals._noise import bilateral
from normalmesh.normals.noise import MapNoise, Noise, closure_error, component_noise, without_noise
from surfaces import angle_error, noisy, rmse, sphere, waves


def estimate_noise(normal_map):
    """Return the noise that half of the foreground does not exceed."""
    return component_noise(normal_map).usual


def correlated(normal_map, degrees, blur, seed=0):
    """Return the map with noise that a Gaussian has blurred, of this deviation afterwards."""
    error = gaussian_filter(np.random.default_rng(seed).normal(size=normal_map.normals.shape), (blur, blur, 0))
    error *= np.radians(degrees) / error.std()
    normals = normal_map.normals + error - (error * normal_map.normals).sum(-1, keepdims=True) * normal_map.normals
    normals /= np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-9)
    return NormalMap(normals.astype(np.float32), normal_map.mask, normal_map.camera)


@pytest.mark.parametrize("degrees", [3, 10])
@pytest.mark.parametrize("blur", [1, 2, 3])
def test_correlated_noise_is_told_within_30_percent(degrees, blur):
    for clean in (waves((256, 256))[0], Medallion(256).normal_map):
        found = estimate_noise(correlated(clean, degrees, blur))
        assert found.degrees == pytest.approx(degrees, rel=0.3)
        assert found.correlation == pytest.approx(blur, rel=0.3)


def test_a_small_object_is_judged_by_its_own_pixels():
    """Also in an image that is so large that not all of its rows could be looked at."""
    mask = np.zeros((3000, 4000), bool)
    place = slice(2003, 2020), slice(3000, 3300)
    mask[place] = True
    normals = np.zeros((*mask.shape, 3), np.float32)
    normals[place] = noisy(waves((17, 300))[0], 6).normals
    assert estimate_noise(NormalMap(normals, mask)).degrees == pytest.approx(6, rel=0.15)


def test_window_grows_with_the_correlation():
    """Averaging then helps as little as it must: over fewer pixels it would do nothing."""
    clean = waves((128, 128))[0]
    given = correlated(clean, 10, 2)
    angles = []
    for each in (given, without_noise(given, Noise(10.0)), without_noise(given, estimate_noise(given))):
        cosine = (each.normals * clean.normals).sum(axis=-1)
        angles.append(np.degrees(np.arccos(np.clip(cosine, -1, 1))).mean())
    assert angles[1] > 0.9 * angles[0]
    assert angles[2] < 0.85 * angles[0]


@pytest.mark.parametrize("degrees", [3, 10])
@pytest.mark.parametrize("seed", [0, 1])
def test_white_noise_is_told_within_15_percent(degrees, seed):
    for clean in (waves((128, 128))[0], waves((128, 128), mask=disc(128, 60))[0], Medallion(128).normal_map):
        assert estimate_noise(noisy(clean, degrees, seed)).degrees == pytest.approx(degrees, rel=0.15)


def test_noise_behind_a_pinhole():
    clean = sphere(128, Perspective(256.0, 256.0, 64.0, 64.0), radius=1.2)[0]
    assert estimate_noise(noisy(clean, 5)).degrees == pytest.approx(5, rel=0.15)


def test_pixel_size_is_no_noise():
    assert estimate_noise(noisy(waves((96, 96), pixel_size=0.01)[0], 5)).degrees == pytest.approx(5, rel=0.15)


def test_clean_maps_are_told_clean():
    for clean in (waves((128, 128))[0], sphere(128)[0], Medallion(128).normal_map, Medallion(64).normal_map):
        assert estimate_noise(clean).degrees < 0.5


def test_clean_and_rough_is_told_clean():
    """Integrable detail a few pixels long: the curl distinguishes it from noise."""
    v, u = np.indices((128, 128)) + 0.5
    slope_u = 0.5 * np.cos(0.8 * u + 0.3 * v) + 0.3 * np.cos(0.2 * u - 0.9 * v) * 0.2 / 0.9
    slope_v = 0.5 * np.cos(0.8 * u + 0.3 * v) * 0.3 / 0.8 - 0.3 * np.cos(0.2 * u - 0.9 * v)
    normals = np.stack([-slope_u, slope_v, np.ones_like(u)], axis=-1)
    rough = NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True))
    turned = np.degrees(np.arccos((rough.normals[:, 1:] * rough.normals[:, :-1]).sum(axis=-1).clip(-1, 1)))
    assert turned.mean() > 8, "it is not rough"
    assert estimate_noise(rough).degrees < 1


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1)])
def test_too_small_to_tell(shape):
    assert estimate_noise(bumpy_map(shape)) == Noise(0.0)
    assert estimate_noise(bumpy_map((9, 9), mask=np.indices((9, 9)).sum(axis=0) % 2 == 0)) == Noise(0.0)


CAMERAS = [Orthographic(0.3), Perspective(60.0, 56.0, 12.0, 10.0, skew=1.0)]


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
def test_noise_against_loops(camera):
    mask = np.random.default_rng(0).random((20, 23)) > 0.02
    given = correlated(bumpy_map((20, 23), mask=mask, camera=camera), 4, 0.7)
    found = estimate_noise(given)
    expected = []
    for side in (1, 4):
        gaps, _, flatness = naive_pixels.loop_gaps(given, side)
        # The mean of σ²/cos⁴ along the tilt and σ²/cos² across.
        expected.append(1.4826 * np.median(gaps / np.sqrt((flatness**-2 + flatness**-1) / 2)))
    variances = [naive_pixels.closure_variance(side, found.correlation) for side in (1, 4)]
    assert 0 < found.correlation < 3
    assert np.sqrt(variances[1] / variances[0]) == pytest.approx(expected[1] / expected[0], rel=1e-2)
    assert np.radians(found.degrees) * np.sqrt(variances[0]) == pytest.approx(expected[0], rel=1e-5)
    assert np.radians(found.as_white) * np.sqrt(2) == pytest.approx(expected[0], rel=1e-5)


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
def test_closure_against_loops(camera):
    mask = np.ones((22, 25), bool)
    mask[4, 11] = mask[19, 2] = False
    given = noisy(bumpy_map((22, 25), mask=mask, camera=camera), 4)
    gaps, least, _ = naive_pixels.loop_gaps(given, 8)
    assert closure_error(given, 0.0) == pytest.approx(np.median(gaps * least), rel=1e-6)
    assert closure_error(given, 90.0) == 0
    assert closure_error(bumpy_map((8, 30)), 0.0) == closure_error(bumpy_map((30, 8)), 0.0) == 0


def test_a_sample_of_rows_tells_as_much(monkeypatch):
    given = noisy(waves((200, 200))[0], 5)
    every = estimate_noise(given).degrees, closure_error(given, 0.0)
    monkeypatch.setattr("normalmesh.normals.noise.SAMPLED", 200 * 200 // 7)
    assert estimate_noise(given).degrees == pytest.approx(every[0], rel=0.05)
    assert closure_error(given, 0.0) == pytest.approx(every[1], rel=0.1)
    assert estimate_noise(given).degrees != every[0]


@pytest.mark.parametrize("camera", [None, Perspective(30.0, 28.0, 7.0, 6.0)], ids=str)
def test_bilateral_against_loops(camera):
    mask = np.random.default_rng(0).random((12, 14)) > 0.2
    given = noisy(bumpy_map((12, 14), mask=mask, camera=camera), 10)
    smooth = np.empty_like(given.normals)
    bilateral(0, len(smooth), given.normals, given.mask, 2, 1.2, 0.5, smooth)
    np.testing.assert_allclose(smooth, naive_pixels.bilateral(given.normals, mask, 2, 1.2, 0.5), atol=1e-6)


def test_below_one_degree_nothing_is_averaged():
    given = waves()[0]
    assert without_noise(given, 0.99) is given
    assert without_noise(given, 0) is given
    assert without_noise(given, 1.0) is not given


def test_averaging_takes_noise_away_and_keeps_creases():
    clean = waves((96, 96), steepness=0.5)[0]
    angles = []
    for degrees in (3, 10):
        given = noisy(clean, degrees)
        for each in (given, without_noise(given, degrees)):
            cosine = (each.normals * clean.normals).sum(axis=-1)
            angles.append(np.degrees(np.arccos(np.clip(cosine, -1, 1))).mean())
    assert angles[1] < 0.6 * angles[0]
    assert angles[3] < 0.6 * angles[2]
    normals = np.zeros((20, 20, 3))
    normals[:, :10], normals[:, 10:] = [-0.6, 0, 0.8], [0.6, 0, 0.8]
    roof = NormalMap(normals)
    assert np.abs(without_noise(roof, 2.0).normals - roof.normals).max() < 1e-3


def test_noise_may_be_given():
    normal_map, height = waves((64, 64))
    given = noisy(normal_map, 10)
    mesh = point_mesh(given.shape, 200)
    given_noise, none, estimated = (integrate(mesh, given, noise=noise, refine=0) for noise in (10, 0, None))
    assert (given_noise.integration.noise, none.integration.noise) == (10, 0)
    assert estimated.integration.noise == estimate_noise(given).degrees
    assert np.nanmax(np.abs(given_noise.depth_map() - none.depth_map())) > 0.01
    assert rmse(given_noise, height, given.mask) < rmse(none, height, given.mask)
    assert angle_error(given_noise, normal_map) < angle_error(none, normal_map)


@pytest.mark.parametrize("noise", [-1, float("nan"), float("inf")])
def test_wrong_noise_is_refused(noise):
    with pytest.raises(NormalMeshError, match="noise must be an angle in degrees, zero or more"):
        without_noise(waves((8, 8))[0], noise)


def test_a_small_object_in_a_large_image():
    """Rows are sampled where the component is."""
    clean = waves((40, 300))[0]
    normals, mask = np.zeros((1200, 1500, 3)), np.zeros((1200, 1500), bool)
    normals[..., 2] = 1
    normals[500:540, 700:1000], mask[500:540, 700:1000] = noisy(clean, 12).normals, True
    assert estimate_noise(NormalMap(normals, mask)).degrees == pytest.approx(12, rel=0.15)
    # Also if a clean component is much larger,
    mask[600:] = True
    found = component_noise(NormalMap(normals, mask))
    assert found.components[0].degrees == found.largest.degrees == pytest.approx(12, rel=0.15)
    assert found.usual.degrees == found.components[1].degrees < 0.1


def test_a_sample_does_not_miss_the_rows_of_a_comb(monkeypatch):
    """Of teeth of seven rows, nine rows apart, every ninth row may be the last one."""
    mask = np.ones((203, 120), bool)
    mask[7::9, 1:] = mask[8::9, 1:] = False
    mask[:6] = False
    given = noisy(waves(mask.shape, mask=mask)[0], 6)
    every = estimate_noise(given).degrees
    monkeypatch.setattr("normalmesh.normals.noise.SAMPLED", given.foreground // 9)
    assert estimate_noise(given).degrees == pytest.approx(every, rel=0.2)


def test_most_of_the_foreground_decides():
    noise = MapNoise((Noise(9.0), Noise(0.5), Noise(3.0)), (10, 30, 25))
    assert noise.usual == Noise(3.0)
    assert noise.largest == Noise(9.0)
    assert noise.of(2) == Noise(3.0)
    assert MapNoise((Noise(2.0),), (7,)).of(5) == Noise(2.0)
