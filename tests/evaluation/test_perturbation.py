"""Test the noise on normals: its size, its direction, and what it leaves unchanged."""

import numpy as np
import pytest

from normalmesh import NormalMap, NormalMeshError, Perspective, add_noise
from normalmesh.evaluation.metrics import angles_between
from normalmesh.evaluation.synthetic.medallion import Medallion


@pytest.mark.parametrize("degrees", [0.5, 3.0, 10.0])
def test_size(degrees):
    clean = NormalMap(np.full((200, 200, 3), (0.36, -0.48, 0.8)))
    noisy = add_noise(clean, degrees)
    angles = angles_between(noisy.normals, clean.normals)
    # Two independent Gaussian directions give a Rayleigh distribution.
    assert angles.mean() == pytest.approx(degrees * np.sqrt(np.pi / 2), rel=0.01)
    assert np.sqrt((angles**2).mean()) == pytest.approx(degrees * np.sqrt(2), rel=0.01)
    np.testing.assert_allclose(np.linalg.norm(noisy.normals, axis=2), 1, atol=1e-6)


def test_no_direction_is_preferred():
    clean = NormalMap(np.full((300, 300, 3), (0.0, 0.0, 1.0)))
    off = add_noise(clean, 5.0).normals[..., :2].reshape(-1, 2)
    np.testing.assert_allclose(off.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(np.cov(off.T) / np.radians(5) ** 2, np.eye(2), atol=0.03)


def test_seed_mask_and_camera():
    clean = Medallion(32).normal_map
    seen = NormalMap(clean.normals, clean.mask, Perspective(60, 60, 16, 16))
    noisy = add_noise(seen, 30.0, seed=4)
    assert noisy.camera == seen.camera
    np.testing.assert_array_equal(noisy.mask, seen.mask)
    np.testing.assert_array_equal(noisy.normals, add_noise(seen, 30.0, seed=4).normals)
    assert not np.array_equal(noisy.normals, add_noise(seen, 30.0, seed=5).normals)
    assert add_noise(seen, 0.0) is seen


@pytest.mark.parametrize("degrees", [-1.0, np.nan, np.inf])
def test_rejected(degrees):
    with pytest.raises(NormalMeshError, match="degrees must be"):
        add_noise(Medallion(32).normal_map, degrees)
