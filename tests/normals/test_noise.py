"""Noise: the estimate of its standard deviation, and the filter against it."""

import numpy as np
import pytest

import naive_pixels
from meshes import bumpy_map, disc, point_mesh
from normalmesh import NormalMap, NormalMeshError, Orthographic, Perspective, integrate
from normalmesh.evaluation.synthetic.medallion import Medallion
from normalmesh.normals._noise import bilateral
from normalmesh.normals.noise import closure_error, estimate_noise, without_noise
from surfaces import angle_error, noisy, rmse, sphere, waves


@pytest.mark.parametrize("degrees", [3, 10])
@pytest.mark.parametrize("seed", [0, 1])
def test_white_noise_is_told_within_15_percent(degrees, seed):
    for clean in (waves((128, 128))[0], waves((128, 128), mask=disc(128, 60))[0], Medallion(128).normal_map):
        assert estimate_noise(noisy(clean, degrees, seed)) == pytest.approx(degrees, rel=0.15)


def test_noise_behind_a_pinhole():
    clean = sphere(128, Perspective(256.0, 256.0, 64.0, 64.0), radius=1.2)[0]
    assert estimate_noise(noisy(clean, 5)) == pytest.approx(5, rel=0.15)


def test_pixel_size_is_no_noise():
    assert estimate_noise(noisy(waves((96, 96), pixel_size=0.01)[0], 5)) == pytest.approx(5, rel=0.15)


def test_clean_maps_are_told_clean():
    for clean in (waves((128, 128))[0], sphere(128)[0], Medallion(128).normal_map, Medallion(64).normal_map):
        assert estimate_noise(clean) < 1


def test_clean_and_rough_is_told_clean():
    """Integrable detail a few pixels long: the curl distinguishes it from noise."""
    v, u = np.indices((128, 128)) + 0.5
    slope_u = 0.5 * np.cos(0.8 * u + 0.3 * v) + 0.3 * np.cos(0.2 * u - 0.9 * v) * 0.2 / 0.9
    slope_v = 0.5 * np.cos(0.8 * u + 0.3 * v) * 0.3 / 0.8 - 0.3 * np.cos(0.2 * u - 0.9 * v)
    normals = np.stack([-slope_u, slope_v, np.ones_like(u)], axis=-1)
    rough = NormalMap(normals / np.linalg.norm(normals, axis=-1, keepdims=True))
    turned = np.degrees(np.arccos((rough.normals[:, 1:] * rough.normals[:, :-1]).sum(axis=-1).clip(-1, 1)))
    assert turned.mean() > 8, "it is not rough"
    assert estimate_noise(rough) < 1


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1)])
def test_too_small_to_tell(shape):
    assert estimate_noise(bumpy_map(shape)) == 0
    assert estimate_noise(bumpy_map((9, 9), mask=np.indices((9, 9)).sum(axis=0) % 2 == 0)) == 0


CAMERAS = [Orthographic(0.3), Perspective(60.0, 56.0, 12.0, 10.0, skew=1.0)]


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
def test_noise_against_loops(camera):
    mask = np.random.default_rng(0).random((20, 23)) > 0.1
    given = noisy(bumpy_map((20, 23), mask=mask, camera=camera), 4)
    curls = []
    for i, j in zip(*np.nonzero(mask[:-1, :-1] & mask[1:, :-1] & mask[:-1, 1:] & mask[1:, 1:]), strict=True):
        pixels = [naive_pixels.slopes(given, i + k, j + m) for k in (0, 1) for m in (0, 1)]
        (p, q, _), (p_right, q_right, _), (p_low, q_low, _), (p_last, q_last, _) = pixels
        curl = (p + p_right - p_low - p_last + q_right + q_last - q - q_low) / 2
        curls.append(abs(curl * np.mean([flatness for _, _, flatness in pixels])))
    expected = np.degrees(1.4826 * np.median(curls) / np.sqrt(2))
    assert estimate_noise(given) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("camera", CAMERAS, ids=str)
def test_closure_against_loops(camera):
    mask = np.ones((22, 25), bool)
    mask[4, 11] = mask[19, 2] = False
    given = noisy(bumpy_map((22, 25), mask=mask, camera=camera), 4)
    assert closure_error(given, 0.0) == pytest.approx(np.median(naive_pixels.loop_gaps(given, 8)), rel=1e-6)
    assert closure_error(given, 90.0) == 0
    assert closure_error(bumpy_map((8, 30)), 0.0) == closure_error(bumpy_map((30, 8)), 0.0) == 0


def test_a_sample_of_rows_tells_as_much(monkeypatch):
    given = noisy(waves((200, 200))[0], 5)
    every = estimate_noise(given), closure_error(given, 0.0)
    monkeypatch.setattr("normalmesh.normals.noise.SAMPLED", 200 * 200 // 7)
    assert estimate_noise(given) == pytest.approx(every[0], rel=0.05)
    assert closure_error(given, 0.0) == pytest.approx(every[1], rel=0.1)
    assert estimate_noise(given) != every[0]


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
    assert estimated.integration.noise == estimate_noise(given)
    assert np.nanmax(np.abs(given_noise.depth_map() - none.depth_map())) > 0.01
    assert rmse(given_noise, height, given.mask) < rmse(none, height, given.mask)
    assert angle_error(given_noise, normal_map) < angle_error(none, normal_map)


@pytest.mark.parametrize("noise", [-1, float("nan"), float("inf")])
def test_wrong_noise_is_refused(noise):
    with pytest.raises(NormalMeshError, match="noise must be an angle in degrees, zero or more"):
        without_noise(waves((8, 8))[0], noise)
